//! Harmless slips are put right, and the answer says so.

use serde_json::{Value, json};

use super::Dispatch;
use crate::support::{McpServer, Recorder, Reply};

/// Checks what a call of a dispatcher sends and that exactly these notes come with the answer.
#[track_caller]
fn assert_corrected(tool: &str, call: Value, target: &str, body: Value, notes: &[&str]) {
    let (seen, corrections) = Dispatch::start().sent(tool, call);
    assert_eq!(format!("{} {}", seen.method, seen.target), target);
    assert_eq!(seen.json().unwrap_or(Value::Null), body);
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
        json!({"urls": ["https://a.example/x"]}),
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
        // `id` is the name of the specification where it is the only identifier.
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

/// Each slip has its note, also when they come together.
#[test]
fn several_mistakes_at_once() {
    let call = json!({"operation": "Items_List", "params": "{\"id\": \"w\", \"limit\": \"3\"}"});
    let (seen, notes) = Dispatch::start().sent("manage_websets", call);
    assert_eq!(seen.target, format!("{WEBSETS}/w/items?limit=3"));
    for part in ["items.list", "params", "JSON text", "`id`", "`limit`"] {
        assert!(
            notes.iter().any(|note| note.contains(part)),
            "no {part} in {notes:?}"
        );
    }
}

/// Arguments in two places: nothing that was given may get lost without a word.
#[test]
fn arguments_in_two_places_are_reported() {
    let call = json!({"operation": "items.list", "args": {"websetId": "w"}, "limit": 2});
    let outcome = Dispatch::start().server.call("manage_websets", call);
    let told = outcome.text.contains("limit");
    assert!(
        told,
        "`limit` stood beside `args` and nothing is said about it: {}",
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
    let mut dispatch = Dispatch::start();
    let call = json!({"operation": "describe", "params": {"operation": "Items_Get"}});
    let told = dispatch.server.call("manage_websets", call).success();
    assert_eq!(told["operation"], "items.get");
    let notes = told["corrections"].to_string();
    for part in ["`params` was read as `args`", "`Items_Get`"] {
        assert!(notes.contains(part), "no {part} in {notes}");
    }
}

/// The toolhost's own name for them is `params`; there `args` is the slip.
#[test]
fn toolhost_uses_params() {
    let recorder = Recorder::always(Reply::json(200, &json!({"data": []})));
    let mut server = McpServer::recorded(&recorder, &["--tools", "toolhost"]);
    let call = json!({"operation": "list_items", "params": {"websetId": "w"}});
    let answer = server.call("websets-sync", call).success();
    assert_eq!(answer.get("corrections"), None);
    let call = json!({"operation": "list_items", "args": {"websetId": "w", "limit": "1"}});
    let answer = server.call("websets-sync", call).success();
    let notes = json!([
        "`args` was read as `params`",
        "`limit`: read \"1\" as the number 1"
    ]);
    assert_eq!(answer["corrections"], notes);
}
