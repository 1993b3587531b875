//! Tasks that need something of their client: they wait for it, say what it is, and go on.

mod crash;
mod extension;
mod session;

use serde_json::{Value, json};

use super::{assert_error, begun, connect_with, state};
use crate::support::{McpServer, Program, STATELESS, Sandbox, USUAL};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "io.modelcontextprotocol/related-task";

fn forms(version: &str) -> Value {
    match version == STATELESS {
        true => json!({"elicitation": {}, "extensions": {EXTENSION: {}}}),
        false => json!({"elicitation": {}}),
    }
}

/// A sandbox whose time stands still, and a server on it whose client can be asked.
fn pair(version: &str) -> (Sandbox, McpServer) {
    let sandbox = Sandbox::start();
    sandbox.freeze(true);
    let program = Program::new([]).env("EXA_BASE_URL", &sandbox.url());
    let server = connect_with(program, version, forms(version));
    (sandbox, server)
}

fn delete() -> Value {
    json!({"name": "manage_websets", "arguments":
        {"operation": "websets.delete", "args": {"websetId": "ws_1"}}})
}

/// A webset to search in.
fn ground(server: &mut McpServer) -> Value {
    let args = json!({"search": {"query": "heat pumps", "count": 1}});
    let create = json!({"operation": "websets.create", "args": args, "wait_seconds": 0});
    server.call("manage_websets", create).success()["id"].clone()
}

/// A search that does not say where.
fn search() -> Value {
    json!({"name": "manage_websets", "arguments":
        {"operation": "searches.create", "args": {"query": "makers", "count": 1}}})
}

/// Begins a task in the way of the client's version.
#[track_caller]
fn task(server: &mut McpServer, call: Value) -> String {
    let task = match server.is_stateless() {
        true => {
            let answer = server.ask("tools/call", call);
            assert_eq!(answer["result"]["resultType"], "task", "{answer}");
            answer["result"].clone()
        }
        false => begun(server, call),
    };
    assert_eq!(task["status"], "working", "{task}");
    task["taskId"].as_str().expect("an id").to_owned()
}

/// Looks at a task until it is in another state than `working`.
fn settled(server: &mut McpServer, id: &str) -> Value {
    loop {
        let state = state(server, id);
        if state["status"] != "working" {
            return state;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// The only question of a task: its name, and what it asks.
#[track_caller]
fn question(state: &Value) -> (String, Value) {
    assert_eq!(state["status"], "input_required", "{state}");
    let requests = state["inputRequests"].as_object().expect("questions");
    assert_eq!(requests.len(), 1, "{state}");
    let (key, request) = requests.iter().next().expect("a question");
    (key.clone(), request.clone())
}

#[track_caller]
fn update(server: &mut McpServer, id: &str, responses: Value) {
    let update = json!({"taskId": id, "inputResponses": responses});
    let answer = server.ask("tasks/update", update);
    assert_eq!(
        answer["result"],
        json!({"resultType": "complete"}),
        "{answer}"
    );
}

fn accept(content: &Value) -> Value {
    json!({"action": "accept", "content": content})
}

/// Answers a request of the server.
fn reply(server: &mut McpServer, request: &Value, result: Value) {
    let message = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    server.write(message.to_string().as_bytes());
}

/// The next request of the server.
fn asked(server: &mut McpServer) -> Value {
    loop {
        let message = server.next();
        if message.get("method").is_some() && message.get("id").is_some() {
            return message;
        }
    }
}

#[test]
fn waiting_task_can_be_cancelled() {
    for version in [USUAL, STATELESS] {
        let (sandbox, mut server) = pair(version);
        let id = task(&mut server, search());
        assert_eq!(settled(&mut server, &id)["status"], "input_required");
        let waits = (version == USUAL).then(|| {
            let waits = server.send("tasks/result", json!({"taskId": id}));
            (waits, asked(&mut server))
        });
        let answer = server.ask("tasks/cancel", json!({"taskId": id}));
        assert!(answer.get("result").is_some(), "{answer}");
        let end = state(&mut server, &id);
        assert_eq!(end["status"], "cancelled", "{end}");
        assert_eq!(end.get("inputRequests"), None);
        if let Some((waits, request)) = waits {
            let answer = server.answer(&waits);
            assert_error(&answer, -32602, "was cancelled");
            let back = server.notification("notifications/cancelled");
            assert_eq!(back["requestId"], request["id"]);
        }
        assert!(sandbox.requests("searches.create").is_empty(), "{version}");
    }
}

#[test]
fn client_without_elicitation_gets_an_explanation() {
    for version in [USUAL, STATELESS] {
        let (sandbox, mut server) = pair(version);
        if version == STATELESS {
            server.declare(json!({"extensions": {EXTENSION: {}}}));
        } else {
            let program = Program::new([]).env("EXA_BASE_URL", &sandbox.url());
            server = connect_with(program, version, json!({}));
        }
        let id = task(&mut server, search());
        let end = settled(&mut server, &id);
        let ended = if version == USUAL {
            "failed"
        } else {
            "completed"
        };
        assert_eq!(end["status"], ended, "{end}");
    }
}
