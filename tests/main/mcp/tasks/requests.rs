//! Valid and invalid requests for tasks.

use serde_json::json;

use super::{
    assert_error, connect, durable, request_task, research, result, sandbox_and_server, start_task,
    webset,
};
use crate::support::{DEFAULT_VERSION, McpServer, Outcome, Program, Sandbox};

#[test]
fn tasks_capability_is_declared_per_version() {
    let sandbox = Sandbox::start();
    for (version, known) in [
        ("2024-11-05", false),
        ("2025-03-26", false),
        ("2025-06-18", false),
        (DEFAULT_VERSION, true),
    ] {
        let program = Program::new([]).env("EXA_BASE_URL", &sandbox.url());
        let mut server = McpServer::start(program);
        let initialized = server.handshake(version);
        let expected = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
        let expected = known.then_some(&expected);
        assert_eq!(
            initialized["capabilities"].get("tasks"),
            expected,
            "{version}"
        );
        let extensions = initialized["capabilities"].get("extensions");
        assert_eq!(
            extensions.and_then(|it| it.get("io.modelcontextprotocol/tasks")),
            None,
            "{version}"
        );
        if known {
            continue;
        }
        // In these versions `task` is ignored.
        let response = request_task(&mut server, webset("x"), json!({"ttl": 1000}));
        let outcome = Outcome::from_response(&response);
        assert!(!outcome.is_error, "{}", outcome.text);
        assert_eq!(response["result"].get("resultType"), None);
        for method in ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"] {
            let response = server.request(method, json!({"taskId": "x"}));
            assert_error(&response, -32601, method);
        }
    }
    assert_eq!(sandbox.count("websets"), 3);
}

#[test]
fn long_running_tools_support_tasks() {
    let (_sandbox, mut server) = sandbox_and_server();
    for tool in server.tools() {
        let name = tool["name"].as_str().expect("a name").to_owned();
        let takes = tool["execution"]["taskSupport"] == "optional";
        let starts = [
            "exa_api",
            "manage_websets",
            "websets-sync",
            "websets-async",
            "exa-async",
        ];
        assert_eq!(takes, starts.contains(&name.as_str()), "{name}");
        if takes {
            continue;
        }
        let call = json!({"name": name, "arguments": {"query": "x"}});
        let response = request_task(&mut server, call, json!({}));
        assert_error(&response, -32601, &name);
    }
    let unknown = request_task(&mut server, json!({"name": "nope"}), json!({}));
    assert_error(&unknown, -32602, "Unknown tool: nope");
}

#[test]
fn every_tool_that_starts_work_accepts_a_task() {
    let sandbox = Sandbox::start();
    let tools = "default,toolhost,classic,research_create";
    let mut server = McpServer::with_upstream(&sandbox.url(), &["--tools", tools]);
    let calls = [
        research("one"),
        json!({"name": "exa-async", "arguments":
            {"operation": "start_research", "params": {"instructions": "two"}}}),
        json!({"name": "deep_researcher_start", "arguments": {"instructions": "three"}}),
        json!({"name": "research_create", "arguments": {"instructions": "four"}}),
    ];
    let ids: Vec<String> = calls.map(|call| start_task(&mut server, call)).into();
    sandbox.await_requests("research.create", 2);
    sandbox.await_requests("agent.runs.create", 2);
    sandbox.advance(super::WORK_MS);
    for (id, word) in ids.iter().zip(["one", "two", "three", "four"]) {
        let result = result(&mut server, id);
        let text = result["content"][0]["text"].as_str().expect("a string");
        assert_eq!(result["isError"], false, "{text}");
        assert!(text.contains(word), "no {word} in {text}");
    }
}

#[test]
fn invalid_task_requests_are_rejected() {
    let (sandbox, mut server) = sandbox_and_server();
    for (task, part) in [
        (json!("x"), "task must be an object"),
        (json!(true), "task must be an object"),
        (json!({"ttl": -1}), "ttl"),
        (json!({"ttl": "long"}), "ttl"),
    ] {
        let response = request_task(&mut server, research("x"), task);
        assert_error(&response, -32602, part);
    }
    let mut odd = research("x");
    odd["arguments"] = json!([1]);
    assert_error(
        &request_task(&mut server, odd, json!({})),
        -32602,
        "arguments",
    );
    let odd = request_task(&mut server, json!({"arguments": {}}), json!({}));
    assert_error(&odd, -32602, "name");
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        for params in [json!({}), json!({"taskId": 7}), json!({"taskId": null})] {
            let response = server.request(method, params);
            assert_error(&response, -32602, "taskId must be a string");
        }
        for id in ["", "nope", "../x"] {
            let response = server.request(method, json!({"taskId": id}));
            assert_error(&response, -32602, "Unknown task");
        }
    }
    assert_eq!(sandbox.request_count(), 0);
    // A null `task` requests no task.
    let response = request_task(&mut server, research("x"), json!(null));
    assert!(!Outcome::from_response(&response).is_error);
}

#[test]
fn foreign_tasks_are_not_found() {
    let sandbox = Sandbox::start();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("store.db");
    let mut server = connect(durable(&sandbox, &file));
    let own = start_task(&mut server, research("mine"));
    let other = start_task(&mut server, research("theirs"));
    sandbox.await_requests("research.create", 2);
    let store = rusqlite::Connection::open(&file).expect("the store");
    let sql = "UPDATE documents SET owner = 'user:ann' WHERE collection = 'tasks' AND id = ?";
    assert_eq!(store.execute(sql, [&other]).expect("a change"), 1);
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let response = server.request(method, json!({"taskId": other}));
        assert_error(&response, -32602, "Unknown task");
    }
    let listed = server.request("tasks/list", json!({}));
    let tasks = listed["result"]["tasks"].as_array().expect("tasks");
    assert_eq!(tasks.len(), 1, "{listed}");
    assert_eq!(tasks[0]["taskId"], own.as_str());
}
