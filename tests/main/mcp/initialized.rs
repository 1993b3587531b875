//! What a client receives before it has sent `notifications/initialized`: responses, and nothing else.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{DEFAULT_VERSION, McpServer, Part, Program, Recorder, Response};

/// Starts a server and sends `initialize` only.
fn half_initialized(program: Program, capabilities: Value) -> McpServer {
    let mut server = McpServer::start(program);
    let client = json!({"name": "test", "version": "1"});
    let params = json!({
        "protocolVersion": DEFAULT_VERSION, "capabilities": capabilities, "clientInfo": client,
    });
    server.request("initialize", params);
    server
}

fn complete(server: &mut McpServer) {
    server.notify("notifications/initialized", json!({}));
}

#[test]
fn requests_wait_for_initialized() {
    let capabilities = json!({"elicitation": {"form": {}}});
    let mut server = half_initialized(Program::new(["--sandbox"]), capabilities);
    let call = json!({"name": "web_search_exa", "arguments": {}});
    let id = server.send("tools/call", call);
    server.assert_silent();
    complete(&mut server);
    let request = server.next();
    assert_eq!(request["method"], "elicitation/create", "{request}");
    let content = json!({"action": "accept", "content": {"query": "heat pumps"}});
    let response = json!({"jsonrpc": "2.0", "id": request["id"], "result": content});
    server.write(response.to_string().as_bytes());
    assert_eq!(server.response(&id)["result"]["isError"], false);
}

/// A client that never completes the handshake gets the result that clients without capabilities get.
#[test]
fn calls_do_not_wait_forever_for_initialized() {
    let program = Program::new(["--sandbox"]).env("EXA_MCP_CLIENT_TIMEOUT", "1");
    let mut server = half_initialized(program, json!({"elicitation": {"form": {}}}));
    let call = json!({"name": "web_search_exa", "arguments": {}});
    let response = server.request("tools/call", call);
    assert_eq!(response["result"]["isError"], true, "{response}");
    server.assert_silent();
}

#[test]
fn progress_and_task_status_follow_initialized() {
    let word = |text: &str| {
        let choices = json!([{"index": 0, "delta": {"content": text}, "finish_reason": null}]);
        Part::text(format!("data: {}\n\n", json!({"choices": choices})))
    };
    let parts = |text| {
        let pause = Part::Pause(Duration::from_millis(300));
        [word(text), pause.clone(), word(text), pause]
    };
    let stream = parts("a ")
        .into_iter()
        .chain([Part::text("data: [DONE]\n\n")]);
    let recorder = Recorder::always(Response::events(stream.collect::<Vec<_>>()));
    let program = Program::new(["--tools", "default"]).env("EXA_BASE_URL", &recorder.url());
    let mut server = half_initialized(program, json!({}));
    let arguments =
        json!({"operation": "answer", "args": {"query": "x", "stream": true}, "fresh": true});
    let call = json!({"name": "exa_api", "arguments": arguments, "_meta": {"progressToken": 1}});
    let id = server.send("tools/call", call.clone());
    let message = server.next();
    assert_eq!(message["id"], id, "{message}");

    let mut server = half_initialized(Program::new(["--sandbox"]), json!({}));
    let search = json!({"search": {"query": "x", "count": 1}});
    let arguments = json!({"operation": "websets.create", "args": search});
    let task = json!({"name": "manage_websets", "arguments": arguments, "task": {"ttl": 60_000}});
    let created = server.request("tools/call", task);
    let task = json!({"taskId": created["result"]["task"]["taskId"]});
    let cancelled = server.request("tasks/cancel", task);
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    server.assert_silent();
    complete(&mut server);
    server.assert_silent();
}
