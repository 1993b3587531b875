//! `suggest_enrichments` with every kind of model behind the client.

use serde_json::{Value, json};

use super::{ClientResponse, ScriptedClient, VERSIONS};
use crate::support::{McpServer, Outcome};

const TOOLS: &str = "default,assist";

fn with_tools() -> Value {
    json!({"sampling": {"tools": {}}})
}

fn send_request(description: &str) -> Value {
    json!({"description": description, "output_format": "json"})
}

/// Returns the response of a model that calls the tool.
fn tool_use_response(suggestions: Value) -> ClientResponse {
    let input = json!({"suggestions": suggestions});
    let call =
        json!({"type": "tool_use", "id": "c1", "name": "suggest_enrichments", "input": input});
    ClientResponse::Result(
        json!({"role": "assistant", "model": "m-1", "content": [call], "stopReason": "toolUse"}),
    )
}

/// Returns the response of a model that writes text.
fn text_response(text: &str) -> ClientResponse {
    let content = json!({"type": "text", "text": text});
    ClientResponse::Result(json!({"role": "assistant", "model": "m-1", "content": content}))
}

#[track_caller]
fn source(outcome: Outcome) -> (String, Value) {
    let envelope = outcome.envelope();
    assert!(!envelope["results"].as_array().expect("a list").is_empty());
    let source = envelope["source"].as_str().expect("a source").to_owned();
    (source, envelope)
}

#[test]
fn sampled_model_calls_the_tool() {
    for version in VERSIONS {
        let mut client = ScriptedClient::sandboxed(TOOLS, version, with_tools());
        let response = || {
            tool_use_response(json!([
                {"description": "Name of the CEO", "format": "text", "why": "Whom to write to"},
                {"description": "Stage", "format": "options", "options": ["Seed", "Later"], "why": "w"},
            ]))
        };
        let outcome = client.call(
            "suggest_enrichments",
            send_request("AI startups"),
            |_, _| response(),
        );
        let (source, envelope) = source(outcome);
        assert_eq!(source, "client_model_with_tool", "{version}");
        assert_eq!(envelope["model"], "m-1");
        assert_eq!(
            envelope["results"][1],
            json!({"description": "Stage", "format": "options", "why": "w",
                "options": [{"label": "Seed"}, {"label": "Later"}]})
        );
        let (method, params) = &client.requests[0];
        assert_eq!(method, "sampling/createMessage");
        assert_eq!(params["toolChoice"], json!({"mode": "required"}));
        assert_eq!(params["tools"][0]["name"], "suggest_enrichments");
        assert!(params["maxTokens"].as_u64().is_some_and(|most| most > 0));
        let text = params["messages"][0]["content"]["text"].to_string();
        assert!(text.contains("AI startups"), "{text}");
        assert_eq!(client.requests.len(), 1);
    }
}

#[test]
fn sampled_model_without_tools_writes_text() {
    for version in VERSIONS {
        let mut client = ScriptedClient::sandboxed(TOOLS, version, json!({"sampling": {}}));
        let text = "Sure!\n```json\n[{\"description\": \"CEO\", \"format\": \"text\", \"why\": \"w\"}]\n```";
        let outcome = client.call("suggest_enrichments", send_request("AI labs"), |_, _| {
            text_response(text)
        });
        let (source, envelope) = source(outcome);
        assert_eq!(source, "client_model", "{version}");
        assert_eq!(envelope["results"][0]["description"], "CEO");
        let (_, params) = &client.requests[0];
        assert_eq!(
            (params.get("tools"), params.get("toolChoice")),
            (None, None)
        );
    }
}

#[test]
fn invalid_sampling_falls_back_to_text_then_builtin() {
    for version in VERSIONS {
        let mut client = ScriptedClient::sandboxed(TOOLS, version, with_tools());
        let outcome = client.call(
            "suggest_enrichments",
            send_request("AI labs"),
            |_, params| match params.get("tools") {
                Some(_) => tool_use_response(json!([{"format": "text"}, 5, null])),
                None => text_response("[{\"description\": \"CEO\"}]"),
            },
        );
        assert_eq!(source(outcome).0, "client_model", "{version}");
        assert_eq!(client.requests.len(), 2);
        for nonsense in [json!({}), json!([]), json!({"content": 5}), json!("text")] {
            let response = |_: &str, _: &Value| ClientResponse::Result(nonsense.clone());
            let outcome = client.call("suggest_enrichments", send_request("AI labs"), response);
            let (source, envelope) = source(outcome);
            assert_eq!(source, "built_in", "{version} {nonsense}");
            assert_eq!(envelope["entityType"], "company");
            let warnings = envelope["metadata"]["warnings"].as_array();
            assert!(!warnings.expect("warnings").is_empty());
        }
    }
}

#[test]
fn declined_sampling_is_not_repeated() {
    let mut client = ScriptedClient::sandboxed(TOOLS, VERSIONS[0], with_tools());
    let outcome = client.call(
        "suggest_enrichments",
        send_request("people in energy"),
        |_, _| ClientResponse::Error(-1),
    );
    let (source, envelope) = source(outcome);
    assert_eq!((source.as_str(), client.requests.len()), ("built_in", 1));
    assert_eq!(envelope["entityType"], "person");
}

#[test]
fn failed_tool_sampling_falls_back_to_text() {
    let mut client = ScriptedClient::sandboxed(TOOLS, VERSIONS[0], with_tools());
    let outcome = client.call(
        "suggest_enrichments",
        send_request("AI labs"),
        |_, params| match params.get("tools") {
            Some(_) => ClientResponse::Error(-32603),
            None => text_response("{\"suggestions\": [{\"description\": \"CEO\"}]}"),
        },
    );
    assert_eq!(source(outcome).0, "client_model");
}

#[test]
fn unresponsive_model_is_not_awaited_twice() {
    let mut client = ScriptedClient::sandboxed(TOOLS, VERSIONS[0], with_tools());
    let outcome = client.call("suggest_enrichments", send_request("AI labs"), |_, _| {
        ClientResponse::Silence
    });
    let (source, envelope) = source(outcome);
    assert_eq!((source.as_str(), client.requests.len()), ("built_in", 1));
    let warnings = envelope["metadata"]["warnings"].to_string();
    assert!(warnings.contains("in time"), "{warnings}");
}

#[test]
fn silent_multi_round_trip_client_ends() {
    let mut client = ScriptedClient::sandboxed(TOOLS, VERSIONS[1], with_tools());
    let outcome = client.call("suggest_enrichments", send_request("AI labs"), |_, _| {
        ClientResponse::Silence
    });
    assert_eq!(source(outcome).0, "built_in");
}

#[test]
fn existing_columns_are_not_suggested() {
    for version in VERSIONS {
        let mut client = ScriptedClient::sandboxed(TOOLS, version, with_tools());
        let create = json!({"operation": "websets.create", "output_format": "json", "args": {
            "search": {"query": "fusion startups", "count": 1, "entity": {"type": "company"}},
            "enrichments": [{"description": "Founding year", "format": "number"}]}});
        let webset = client
            .call("manage_websets", create, super::no_requests)
            .success();
        let arguments = json!({"websetId": webset["id"], "output_format": "json"});
        let outcome = client.call("suggest_enrichments", arguments, |_, _| {
            tool_use_response(json!([
                {"description": "founding year!", "format": "number", "why": "w"},
                {"description": "CEO", "format": "text", "why": "w"}]))
        });
        let (_, envelope) = source(outcome);
        let results = envelope["results"].as_array().expect("a list");
        assert_eq!(results.len(), 1, "{results:?}");
        let next = &envelope["addWith"];
        assert_eq!(next["operation"], "enrichments.create");
        let prompt = client.requests[0].1.to_string();
        assert!(prompt.contains("fusion startups") && prompt.contains("Founding year"));
        let add =
            json!({"operation": next["operation"], "args": next["args"], "output_format": "json"});
        let added = client
            .call("manage_websets", add, super::no_requests)
            .success();
        assert_eq!(added["description"], "CEO");
    }
}

#[test]
fn builtin_suggestions_match_the_entity() {
    let mut server = McpServer::sandboxed(&["--tools", "assist"]);
    for (arguments, entity) in [
        (
            json!({"description": "papers on batteries"}),
            "research_paper",
        ),
        (
            json!({"description": "things", "entityType": "person"}),
            "person",
        ),
        (
            json!({"description": "things", "entityType": "job postings"}),
            "job",
        ),
        (
            json!({"description": "bridges built before 1900", "count": 8}),
            "custom",
        ),
    ] {
        let mut arguments = arguments;
        arguments["output_format"] = json!("json");
        let wanted = arguments["count"].as_u64().unwrap_or(5);
        let envelope = server.call_raw("suggest_enrichments", arguments).envelope();
        assert_eq!(envelope["source"], "built_in");
        assert_eq!(envelope["entityType"], entity);
        assert_eq!(envelope["metadata"]["returned"], wanted);
    }
    let text = server.call_raw("suggest_enrichments", json!({"description": "AI labs"}));
    assert!(text.text.contains("Latest funding stage"), "{}", text.text);
}

#[test]
fn missing_subject_is_reported() {
    let mut server = McpServer::sandboxed(&["--tools", "assist"]);
    let failure = server.call_raw("suggest_enrichments", json!({})).failure();
    failure.assert_code(-32602, "INVALID_PARAMS");
    failure.assert_contains(&["websetId", "description", "input_required", "retryWith"]);
    let gone = server.call_raw("suggest_enrichments", json!({"websetId": "ws_none"}));
    gone.failure().assert_code(-32003, "RESOURCE_NOT_FOUND");
}
