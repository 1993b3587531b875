//! Tasks that need input from their client.

mod crash;
mod extension;
mod session;

use serde_json::{Value, json};

use super::{assert_error, connect_with, create_task, state};
use crate::support::{DEFAULT_VERSION, McpServer, Program, STATELESS_VERSION, Sandbox};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "io.modelcontextprotocol/related-task";

fn form_capability(version: &str) -> Value {
    if version == STATELESS_VERSION {
        json!({"elicitation": {}, "extensions": {EXTENSION: {}}})
    } else {
        json!({"elicitation": {}})
    }
}

/// Starts a sandbox with a frozen clock, and a server for a client that supports elicitation.
fn sandbox_and_server(version: &str) -> (Sandbox, McpServer) {
    let sandbox = Sandbox::start();
    sandbox.freeze(true);
    let program = Program::new([]).env("EXA_BASE_URL", &sandbox.url());
    let server = connect_with(program, version, form_capability(version));
    (sandbox, server)
}

fn delete() -> Value {
    json!({"name": "manage_websets", "arguments":
        {"operation": "websets.delete", "args": {"websetId": "ws_1"}}})
}

/// Creates a webset to search in.
fn create_webset(server: &mut McpServer) -> Value {
    let args = json!({"search": {"query": "heat pumps", "count": 1}});
    let create = json!({"operation": "websets.create", "args": args, "wait_seconds": 0});
    server.call("manage_websets", create).success()["id"].clone()
}

/// Returns a search without its required webset.
fn search() -> Value {
    json!({"name": "manage_websets", "arguments":
        {"operation": "searches.create", "args": {"query": "makers", "count": 1}}})
}

/// Starts a task in the way of the client's version.
#[track_caller]
fn task(server: &mut McpServer, call: Value) -> String {
    let task = if server.is_stateless() {
        let body = server.request("tools/call", call);
        assert_eq!(body["result"]["resultType"], "task", "{body}");
        body["result"].clone()
    } else {
        create_task(server, call)
    };
    assert_eq!(task["status"], "working", "{task}");
    task["taskId"].as_str().expect("an id").to_owned()
}

/// Polls a task until its status is not `working`.
fn wait_while_working(server: &mut McpServer, id: &str) -> Value {
    loop {
        let state = state(server, id);
        if state["status"] != "working" {
            return state;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Returns the key and the request of a task's only input request.
#[track_caller]
fn input_request(state: &Value) -> (String, Value) {
    assert_eq!(state["status"], "input_required", "{state}");
    let requests = state["inputRequests"].as_object().expect("input requests");
    assert_eq!(requests.len(), 1, "{state}");
    let (key, request) = requests.iter().next().expect("an input request");
    (key.clone(), request.clone())
}

#[track_caller]
fn update(server: &mut McpServer, id: &str, responses: Value) {
    let update = json!({"taskId": id, "inputResponses": responses});
    let body = server.request("tasks/update", update);
    assert_eq!(body["result"], json!({"resultType": "complete"}), "{body}");
}

fn accept(content: &Value) -> Value {
    json!({"action": "accept", "content": content})
}

/// Responds to a request of the server.
fn respond(server: &mut McpServer, request: &Value, result: Value) {
    let message = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    server.write(message.to_string().as_bytes());
}

/// Returns the next request of the server.
fn next_request(server: &mut McpServer) -> Value {
    loop {
        let message = server.next();
        if message.get("method").is_some() && message.get("id").is_some() {
            return message;
        }
    }
}

#[test]
fn waiting_task_can_be_cancelled() {
    for version in [DEFAULT_VERSION, STATELESS_VERSION] {
        let (sandbox, mut server) = sandbox_and_server(version);
        let id = task(&mut server, search());
        assert_eq!(
            wait_while_working(&mut server, &id)["status"],
            "input_required"
        );
        let waits = (version == DEFAULT_VERSION).then(|| {
            let waits = server.send("tasks/result", json!({"taskId": id}));
            (waits, next_request(&mut server))
        });
        let body = server.request("tasks/cancel", json!({"taskId": id}));
        assert!(body.get("result").is_some(), "{body}");
        let end = state(&mut server, &id);
        assert_eq!(end["status"], "cancelled", "{end}");
        assert_eq!(end.get("inputRequests"), None);
        if let Some((waits, request)) = waits {
            let body = server.response(&waits);
            assert_error(&body, -32602, "was cancelled");
            let back = server.notification("notifications/cancelled");
            assert_eq!(back["requestId"], request["id"]);
        }
        assert!(sandbox.requests("searches.create").is_empty(), "{version}");
    }
}

#[test]
fn client_without_elicitation_gets_an_explanation() {
    for version in [DEFAULT_VERSION, STATELESS_VERSION] {
        let (sandbox, mut server) = sandbox_and_server(version);
        if version == STATELESS_VERSION {
            server.set_capabilities(json!({"extensions": {EXTENSION: {}}}));
        } else {
            let program = Program::new([]).env("EXA_BASE_URL", &sandbox.url());
            server = connect_with(program, version, json!({}));
        }
        let id = task(&mut server, search());
        let end = wait_while_working(&mut server, &id);
        let ended = if version == DEFAULT_VERSION {
            "failed"
        } else {
            "completed"
        };
        assert_eq!(end["status"], ended, "{end}");
    }
}
