//! What a request for a task must look like, and who may make one.

use serde_json::json;

use super::{asked, assert_error, begin, connect, durable, pair, research, result, webset};
use crate::support::{McpServer, Outcome, Program, Sandbox, USUAL};

#[test]
fn tasks_capability_is_declared_per_version() {
    let sandbox = Sandbox::start();
    for (version, known) in [
        ("2024-11-05", false),
        ("2025-03-26", false),
        ("2025-06-18", false),
        (USUAL, true),
    ] {
        let program = Program::new([]).env("EXA_BASE_URL", &sandbox.url());
        let mut server = McpServer::start(program);
        let hello = server.handshake(version);
        let expected = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
        let expected = known.then_some(&expected);
        assert_eq!(hello["capabilities"].get("tasks"), expected, "{version}");
        assert_eq!(hello["capabilities"].get("extensions"), None, "{version}");
        if known {
            continue;
        }
        // There the rest of such a call counts.
        let answer = asked(&mut server, webset("x"), json!({"ttl": 1000}));
        let outcome = Outcome::of(&answer);
        assert!(!outcome.is_error, "{}", outcome.text);
        assert_eq!(answer["result"].get("resultType"), None);
        for method in ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"] {
            let answer = server.ask(method, json!({"taskId": "x"}));
            assert_error(&answer, -32601, method);
        }
    }
    assert_eq!(sandbox.count("websets"), 3);
}

#[test]
fn long_running_tools_support_tasks() {
    let (_sandbox, mut server) = pair();
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
        let answer = asked(&mut server, call, json!({}));
        assert_error(&answer, -32601, &name);
    }
    let unknown = asked(&mut server, json!({"name": "nope"}), json!({}));
    assert_error(&unknown, -32602, "Unknown tool: nope");
}

#[test]
fn every_tool_that_starts_work_accepts_a_task() {
    let sandbox = Sandbox::start();
    let tools = "default,toolhost,classic,research_create";
    let mut server = McpServer::upstream(&sandbox.url(), &["--tools", tools]);
    let calls = [
        research("one"),
        json!({"name": "exa-async", "arguments":
            {"operation": "start_research", "params": {"instructions": "two"}}}),
        json!({"name": "deep_researcher_start", "arguments": {"instructions": "three"}}),
        json!({"name": "research_create", "arguments": {"instructions": "four"}}),
    ];
    let ids: Vec<String> = calls.map(|call| begin(&mut server, call)).into();
    sandbox.await_requests("research.create", 4);
    sandbox.advance(super::LONG);
    for (id, word) in ids.iter().zip(["one", "two", "three", "four"]) {
        let result = result(&mut server, id);
        let text = result["content"][0]["text"].as_str().expect("a text");
        assert_eq!(result["isError"], false, "{text}");
        assert!(text.contains(word), "no {word} in {text}");
    }
}

#[test]
fn invalid_task_requests_are_rejected() {
    let (sandbox, mut server) = pair();
    for (task, part) in [
        (json!("x"), "task must be an object"),
        (json!(true), "task must be an object"),
        (json!({"ttl": -1}), "ttl"),
        (json!({"ttl": "long"}), "ttl"),
    ] {
        let answer = asked(&mut server, research("x"), task);
        assert_error(&answer, -32602, part);
    }
    let mut odd = research("x");
    odd["arguments"] = json!([1]);
    assert_error(&asked(&mut server, odd, json!({})), -32602, "arguments");
    let odd = asked(&mut server, json!({"arguments": {}}), json!({}));
    assert_error(&odd, -32602, "name");
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        for params in [json!({}), json!({"taskId": 7}), json!({"taskId": null})] {
            let answer = server.ask(method, params);
            assert_error(&answer, -32602, "taskId must be a string");
        }
        for id in ["", "nope", "../x"] {
            let answer = server.ask(method, json!({"taskId": id}));
            assert_error(&answer, -32602, "Unknown task");
        }
    }
    assert_eq!(sandbox.total(), 0);
    // No task is asked for by saying nothing.
    let answer = asked(&mut server, research("x"), json!(null));
    assert!(!Outcome::of(&answer).is_error);
}

#[test]
fn foreign_tasks_are_not_found() {
    let sandbox = Sandbox::start();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("store.db");
    let mut server = connect(durable(&sandbox, &file));
    let own = begin(&mut server, research("mine"));
    let other = begin(&mut server, research("theirs"));
    sandbox.await_requests("research.create", 2);
    let store = rusqlite::Connection::open(&file).expect("the store");
    let sql = "UPDATE documents SET owner = 'user:ann' WHERE collection = 'tasks' AND id = ?";
    assert_eq!(store.execute(sql, [&other]).expect("a change"), 1);
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let answer = server.ask(method, json!({"taskId": other}));
        assert_error(&answer, -32602, "Unknown task");
    }
    let listed = server.ask("tasks/list", json!({}));
    let tasks = listed["result"]["tasks"].as_array().expect("tasks");
    assert_eq!(tasks.len(), 1, "{listed}");
    assert_eq!(tasks[0]["taskId"], own.as_str());
}
