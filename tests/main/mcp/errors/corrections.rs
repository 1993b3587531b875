//! Harmless mistakes are corrected and reported.

use serde_json::{Value, json};

use super::Fixture;
use crate::support::{McpServer, Recorder, Response};

/// Asserts that a dispatcher call sends this request and reports exactly these corrections.
#[track_caller]
fn assert_corrected(tool: &str, call: Value, target: &str, body: Value, notes: &[&str]) {
    let (request, corrections) = Fixture::start().call_recorded(tool, call);
    assert_eq!(format!("{} {}", request.method, request.target), target);
    assert_eq!(request.json().unwrap_or(Value::Null), body);
    assert_eq!(corrections, notes);
}

const WEBSETS: &str = "/websets/v0/websets";

#[test]
fn number_as_text() {
    assert_corrected(
        "manage_websets",
        json!({"operation": "items.list", "args": {"websetId": "w", "limit": "5"}}),
        &format!("GET {WEBSETS}/w/items?limit=5"),
        Value::Null,
        &["`limit`: read \"5\" as the number 5"],
    );
    assert_corrected(
        "exa_api",
        json!({"operation": "search", "args": {"query": "x", "numResults": "5"}}),
        "POST /search",
        json!({"query": "x", "numResults": 5}),
        &["`numResults`: read \"5\" as the number 5"],
    );
}

#[test]
fn single_value_for_a_list() {
    assert_corrected(
        "exa_api",
        json!({"operation": "get_contents", "args": {"urls": "https://a.example/x"}}),
        "POST /contents",
        json!({"urls": ["https://a.example/x"], "text": true}),
        &["`urls`: put the single value into a list"],
    );
}

#[test]
fn an_object_as_json_text() {
    assert_corrected(
        "manage_websets",
        json!({"operation": "websets.create", "args": {"search": "{\"query\": \"banks\"}"}}),
        &format!("POST {WEBSETS}"),
        json!({"search": {"query": "banks"}}),
        &["`search`: read the JSON text as an object"],
    );
}

#[test]
fn different_case_of_a_name() {
    assert_corrected(
        "exa_api",
        json!({"operation": "search", "args": {"query": "x", "num_results": 3, "include-domains": ["a.example"]}}),
        "POST /search",
        json!({"query": "x", "numResults": 3, "includeDomains": ["a.example"]}),
        &[
            "`num_results`: read as `numResults`",
            "`include-domains`: read as `includeDomains`",
        ],
    );
    assert_corrected(
        "manage_websets",
        json!({"operation": "items.list", "args": {"webset_id": "w"}}),
        &format!("GET {WEBSETS}/w/items"),
        Value::Null,
        &["`webset_id`: read as `websetId`"],
    );
}

#[test]
fn an_alias() {
    for alias in ["id", "webset"] {
        // The specs use the name `id` where it is the only identifier.
        let (operation, path) = match alias {
            "id" => ("websets.get", "w"),
            _ => ("items.list", "w/items"),
        };
        assert_corrected(
            "manage_websets",
            json!({"operation": operation, "args": {alias: "w"}}),
            &format!("GET {WEBSETS}/{path}"),
            Value::Null,
            &[&format!("`{alias}`: read as `websetId`")],
        );
    }
}

#[test]
fn alternative_name_for_arguments() {
    for holder in ["params", "arguments"] {
        assert_corrected(
            "manage_websets",
            json!({"operation": "items.list", holder: {"websetId": "w"}}),
            &format!("GET {WEBSETS}/w/items"),
            Value::Null,
            &[&format!("`{holder}` was read as `args`")],
        );
    }
}

#[test]
fn arguments_next_to_the_operation() {
    assert_corrected(
        "manage_websets",
        json!({"operation": "items.list", "websetId": "w", "limit": 2}),
        &format!("GET {WEBSETS}/w/items?limit=2"),
        Value::Null,
        &["arguments beside `operation` were read as `args`"],
    );
}

#[test]
fn all_arguments_as_json_text() {
    assert_corrected(
        "manage_websets",
        json!({"operation": "items.list", "args": "{\"websetId\": \"w\"}"}),
        &format!("GET {WEBSETS}/w/items"),
        Value::Null,
        &["`args` was read from JSON text"],
    );
}

/// Each mistake is reported, even when there are several.
#[test]
fn several_mistakes_at_once() {
    let call = json!({"operation": "Items_List", "params": "{\"id\": \"w\", \"limit\": \"3\"}"});
    let (request, notes) = Fixture::start().call_recorded("manage_websets", call);
    assert_eq!(request.target, format!("{WEBSETS}/w/items?limit=3"));
    for part in ["items.list", "params", "JSON text", "`id`", "`limit`"] {
        assert!(
            notes.iter().any(|note| note.contains(part)),
            "no {part} in {notes:?}"
        );
    }
}

/// Arguments in two places: none may be dropped silently.
#[test]
fn arguments_in_two_places_are_reported() {
    let call = json!({"operation": "items.list", "args": {"websetId": "w"}, "limit": 2});
    let outcome = Fixture::start().server.call("manage_websets", call);
    let description = outcome.text.contains("limit");
    assert!(
        description,
        "`limit` next to `args` is not reported: {}",
        outcome.text
    );
}

#[test]
fn null_and_absent_arguments_are_equal() {
    for call in [
        json!({"operation": "websets.list"}),
        json!({"operation": "websets.list", "args": null}),
        json!({"operation": "websets.list", "args": {}}),
    ] {
        assert_corrected(
            "manage_websets",
            call,
            &format!("GET {WEBSETS}"),
            Value::Null,
            &[],
        );
    }
}

#[test]
fn describe_arguments_are_corrected() {
    let mut fixture = Fixture::start();
    let call = json!({"operation": "describe", "params": {"operation": "Items_Get"}});
    let description = fixture.server.call("manage_websets", call).success();
    assert_eq!(description["operation"], "items.get");
    let notes = description["corrections"].to_string();
    for part in ["`params` was read as `args`", "`Items_Get`"] {
        assert!(notes.contains(part), "no {part} in {notes}");
    }
}

/// The toolhost's name is `params`; there `args` is the mistake.
#[test]
fn toolhost_uses_params() {
    let recorder = Recorder::always(Response::json(200, &json!({"data": []})));
    let mut server = McpServer::with_recorder(&recorder, &["--tools", "toolhost"]);
    let call = json!({"operation": "list_items", "params": {"websetId": "w"}});
    let response = server.call("websets-sync", call).success();
    assert_eq!(response.get("corrections"), None);
    let call = json!({"operation": "list_items", "args": {"websetId": "w", "limit": "1"}});
    let response = server.call("websets-sync", call).success();
    let notes = json!([
        "`args` was read as `params`",
        "`limit`: read \"1\" as the number 1"
    ]);
    assert_eq!(response["corrections"], notes);
}
