//! Missing arguments: requested by elicitation, or reported with a valid example.

use serde_json::{Value, json};

use super::{ClientResponse, ScriptedClient, VERSIONS, accept, no_requests};
use crate::support::McpServer;

fn form_capability() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn get_webset() -> Value {
    json!({"operation": "websets.get", "output_format": "json"})
}

/// Creates a webset.
fn webset(client: &mut ScriptedClient) -> Value {
    let create = json!({"operation": "websets.create", "output_format": "json",
        "args": {"search": {"query": "heat pumps", "count": 1}}});
    client.call("manage_websets", create, no_requests).success()["id"].clone()
}

#[test]
fn missing_argument_is_elicited() {
    for version in VERSIONS {
        let mut client = ScriptedClient::sandboxed("default", version, form_capability());
        let id = webset(&mut client);
        let give = || accept(json!({"websetId": id, "unasked": true}));
        let got = client.call("manage_websets", get_webset(), |_, _| give());
        assert_eq!(got.success()["id"], id, "{version}");
        let (method, params) = &client.requests[0];
        assert_eq!(method, "elicitation/create");
        assert!(params["message"].to_string().contains("websets.get"));
        let schema = &params["requestedSchema"];
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["required"], json!(["websetId"]));
        assert_eq!(schema["properties"]["websetId"]["type"], "string");
    }
}

#[test]
fn every_tool_kind_elicits() {
    for (tools, tool, arguments, missing) in [
        (
            "toolhost",
            "websets-sync",
            json!({"operation": "get_webset"}),
            "websetId",
        ),
        ("granular", "websets_get", json!({}), "websetId"),
        ("default", "web_search_exa", json!({}), "query"),
        ("assist", "suggest_enrichments", json!({}), "description"),
        (
            "default",
            "exa_api",
            json!({"operation": "search"}),
            "query",
        ),
    ] {
        let mut client = ScriptedClient::sandboxed(tools, VERSIONS[0], form_capability());
        client.call(tool, arguments, |_, _| {
            accept(json!({missing: "heat pumps"}))
        });
        let schema = &client.requests[0].1["requestedSchema"];
        assert_eq!(schema["required"], json!([missing]), "{tool}");
        assert_eq!(client.requests.len(), 1, "{tool}");
    }
}

#[test]
fn declined_elicitation_ends_the_call_cleanly() {
    let decline = || ClientResponse::Result(json!({"action": "decline"}));
    let cancel = || ClientResponse::Result(json!({"action": "cancel"}));
    let responses: [(&dyn Fn() -> ClientResponse, &str); 2] =
        [(&decline, "declined"), (&cancel, "dismissed the request")];
    for version in VERSIONS {
        let mut client = ScriptedClient::sandboxed("default", version, form_capability());
        for (response, word) in responses {
            let failure = client.call("manage_websets", get_webset(), |_, _| response());
            let failure = failure.failure();
            failure.assert_code(-32602, "INVALID_PARAMS");
            failure.assert_contains(&[word, "input_required", "retryWith"]);
        }
        assert_eq!(client.requests.len(), 2, "{version}");
    }
}

#[test]
fn failed_elicitation_ends_the_call_cleanly() {
    let mut client = ScriptedClient::sandboxed("default", VERSIONS[0], form_capability());
    let silent = client.call("manage_websets", get_webset(), |_, _| {
        ClientResponse::Silence
    });
    silent.failure().assert_contains(&["in time"]);
    // The elicitation was cancelled.
    let methods: Vec<&str> = client
        .notifications
        .iter()
        .map(|(method, _)| &**method)
        .collect();
    assert_eq!(methods, ["notifications/cancelled"]);
    let odd = [
        json!({}),
        json!({"action": "accept"}),
        json!({"action": "accept", "content": {}}),
        json!({"action": "accept", "content": {"other": "x"}}),
        json!({"action": "perhaps"}),
        json!(5),
    ];
    for odd in odd {
        let response = |_: &str, _: &Value| ClientResponse::Result(odd.clone());
        let failure = client
            .call("manage_websets", get_webset(), response)
            .failure();
        failure.assert_contains(&["retryWith"]);
    }
    let failed = client.call("manage_websets", get_webset(), |_, _| {
        ClientResponse::Error(-32601)
    });
    failed.failure().assert_contains(&["-32601"]);
    // A value of the wrong type is reported like any other.
    let wrong = client.call("manage_websets", get_webset(), |_, _| {
        accept(json!({"websetId": {"a": 1}}))
    });
    assert_eq!(wrong.failure().fields(), ["websetId"]);
}

#[test]
fn values_that_fit_no_form_are_not_elicited() {
    for version in VERSIONS {
        let mut client = ScriptedClient::sandboxed("default", version, form_capability());
        // A list, an object, and an argument that is wrong rather than missing.
        for call in [
            json!({"operation": "enrichments.create", "args": {"websetId": "w", "description": 5, "format": "odd"}}),
            json!({"operation": "webhooks.create", "args": {"url": "https://example.com/hook"}}),
            json!({"operation": "monitors.create", "args": {"websetId": "w"}}),
        ] {
            let failure = client.call("manage_websets", call, no_requests).failure();
            failure.assert_code(-32602, "INVALID_PARAMS");
        }
    }
}

#[test]
fn without_elicitation_the_error_shows_a_valid_call() {
    let mut server = McpServer::sandboxed(&["--tools", "default,toolhost,granular"]);
    for (tool, arguments, retry) in [
        (
            "manage_websets",
            json!({"operation": "items.get", "args": {"itemId": "i"}}),
            json!({"operation": "items.get", "args": {"itemId": "i", "websetId": "<your websetId>"}}),
        ),
        (
            "websets-sync",
            json!({"operation": "get_webset"}),
            json!({"operation": "get_webset", "params": {"websetId": "<your websetId>"}}),
        ),
        (
            "items_list",
            json!({"limit": 5}),
            json!({"tool": "items_list", "arguments": {"limit": 5, "websetId": "<your websetId>"}}),
        ),
    ] {
        let failure = server.call_raw(tool, arguments).failure();
        failure.assert_code(-32602, "INVALID_PARAMS");
        assert_eq!(failure.error["reason"], "input_required");
        assert_eq!(failure.error["missing"], json!(["websetId"]));
        assert_eq!(failure.error["retryWith"], retry, "{tool}");
    }
}

#[test]
fn cancelled_call_withdraws_its_elicitation() {
    let mut client = ScriptedClient::sandboxed("default", VERSIONS[0], form_capability());
    let call = json!({"name": "manage_websets", "arguments": get_webset()});
    let id = client.server.send("tools/call", call);
    let question = client.server.next();
    assert_eq!(question["method"], "elicitation/create");
    client
        .server
        .notify("notifications/cancelled", json!({"requestId": id}));
    let taken_back = client.server.notification("notifications/cancelled");
    assert_eq!(taken_back["requestId"], question["id"]);
    client.server.assert_silent();
}
