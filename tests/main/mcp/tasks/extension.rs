//! The extension of 2026-07-28: the server decides what becomes a task.

use serde_json::{Value, json};

use super::{LONG, PROGRESS, assert_error, research, webset};
use crate::support::{McpServer, Outcome, Program, STATELESS, Sandbox};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A server whose client knows the extension.
fn pair() -> (Sandbox, McpServer) {
    let sandbox = Sandbox::start();
    let program = Program::new([]).env("EXA_BASE_URL", &sandbox.url());
    let mut server = McpServer::connect(program, STATELESS);
    server.declare(json!({"extensions": {EXTENSION: {}}}));
    (sandbox, server)
}

/// Makes a call that becomes a task, and gives the id.
#[track_caller]
fn handle(server: &mut McpServer, call: Value) -> String {
    let answer = server.ask("tools/call", call);
    assert_eq!(answer["result"]["resultType"], "task", "{answer}");
    answer["result"]["taskId"]
        .as_str()
        .expect("an id")
        .to_owned()
}

fn state(server: &mut McpServer, id: &str) -> Value {
    let mut answer = server.ask("tasks/get", json!({"taskId": id}));
    assert_eq!(answer["result"]["taskId"], id, "{answer}");
    answer["result"].take()
}

/// Asks for the state until it is final.
fn ended(server: &mut McpServer, id: &str) -> Value {
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
    let (_sandbox, mut server) = pair();
    let answer = server.ask("server/discover", json!({}));
    let capabilities = &answer["result"]["capabilities"];
    assert_eq!(capabilities["extensions"][EXTENSION], json!({}), "{answer}");
    assert_eq!(capabilities.get("tasks"), None, "{answer}");
}

#[test]
fn long_work_becomes_a_task_with_its_result() {
    let (sandbox, mut server) = pair();
    sandbox.freeze(true);
    let mut call = webset("startups");
    call["_meta"] = json!({"progressToken": "p"});
    let answer = server.ask("tools/call", call);
    let task = &answer["result"];
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
    sandbox.advance(LONG);
    let end = ended(&mut server, &id);
    assert_eq!(end["status"], "completed", "{end}");
    let answer = json!({"result": end["result"]});
    let outcome = Outcome::of(&answer);
    assert!(!outcome.is_error);
    let structured = outcome.structured.expect("structured content");
    assert_eq!(structured["results"][0]["status"], "idle");
    assert_eq!(structured["isComplete"], true);
    // Here progress is part of the state, and of nothing else.
    let message = end["statusMessage"].as_str().expect("a message");
    assert!(message.contains("found 3 of 3"), "{message}");
    server.assert_silent();
    let _ = PROGRESS;
}

#[test]
fn quick_work_returns_without_a_task() {
    let (sandbox, mut server) = pair();
    sandbox.freeze(true);
    let search = json!({"name": "web_search_exa", "arguments": {"query": "x"}});
    let look = json!({"name": "exa_api", "arguments": {"operation": "research.list"}});
    let mut waits = research("x");
    waits["arguments"]["wait_seconds"] = json!(0);
    let mut inside = research("y");
    inside["arguments"]["args"]["wait_seconds"] = json!(0);
    for call in [search, look, waits, inside] {
        let answer = server.ask("tools/call", call);
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        assert!(!Outcome::of(&answer).is_error, "{answer}");
    }
}

#[test]
fn failed_call_completes_the_task() {
    let (sandbox, mut server) = pair();
    sandbox.fault("research.create", "status=401");
    let id = handle(&mut server, research("x"));
    let end = ended(&mut server, &id);
    assert_eq!(end["status"], "completed", "{end}");
    assert_eq!(end["result"]["isError"], true, "{end}");
}

#[test]
fn task_cancel_returns_an_empty_result() {
    let (sandbox, mut server) = pair();
    sandbox.freeze(true);
    let id = handle(&mut server, webset("startups"));
    sandbox.await_requests("websets.get", 1);
    // Cancelling what has ended is no error here.
    for _ in 0..2 {
        let answer = server.ask("tasks/cancel", json!({"taskId": id}));
        assert_eq!(
            answer["result"],
            json!({"resultType": "complete"}),
            "{answer}"
        );
    }
    let end = state(&mut server, &id);
    assert_eq!(end["status"], "cancelled");
    assert_eq!((end.get("result"), end.get("error")), (None, None));
    sandbox.await_requests("websets.cancel", 1);
}

#[test]
fn task_update_is_acknowledged() {
    let (sandbox, mut server) = pair();
    sandbox.freeze(true);
    let id = handle(&mut server, research("x"));
    let update = json!({"taskId": id, "inputResponses": {"never-asked": {"action": "accept"}}});
    let answer = server.ask("tasks/update", update);
    assert_eq!(
        answer["result"],
        json!({"resultType": "complete"}),
        "{answer}"
    );
    assert_eq!(state(&mut server, &id)["status"], "working");
    let unknown = json!({"taskId": "nope", "inputResponses": {}});
    assert_error(
        &server.ask("tasks/update", unknown),
        -32602,
        "Unknown task nope",
    );
    for method in ["tasks/get", "tasks/cancel"] {
        let answer = server.ask(method, json!({"taskId": "nope"}));
        assert_error(&answer, -32602, "Unknown task nope");
    }
}

#[test]
fn client_without_the_extension_gets_a_plain_result() {
    let (sandbox, mut server) = pair();
    sandbox.freeze(true);
    let id = handle(&mut server, research("x"));
    server.declare(json!({}));
    let answer = server.ask("tools/call", research("y"));
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    let structured = Outcome::of(&answer).structured.expect("structured content");
    assert_eq!(structured["isComplete"], false);
    assert_eq!(structured["checkWith"]["operation"], "research.get");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({"taskId": id, "inputResponses": {}});
        let answer = server.ask(method, params);
        assert_eq!(answer["error"]["code"], -32021, "{answer}");
        let needed = &answer["error"]["data"]["requiredCapabilities"]["extensions"];
        assert!(needed.get(EXTENSION).is_some(), "{answer}");
    }
}

#[test]
fn methods_of_the_earlier_version_are_unknown() {
    let (sandbox, mut server) = pair();
    sandbox.freeze(true);
    let id = handle(&mut server, research("x"));
    for method in ["tasks/result", "tasks/list"] {
        let answer = server.ask(method, json!({"taskId": id}));
        assert_error(&answer, -32601, method);
    }
    // Here the server alone decides.
    let mut call = json!({"name": "web_search_exa", "arguments": {"query": "x"}});
    call["task"] = json!({"ttl": 5});
    let answer = server.ask("tools/call", call);
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
}
