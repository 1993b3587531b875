//! Tasks that wait for input when the server is killed.

use std::path::Path;

use serde_json::json;

use super::super::{WORK_MS, connect_with, durable, result, single_result};
use super::{
    RELATED, accept, create_webset, delete, form_capability, input_request, next_request, respond,
    search, task, update, wait_while_working,
};
use crate::support::{DEFAULT_VERSION, McpServer, STATELESS_VERSION, Sandbox};

/// Starts a server with a durable store for a client that supports elicitation.
fn connect_durable(sandbox: &Sandbox, file: &Path, version: &str) -> McpServer {
    connect_with(durable(sandbox, file), version, form_capability(version))
}

#[test]
fn input_request_resumes_after_a_crash() {
    let sandbox = Sandbox::start();
    sandbox.freeze(true);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("store.db");
    let mut server = connect_durable(&sandbox, &file, STATELESS_VERSION);
    let webset = create_webset(&mut server);
    let tasks: Vec<(String, String)> = (0..2)
        .map(|_| {
            let id = task(&mut server, search());
            let (key, _) = input_request(&wait_while_working(&mut server, &id));
            (id, key)
        })
        .collect();
    server.kill();

    let mut server = connect_durable(&sandbox, &file, STATELESS_VERSION);
    let body = accept(&json!({"websetId": webset}));
    // One response uses the key from before the crash, the other one the current key.
    let [(early, early_key), (late, late_key)] = &tasks[..] else {
        panic!("two tasks");
    };
    update(&mut server, early, json!({early_key.as_str(): body}));
    let (key, _) = input_request(&wait_while_working(&mut server, late));
    assert_eq!(key, *late_key);
    update(&mut server, late, json!({key: body}));
    sandbox.await_requests("searches.create", 2);
    server.kill();

    // Input that was given is not requested again.
    let mut server = connect_durable(&sandbox, &file, STATELESS_VERSION);
    sandbox.advance(WORK_MS);
    for (id, _) in &tasks {
        let end = wait_while_working(&mut server, id);
        assert_eq!(end["status"], "completed", "{end}");
        assert_eq!(end["result"]["isError"], false, "{end}");
    }
    assert_eq!(sandbox.requests("searches.create").len(), 2);
}

#[test]
fn waiting_task_is_not_lost_when_unfindable() {
    let sandbox = Sandbox::start();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("store.db");
    let careful = || {
        let program = durable(&sandbox, &file).env("EXA_MCP_CONFIRM_DELETES", "true");
        connect_with(program, DEFAULT_VERSION, form_capability(DEFAULT_VERSION))
    };
    let mut server = careful();
    let webset = create_webset(&mut server);
    let mut call = delete();
    call["arguments"]["args"]["websetId"] = webset.clone();
    let id = task(&mut server, call);
    assert_eq!(
        wait_while_working(&mut server, &id)["status"],
        "input_required"
    );
    server.kill();

    let mut server = careful();
    let waits = server.send("tasks/result", json!({"taskId": id}));
    let request = next_request(&mut server);
    assert_eq!(request["params"]["_meta"][RELATED]["taskId"], json!(id));
    assert!(sandbox.requests("websets.delete").is_empty());
    respond(&mut server, &request, accept(&json!({"confirm": true})));
    let body = server.response(&waits);
    assert_eq!(body["result"]["isError"], false, "{body}");
    assert_eq!(single_result(&result(&mut server, &id))["id"], webset);
    assert_eq!(sandbox.requests("websets.delete").len(), 1);
}
