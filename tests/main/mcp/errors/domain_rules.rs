//! Rules beyond the schemas: enrichment options, monitor schedules and search hints.

use serde_json::{Value, json};

use super::Fixture;
use crate::support::Response;

fn options(count: usize) -> Vec<Value> {
    (0..count)
        .map(|number| json!({"label": format!("label {number}")}))
        .collect()
}

#[test]
fn enrichment_options_are_1_to_150() {
    let mut fixture = Fixture::start();
    let enrichment = |count: usize| json!({"websetId": "w", "description": "d", "format": "options", "options": options(count)});
    for count in [1, 150] {
        let call = json!({"operation": "enrichments.create", "args": enrichment(count)});
        assert_eq!(
            fixture.call_recorded("manage_websets", call).1,
            Vec::<String>::new()
        );
    }
    for count in [0, 151] {
        let failure = fixture.call_rejected("enrichments.create", enrichment(count));
        assert_eq!(failure.fields(), ["options"]);
        failure.assert_contains(&["1 to 150", &format!("got {count}")]);
        let create = json!({"enrichments": [enrichment(count)]});
        let failure = fixture.call_rejected("websets.create", create);
        assert_eq!(failure.fields(), ["enrichments[0].options"]);
    }
    let without = json!({"websetId": "w", "description": "d", "format": "options"});
    let failure = fixture.call_rejected("enrichments.create", without);
    assert_eq!(failure.fields(), ["options"]);
}

/// Calls `monitors.create` with this schedule.
fn monitor(cadence: Value) -> Value {
    let behavior = json!({"type": "search", "config": {"count": 2}});
    json!({"websetId": "w", "cadence": cadence, "behavior": behavior})
}

#[test]
fn cron_expression_has_five_valid_fields() {
    let mut fixture = Fixture::start();
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
            let failure = fixture.call_rejected(operation, args);
            assert_eq!(failure.fields(), ["cadence.cron"], "{cron}");
            failure.assert_contains(parts);
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
            fixture.call_recorded("manage_websets", call).1,
            Vec::<String>::new(),
            "{cron}"
        );
    }
}

#[test]
fn timezone_must_be_known() {
    let mut fixture = Fixture::start();
    let cadence = |zone: &str| json!({"cron": "0 9 * * 1", "timezone": zone});
    for (zone, meant) in [
        ("Europe/Berln", "Europe/Berlin"),
        ("+02:00", ""),
        ("Mars/Olympus", ""),
    ] {
        let failure = fixture.call_rejected("monitors.create", monitor(cadence(zone)));
        assert_eq!(failure.fields(), ["cadence.timezone"]);
        failure.assert_contains(&[zone, "IANA", meant]);
    }
    for zone in [
        "Europe/Berlin",
        "Etc/UTC",
        "America/Argentina/Buenos_Aires",
        "Asia/Kolkata",
    ] {
        let call = json!({"operation": "monitors.create", "args": monitor(cadence(zone))});
        assert_eq!(
            fixture.call_recorded("manage_websets", call).1,
            Vec::<String>::new(),
            "{zone}"
        );
    }
    let call = json!({"operation": "monitors.create", "args": monitor(cadence("europe/berlin"))});
    let (request, notes) = fixture.call_recorded("manage_websets", call);
    assert_eq!(
        request.json().expect("a body")["cadence"]["timezone"],
        "Europe/Berlin"
    );
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[test]
fn both_parts_of_a_schedule_are_reported() {
    let cadence = json!({"cron": "0 0 9 * * 1", "timezone": "Nowhere"});
    let failure = Fixture::start().call_rejected("monitors.create", monitor(cadence));
    assert_eq!(failure.fields(), ["cadence.cron", "cadence.timezone"]);
}

/// Models often get these wrong, so errors of the server and of Exa explain them.
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
    let failure = Fixture::start().call_rejected("searches.create", json!({"websetId": "w"}));
    failure.assert_contains(&hints);
    assert!(
        failure.error["hints"]
            .as_array()
            .is_some_and(|hints| hints.len() >= 4)
    );
    let mut fixture =
        Fixture::with_response(Response::json(400, &json!({"message": "entity is wrong"})));
    let args = json!({"websetId": "w", "query": "banks", "count": 1});
    let failure = fixture.call_failing("manage_websets", "searches.create", args.clone());
    failure.assert_contains(&["entity is wrong"]);
    failure.assert_contains(&hints);
    // The hints are about arguments, so other errors do not include them.
    let mut fixture =
        Fixture::with_response(Response::json(404, &json!({"message": "no such webset"})));
    let failure = fixture.call_failing("manage_websets", "searches.create", args);
    assert_eq!(failure.error.get("hints"), None);
}
