//! Cancelled calls.

use serde_json::{Value, json};

use super::{research, start_task, webset};
use crate::support::{DEFAULT_VERSION, McpServer, Program, Sandbox};

fn logging_server(sandbox: &Sandbox) -> McpServer {
    let program = Program::new([])
        .env("EXA_BASE_URL", &sandbox.url())
        .env("EXA_MCP_LOG_LEVEL", "info");
    McpServer::connect(program, DEFAULT_VERSION)
}

fn with_wait(mut call: Value) -> Value {
    call["arguments"]["wait_seconds"] = json!(600);
    call["_meta"] = json!({"progressToken": "p"});
    call
}

#[test]
fn cancelled_wait_names_the_running_work() {
    let sandbox = Sandbox::start();
    sandbox.freeze(true);
    let mut server = logging_server(&sandbox);
    let id = server.send("tools/call", with_wait(webset("startups")));
    let looks = sandbox.await_requests("websets.get", 1);
    let path = looks[0]["path"].as_str().expect("a path");
    let webset = path.rsplit('/').next().expect("an id").to_owned();
    // Progress from before the cancellation may still arrive.
    server.notification(super::PROGRESS);
    server.notify("notifications/cancelled", json!({"requestId": id}));
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
    let looks = sandbox.requests("websets.get").len();
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    assert_eq!(sandbox.requests("websets.get").len(), looks);
    server.assert_silent();
    // The webset itself must not be cancelled.
    assert_eq!(sandbox.requests("websets.cancel").len(), 0);
    let log = server.shut_down().stderr;
    let line = log
        .lines()
        .find(|line| line.contains("it continues at Exa"));
    let line = line.unwrap_or_else(|| panic!("nothing in {log}"));
    assert!(line.contains("INFO") && line.contains(&webset), "{line}");
}

#[test]
fn cancelled_start_names_the_work() {
    let sandbox = Sandbox::start();
    sandbox.fault("websets.create", "delay=20000");
    let mut server = logging_server(&sandbox);
    let id = server.send("tools/call", with_wait(webset("startups")));
    sandbox.await_requests("websets.create", 1);
    server.notify("notifications/cancelled", json!({"requestId": id}));
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
    server.assert_silent();
    let log = server.shut_down().stderr;
    let line = log
        .lines()
        .find(|line| line.contains("may still take effect at Exa"));
    let line = line.unwrap_or_else(|| panic!("nothing in {log}"));
    assert!(line.contains("websets.create"), "{line}");
}

#[test]
fn shutdown_names_running_work() {
    let sandbox = Sandbox::start();
    sandbox.freeze(true);
    let mut server = logging_server(&sandbox);
    start_task(&mut server, research("x"));
    let looks = sandbox.await_requests("research.get", 1);
    let path = looks[0]["path"].as_str().expect("a path");
    let research = path.rsplit('/').next().expect("an id").to_owned();
    let log = server.shut_down().stderr;
    let line = log
        .lines()
        .find(|line| line.contains("it continues at Exa"));
    let line = line.unwrap_or_else(|| panic!("nothing in {log}"));
    assert!(line.contains(&research), "{line}");
}

#[test]
fn waiting_for_a_task_result_can_be_cancelled() {
    let sandbox = Sandbox::start();
    sandbox.freeze(true);
    let mut server = logging_server(&sandbox);
    let task = start_task(&mut server, research("x"));
    let id = server.send("tasks/result", json!({"taskId": task}));
    sandbox.await_requests("research.get", 1);
    server.notify("notifications/cancelled", json!({"requestId": id}));
    assert_eq!(super::state(&mut server, &task)["status"], "working");
    server.assert_silent();
    sandbox.advance(super::WORK_MS);
    super::result(&mut server, &task);
}
