//! Tasks that survive a restart of the server.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    STATUS, WORK_MS, assert_error, connect, durable, research, result, single_result, start_task,
    state, webset,
};
use crate::support::{McpServer, Sandbox};

/// Starts a sandbox with a frozen clock, and creates a folder for the store.
fn frozen_sandbox_and_store() -> (Sandbox, TempDir, PathBuf) {
    let sandbox = Sandbox::start();
    sandbox.freeze(true);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("store.db");
    (sandbox, folder, file)
}

fn call(operation: &str, args: Value) -> Value {
    let found = exa_mcp_server::operations::find(operation).expect("an operation");
    let tool = match found.api.name {
        "websets" => "manage_websets",
        _ => "exa_api",
    };
    json!({"name": tool, "arguments": {"operation": operation, "args": args}})
}

/// Creates a webset to work in, and a monitor to trigger.
fn create_webset_and_monitor(server: &mut McpServer) -> (Value, Value) {
    let mut make = |operation: &str, args: Value| {
        let call = call(operation, args);
        let tool = call["name"].as_str().expect("a tool");
        server.call(tool, call["arguments"].clone()).success()["id"].clone()
    };
    let webset = make(
        "websets.create",
        json!({"search": {"query": "x", "count": 2}}),
    );
    let monitor = make(
        "search_monitors.create",
        json!({"search": {"query": "x"}, "webhook": {"url": "https://hooks.example/x"}}),
    );
    (webset, monitor)
}

/// Returns the operations that start work, with arguments and the operation that reads the status.
fn starts(webset: &Value, monitor: &Value) -> Vec<(&'static str, Value, &'static str)> {
    vec![
        (
            "websets.create",
            json!({"search": {"query": "banks", "count": 2}}),
            "websets.get",
        ),
        (
            "searches.create",
            json!({"websetId": webset, "query": "shops", "count": 2, "behavior": "append"}),
            "searches.get",
        ),
        (
            "enrichments.create",
            json!({"websetId": webset, "description": "Employees", "format": "number"}),
            "enrichments.get",
        ),
        (
            "research.create",
            json!({"instructions": "heat pumps", "model": "exa-research"}),
            "research.get",
        ),
        (
            "agent.runs.create",
            json!({"query": "heat pump makers", "effort": "low"}),
            "agent.runs.get",
        ),
        (
            "search_monitors.trigger",
            json!({"monitorId": monitor}),
            "search_monitors.runs.get",
        ),
    ]
}

#[test]
fn every_kind_of_work_resumes_after_a_crash() {
    let (sandbox, _folder, file) = frozen_sandbox_and_store();
    let mut server = connect(durable(&sandbox, &file));
    let (webset, monitor) = create_webset_and_monitor(&mut server);
    let starts = starts(&webset, &monitor);
    let tasks: Vec<String> = starts
        .iter()
        .map(|(operation, args, _)| start_task(&mut server, call(operation, args.clone())))
        .collect();
    for (_, _, look) in &starts {
        sandbox.await_requests(look, 1);
    }
    server.kill();

    let mut server = connect(durable(&sandbox, &file));
    for id in &tasks {
        assert_eq!(state(&mut server, id)["status"], "working");
    }
    sandbox.advance(WORK_MS);
    for (id, (operation, ..)) in tasks.iter().zip(&starts) {
        let result = result(&mut server, id);
        assert_eq!(result["isError"], false, "{operation}: {result}");
        let status = single_result(&result)["status"].as_str().expect("a status");
        assert!(
            ["completed", "idle"].contains(&status),
            "{operation}: {result}"
        );
        assert_eq!(state(&mut server, id)["status"], "completed");
        let own = usize::from(*operation == "websets.create");
        let made = sandbox.requests(operation).len();
        assert_eq!(made, 1 + own, "{operation} was called again");
    }
    // The next server knows completed tasks, too.
    let before = result(&mut server, &tasks[0]);
    server.kill();
    let mut server = connect(durable(&sandbox, &file));
    assert_eq!(result(&mut server, &tasks[0]), before);
    assert_eq!(
        super::request_task(&mut server, research("x"), json!({})).get("error"),
        None
    );
}

#[test]
fn accepted_start_with_lost_response_is_found() {
    let (sandbox, _folder, file) = frozen_sandbox_and_store();
    let mut server = connect(durable(&sandbox, &file));
    let (webset, monitor) = create_webset_and_monitor(&mut server);
    let starts = starts(&webset, &monitor);
    for (operation, ..) in &starts {
        let rule = json!({"match": operation, "times": 2, "fault": "hold=60000"});
        sandbox.add_fault(&rule);
    }
    // Two equal starts: each task must find its own work.
    let twice = starts.iter().chain(&starts);
    let tasks: Vec<String> = twice
        .map(|(operation, args, _)| start_task(&mut server, call(operation, args.clone())))
        .collect();
    for (operation, ..) in &starts {
        let own = usize::from(*operation == "websets.create");
        sandbox.await_requests(operation, 2 + own);
    }
    server.kill();

    let mut server = connect(durable(&sandbox, &file));
    for (_, _, look) in &starts {
        sandbox.await_requests(look, 2);
    }
    sandbox.advance(WORK_MS);
    let mut found = Vec::new();
    for (id, (operation, ..)) in tasks.iter().zip(starts.iter().chain(&starts)) {
        let result = result(&mut server, id);
        assert_eq!(result["isError"], false, "{operation}: {result}");
        let own = usize::from(*operation == "websets.create");
        let made = sandbox.requests(operation).len();
        assert_eq!(made, 2 + own, "{operation} was called again");
        let single_result = single_result(&result);
        let id = single_result
            .get("id")
            .or_else(|| single_result.get("researchId"));
        found.push(id.expect("an id").clone());
    }
    found.sort_by_key(Value::to_string);
    found.dedup();
    assert_eq!(found.len(), tasks.len(), "two tasks follow the same work");
}

#[test]
fn lost_start_is_sent() {
    let (sandbox, _folder, file) = frozen_sandbox_and_store();
    let mut server = connect(durable(&sandbox, &file));
    sandbox.fault("research.create", "delay=60000");
    let id = start_task(&mut server, research("heat pumps"));
    sandbox.await_requests("research.create", 1);
    server.kill();
    assert_eq!(sandbox.count("research"), 0);

    let mut server = connect(durable(&sandbox, &file));
    sandbox.await_requests("research.get", 1);
    sandbox.advance(WORK_MS);
    assert_eq!(
        single_result(&result(&mut server, &id))["status"],
        "completed"
    );
    assert_eq!(sandbox.count("research"), 1);
}

#[test]
fn unfindable_start_is_not_repeated() {
    let (sandbox, _folder, file) = frozen_sandbox_and_store();
    let mut server = connect(durable(&sandbox, &file));
    let entities = json!([{"name": "Acme", "domain": "acme.example"}]);
    let fields = json!([{"name": "ceo", "description": "Who leads the company"}]);
    let args = json!({"entities": entities, "fields": fields,
        "startTime": "2026-01-01T00:00:00Z", "endTime": "2026-02-01T00:00:00Z"});
    let operation = "agent.monitors.backtests.create";
    sandbox.fault(operation, "hold=60000");
    let backtest = start_task(&mut server, call(operation, args));
    // Not long-running, but not repeatable either.
    let hook = json!({"events": ["webset.idle"], "url": "https://hooks.example/x"});
    sandbox.fault("webhooks.create", "hold=60000");
    let hook = start_task(&mut server, call("webhooks.create", hook));
    // A read, which may be repeated.
    sandbox.fault("webhooks.list", "hold=60000");
    let look = start_task(&mut server, call("webhooks.list", json!({})));
    for operation in [operation, "webhooks.create", "webhooks.list"] {
        sandbox.await_requests(operation, 1);
    }
    server.kill();

    let mut server = connect(durable(&sandbox, &file));
    assert_eq!(result(&mut server, &look)["isError"], false);
    for (id, operation) in [(backtest, operation), (hook, "webhooks.create")] {
        let result = result(&mut server, &id);
        let error = &result["structuredContent"]["error"];
        assert_eq!(error["name"], "UNCONFIRMED", "{result}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains(operation), "{message}");
        assert_eq!(state(&mut server, &id)["status"], "failed");
        assert_eq!(sandbox.requests(operation).len(), 1);
    }
}

#[test]
fn start_with_lost_response_is_found_without_a_crash() {
    let (sandbox, _folder, file) = frozen_sandbox_and_store();
    let mut server = connect(durable(&sandbox, &file));
    for fault in ["cut=after", "cut=body"] {
        sandbox.fault("websets.create", fault);
        let id = start_task(&mut server, webset(fault));
        let looks = sandbox.requests("websets.get").len();
        sandbox.await_requests("websets.get", looks + 1);
        sandbox.advance(WORK_MS);
        assert_eq!(single_result(&result(&mut server, &id))["status"], "idle");
    }
    assert_eq!(sandbox.count("websets"), 2);
    // A start that never reached Exa fails as it would without a task.
    sandbox.fault("websets.create", "cut=before");
    let id = start_task(&mut server, webset("lost"));
    assert_eq!(result(&mut server, &id)["isError"], true);
    assert_eq!(sandbox.count("websets"), 2);
}

#[test]
fn cancelled_task_stays_cancelled_and_cancels_upstream() {
    let (sandbox, _folder, file) = frozen_sandbox_and_store();
    let mut server = connect(durable(&sandbox, &file));
    let id = start_task(&mut server, webset("startups"));
    sandbox.await_requests("websets.get", 1);
    // The server is killed before Exa has accepted the cancellation.
    let rule = json!({"match": "websets.cancel", "times": 1, "fault": "status=500"});
    sandbox.add_fault(&rule);
    server.request("tasks/cancel", json!({"taskId": id}));
    sandbox.await_requests("websets.cancel", 1);
    server.kill();

    let mut server = connect(durable(&sandbox, &file));
    sandbox.await_requests("websets.cancel", 2);
    assert_eq!(state(&mut server, &id)["status"], "cancelled");
    let body = server.request("tasks/cancel", json!({"taskId": id}));
    assert_error(&body, -32602, "has already ended");
}

#[test]
fn live_server_keeps_its_tasks() {
    let (sandbox, _folder, file) = frozen_sandbox_and_store();
    let mut first = connect(durable(&sandbox, &file));
    let id = start_task(&mut first, webset("startups"));
    sandbox.await_requests("websets.get", 1);
    let mut second = connect(durable(&sandbox, &file));
    // Both servers know the task, and one of them runs it.
    assert_eq!(state(&mut second, &id)["status"], "working");
    let waiting = second.send("tasks/result", json!({"taskId": id}));
    let before = sandbox.requests("websets.get").len();
    std::thread::sleep(std::time::Duration::from_secs(6));
    let looks = sandbox.requests("websets.get").len() - before;
    assert!(looks <= 6, "{looks} looks in six seconds: two servers look");
    sandbox.advance(WORK_MS);
    let body = second.response(&waiting);
    assert_eq!(single_result(&body["result"])["status"], "idle");
    assert_eq!(first.notification(STATUS)["status"], "completed");

    // A cancellation on one server applies to both.
    let id = start_task(&mut first, webset("others"));
    sandbox.await_requests("websets.create", 2);
    let body = second.request("tasks/cancel", json!({"taskId": id}));
    assert_eq!(body["result"]["status"], "cancelled", "{body}");
    sandbox.await_requests("websets.cancel", 1);
    let gone = first.request("tasks/result", json!({"taskId": id}));
    assert_error(&gone, -32602, "was cancelled");
    assert_eq!(state(&mut first, &id)["status"], "cancelled");

    // When the first server is killed, the second one takes over without a restart.
    let id = start_task(&mut first, research("heat pumps"));
    sandbox.await_requests("research.get", 1);
    first.kill();
    let mut third = connect(durable(&sandbox, &file));
    sandbox.advance(WORK_MS);
    for server in [&mut second, &mut third] {
        assert_eq!(single_result(&result(server, &id))["status"], "completed");
    }
    assert_eq!(sandbox.count("research"), 1);
}

#[test]
fn pending_start_is_awaited_on_disconnect() {
    let (sandbox, _folder, file) = frozen_sandbox_and_store();
    let mut server = connect(durable(&sandbox, &file));
    sandbox.fault("research.create", "hold=1500");
    let id = start_task(&mut server, research("heat pumps"));
    sandbox.await_requests("research.create", 1);
    server.shut_down();
    let mut server = connect(durable(&sandbox, &file));
    // The id of the work is stored, so the server need not search for it.
    sandbox.await_requests("research.get", 1);
    assert_eq!(sandbox.requests("research.list").len(), 0);
    sandbox.advance(WORK_MS);
    assert_eq!(
        single_result(&result(&mut server, &id))["status"],
        "completed"
    );
}
