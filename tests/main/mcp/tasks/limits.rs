//! The lifetime and the number of tasks.

use serde_json::{Value, json};

use super::{
    WORK_MS, assert_error, connect, request_task, research, result, sandbox_and_server, start_task,
    state, webset,
};
use crate::support::{McpServer, Program, Sandbox};

fn with(sandbox: &Sandbox, variables: &[(&str, &str)]) -> McpServer {
    let program = Program::new([]).env("EXA_BASE_URL", &sandbox.url());
    let set = |program: Program, (name, value): &(&str, &str)| program.env(name, value);
    connect(variables.iter().fold(program, set))
}

/// Returns the ttl of a task with these parameters.
fn granted_ttl(server: &mut McpServer, task: Value) -> Value {
    let call = json!({"name": "exa_api", "arguments": {"operation": "list_operations"}});
    let body = request_task(server, call, task);
    body["result"]["task"]["ttl"].clone()
}

#[test]
fn task_ttl_is_bounded() {
    let sandbox = Sandbox::start();
    let day = 86_400_000;
    type Case<'a> = (&'a [(&'a str, &'a str)], [u64; 4]);
    let cases: [Case<'_>; 4] = [
        (&[], [3_600_000, 120_000, day, 1_000]),
        (
            &[
                ("EXA_MCP_DEFAULT_TASK_TTL", "90000"),
                ("EXA_MCP_MAX_TASK_TTL", "100000"),
            ],
            [90_000, 100_000, 100_000, 1_000],
        ),
        // The operator's setting is clamped.
        (
            &[("EXA_MCP_MAX_TASK_TTL", "999999999999")],
            [3_600_000, 120_000, day, 1_000],
        ),
        (
            &[
                ("EXA_MCP_MAX_TASK_TTL", "0"),
                ("EXA_MCP_DEFAULT_TASK_TTL", "0"),
            ],
            [1_000, 1_000, 1_000, 1_000],
        ),
    ];
    for (variables, expected) in cases {
        let mut server = with(&sandbox, variables);
        let asks = [
            json!({}),
            json!({"ttl": 120_000}),
            json!({"ttl": 1e15}),
            json!({"ttl": 0}),
        ];
        let lives = asks.map(|task| granted_ttl(&mut server, task));
        assert_eq!(lives, expected.map(|ttl| json!(ttl)), "{variables:?}");
    }
}

#[test]
fn non_numeric_ttl_aborts_start() {
    for name in [
        "EXA_MCP_DEFAULT_TASK_TTL",
        "EXA_MCP_MAX_TASK_TTL",
        "EXA_MCP_MAX_CONCURRENT_TASKS",
    ] {
        let output = Program::new([]).env(name, "an hour").run();
        assert_eq!(output.code, Some(2), "{output:?}");
        assert!(output.stderr.contains(name), "{output:?}");
    }
}

#[test]
fn task_expires_after_its_ttl() {
    let (sandbox, mut server) = sandbox_and_server();
    sandbox.freeze(true);
    let body = request_task(&mut server, research("x"), json!({"ttl": 1_000}));
    let id = body["result"]["task"]["taskId"]
        .as_str()
        .expect("an id")
        .to_owned();
    let body = loop {
        let body = server.request("tasks/get", json!({"taskId": id}));
        if body.get("error").is_some() {
            break body;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    assert_error(&body, -32602, "has expired");
    let listed = server.request("tasks/list", json!({}));
    assert_eq!(listed["result"]["tasks"], json!([]));
}

#[test]
fn work_outliving_its_task_can_be_polled() {
    let (sandbox, mut server) = sandbox_and_server();
    sandbox.freeze(true);
    let body = request_task(&mut server, webset("startups"), json!({"ttl": 10_000}));
    let id = body["result"]["task"]["taskId"]
        .as_str()
        .expect("an id")
        .to_owned();
    // The result is available while the task exists.
    let result = result(&mut server, &id);
    assert_eq!(state(&mut server, &id)["status"], "failed");
    assert_eq!(result["isError"], true, "{result}");
    let error = &result["structuredContent"]["error"];
    assert_eq!(error["name"], "UNFINISHED", "{error}");
    assert_eq!(error["lastStatus"], "pending", "{error}");
    let text = result["content"][0]["text"].as_str().expect("a string");
    assert!(text.contains("continues at Exa"), "{text}");
    assert!(text.contains(&error["checkWith"].to_string()), "{text}");
    sandbox.advance(WORK_MS);
    let look = server.call("manage_websets", error["checkWith"].clone());
    assert_eq!(look.success()["status"], "idle");
    let stop = server.call("manage_websets", error["cancelWith"].clone());
    assert_eq!(stop.success()["status"], "idle");
}

#[test]
fn concurrent_tasks_are_limited() {
    let sandbox = Sandbox::start();
    let mut server = with(&sandbox, &[("EXA_MCP_MAX_CONCURRENT_TASKS", "2")]);
    sandbox.freeze(true);
    let first = start_task(&mut server, research("1"));
    start_task(&mut server, research("2"));
    // Concurrent starts do not exceed the limit.
    let more: Vec<Value> = (0..5)
        .map(|_| {
            let mut call = research("more");
            call["task"] = json!({});
            server.send("tools/call", call)
        })
        .collect();
    for id in more {
        let body = server.response(&id);
        assert_error(&body, -32603, "EXA_MCP_MAX_CONCURRENT_TASKS");
    }
    server.request("tasks/cancel", json!({"taskId": first}));
    start_task(&mut server, research("3"));
}
