//! Tasks that wait for an answer when the server ends.

use std::path::Path;

use serde_json::json;

use super::super::{LONG, connect_with, durable, result, thing};
use super::{
    RELATED, accept, asked, delete, forms, ground, question, reply, search, settled, task, update,
};
use crate::support::{McpServer, STATELESS, Sandbox, USUAL};

/// A server with its tasks in a file, whose client can be asked.
fn kept(sandbox: &Sandbox, file: &Path, version: &str) -> McpServer {
    connect_with(durable(sandbox, file), version, forms(version))
}

#[test]
fn input_request_resumes_after_a_crash() {
    let sandbox = Sandbox::start();
    sandbox.freeze(true);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("store.db");
    let mut server = kept(&sandbox, &file, STATELESS);
    let webset = ground(&mut server);
    let tasks: Vec<(String, String)> = (0..2)
        .map(|_| {
            let id = task(&mut server, search());
            let (key, _) = question(&settled(&mut server, &id));
            (id, key)
        })
        .collect();
    server.kill();

    let mut server = kept(&sandbox, &file, STATELESS);
    let answer = accept(&json!({"websetId": webset}));
    // One is answered by who saw the question before the crash, the other one by who sees it now.
    let [(early, early_key), (late, late_key)] = &tasks[..] else {
        panic!("two tasks");
    };
    update(&mut server, early, json!({early_key.as_str(): answer}));
    let (key, _) = question(&settled(&mut server, late));
    assert_eq!(key, *late_key);
    update(&mut server, late, json!({key: answer}));
    sandbox.await_requests("searches.create", 2);
    server.kill();

    // An answer that was given is not asked for again.
    let mut server = kept(&sandbox, &file, STATELESS);
    sandbox.advance(LONG);
    for (id, _) in &tasks {
        let end = settled(&mut server, id);
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
        connect_with(program, USUAL, forms(USUAL))
    };
    let mut server = careful();
    let webset = ground(&mut server);
    let mut call = delete();
    call["arguments"]["args"]["websetId"] = webset.clone();
    let id = task(&mut server, call);
    assert_eq!(settled(&mut server, &id)["status"], "input_required");
    server.kill();

    let mut server = careful();
    let waits = server.send("tasks/result", json!({"taskId": id}));
    let request = asked(&mut server);
    assert_eq!(request["params"]["_meta"][RELATED]["taskId"], json!(id));
    assert!(sandbox.requests("websets.delete").is_empty());
    reply(&mut server, &request, accept(&json!({"confirm": true})));
    let answer = server.answer(&waits);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert_eq!(thing(&result(&mut server, &id))["id"], webset);
    assert_eq!(sandbox.requests("websets.delete").len(), 1);
}
