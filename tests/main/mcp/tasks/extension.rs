//! The tasks extension of 2026-07-28: the server decides which calls become tasks.

use serde_json::{Value, json};

use super::{PROGRESS, WORK_MS, assert_error, research, webset};
use crate::support::{McpServer, Outcome, Program, STATELESS_VERSION, Sandbox};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Starts a server whose client supports the extension.
fn sandbox_and_server() -> (Sandbox, McpServer) {
    let sandbox = Sandbox::start();
    let program = Program::new([]).env("EXA_BASE_URL", &sandbox.url());
    let mut server = McpServer::connect(program, STATELESS_VERSION);
    server.set_capabilities(json!({"extensions": {EXTENSION: {}}}));
    (sandbox, server)
}

/// Makes a call that becomes a task, and returns its id.
#[track_caller]
fn start_task(server: &mut McpServer, call: Value) -> String {
    let response = server.request("tools/call", call);
    assert_eq!(response["result"]["resultType"], "task", "{response}");
    response["result"]["taskId"]
        .as_str()
        .expect("an id")
        .to_owned()
}

fn state(server: &mut McpServer, id: &str) -> Value {
    let mut response = server.request("tasks/get", json!({"taskId": id}));
    assert_eq!(response["result"]["taskId"], id, "{response}");
    response["result"].take()
}

/// Polls the state until it is final.
fn wait_for_end(server: &mut McpServer, id: &str) -> Value {
    loop {
        let state = state(server, id);
        if state["status"] != "working" {
            return state;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn task_extension_is_announced() {
    let (_sandbox, mut server) = sandbox_and_server();
    let response = server.request("server/discover", json!({}));
    let capabilities = &response["result"]["capabilities"];
    assert_eq!(
        capabilities["extensions"][EXTENSION],
        json!({}),
        "{response}"
    );
    assert_eq!(capabilities.get("tasks"), None, "{response}");
}

#[test]
fn long_work_becomes_a_task_with_its_result() {
    let (sandbox, mut server) = sandbox_and_server();
    sandbox.freeze(true);
    let mut call = webset("startups");
    call["_meta"] = json!({"progressToken": "p"});
    let response = server.request("tools/call", call);
    let task = &response["result"];
    assert_eq!(task["resultType"], "task", "{task}");
    assert_eq!(task["status"], "working");
    assert_eq!(task["ttlMs"], 3_600_000);
    assert!(task["pollIntervalMs"].is_u64(), "{task}");
    assert!(task["createdAt"].is_string() && task["lastUpdatedAt"].is_string());
    let id = task["taskId"].as_str().expect("an id").to_owned();
    sandbox.await_requests("websets.get", 1);
    let working = state(&mut server, &id);
    assert_eq!(working["resultType"], "complete", "{working}");
    assert_eq!((working.get("result"), working.get("error")), (None, None));
    sandbox.advance(WORK_MS);
    let end = wait_for_end(&mut server, &id);
    assert_eq!(end["status"], "completed", "{end}");
    let response = json!({"result": end["result"]});
    let outcome = Outcome::from_response(&response);
    assert!(!outcome.is_error);
    let structured = outcome.structured.expect("structured content");
    assert_eq!(structured["results"][0]["status"], "idle");
    assert_eq!(structured["isComplete"], true);
    // In this version progress is only part of the state.
    let message = end["statusMessage"].as_str().expect("a message");
    assert!(message.contains("found 3 of 3"), "{message}");
    server.assert_silent();
    let _ = PROGRESS;
}

#[test]
fn quick_work_returns_without_a_task() {
    let (sandbox, mut server) = sandbox_and_server();
    sandbox.freeze(true);
    let search = json!({"name": "web_search_exa", "arguments": {"query": "x"}});
    let look = json!({"name": "exa_api", "arguments": {"operation": "research.list"}});
    let mut waits = research("x");
    waits["arguments"]["wait_seconds"] = json!(0);
    let mut inside = research("y");
    inside["arguments"]["args"]["wait_seconds"] = json!(0);
    for call in [search, look, waits, inside] {
        let response = server.request("tools/call", call);
        assert_eq!(response["result"]["resultType"], "complete", "{response}");
        assert!(!Outcome::from_response(&response).is_error, "{response}");
    }
}

#[test]
fn failed_call_completes_the_task() {
    let (sandbox, mut server) = sandbox_and_server();
    sandbox.fault("research.create", "status=401");
    let id = start_task(&mut server, research("x"));
    let end = wait_for_end(&mut server, &id);
    assert_eq!(end["status"], "completed", "{end}");
    assert_eq!(end["result"]["isError"], true, "{end}");
}

#[test]
fn task_cancel_returns_an_empty_result() {
    let (sandbox, mut server) = sandbox_and_server();
    sandbox.freeze(true);
    let id = start_task(&mut server, webset("startups"));
    sandbox.await_requests("websets.get", 1);
    // In this version, cancelling a completed task is no error.
    for _ in 0..2 {
        let response = server.request("tasks/cancel", json!({"taskId": id}));
        assert_eq!(
            response["result"],
            json!({"resultType": "complete"}),
            "{response}"
        );
    }
    let end = state(&mut server, &id);
    assert_eq!(end["status"], "cancelled");
    assert_eq!((end.get("result"), end.get("error")), (None, None));
    sandbox.await_requests("websets.cancel", 1);
}

#[test]
fn task_update_is_acknowledged() {
    let (sandbox, mut server) = sandbox_and_server();
    sandbox.freeze(true);
    let id = start_task(&mut server, research("x"));
    let update = json!({"taskId": id, "inputResponses": {"never-asked": {"action": "accept"}}});
    let response = server.request("tasks/update", update);
    assert_eq!(
        response["result"],
        json!({"resultType": "complete"}),
        "{response}"
    );
    assert_eq!(state(&mut server, &id)["status"], "working");
    let unknown = json!({"taskId": "nope", "inputResponses": {}});
    assert_error(
        &server.request("tasks/update", unknown),
        -32602,
        "Unknown task nope",
    );
    for method in ["tasks/get", "tasks/cancel"] {
        let response = server.request(method, json!({"taskId": "nope"}));
        assert_error(&response, -32602, "Unknown task nope");
    }
}

#[test]
fn client_without_the_extension_gets_a_plain_result() {
    let (sandbox, mut server) = sandbox_and_server();
    sandbox.freeze(true);
    let id = start_task(&mut server, research("x"));
    server.set_capabilities(json!({}));
    let response = server.request("tools/call", research("y"));
    assert_eq!(response["result"]["resultType"], "complete", "{response}");
    let structured = Outcome::from_response(&response)
        .structured
        .expect("structured content");
    assert_eq!(structured["isComplete"], false);
    assert_eq!(structured["checkWith"]["operation"], "research.get");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({"taskId": id, "inputResponses": {}});
        let response = server.request(method, params);
        assert_eq!(response["error"]["code"], -32021, "{response}");
        let needed = &response["error"]["data"]["requiredCapabilities"]["extensions"];
        assert!(needed.get(EXTENSION).is_some(), "{response}");
    }
}

#[test]
fn methods_of_the_earlier_version_are_unknown() {
    let (sandbox, mut server) = sandbox_and_server();
    sandbox.freeze(true);
    let id = start_task(&mut server, research("x"));
    for method in ["tasks/result", "tasks/list"] {
        let response = server.request(method, json!({"taskId": id}));
        assert_error(&response, -32601, method);
    }
    // In this version the server alone decides.
    let mut call = json!({"name": "web_search_exa", "arguments": {"query": "x"}});
    call["task"] = json!({"ttl": 5});
    let response = server.request("tools/call", call);
    assert_eq!(response["result"]["resultType"], "complete", "{response}");
}
