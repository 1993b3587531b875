//! Invalid arguments: all problems are reported at once, with a valid example.

use serde_json::{Value, json};

use super::Fixture;

#[test]
fn all_missing_arguments_are_reported() {
    let mut fixture = Fixture::start();
    let failure = fixture.call_rejected("searches.create", json!({}));
    assert_eq!(failure.fields(), ["count", "query", "websetId"]);
    let failure = fixture.call_rejected("imports.create", json!({}));
    // There is only one format, so it may be omitted.
    assert_eq!(failure.fields(), ["count", "entity", "size"]);
    let failure = fixture.call_rejected("items.get", json!({"websetId": "w"}));
    assert_eq!(failure.fields(), ["itemId"]);
}

#[test]
fn all_problems_are_reported_together() {
    let mut fixture = Fixture::start();
    let failure = fixture.call_rejected(
        "searches.create",
        json!({
            "websetId": "w", "query": "banks", "count": 0, "entity": {"type": "compny"},
            "criteria": [{"description": "a"}, {"descriptoin": "b"}], "behavior": "overide",
        }),
    );
    assert_eq!(
        failure.fields(),
        [
            "behavior",
            "count",
            "criteria[1].description",
            "entity.type"
        ]
    );
    failure.assert_contains(&[
        "did you mean `company`?",
        "`descriptoin` was given, did you mean `description`?",
        "override, append",
        "at least 1",
    ]);
}

#[test]
fn error_shows_given_and_allowed_values() {
    let mut fixture = Fixture::start();
    for (operation, args, parts) in [
        (
            "websets.list",
            json!({"limit": "many"}),
            &["`limit`", "number", "many"][..],
        ),
        (
            "websets.list",
            json!({"limit": [1]}),
            &["`limit`", "number", "list"],
        ),
        (
            "websets.list",
            json!({"limt": 3}),
            &["`limt`", "did you mean `limit`?"],
        ),
        (
            "monitors.update",
            json!({"monitorId": "m", "status": "enabeld"}),
            &[
                "`status`",
                "enabled, disabled",
                "`enabeld`",
                "did you mean `enabled`?",
            ],
        ),
        (
            "webhooks.create",
            json!({"url": "hooks.example/x", "events": ["webset.idle"]}),
            &["`url`", "did you mean `https://hooks.example/x`?"],
        ),
    ] {
        let failure = fixture.call_rejected(operation, args);
        failure.assert_contains(parts);
        failure.assert_contains(&["A minimal valid call: "]);
    }
}

/// The example must be valid when copied.
#[test]
fn error_example_is_a_valid_call() {
    let mut fixture = Fixture::start();
    for operation in [
        "searches.create",
        "items.get",
        "enrichments.create",
        "monitors.create",
        "webhooks.create",
    ] {
        let failure = fixture.call_rejected(operation, json!({}));
        let call = json!({"operation": operation, "args": failure.error["example"]});
        let (_, notes) = fixture.call_recorded("manage_websets", call);
        assert_eq!(notes, Vec::<String>::new(), "{operation}");
    }
}

#[test]
fn arguments_must_be_an_object() {
    let mut fixture = Fixture::start();
    for args in [
        json!([]),
        json!(5),
        json!("query"),
        json!(true),
        json!("[1]"),
    ] {
        let failure = fixture.call_rejected("websets.get", args);
        failure.assert_contains(&["object"]);
    }
}

#[test]
fn an_operation_must_be_named() {
    let mut fixture = Fixture::start();
    for call in [
        json!({}),
        json!({"operation": null}),
        json!({"operation": 5}),
        json!({"operation": " "}),
        json!({"args": {}}),
    ] {
        let failure = fixture.server.call("manage_websets", call).failure();
        failure.assert_code(-32602, "INVALID_PARAMS");
        failure.assert_contains(&["`operation`", "websets.create", "items.list"]);
    }
}

#[test]
fn unknown_operation_suggests_a_similar_name() {
    let mut fixture = Fixture::start();
    for (tool, given, meant) in [
        ("manage_websets", "websets.creat", "websets.create"),
        ("manage_websets", "item.list", "items.list"),
        ("exa_api", "serch", "search"),
        ("exa_api", "findSimilars", "find_similar"),
    ] {
        let failure = fixture.call_failing(tool, given, json!({}));
        failure.assert_code(-32602, "INVALID_PARAMS");
        failure.assert_contains(&[&format!("`{given}`"), &format!("Did you mean `{meant}`?")]);
        assert_eq!(failure.error["didYouMean"], meant);
    }
    let failure = fixture.call_failing("exa_api", "zzz", json!({}));
    failure.assert_contains(&["zzz", "search", "agent.runs.create"]);
    assert!(fixture.recorder.take().is_empty());
}

/// Models confuse the two dispatchers, so the error names the right one.
#[test]
fn operation_of_another_dispatcher_is_redirected() {
    let mut fixture = Fixture::start();
    for (tool, operation) in [("manage_websets", "answer"), ("exa_api", "websets.create")] {
        let failure = fixture.call_failing(tool, operation, json!({"query": "q"}));
        failure.assert_code(-32602, "INVALID_PARAMS");
        failure.assert_contains(&[operation]);
    }
    assert!(fixture.recorder.take().is_empty());
}

#[test]
fn describe_needs_a_known_operation() {
    let mut fixture = Fixture::start();
    let failure = fixture.call_failing("manage_websets", "describe", json!({}));
    failure.assert_contains(&["describe needs args"]);
    let failure = fixture.call_failing(
        "manage_websets",
        "describe",
        json!({"operation": "items.lst"}),
    );
    failure.assert_contains(&["`items.lst`", "`items.list`"]);
}

/// Twenty problems help; a hundred thousand are unreadable.
#[test]
fn problem_list_is_bounded() {
    let mut fixture = Fixture::start();
    let criteria: Vec<Value> = vec![json!({"wrong": 1}); 2000];
    let args = json!({"websetId": "w", "query": "banks", "count": 1, "criteria": criteria});
    let failure = fixture.call_rejected("searches.create", args);
    assert!(failure.text.len() < 10_000, "{} bytes", failure.text.len());
    assert!(failure.fields().len() <= 30);
    failure.assert_contains(&["more"]);
}
