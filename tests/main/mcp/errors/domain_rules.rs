//! Rules that no schema says: options of enrichments, schedules of monitors, hints for searches.

use serde_json::{Value, json};

use super::Dispatch;
use crate::support::Reply;

fn options(count: usize) -> Vec<Value> {
    (0..count)
        .map(|number| json!({"label": format!("label {number}")}))
        .collect()
}

#[test]
fn enrichment_options_are_1_to_150() {
    let mut dispatch = Dispatch::start();
    let enrichment = |count: usize| json!({"websetId": "w", "description": "d", "format": "options", "options": options(count)});
    for count in [1, 150] {
        let call = json!({"operation": "enrichments.create", "args": enrichment(count)});
        assert_eq!(
            dispatch.sent("manage_websets", call).1,
            Vec::<String>::new()
        );
    }
    for count in [0, 151] {
        let failure = dispatch.refused("enrichments.create", enrichment(count));
        assert_eq!(failure.fields(), ["options"]);
        failure.assert_says(&["1 to 150", &format!("got {count}")]);
        let create = json!({"enrichments": [enrichment(count)]});
        let failure = dispatch.refused("websets.create", create);
        assert_eq!(failure.fields(), ["enrichments[0].options"]);
    }
    let without = json!({"websetId": "w", "description": "d", "format": "options"});
    let failure = dispatch.refused("enrichments.create", without);
    assert_eq!(failure.fields(), ["options"]);
}

/// Calls `monitors.create` with this schedule.
fn monitor(cadence: Value) -> Value {
    let behavior = json!({"type": "search", "config": {"count": 2}});
    json!({"websetId": "w", "cadence": cadence, "behavior": behavior})
}

#[test]
fn cron_expression_has_five_valid_fields() {
    let mut dispatch = Dispatch::start();
    for (cron, parts) in [
        ("0 0 9 * * 1", &["five fields", "got 6", "seconds"][..]),
        ("0 9 * *", &["five fields", "got 4"]),
        ("60 9 * * 1", &["field 1", "minute", "59"]),
        ("0 24 * * 1", &["field 2", "hour", "23"]),
        ("0 9 32 * 1", &["field 3", "day of the month", "31"]),
        ("0 9 * 13 1", &["field 4", "month", "12"]),
        ("0 9 * * 8", &["field 5", "weekday"]),
        ("0 9 * * someday", &["field 5"]),
        (
            "60 24 0 13 8",
            &["field 1", "field 2", "field 3", "field 4", "field 5"],
        ),
        ("@daily", &["did you mean `0 0 * * *`?"]),
    ] {
        for operation in ["monitors.create", "monitors.update"] {
            let args = match operation {
                "monitors.create" => monitor(json!({"cron": cron})),
                _ => json!({"monitorId": "m", "cadence": {"cron": cron}}),
            };
            let failure = dispatch.refused(operation, args);
            assert_eq!(failure.fields(), ["cadence.cron"], "{cron}");
            failure.assert_says(parts);
        }
    }
    for cron in [
        "0 9 * * 1",
        "*/15 8-18 1,15 JAN-JUN mon-fri",
        "59 23 31 12 7",
        "0 0 * * 0",
    ] {
        let call = json!({"operation": "monitors.create", "args": monitor(json!({"cron": cron}))});
        assert_eq!(
            dispatch.sent("manage_websets", call).1,
            Vec::<String>::new(),
            "{cron}"
        );
    }
}

#[test]
fn timezone_must_be_known() {
    let mut dispatch = Dispatch::start();
    let cadence = |zone: &str| json!({"cron": "0 9 * * 1", "timezone": zone});
    for (zone, meant) in [
        ("Europe/Berln", "Europe/Berlin"),
        ("+02:00", ""),
        ("Mars/Olympus", ""),
    ] {
        let failure = dispatch.refused("monitors.create", monitor(cadence(zone)));
        assert_eq!(failure.fields(), ["cadence.timezone"]);
        failure.assert_says(&[zone, "IANA", meant]);
    }
    for zone in [
        "Europe/Berlin",
        "Etc/UTC",
        "America/Argentina/Buenos_Aires",
        "Asia/Kolkata",
    ] {
        let call = json!({"operation": "monitors.create", "args": monitor(cadence(zone))});
        assert_eq!(
            dispatch.sent("manage_websets", call).1,
            Vec::<String>::new(),
            "{zone}"
        );
    }
    let call = json!({"operation": "monitors.create", "args": monitor(cadence("europe/berlin"))});
    let (seen, notes) = dispatch.sent("manage_websets", call);
    assert_eq!(
        seen.json().expect("a body")["cadence"]["timezone"],
        "Europe/Berlin"
    );
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[test]
fn both_parts_of_a_schedule_are_reported() {
    let cadence = json!({"cron": "0 0 9 * * 1", "timezone": "Nowhere"});
    let failure = Dispatch::start().refused("monitors.create", monitor(cadence));
    assert_eq!(failure.fields(), ["cadence.cron", "cadence.timezone"]);
}

/// Models get these wrong again and again, whoever it is that says no.
#[test]
fn search_errors_list_common_issues() {
    let hints = [
        "`criteria`",
        "{\"type\": \"company\"}",
        "`description`",
        "`count`",
        "`behavior`",
        "`scope`",
    ];
    let failure = Dispatch::start().refused("searches.create", json!({"websetId": "w"}));
    failure.assert_says(&hints);
    assert!(
        failure.error["hints"]
            .as_array()
            .is_some_and(|hints| hints.len() >= 4)
    );
    let mut dispatch =
        Dispatch::answering(Reply::json(400, &json!({"message": "entity is wrong"})));
    let args = json!({"websetId": "w", "query": "banks", "count": 1});
    let failure = dispatch.failed("manage_websets", "searches.create", args.clone());
    failure.assert_says(&["entity is wrong"]);
    failure.assert_says(&hints);
    // They are about arguments: an error of another kind has nothing to do with them.
    let mut dispatch = Dispatch::answering(Reply::json(404, &json!({"message": "no such webset"})));
    let failure = dispatch.failed("manage_websets", "searches.create", args);
    assert_eq!(failure.error.get("hints"), None);
}
