//! Tasks and long-running operations.

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

use crate::support::{DEFAULT_VERSION, McpServer, Program, Sandbox};

/// Longer than any work in the sandbox takes.
const WORK_MS: u64 = 60_000;

const STATUS: &str = "notifications/tasks/status";
const PROGRESS: &str = "notifications/progress";

/// Starts a sandbox and a server that uses it.
fn sandbox_and_server() -> (Sandbox, McpServer) {
    let sandbox = Sandbox::start();
    let server = McpServer::with_upstream(&sandbox.url(), &["--tools", "default,toolhost"]);
    (sandbox, server)
}

/// Returns a program that uses this sandbox and stores tasks in a file.
fn durable(sandbox: &Sandbox, file: &std::path::Path) -> Program {
    Program::new(["--tools", "default,toolhost"])
        .env("EXA_BASE_URL", &sandbox.url())
        .env("EXA_MCP_STORE", &format!("sqlite:{}", file.display()))
}

fn connect(program: Program) -> McpServer {
    McpServer::connect(program, DEFAULT_VERSION)
}

/// Like [`connect`], for a client with these capabilities.
fn connect_with(program: Program, version: &str, capabilities: Value) -> McpServer {
    McpServer::connect_with(program, version, capabilities)
}

/// Returns a call that starts research.
fn research(instructions: &str) -> Value {
    json!({"name": "exa_api", "arguments":
        {"operation": "research.create", "args": {"instructions": instructions}}})
}

/// Returns a call that creates a webset with a search.
fn webset(query: &str) -> Value {
    json!({"name": "manage_websets", "arguments":
        {"operation": "websets.create", "args": {"search": {"query": query, "count": 3}}}})
}

/// Makes a call as a task and returns the response.
fn request_task(server: &mut McpServer, mut call: Value, task: Value) -> Value {
    call["task"] = task;
    server.request("tools/call", call)
}

/// Starts a task and returns it.
#[track_caller]
fn create_task(server: &mut McpServer, call: Value) -> Value {
    let mut response = request_task(server, call, json!({}));
    let task = response["result"]["task"].take();
    assert!(task.is_object(), "no task: {response}");
    task
}

/// Starts a task and returns its id.
#[track_caller]
fn start_task(server: &mut McpServer, call: Value) -> String {
    let task = create_task(server, call);
    task["taskId"].as_str().expect("an id").to_owned()
}

/// Returns the state of a task.
#[track_caller]
fn state(server: &mut McpServer, id: &str) -> Value {
    let mut response = server.request("tasks/get", json!({"taskId": id}));
    assert_eq!(response["result"]["taskId"], id, "{response}");
    response["result"].take()
}

/// Waits for the result of a task.
#[track_caller]
fn result(server: &mut McpServer, id: &str) -> Value {
    let mut response = server.request("tasks/result", json!({"taskId": id}));
    assert!(response.get("result").is_some(), "{response}");
    response["result"].take()
}

/// Returns the only entry of a result.
#[track_caller]
fn single_result(result: &Value) -> &Value {
    let single_result = &result["structuredContent"]["results"][0];
    assert!(single_result.is_object(), "{result}");
    single_result
}

#[track_caller]
fn assert_error(response: &Value, code: i64, part: &str) {
    assert_eq!(response["error"]["code"], code, "{response}");
    let message = response["error"]["message"].as_str().expect("a message");
    assert!(message.contains(part), "no {part:?} in {message:?}");
}
