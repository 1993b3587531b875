//! Arguments that do not fit: everything that is wrong is told at once, with a call that would fit.

use serde_json::{Value, json};

use super::Dispatch;

#[test]
fn all_missing_arguments_are_reported() {
    let mut dispatch = Dispatch::start();
    let failure = dispatch.refused("searches.create", json!({}));
    assert_eq!(failure.fields(), ["count", "query", "websetId"]);
    let failure = dispatch.refused("imports.create", json!({}));
    // There is only one format, so nobody has to name it.
    assert_eq!(failure.fields(), ["count", "entity", "size"]);
    let failure = dispatch.refused("items.get", json!({"websetId": "w"}));
    assert_eq!(failure.fields(), ["itemId"]);
}

#[test]
fn all_problems_are_reported_together() {
    let mut dispatch = Dispatch::start();
    let failure = dispatch.refused(
        "searches.create",
        json!({
            "websetId": "w", "query": "banks", "count": 0, "entity": {"type": "compny"},
            "criteria": [{"description": "a"}, {"descriptoin": "b"}], "behavior": "replace",
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
    failure.assert_says(&[
        "did you mean `company`?",
        "`descriptoin` was given, did you mean `description`?",
        "override, append",
        "`replace`",
        "at least 1",
    ]);
}

#[test]
fn error_shows_given_and_allowed_values() {
    let mut dispatch = Dispatch::start();
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
            json!({"monitorId": "m", "status": "on"}),
            &["`status`", "enabled, disabled", "`on`"],
        ),
        (
            "webhooks.create",
            json!({"url": "hooks.example/x", "events": ["webset.idle"]}),
            &["`url`", "did you mean `https://hooks.example/x`?"],
        ),
    ] {
        let failure = dispatch.refused(operation, args);
        failure.assert_says(parts);
        failure.assert_says(&["A minimal valid call: "]);
    }
}

/// The example has to survive being copied.
#[test]
fn error_example_is_a_valid_call() {
    let mut dispatch = Dispatch::start();
    for operation in [
        "searches.create",
        "items.get",
        "enrichments.create",
        "monitors.create",
        "webhooks.create",
    ] {
        let failure = dispatch.refused(operation, json!({}));
        let call = json!({"operation": operation, "args": failure.error["example"]});
        let (_, notes) = dispatch.sent("manage_websets", call);
        assert_eq!(notes, Vec::<String>::new(), "{operation}");
    }
}

#[test]
fn arguments_must_be_an_object() {
    let mut dispatch = Dispatch::start();
    for args in [
        json!([]),
        json!(5),
        json!("query"),
        json!(true),
        json!("[1]"),
    ] {
        let failure = dispatch.refused("websets.get", args);
        failure.assert_says(&["object"]);
    }
}

#[test]
fn an_operation_must_be_named() {
    let mut dispatch = Dispatch::start();
    for call in [
        json!({}),
        json!({"operation": null}),
        json!({"operation": 5}),
        json!({"operation": " "}),
        json!({"args": {}}),
    ] {
        let failure = dispatch.server.call("manage_websets", call).failure();
        failure.assert_code(-32602, "INVALID_PARAMS");
        failure.assert_says(&["`operation`", "websets.create", "items.list"]);
    }
}

#[test]
fn unknown_operation_suggests_a_similar_name() {
    let mut dispatch = Dispatch::start();
    for (tool, given, meant) in [
        ("manage_websets", "websets.creat", "websets.create"),
        ("manage_websets", "item.list", "items.list"),
        ("exa_api", "serch", "search"),
        ("exa_api", "findSimilars", "find_similar"),
    ] {
        let failure = dispatch.failed(tool, given, json!({}));
        failure.assert_code(-32602, "INVALID_PARAMS");
        failure.assert_says(&[&format!("`{given}`"), &format!("Did you mean `{meant}`?")]);
        assert_eq!(failure.error["didYouMean"], meant);
    }
    let failure = dispatch.failed("exa_api", "zzz", json!({}));
    failure.assert_says(&["zzz", "search", "agent.runs.create"]);
    assert!(dispatch.recorder.take().is_empty());
}

/// A model that has both dispatchers mixes them up; it should not have to search for the other one.
#[test]
fn operation_of_another_dispatcher_is_redirected() {
    let mut dispatch = Dispatch::start();
    for (tool, operation) in [("manage_websets", "answer"), ("exa_api", "websets.create")] {
        let failure = dispatch.failed(tool, operation, json!({"query": "q"}));
        failure.assert_code(-32602, "INVALID_PARAMS");
        failure.assert_says(&[operation]);
    }
    assert!(dispatch.recorder.take().is_empty());
}

#[test]
fn describe_needs_a_known_operation() {
    let mut dispatch = Dispatch::start();
    let failure = dispatch.failed("manage_websets", "describe", json!({}));
    failure.assert_says(&["describe needs args"]);
    let failure = dispatch.failed(
        "manage_websets",
        "describe",
        json!({"operation": "items.lst"}),
    );
    failure.assert_says(&["`items.lst`", "`items.list`"]);
}

/// Twenty problems help; a hundred thousand would be an answer that nobody can read.
#[test]
fn problem_list_is_bounded() {
    let mut dispatch = Dispatch::start();
    let criteria: Vec<Value> = vec![json!({"wrong": 1}); 2000];
    let args = json!({"websetId": "w", "query": "banks", "count": 1, "criteria": criteria});
    let failure = dispatch.refused("searches.create", args);
    assert!(failure.text.len() < 10_000, "{} bytes", failure.text.len());
    assert!(failure.fields().len() <= 30);
    failure.assert_says(&["more"]);
}
