//! Constraints that a schema cannot express.

use serde_json::{Value, json};

use super::{assert_corrected, assert_rejected, assert_unchanged, run};

const OPTIONS: &str = "must hold 1 to 150 labels when the format is `options`, e.g. [{\"label\":\"yes\"},{\"label\":\"no\"}]";

#[test]
fn options_require_labels() {
    assert_rejected(
        "enrichments.create",
        json!({"websetId": "w", "description": "x", "format": "options"}),
        &[("options", &format!("`options` {OPTIONS}; got none"))],
    );
    assert_rejected(
        "enrichments.update",
        json!({"websetId": "w", "enrichmentId": "e", "format": "options",
               "options": [{"label": "a"}, {"label": " "}]}),
        &[("options[1].label", "`options[1].label` must not be empty")],
    );
    let many: Vec<Value> = (0..151)
        .map(|it| json!({"label": it.to_string()}))
        .collect();
    assert_rejected(
        "enrichments.create",
        json!({"websetId": "w", "description": "x", "format": "options", "options": many}),
        &[(
            "options",
            "`options` must have at most 150 entries; got 151",
        )],
    );
    assert_rejected(
        "websets.create",
        json!({"enrichments": [{"description": "a"}, {"description": "b", "format": "options"}]}),
        &[(
            "enrichments[1].options",
            &format!("`enrichments[1].options` {OPTIONS}; got none"),
        )],
    );
    let idle = json!({"websetId": "w", "description": "x", "format": "text",
                      "options": [{"label": "a"}]});
    assert_corrected(
        "enrichments.create",
        idle.clone(),
        idle,
        &["`options` only has an effect when the format is `options`"],
    );
}

fn monitor(cadence: Value) -> Value {
    json!({"websetId": "w", "cadence": cadence,
           "behavior": {"type": "search", "config": {"count": 1}}})
}

#[test]
fn cron_expressions_have_five_fields() {
    assert_unchanged(
        "monitors.create",
        monitor(json!({"cron": "*/30 9-17 * jan mon-fri"})),
    );
    assert_rejected(
        "monitors.create",
        monitor(json!({"cron": "0 0 9 * * 1"})),
        &[(
            "cadence.cron",
            "`cadence.cron` must have exactly five fields (minute, hour, day of the month, month, weekday); got 6, leave out the seconds; an example is `0 9 * * 1` (Mondays at nine)",
        )],
    );
    assert_rejected(
        "monitors.update",
        json!({"monitorId": "m", "cadence": {"cron": "0 25 * * 1"}}),
        &[(
            "cadence.cron",
            "`cadence.cron` is not a valid cron expression: field 2 (hour) must be `*` or made of 0 to 23, with lists `a,b`, ranges `a-b` and steps `*/n`; got `25`; an example is `0 9 * * 1` (Mondays at nine)",
        )],
    );
    assert_corrected(
        "monitors.create",
        monitor(json!("0 9 * * 1")),
        monitor(json!({"cron": "0 9 * * 1"})),
        &["`cadence`: read \"0 9 * * 1\" as {\"cron\":\"0 9 * * 1\"}"],
    );
}

#[test]
fn time_zones_are_iana_names() {
    let zone = |zone: &str| monitor(json!({"cron": "0 9 * * 1", "timezone": zone}));
    assert_unchanged("monitors.create", zone("Europe/Berlin"));
    assert_corrected(
        "monitors.create",
        zone("europe/BERLIN"),
        zone("Europe/Berlin"),
        &["`cadence.timezone`: read \"europe/BERLIN\" as \"Europe/Berlin\""],
    );
    for (given, hint) in [
        ("Berlin", "; did you mean `Europe/Berlin`?"),
        ("PST", "; did you mean `America/Los_Angeles`?"),
        ("+02:00", ""),
    ] {
        assert_rejected(
            "monitors.create",
            zone(given),
            &[(
                "cadence.timezone",
                &format!(
                    "`cadence.timezone` must be the IANA name of a time zone such as `Europe/Berlin` or `Etc/UTC`; got `{given}`{hint}"
                ),
            )],
        );
    }
}

#[test]
fn agent_monitors_run_every_six_hours_at_most() {
    let call = |cadence: &str| {
        json!({"cadence": cadence, "entities": [{"name": "Exa", "domain": "exa.ai"}],
               "fields": [{"name": "ceo", "description": "Who leads it"}]})
    };
    assert_unchanged("agent.monitors.create", call("6h"));
    for (given, right) in [("12 hours", "12h"), ("1 week", "7d"), ("7D", "7d")] {
        assert_corrected(
            "agent.monitors.create",
            call(given),
            call(right),
            &[&format!("`cadence`: read \"{given}\" as \"{right}\"")],
        );
    }
    let wish = "`cadence` must be a number and `h` or `d`, at least `6h`, such as `12h` or `7d`";
    for (given, hint) in [
        ("5h", ""),
        ("600m", ""),
        ("1d12h", ""),
        ("h", ""),
        ("99999999999999999999d", ""),
        ("18446744073709551615d", ""),
        ("daily", "; did you mean `1d`?"),
    ] {
        let text = format!("{wish}; got `{given}`{hint}");
        assert_rejected("agent.monitors.create", call(given), &[("cadence", &text)]);
    }
}

#[test]
fn search_monitors_run_every_hour_at_most() {
    let call =
        |period: &str| json!({"monitorId": "m", "trigger": {"type": "interval", "period": period}});
    for period in ["1h", "6h", "7d", "60m"] {
        assert_unchanged("search_monitors.update", call(period));
    }
    assert_corrected(
        "search_monitors.update",
        call("1 Day"),
        call("1d"),
        &["`trigger.period`: read \"1 Day\" as \"1d\""],
    );
    for given in ["30m", "0h", "1h30m", "6"] {
        let text = format!(
            "`trigger.period` must be one number and one unit, at least `1h`, such as `6h`, `1d` or `7d`; got `{given}`"
        );
        assert_rejected(
            "search_monitors.update",
            call(given),
            &[("trigger.period", &text)],
        );
    }
}

#[test]
fn counts_and_urls() {
    assert_rejected(
        "searches.create",
        json!({"websetId": "w", "query": "x", "count": 2.5}),
        &[(
            "count",
            "`count` must be a whole number of at least 1; got 2.5",
        )],
    );
    assert_rejected(
        "find_similar",
        json!({"url": "exa.ai"}),
        &[(
            "url",
            "`url` must be a URL that starts with http:// or https://; got `exa.ai`; did you mean `https://exa.ai`?",
        )],
    );
    // Ids of results have an argument of their own.
    for id in ["some-result-id", "https://exa.ai/", "doi:10.1/x"] {
        assert_unchanged("get_contents", json!({"ids": [id]}));
    }
}

#[test]
fn ids_are_not_addresses_of_other_kinds() {
    for other in [
        "ftp://a.example/x",
        "file:///etc/passwd",
        "javascript:alert(1)",
    ] {
        let problems = run("get_contents", json!({"ids": [other]})).unwrap_err();
        assert_eq!(problems.problems[0].path, "ids[0]", "{other}");
    }
}

#[test]
fn import_content_replaces_size_and_count() {
    assert_corrected(
        "imports.create",
        json!({"csv_content": "name\nExa", "entity": {"type": "company"}}),
        json!({"csvContent": "name\nExa", "entity": {"type": "company"}}),
        &["`csv_content`: read as `csvContent`"],
    );
    assert_corrected(
        "imports.create",
        json!({"size": 8, "count": 1, "entity": {"type": "company"}}),
        json!({"size": 8, "count": 1, "entity": {"type": "company"}, "format": "csv"}),
        &["`format`: added \"csv\", the only possible value"],
    );
    let missing = "is required, unless `csvContent` or `filePath` is given";
    assert_rejected(
        "imports.create",
        json!({"entity": {"type": "company"}}),
        &[
            ("size", &format!("`size` {missing}")),
            ("count", &format!("`count` {missing}")),
        ],
    );
    assert_rejected(
        "imports.create",
        json!({"csvContent": "a\nb", "filePath": "b.csv", "entity": {"type": "company"}}),
        &[(
            "csvContent",
            "`csvContent` and `filePath` cannot be combined; give one of them",
        )],
    );
    let error = run("imports.create", json!({"filePath": "a.csv", "size": "x"})).unwrap_err();
    let paths: Vec<&str> = error.problems.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, ["entity", "size"]);
}
