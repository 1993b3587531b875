//! `suggest_enrichments` with every kind of model behind the client.

use serde_json::{Value, json};

use super::{Answer, BOTH, Scripted};
use crate::support::{McpServer, Outcome};

const TOOLS: &str = "default,assist";

fn with_tools() -> Value {
    json!({"sampling": {"tools": {}}})
}

fn ask(description: &str) -> Value {
    json!({"description": description, "output_format": "json"})
}

/// A message of a model that called the tool.
fn called(suggestions: Value) -> Answer {
    let input = json!({"suggestions": suggestions});
    let call =
        json!({"type": "tool_use", "id": "c1", "name": "suggest_enrichments", "input": input});
    Answer::Result(
        json!({"role": "assistant", "model": "m-1", "content": [call], "stopReason": "toolUse"}),
    )
}

/// A message of a model that wrote a text.
fn wrote(text: &str) -> Answer {
    let content = json!({"type": "text", "text": text});
    Answer::Result(json!({"role": "assistant", "model": "m-1", "content": content}))
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
    for version in BOTH {
        let mut client = Scripted::sandboxed(TOOLS, version, with_tools());
        let answer = || {
            called(json!([
                {"description": "Name of the CEO", "format": "text", "why": "Whom to write to"},
                {"description": "Stage", "format": "options", "options": ["Seed", "Later"], "why": "w"},
            ]))
        };
        let outcome = client.call("suggest_enrichments", ask("AI startups"), |_, _| answer());
        let (source, envelope) = source(outcome);
        assert_eq!(source, "client_model_with_tool", "{version}");
        assert_eq!(envelope["model"], "m-1");
        assert_eq!(
            envelope["results"][1],
            json!({"description": "Stage", "format": "options", "why": "w",
                "options": [{"label": "Seed"}, {"label": "Later"}]})
        );
        let (method, params) = &client.asked[0];
        assert_eq!(method, "sampling/createMessage");
        assert_eq!(params["toolChoice"], json!({"mode": "required"}));
        assert_eq!(params["tools"][0]["name"], "suggest_enrichments");
        assert!(params["maxTokens"].as_u64().is_some_and(|most| most > 0));
        let text = params["messages"][0]["content"]["text"].to_string();
        assert!(text.contains("AI startups"), "{text}");
        assert_eq!(client.asked.len(), 1);
    }
}

#[test]
fn sampled_model_without_tools_writes_text() {
    for version in BOTH {
        let mut client = Scripted::sandboxed(TOOLS, version, json!({"sampling": {}}));
        let text = "Sure!\n```json\n[{\"description\": \"CEO\", \"format\": \"text\", \"why\": \"w\"}]\n```";
        let outcome = client.call("suggest_enrichments", ask("AI labs"), |_, _| wrote(text));
        let (source, envelope) = source(outcome);
        assert_eq!(source, "client_model", "{version}");
        assert_eq!(envelope["results"][0]["description"], "CEO");
        let (_, params) = &client.asked[0];
        assert_eq!(
            (params.get("tools"), params.get("toolChoice")),
            (None, None)
        );
    }
}

#[test]
fn invalid_sampling_falls_back_to_text_then_builtin() {
    for version in BOTH {
        let mut client = Scripted::sandboxed(TOOLS, version, with_tools());
        let outcome = client.call(
            "suggest_enrichments",
            ask("AI labs"),
            |_, params| match params.get("tools") {
                Some(_) => called(json!([{"format": "text"}, 5, null])),
                None => wrote("[{\"description\": \"CEO\"}]"),
            },
        );
        assert_eq!(source(outcome).0, "client_model", "{version}");
        assert_eq!(client.asked.len(), 2);
        for nonsense in [json!({}), json!([]), json!({"content": 5}), json!("text")] {
            let answer = |_: &str, _: &Value| Answer::Result(nonsense.clone());
            let outcome = client.call("suggest_enrichments", ask("AI labs"), answer);
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
    let mut client = Scripted::sandboxed(TOOLS, BOTH[0], with_tools());
    let outcome = client.call("suggest_enrichments", ask("people in energy"), |_, _| {
        Answer::Error(-1)
    });
    let (source, envelope) = source(outcome);
    assert_eq!((source.as_str(), client.asked.len()), ("built_in", 1));
    assert_eq!(envelope["entityType"], "person");
}

#[test]
fn failed_tool_sampling_falls_back_to_text() {
    let mut client = Scripted::sandboxed(TOOLS, BOTH[0], with_tools());
    let outcome = client.call(
        "suggest_enrichments",
        ask("AI labs"),
        |_, params| match params.get("tools") {
            Some(_) => Answer::Error(-32603),
            None => wrote("{\"suggestions\": [{\"description\": \"CEO\"}]}"),
        },
    );
    assert_eq!(source(outcome).0, "client_model");
}

#[test]
fn unresponsive_model_is_not_awaited_twice() {
    let mut client = Scripted::sandboxed(TOOLS, BOTH[0], with_tools());
    let outcome = client.call("suggest_enrichments", ask("AI labs"), |_, _| {
        Answer::Silence
    });
    let (source, envelope) = source(outcome);
    assert_eq!((source.as_str(), client.asked.len()), ("built_in", 1));
    let warnings = envelope["metadata"]["warnings"].to_string();
    assert!(warnings.contains("in time"), "{warnings}");
}

#[test]
fn silent_multi_round_trip_client_ends() {
    let mut client = Scripted::sandboxed(TOOLS, BOTH[1], with_tools());
    let outcome = client.call("suggest_enrichments", ask("AI labs"), |_, _| {
        Answer::Silence
    });
    assert_eq!(source(outcome).0, "built_in");
}

#[test]
fn existing_columns_are_not_suggested() {
    for version in BOTH {
        let mut client = Scripted::sandboxed(TOOLS, version, with_tools());
        let create = json!({"operation": "websets.create", "output_format": "json", "args": {
            "search": {"query": "fusion startups", "count": 1, "entity": {"type": "company"}},
            "enrichments": [{"description": "Founding year", "format": "number"}]}});
        let webset = client
            .call("manage_websets", create, super::never)
            .success();
        let arguments = json!({"websetId": webset["id"], "output_format": "json"});
        let outcome = client.call("suggest_enrichments", arguments, |_, _| {
            called(json!([
                {"description": "founding year!", "format": "number", "why": "w"},
                {"description": "CEO", "format": "text", "why": "w"}]))
        });
        let (_, envelope) = source(outcome);
        let results = envelope["results"].as_array().expect("a list");
        assert_eq!(results.len(), 1, "{results:?}");
        let next = &envelope["addWith"];
        assert_eq!(next["operation"], "enrichments.create");
        let prompt = client.asked[0].1.to_string();
        assert!(prompt.contains("fusion startups") && prompt.contains("Founding year"));
        let add =
            json!({"operation": next["operation"], "args": next["args"], "output_format": "json"});
        let added = client.call("manage_websets", add, super::never).success();
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
        let envelope = server
            .call_plainly("suggest_enrichments", arguments)
            .envelope();
        assert_eq!(envelope["source"], "built_in");
        assert_eq!(envelope["entityType"], entity);
        assert_eq!(envelope["metadata"]["returned"], wanted);
    }
    let text = server.call_plainly("suggest_enrichments", json!({"description": "AI labs"}));
    assert!(text.text.contains("Latest funding stage"), "{}", text.text);
}

#[test]
fn missing_subject_is_reported() {
    let mut server = McpServer::sandboxed(&["--tools", "assist"]);
    let failure = server
        .call_plainly("suggest_enrichments", json!({}))
        .failure();
    failure.assert_code(-32602, "INVALID_PARAMS");
    failure.assert_says(&["websetId", "description", "input_required", "retryWith"]);
    let gone = server.call_plainly("suggest_enrichments", json!({"websetId": "ws_none"}));
    gone.failure().assert_code(-32003, "RESOURCE_NOT_FOUND");
}
