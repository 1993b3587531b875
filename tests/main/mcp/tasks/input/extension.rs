//! Input by `tasks/update`, in the extension of 2026-07-28.

use serde_json::json;

use super::super::{WORK_MS, assert_error, state};
use super::{
    accept, create_webset, input_request, sandbox_and_server, search, task, update,
    wait_while_working,
};
use crate::support::STATELESS_VERSION;

#[test]
fn extension_task_requests_input_and_continues() {
    let (sandbox, mut server) = sandbox_and_server(STATELESS_VERSION);
    let webset = create_webset(&mut server);
    let id = task(&mut server, search());
    let waiting = wait_while_working(&mut server, &id);
    let (key, request) = input_request(&waiting);
    assert_eq!(request["method"], "elicitation/create");
    let params = &request["params"];
    assert_eq!(params["requestedSchema"]["required"], json!(["websetId"]));
    let message = waiting["statusMessage"].as_str().expect("a message");
    assert!(message.contains("websetId"), "{message}");
    assert_eq!((waiting.get("result"), waiting.get("error")), (None, None));
    // Unrequested and empty input changes nothing.
    update(&mut server, &id, json!({}));
    update(
        &mut server,
        &id,
        json!({"wrong": accept(&json!({"websetId": webset}))}),
    );
    update(&mut server, &id, json!({key.as_str(): null}));
    assert_eq!(
        input_request(&state(&mut server, &id)),
        (key.clone(), request)
    );
    assert!(sandbox.requests("searches.create").is_empty());

    let response = json!({key.as_str(): accept(&json!({"websetId": webset}))});
    update(&mut server, &id, response.clone());
    assert_eq!(state(&mut server, &id)["status"], "working");
    sandbox.await_requests("searches.create", 1);
    // Only the first response counts.
    update(&mut server, &id, response.clone());
    sandbox.advance(WORK_MS);
    let end = wait_while_working(&mut server, &id);
    assert_eq!(end["status"], "completed", "{end}");
    assert_eq!(end["result"]["isError"], false, "{end}");
    assert_eq!(end.get("inputRequests"), None);
    assert_eq!(sandbox.requests("searches.create").len(), 1);
    update(&mut server, &id, response);
    assert_eq!(state(&mut server, &id)["status"], "completed");
    let unknown = json!({"taskId": "nope", "inputResponses": {}});
    assert_error(
        &server.request("tasks/update", unknown),
        -32602,
        "Unknown task nope",
    );
}

#[test]
fn other_input_ends_the_extension_task_with_an_explanation() {
    let (sandbox, mut server) = sandbox_and_server(STATELESS_VERSION);
    let cases = [
        (json!({"action": "decline"}), "the user declined"),
        (json!({"action": "cancel"}), "dismissed the request"),
        (accept(&json!({})), "not filled in"),
        (json!({"yes": 1}), "no usable response"),
        (json!("x".repeat(300_000)), "too long"),
    ];
    for (response, words) in cases {
        let id = task(&mut server, search());
        let (key, _) = input_request(&wait_while_working(&mut server, &id));
        update(&mut server, &id, json!({key: response}));
        let end = wait_while_working(&mut server, &id);
        assert_eq!(end["status"], "completed", "{end}");
        assert_eq!(end["result"]["isError"], true, "{end}");
        let text = end["result"]["content"][0]["text"].as_str().expect("text");
        assert!(text.contains(words) && text.contains("retryWith"), "{text}");
    }
    assert!(sandbox.requests("searches.create").is_empty());
}
