//! Answers to requests that come while the result is waited for, in 2025-11-25.

use serde_json::{Value, json};

use super::super::{STATUS, connect_with, state};
use super::{RELATED, accept, asked, delete, forms, reply, task};
use crate::support::{McpServer, Program, Recorder, Reply, USUAL};

/// A server that asks before it deletes, and its upstream.
fn careful() -> (Recorder, McpServer) {
    let recorder = Recorder::always(Reply::json(200, &json!({"id": "ws_1", "object": "webset"})));
    let program = Program::new([])
        .env("EXA_BASE_URL", &recorder.url())
        .env("EXA_MCP_CONFIRM_DELETES", "true");
    (recorder, connect_with(program, USUAL, forms(USUAL)))
}

#[test]
fn delete_task_waits_for_consent() {
    let (recorder, mut server) = careful();
    let id = task(&mut server, delete());
    let told = server.notification(STATUS);
    assert_eq!(
        (&told["taskId"], &told["status"]),
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
    // It is asked while the client waits for the result, and not before.
    server.assert_silent();
    let waits = server.send("tasks/result", json!({"taskId": id}));
    let request = asked(&mut server);
    assert_eq!(request["method"], "elicitation/create", "{request}");
    assert_eq!(request["params"]["_meta"][RELATED]["taskId"], json!(id));
    // Another one who waits does not make the user answer twice.
    let also_waits = server.send("tasks/result", json!({"taskId": id}));
    server.assert_silent();
    assert!(recorder.take().is_empty());

    reply(&mut server, &request, accept(&json!({"confirm": true})));
    for waits in [waits, also_waits] {
        let answer = server.answer(&waits);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        assert_eq!(answer["result"]["_meta"][RELATED]["taskId"], json!(id));
    }
    assert_eq!(recorder.only().method, "DELETE");
    let told: Vec<Value> = (0..2)
        .map(|_| server.notification(STATUS)["status"].take())
        .collect();
    assert_eq!(told, ["working", "completed"]);
    assert_eq!(state(&mut server, &id)["status"], "completed");
}

#[test]
fn delete_task_without_consent_deletes_nothing() {
    let (recorder, mut server) = careful();
    for answer in [
        json!({"result": {"action": "decline"}}),
        json!({"result": {"action": "cancel"}}),
        json!({"result": accept(&json!({"confirm": false}))}),
        json!({"result": {"yes": 1}}),
        json!({"error": {"code": -32603, "message": "no"}}),
    ] {
        let id = task(&mut server, delete());
        let waits = server.send("tasks/result", json!({"taskId": id}));
        let request = asked(&mut server);
        let mut message = answer.clone();
        message["jsonrpc"] = json!("2.0");
        message["id"] = request["id"].clone();
        server.write(message.to_string().as_bytes());
        let result = server.answer(&waits);
        assert_eq!(result["result"]["isError"], true, "{result}");
        let error = &result["result"]["structuredContent"]["error"];
        assert_eq!(error["name"], "OPERATION_CANCELLED", "{result}");
        assert_eq!(state(&mut server, &id)["status"], "failed");
    }
    assert!(recorder.take().is_empty());
}

#[test]
fn reconnected_client_gets_the_input_request_again() {
    let (recorder, mut server) = careful();
    let id = task(&mut server, delete());
    let waits = server.send("tasks/result", json!({"taskId": id}));
    let first = asked(&mut server);
    server.notify("notifications/cancelled", json!({"requestId": waits}));
    let back = server.notification("notifications/cancelled");
    assert_eq!(back["requestId"], first["id"]);
    assert_eq!(state(&mut server, &id)["status"], "input_required");
    let waits = server.send("tasks/result", json!({"taskId": id}));
    let again = asked(&mut server);
    assert_eq!(again["params"]["message"], first["params"]["message"]);
    reply(&mut server, &again, accept(&json!({"confirm": true})));
    assert_eq!(server.answer(&waits)["result"]["isError"], false);
    assert_eq!(recorder.only().method, "DELETE");
}

#[test]
fn unanswered_input_ends_the_task_before_its_ttl() {
    let (recorder, mut server) = careful();
    let mut call = delete();
    call["task"] = json!({"ttl": 6_000});
    let answer = server.ask("tools/call", call);
    let id = answer["result"]["task"]["taskId"].clone();
    let waits = server.send("tasks/result", json!({"taskId": id}));
    let request = asked(&mut server);
    let result = server.answer(&waits);
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
