//! Requests during `tasks/result`, in 2025-11-25.

use serde_json::{Value, json};

use super::super::{STATUS, connect_with, state};
use super::{RELATED, accept, delete, form_capability, next_request, respond, task};
use crate::support::{DEFAULT_VERSION, McpServer, Program, Recorder, Response};

/// Starts a server that asks before it deletes, and its upstream.
fn confirming_server() -> (Recorder, McpServer) {
    let recorder = Recorder::always(Response::json(
        200,
        &json!({"id": "ws_1", "object": "webset"}),
    ));
    let program = Program::new([])
        .env("EXA_BASE_URL", &recorder.url())
        .env("EXA_MCP_CONFIRM_DELETES", "true");
    (
        recorder,
        connect_with(program, DEFAULT_VERSION, form_capability(DEFAULT_VERSION)),
    )
}

#[test]
fn delete_task_waits_for_consent() {
    let (recorder, mut server) = confirming_server();
    let id = task(&mut server, delete());
    let status = server.notification(STATUS);
    assert_eq!(
        (&status["taskId"], &status["status"]),
        (&json!(id), &json!("input_required"))
    );
    let waiting = state(&mut server, &id);
    assert_eq!(waiting["status"], "input_required", "{waiting}");
    let message = waiting["statusMessage"].as_str().expect("a message");
    assert!(
        message.contains("will delete at Exa: websetId ws_1"),
        "{message}"
    );
    assert_eq!(waiting.get("inputRequests"), None);
    // The server sends the request only while the client waits for the result.
    server.assert_silent();
    let waits = server.send("tasks/result", json!({"taskId": id}));
    let request = next_request(&mut server);
    assert_eq!(request["method"], "elicitation/create", "{request}");
    assert_eq!(request["params"]["_meta"][RELATED]["taskId"], json!(id));
    // A second `tasks/result` does not ask the user twice.
    let also_waits = server.send("tasks/result", json!({"taskId": id}));
    server.assert_silent();
    assert!(recorder.take().is_empty());

    respond(&mut server, &request, accept(&json!({"confirm": true})));
    for waits in [waits, also_waits] {
        let body = server.response(&waits);
        assert_eq!(body["result"]["isError"], false, "{body}");
        assert_eq!(body["result"]["_meta"][RELATED]["taskId"], json!(id));
    }
    assert_eq!(recorder.only_request().method, "DELETE");
    let status: Vec<Value> = (0..2)
        .map(|_| server.notification(STATUS)["status"].take())
        .collect();
    assert_eq!(status, ["working", "completed"]);
    assert_eq!(state(&mut server, &id)["status"], "completed");
}

#[test]
fn waiting_task_says_what_it_waits_for() {
    let (_recorder, mut server) = confirming_server();
    // The task often waits within the millisecond of its creation.
    for round in 0..20 {
        let id = task(&mut server, delete());
        server.notification(STATUS);
        let one = state(&mut server, &id);
        let mut list = server.request("tasks/list", json!({}));
        let listed = list["result"]["tasks"].take();
        let listed = listed.as_array().expect("a list");
        let listed = listed.iter().find(|task| task["taskId"] == json!(id));
        for task in [&one, listed.expect("the task")] {
            let message = task["statusMessage"].as_str().expect("a message");
            assert!(message.contains("will delete"), "{round}: {message}");
        }
    }
}

#[test]
fn delete_task_without_consent_deletes_nothing() {
    let (recorder, mut server) = confirming_server();
    for body in [
        json!({"result": {"action": "decline"}}),
        json!({"result": {"action": "cancel"}}),
        json!({"result": accept(&json!({"confirm": false}))}),
        json!({"result": {"yes": 1}}),
        json!({"error": {"code": -32603, "message": "no"}}),
    ] {
        let id = task(&mut server, delete());
        let waits = server.send("tasks/result", json!({"taskId": id}));
        let request = next_request(&mut server);
        let mut message = body.clone();
        message["jsonrpc"] = json!("2.0");
        message["id"] = request["id"].clone();
        server.write(message.to_string().as_bytes());
        let result = server.response(&waits);
        assert_eq!(result["result"]["isError"], true, "{result}");
        let error = &result["result"]["structuredContent"]["error"];
        assert_eq!(error["name"], "OPERATION_CANCELLED", "{result}");
        assert_eq!(state(&mut server, &id)["status"], "failed");
    }
    assert!(recorder.take().is_empty());
}

#[test]
fn reconnected_client_gets_the_input_request_again() {
    let (recorder, mut server) = confirming_server();
    let id = task(&mut server, delete());
    let waits = server.send("tasks/result", json!({"taskId": id}));
    let first = next_request(&mut server);
    server.notify("notifications/cancelled", json!({"requestId": waits}));
    let back = server.notification("notifications/cancelled");
    assert_eq!(back["requestId"], first["id"]);
    assert_eq!(state(&mut server, &id)["status"], "input_required");
    let waits = server.send("tasks/result", json!({"taskId": id}));
    let again = next_request(&mut server);
    assert_eq!(again["params"]["message"], first["params"]["message"]);
    respond(&mut server, &again, accept(&json!({"confirm": true})));
    assert_eq!(server.response(&waits)["result"]["isError"], false);
    assert_eq!(recorder.only_request().method, "DELETE");
}

#[test]
fn unanswered_input_ends_the_task_before_its_ttl() {
    let (recorder, mut server) = confirming_server();
    let mut call = delete();
    call["task"] = json!({"ttl": 6_000});
    let body = server.request("tools/call", call);
    let id = body["result"]["task"]["taskId"].clone();
    let waits = server.send("tasks/result", json!({"taskId": id}));
    let request = next_request(&mut server);
    let result = server.response(&waits);
    assert_eq!(result["result"]["isError"], true, "{result}");
    let text = result["result"]["content"][0]["text"]
        .as_str()
        .expect("text");
    assert!(
        text.contains("the client did not respond in time"),
        "{text}"
    );
    let back = server.notification("notifications/cancelled");
    assert_eq!(back["requestId"], request["id"]);
    assert!(recorder.take().is_empty());
}
