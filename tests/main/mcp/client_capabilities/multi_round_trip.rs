//! What a client of 2026-07-28 carries back: sealed, for one call, for a while.

use serde_json::{Value, json};

use crate::support::{McpServer, Program, STATELESS};

fn server() -> McpServer {
    let program = Program::new(["--sandbox", "--tools", "default,assist"]);
    McpServer::connect_with(
        program,
        STATELESS,
        json!({"elicitation": {}, "sampling": {}}),
    )
}

fn call(operation: &str) -> Value {
    json!({"name": "manage_websets", "arguments": {"operation": operation}})
}

/// A call that asks, its state, and the name of its question.
fn asked(server: &mut McpServer) -> (Value, String, String) {
    let call = call("websets.get");
    let answer = server.ask("tools/call", call.clone());
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{answer}");
    let state = result["requestState"].as_str().expect("a state").to_owned();
    let requests = result["inputRequests"].as_object().expect("questions");
    let key = requests.keys().next().expect("a question").clone();
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
    let (call_, state, key) = asked(&mut server);
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
        let answer = server.ask("tools/call", with(call_.clone(), odd, yes.clone()));
        assert_eq!(answer["error"]["code"], -32602);
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(message.contains("requestState"), "{message}");
    }
    // The same state with another operation, or another tool.
    let other = with(call("items.list"), &state, yes.clone());
    assert_eq!(server.ask("tools/call", other)["error"]["code"], -32602);
    let mut other = with(call_.clone(), &state, yes.clone());
    other["name"] = json!("exa_api");
    assert_eq!(server.ask("tools/call", other)["error"]["code"], -32602);
    // And as it was.
    let answer = server.ask("tools/call", with(call_, &state, yes));
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
}

#[test]
fn request_state_of_another_process_is_rejected() {
    let (mut one, mut two) = (server(), server());
    let (call, state, key) = asked(&mut one);
    let yes = json!({&key: {"action": "accept", "content": {"websetId": "ws_1"}}});
    let answer = two.ask("tools/call", with(call, &state, yes));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[test]
fn input_responses_without_state_are_ignored() {
    let mut server = server();
    let (call, state, key) = asked(&mut server);
    let content = json!({"action": "accept", "content": {"websetId": "ws_1"}});
    let mut without = call.clone();
    without["inputResponses"] = json!({&key: content});
    let odd = with(call, &state, json!({"other": content}));
    for again in [without, odd] {
        let answer = server.ask("tools/call", again);
        assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
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
    let answer = server.ask("tools/call", read(arguments));
    let result = &answer["result"];
    let state = result["requestState"].as_str().expect("a state");
    let requests = result["inputRequests"].as_object().expect("questions");
    let key = requests.keys().next().expect("a question");
    let yes = json!({key: {"action": "decline"}});
    let answer = server.ask("tools/call", with(read(other_order), state, yes));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
}

#[test]
fn request_without_capabilities_gets_no_input_request() {
    let mut server = McpServer::connect(Program::new(["--sandbox"]), STATELESS);
    let answer = server.ask("tools/call", call("websets.get"));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(answer["result"]["resultType"], "complete");
}
