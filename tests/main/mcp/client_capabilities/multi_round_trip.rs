//! The request state of 2026-07-28: sealed, bound to one call, and limited in time.

use serde_json::{Value, json};

use crate::support::{McpServer, Program, STATELESS_VERSION};

fn server() -> McpServer {
    let program = Program::new(["--sandbox", "--tools", "default,assist"]);
    McpServer::connect_with(
        program,
        STATELESS_VERSION,
        json!({"elicitation": {}, "sampling": {}}),
    )
}

fn call(operation: &str) -> Value {
    json!({"name": "manage_websets", "arguments": {"operation": operation}})
}

/// Starts a call that needs input; returns the call, its state, and the key of its input request.
fn start_call(server: &mut McpServer) -> (Value, String, String) {
    let call = call("websets.get");
    let body = server.request("tools/call", call.clone());
    let result = &body["result"];
    assert_eq!(result["resultType"], "input_required", "{body}");
    let state = result["requestState"].as_str().expect("a state").to_owned();
    let requests = result["inputRequests"].as_object().expect("input requests");
    let key = requests.keys().next().expect("an input request").clone();
    (call, state, key)
}

fn with(mut call: Value, state: &str, responses: Value) -> Value {
    call["requestState"] = json!(state);
    call["inputResponses"] = responses;
    call
}

#[test]
fn modified_request_state_is_rejected() {
    let mut server = server();
    let (call_, state, key) = start_call(&mut server);
    let yes = json!({&key: {"action": "accept", "content": {"websetId": "ws_1"}}});
    let mut changed = state.clone();
    let last = changed.pop().expect("a letter");
    changed.push(if last == 'A' { 'B' } else { 'A' });
    let cut = state.get(..state.len() / 2).expect("a half");
    for odd in [
        changed.as_str(),
        cut,
        "",
        "nonsense",
        &"x".repeat(3_000_000),
    ] {
        let body = server.request("tools/call", with(call_.clone(), odd, yes.clone()));
        assert_eq!(body["error"]["code"], -32602);
        let message = body["error"]["message"].as_str().expect("a message");
        assert!(message.contains("requestState"), "{message}");
    }
    // The same state with another operation, or another tool.
    let other = with(call("items.list"), &state, yes.clone());
    assert_eq!(server.request("tools/call", other)["error"]["code"], -32602);
    let mut other = with(call_.clone(), &state, yes.clone());
    other["name"] = json!("exa_api");
    assert_eq!(server.request("tools/call", other)["error"]["code"], -32602);
    // The original call.
    let body = server.request("tools/call", with(call_, &state, yes));
    assert_eq!(body["result"]["resultType"], "complete", "{body}");
}

#[test]
fn request_state_of_another_process_is_rejected() {
    let (mut one, mut two) = (server(), server());
    let (call, state, key) = start_call(&mut one);
    let yes = json!({&key: {"action": "accept", "content": {"websetId": "ws_1"}}});
    let body = two.request("tools/call", with(call, &state, yes));
    assert_eq!(body["error"]["code"], -32602, "{body}");
}

#[test]
fn input_responses_without_state_are_ignored() {
    let mut server = server();
    let (call, state, key) = start_call(&mut server);
    let content = json!({"action": "accept", "content": {"websetId": "ws_1"}});
    let mut without = call.clone();
    without["inputResponses"] = json!({&key: content});
    let odd = with(call, &state, json!({"other": content}));
    for again in [without, odd] {
        let body = server.request("tools/call", again);
        assert_eq!(body["result"]["resultType"], "input_required", "{body}");
    }
}

#[test]
fn argument_order_does_not_matter() {
    let mut server = server();
    let arguments = r#""arguments":{"operation":"websets.get","output_format":"json"}"#;
    let other_order = r#""arguments":{"output_format":"json","operation":"websets.get"}"#;
    let read = |text: &str| -> Value {
        let text = format!(r#"{{"name":"manage_websets",{text}}}"#);
        serde_json::from_str(&text).expect("JSON")
    };
    let body = server.request("tools/call", read(arguments));
    let result = &body["result"];
    let state = result["requestState"].as_str().expect("a state");
    let requests = result["inputRequests"].as_object().expect("input requests");
    let key = requests.keys().next().expect("an input request");
    let yes = json!({key: {"action": "decline"}});
    let body = server.request("tools/call", with(read(other_order), state, yes));
    assert_eq!(body["result"]["isError"], true, "{body}");
}

#[test]
fn request_without_capabilities_gets_no_input_request() {
    let mut server = McpServer::connect(Program::new(["--sandbox"]), STATELESS_VERSION);
    let body = server.request("tools/call", call("websets.get"));
    assert_eq!(body["result"]["isError"], true, "{body}");
    assert_eq!(body["result"]["resultType"], "complete");
}
