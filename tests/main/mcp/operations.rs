//! Every operation through the dispatchers and through its own tool.

use exa_mcp_model::Operation;
use exa_mcp_server::operations::all;
use serde_json::{Value, json};

use super::walk::walk;
use crate::support::{McpServer, Sandbox};

/// Returns the dispatcher of an operation.
pub(super) fn dispatcher(operation: &Operation) -> &'static str {
    match operation.api.name {
        "websets" => "manage_websets",
        _ => "exa_api",
    }
}

/// Returns the operations of the dispatchers; those of team management have none.
fn dispatched() -> impl Iterator<Item = &'static Operation> {
    all()
        .iter()
        .filter(|operation| operation.api.name != "team")
}

#[test]
fn every_operation_works_through_its_dispatcher() {
    let sandbox = Sandbox::start();
    let mut server = McpServer::with_upstream(&sandbox.url(), &[]);
    walk(&sandbox, |operation, args| {
        let call = json!({"operation": operation.name, "args": args});
        let response = server.call(dispatcher(operation), call).success();
        assert_eq!(response.get("corrections"), None, "{}", operation.name);
        response
    });
    assert_eq!(server.shut_down().stderr, "");
}

#[test]
fn every_operation_works_as_a_tool_of_its_own() {
    let sandbox = Sandbox::start();
    let mut server = McpServer::with_upstream(&sandbox.url(), &["--tools", "granular"]);
    walk(&sandbox, |operation, args| {
        let tool = operation.name.replace('.', "_");
        let response = server.call(&tool, args).success();
        assert_eq!(response.get("corrections"), None, "{tool}");
        response
    });
    assert_eq!(server.shut_down().stderr, "");
}

/// There is a fallback for every capability that a client may lack.
#[test]
fn every_operation_works_without_client_capabilities() {
    for version in [
        crate::support::DEFAULT_VERSION,
        crate::support::STATELESS_VERSION,
    ] {
        let sandbox = Sandbox::start();
        let program = crate::support::Program::new([]).env("EXA_BASE_URL", &sandbox.url());
        let mut server = McpServer::connect(program, version);
        walk(&sandbox, |operation, args| {
            let call = json!({"operation": operation.name, "args": args});
            let outcome = server.call(dispatcher(operation), call);
            assert!(!outcome.text.is_empty(), "{}", operation.name);
            outcome.success()
        });
        // The client receives neither requests nor unsolicited notifications.
        server.assert_silent();
    }
}

/// Users without a key or network start here, so this must work offline.
#[test]
fn the_embedded_sandbox_needs_neither_key_nor_network() {
    let program = crate::support::Program::new(["--sandbox"])
        .env_remove("EXA_API_KEY")
        .env_remove("EXA_BASE_URL");
    let mut server = McpServer::connect(program, crate::support::DEFAULT_VERSION);
    let call = json!({"operation": "websets.create", "args": {"search": {"query": "x"}}});
    let webset = server.call("manage_websets", call).success();
    assert!(
        webset["sandbox"]
            .as_str()
            .is_some_and(|mark| mark.contains("synthetic"))
    );
    let call = json!({"operation": "websets.get", "args": {"websetId": webset["id"]}});
    assert_eq!(
        server.call("manage_websets", call).success()["id"],
        webset["id"]
    );
    let found = server
        .call("web_search_exa", json!({"query": "x"}))
        .success();
    assert_eq!(found["results"].as_array().map(Vec::len), Some(10));
    server.shut_down();
}

#[test]
fn dispatchers_name_operations_and_describe() {
    let mut server = McpServer::sandboxed(&[]);
    for tool in server.tools() {
        let Some(names) = tool["inputSchema"]["properties"]["operation"]["enum"].as_array() else {
            continue;
        };
        let mut names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        names.sort_unstable();
        let own = dispatched().filter(|operation| tool["name"] == dispatcher(operation));
        let mut expected: Vec<&str> = own.map(|operation| operation.name).collect();
        expected.extend(["describe", "list_operations"]);
        expected.sort_unstable();
        assert_eq!(names, expected, "{}", tool["name"]);
    }
}

#[test]
fn list_operations_has_a_line_for_each() {
    let mut server = McpServer::sandboxed(&[]);
    for tool in ["manage_websets", "exa_api"] {
        let own = || dispatched().filter(|operation| dispatcher(operation) == tool);
        let count = own().count();
        let response = server.request(
            "tools/call",
            json!({"name": tool, "arguments": {"operation": "list_operations"}}),
        );
        let response = &response["result"];
        let lines = &response["structuredContent"]["operations"];
        let lines = lines.as_array().expect("lines");
        assert_eq!(lines.len(), count, "{tool}");
        let text = response["content"][0]["text"].as_str().expect("text");
        assert_eq!(
            text.lines().filter(|line| line.contains(" — ")).count(),
            count
        );
        for (line, operation) in lines.iter().zip(own()) {
            let line = line.as_str().expect("a line");
            assert!(line.starts_with(&format!("{}(", operation.name)), "{line}");
            assert!(line.ends_with(operation.summary), "{line}");
            assert!(!line.contains('\n'), "{line}");
        }
    }
}

#[test]
fn describe_shows_schema_and_a_valid_call() {
    let mut server = McpServer::sandboxed(&[]);
    for operation in dispatched() {
        let args = json!({"operation": operation.name, "schema": true});
        let call = json!({"operation": "describe", "args": args});
        let description = server.call(dispatcher(operation), call).success();
        assert_eq!(description["operation"], operation.name);
        let mut schema: Value = serde_json::from_str(operation.input_schema).expect("a schema");
        schema
            .as_object_mut()
            .expect("an object")
            .shift_remove("$schema");
        assert_eq!(description["inputSchema"], schema, "{}", operation.name);
        assert_eq!(description["example"]["operation"], operation.name);
        let validator = jsonschema::validator_for(&schema).expect("a usable schema");
        let example = &description["example"]["args"];
        assert!(validator.is_valid(example), "{}: {example}", operation.name);
        assert!(description["hints"].is_array(), "{description}");
        assert!(description["outputSchema"].is_object(), "{description}");
        let args = json!({"operation": operation.name});
        let call = json!({"operation": "describe", "args": args});
        let short = server.call(dispatcher(operation), call).success();
        assert_eq!(short.get("inputSchema"), None, "{short}");
        let signature = short["signature"].as_str().expect("a signature");
        let arguments = signature.strip_prefix(operation.name).expect("the name");
        assert!(arguments == "()" || arguments.contains(": "), "{signature}");
        let tokens = exa_mcp_text::tokens::estimate(&short.to_string());
        assert!(tokens < 600, "{tokens}: {short}");
    }
}

#[test]
fn operation_name_is_normalized() {
    let mut server = McpServer::sandboxed(&[]);
    for name in [
        "websets_list",
        "Websets.List",
        "websets/list",
        "websets-list",
    ] {
        let response = server
            .call("manage_websets", json!({"operation": name}))
            .success();
        let note = format!("operation `{name}` was read as `websets.list`");
        assert_eq!(response["corrections"], json!([note]));
    }
}
