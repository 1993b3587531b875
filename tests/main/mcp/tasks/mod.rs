//! Tasks and long work, as clients see them.

mod cancellation;
mod crash;
mod durable;
mod extension;
mod input;
mod lifecycle;
mod limits;
mod load;
mod recovery;
mod requests;
mod upstream_errors;
mod wait_seconds;

use serde_json::{Value, json};

use crate::support::{McpServer, Program, Sandbox, USUAL};

/// Longer than any work of the sandbox takes.
const LONG: u64 = 60_000;

const STATUS: &str = "notifications/tasks/status";
const PROGRESS: &str = "notifications/progress";

/// A sandbox and a server on it, with all tools that start work.
fn pair() -> (Sandbox, McpServer) {
    let sandbox = Sandbox::start();
    let server = McpServer::upstream(&sandbox.url(), &["--tools", "default,toolhost"]);
    (sandbox, server)
}

/// The program on a sandbox, with its tasks in a file.
fn durable(sandbox: &Sandbox, file: &std::path::Path) -> Program {
    Program::new(["--tools", "default,toolhost"])
        .env("EXA_BASE_URL", &sandbox.url())
        .env("EXA_MCP_STORE", &format!("sqlite:{}", file.display()))
}

fn connect(program: Program) -> McpServer {
    McpServer::connect(program, USUAL)
}

/// The same for a client that can do something.
fn connect_with(program: Program, version: &str, capabilities: Value) -> McpServer {
    McpServer::connect_with(program, version, capabilities)
}

/// A call that starts a research task.
fn research(instructions: &str) -> Value {
    json!({"name": "exa_api", "arguments":
        {"operation": "research.create", "args": {"instructions": instructions}}})
}

/// A call that makes a webset with a search.
fn webset(query: &str) -> Value {
    json!({"name": "manage_websets", "arguments":
        {"operation": "websets.create", "args": {"search": {"query": query, "count": 3}}}})
}

/// Asks for a call as a task and gives the answer.
fn asked(server: &mut McpServer, mut call: Value, task: Value) -> Value {
    call["task"] = task;
    server.ask("tools/call", call)
}

/// Begins a task and gives it as it was first told.
#[track_caller]
fn begun(server: &mut McpServer, call: Value) -> Value {
    let mut answer = asked(server, call, json!({}));
    let task = answer["result"]["task"].take();
    assert!(task.is_object(), "no task: {answer}");
    task
}

/// Begins a task and gives its id.
#[track_caller]
fn begin(server: &mut McpServer, call: Value) -> String {
    let task = begun(server, call);
    task["taskId"].as_str().expect("an id").to_owned()
}

/// The state of a task.
#[track_caller]
fn state(server: &mut McpServer, id: &str) -> Value {
    let mut answer = server.ask("tasks/get", json!({"taskId": id}));
    assert_eq!(answer["result"]["taskId"], id, "{answer}");
    answer["result"].take()
}

/// The result of a task, for which it waits.
#[track_caller]
fn result(server: &mut McpServer, id: &str) -> Value {
    let mut answer = server.ask("tasks/result", json!({"taskId": id}));
    assert!(answer.get("result").is_some(), "{answer}");
    answer["result"].take()
}

/// The only entry of a result.
#[track_caller]
fn thing(result: &Value) -> &Value {
    let thing = &result["structuredContent"]["results"][0];
    assert!(thing.is_object(), "{result}");
    thing
}

#[track_caller]
fn assert_error(answer: &Value, code: i64, part: &str) {
    assert_eq!(answer["error"]["code"], code, "{answer}");
    let message = answer["error"]["message"].as_str().expect("a message");
    assert!(message.contains(part), "no {part:?} in {message:?}");
}
