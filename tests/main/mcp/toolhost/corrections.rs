//! Mistakes in the toolhost's names are corrected like those in the names of operations.

use serde_json::{Value, json};

use super::Host;
use crate::support::{McpServer, Recorder, Response};

/// Calls an operation; returns the request body and the corrections.
#[track_caller]
fn sent(tool: &str, operation: &str, params: Value) -> (Value, Value) {
    let recorder = Recorder::always(Response::json(
        200,
        &json!({"id": "x", "status": "created"}),
    ));
    let mut server = McpServer::with_recorder(&recorder, &["--tools", "toolhost"]);
    let call = json!({"operation": operation, "params": params});
    let response = server.call(tool, call).success();
    let body = recorder.only_request().json().expect("a body");
    (
        body,
        response.get("corrections").cloned().unwrap_or_default(),
    )
}

const CADENCE: &str = "0 9 * * 1";

/// Returns the arguments for a monitor.
fn monitor() -> Value {
    let behavior = json!({"type": "search", "config": {"query": "banks", "count": 10}});
    json!({"websetId": "w", "cadence": {"cron": CADENCE}, "behavior": behavior})
}

#[test]
fn toolhost_names_are_translated() {
    let (body, corrections) = sent("exa-sync", "answer", json!({"question": "Who?"}));
    assert_eq!((body, corrections), (json!({"query": "Who?"}), Value::Null));
    let params =
        json!({"websetId": "w", "cadence": {"cron": CADENCE}, "searchParams": {"query": "banks"}});
    assert_eq!(sent("websets-async", "start_monitor", params).0, monitor());
    let filters = json!({"includeDomains": ["a.example"], "category": "news"});
    let (body, _) = sent(
        "exa-sync",
        "search",
        json!({"query": "x", "filters": filters}),
    );
    assert_eq!(
        body,
        json!({"query": "x", "includeDomains": ["a.example"], "category": "news"})
    );
}

#[test]
fn different_case_of_an_operation_is_accepted() {
    let (body, corrections) = sent("exa-sync", "answer", json!({"Question": "Who?"}));
    assert_eq!(body, json!({"query": "Who?"}));
    assert!(corrections.is_array(), "the correction is not reported");
    let params =
        json!({"websetId": "w", "cadence": {"cron": CADENCE}, "search_params": {"query": "banks"}});
    assert_eq!(sent("websets-async", "start_monitor", params).0, monitor());
}

#[test]
fn params_as_json_text_are_accepted() {
    let params = json!({"websetId": "w", "cadence": {"cron": CADENCE}, "searchParams": "{\"query\": \"banks\"}"});
    assert_eq!(sent("websets-async", "start_monitor", params).0, monitor());
}

/// A silently dropped filter would make a wrong result look right.
#[test]
fn filters_as_json_text_are_accepted() {
    let params = json!({"query": "x", "filters": "{\"includeDomains\": [\"a.example\"]}"});
    let (body, _) = sent("exa-sync", "search", params);
    assert_eq!(body, json!({"query": "x", "includeDomains": ["a.example"]}));
}

#[test]
fn suggested_follow_up_is_callable_after_a_correction() {
    let mut host = Host::start();
    let search = json!({"search": {"query": "banks", "count": 2}});
    let webset = host.call("websets-sync", "create_webset", search);
    for name in ["websetId", "webset_id", "webset"] {
        let params = json!({name: webset["id"], "query": "banks"});
        let started = host.call("websets-async", "start_search", params);
        let expected = json!({"websetId": webset["id"], "searchId": started["operationId"]});
        assert_eq!(started["checkWith"]["params"], expected, "{name}");
        host.follow("websets-async", &started["checkWith"]);
        host.follow("websets-async", &started["cancelWith"]);
    }
}

#[test]
fn listing_an_unknown_operation_is_an_error() {
    let mut server = McpServer::sandboxed(&["--tools", "toolhost"]);
    let call = json!({"operation": "list_operations", "params": {"operation": "serch"}});
    let refused = server.call("exa-sync", call).failure();
    refused.assert_code(-32602, "INVALID_PARAMS");
    refused.assert_contains(&["`serch`", "`search`"]);
}
