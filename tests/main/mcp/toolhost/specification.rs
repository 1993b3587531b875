//! The form of results and errors in the toolhost.

use serde_json::{Value, json};

use super::Host;
use crate::support::{McpServer, Recorder, Response};

/// Returns the text of a call as JSON.
#[track_caller]
fn json_text(server: &mut McpServer, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    let response = server.request("tools/call", params);
    let text = response["result"]["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("no text: {response}"));
    serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}"))
}

#[test]
fn texts_are_json_unless_markdown_is_requested() {
    let mut host = Host::start();
    let call = json!({"operation": "answer", "params": {"question": "Who?"}});
    let answer = json_text(&mut host.server, "exa-sync", call);
    assert!(answer["citations"].is_array(), "{answer}");
    assert_eq!(answer.get("results"), None, "{answer}");
    let call = json!({"operation": "list_websets"});
    let list = json_text(&mut host.server, "websets-sync", call);
    assert_eq!(list["data"], json!([]), "{list}");
    let call =
        json!({"operation": "search", "params": {"query": "banks"}, "output_format": "markdown"});
    let params = json!({"name": "exa-sync", "arguments": call});
    let text = host.server.request("tools/call", params)["result"]["content"][0]["text"].clone();
    let text = text.as_str().expect("a text");
    assert!(text.starts_with("search: 10 results"), "{text}");
}

#[test]
fn errors_are_json_with_details_and_hint() {
    let mut host = Host::start();
    let server = &mut host.server;
    let call = json!({"operation": "start_search", "params": {"websetId": "w"}});
    let error = json_text(server, "websets-async", call)["error"].clone();
    assert_eq!(error["operation"], "start_search", "{error}");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("`start_search`"), "{message}");
    assert_eq!(error["details"][0]["field"], "query", "{error}");
    assert!(error["hint"].is_string(), "{error}");
    let call = json!({"operation": "get_webset", "params": {"id": "webset_missing"}});
    let error = json_text(server, "websets-sync", call)["error"].clone();
    assert_eq!(error["code"], -32003, "{error}");
    assert_eq!(error["operation"], "get_webset", "{error}");
    assert!(
        error["hint"].is_string() && error["details"].is_object(),
        "{error}"
    );
}

#[test]
fn id_is_accepted_silently() {
    let mut host = Host::start();
    let search = json!({"search": {"query": "banks", "count": 1}});
    let webset = host.call("websets-sync", "create_webset", search);
    let found = host.call("websets-sync", "get_webset", json!({"id": webset["id"]}));
    assert_eq!(found["id"], webset["id"]);
    assert_eq!(found.get("corrections"), None, "{found}");
}

#[test]
fn options_inside_the_parameters_are_not_sent() {
    let mut host = Host::start();
    let params = json!({"query": "banks", "content_level": "summary"});
    let found = host.call("exa-sync", "search", params);
    assert!(found["corrections"].is_array(), "{found}");
}

#[test]
fn titles_instructions_and_descriptions_name_the_tools() {
    let mut server = McpServer::sandboxed(&["--tools", "toolhost"]);
    let titles: Vec<Value> = server
        .tools()
        .iter()
        .map(|tool| tool["title"].clone())
        .collect();
    assert_eq!(
        titles,
        [
            "Exa Websets (Synchronous)",
            "Exa Websets (Asynchronous)",
            "Exa Search (Synchronous)",
            "Exa Search (Asynchronous)"
        ]
    );
    for tool in server.tools() {
        let description = tool["description"].as_str().expect("a description");
        for (name, _) in super::OPERATIONS {
            let is_own = tool["name"] == name;
            assert!(
                is_own || description.contains(name),
                "{name}: {description}"
            );
        }
    }
}

/// A description is short and typed; the JSON Schemas come on request.
#[test]
fn descriptions_are_typed_and_short() {
    let mut host = Host::start();
    for (tool, _) in super::OPERATIONS {
        let listed = json_text(
            &mut host.server,
            tool,
            json!({"operation": "list_operations"}),
        );
        for entry in listed["operations"].as_array().expect("operations") {
            let signature = entry["signature"].as_str().expect("a signature");
            assert!(signature.contains(": "), "{signature}");
            assert_eq!(entry["example"]["operation"], entry["name"]);
            let tokens = exa_mcp_text::tokens::estimate(&entry.to_string());
            assert!(tokens < 600, "{tokens}: {entry}");
            assert_eq!(entry.get("outputSchema"), None);
        }
    }
    let params = json!({"operation": "start_search", "outputSchema": true});
    let call = json!({"operation": "list_operations", "params": params});
    let listed = json_text(&mut host.server, "websets-async", call);
    let entry = &listed["operations"][0];
    assert!(
        entry["outputSchema"].is_object() && entry["inputSchema"].is_object(),
        "{entry}"
    );
}

#[test]
fn errors_of_retired_operations_name_the_replacement() {
    let retired = json!({"error": "retired", "tag": "RESEARCH_RETIRED"});
    let recorder = Recorder::always(Response::json(410, &retired));
    let mut server = McpServer::with_recorder(&recorder, &["--tools", "exa_api"]);
    let args = json!({"instructions": "Compare heat pumps"});
    let call = json!({"operation": "research.create", "args": args});
    let failure = server.call_raw("exa_api", call).failure();
    failure.assert_contains(&["Exa has retired `research.create`", "agent.runs.create"]);
    let replacement = &failure.error["replaceWith"];
    assert_eq!(replacement["operation"], "agent.runs.create");
    assert!(replacement["args"]["query"].is_string(), "{replacement}");
}
