//! Log messages for the client.

use serde_json::{Value, json};

use crate::support::{KEY, McpServer, Program, Recorder, Reply, STATELESS, USUAL};

const MESSAGE: &str = "notifications/message";

fn recorded(recorder: &Recorder, version: &str) -> McpServer {
    let program = Program::new([]).env("EXA_BASE_URL", &recorder.url());
    McpServer::connect(program, version)
}

fn fine() -> Recorder {
    Recorder::always(Reply::json(
        200,
        &json!({"results": [{"title": "the answer"}]}),
    ))
}

fn search(server: &mut McpServer, query: &str) -> Value {
    let arguments = json!({"query": query, "fresh": true});
    let call = json!({"name": "web_search_exa", "arguments": arguments});
    server.ask("tools/call", call)
}

/// The messages that have come.
fn messages(server: &mut McpServer) -> Vec<Value> {
    let mut messages = Vec::new();
    while let Some(message) = server.soon(MESSAGE) {
        messages.push(message);
    }
    messages
}

#[test]
fn no_log_messages_without_a_level() {
    for version in [USUAL, STATELESS] {
        let recorder = fine();
        let mut server = recorded(&recorder, version);
        search(&mut server, "heat pumps");
        assert_eq!(messages(&mut server), Vec::<Value>::new(), "{version}");
    }
}

#[test]
fn log_level_is_a_threshold() {
    for version in [USUAL, STATELESS] {
        let recorder = fine();
        let mut server = recorded(&recorder, version);
        for (level, expected) in [
            ("emergency", 0),
            ("alert", 0),
            ("critical", 0),
            ("error", 0),
            ("warning", 0),
            ("notice", 0),
            ("info", 1),
            ("debug", 2),
            ("warning", 0),
        ] {
            server.set_log_level(level);
            search(&mut server, "heat pumps");
            let told = messages(&mut server);
            assert_eq!(told.len(), expected, "{version} {level}: {told:?}");
        }
    }
}

#[test]
fn log_messages_report_failures_without_content() {
    for version in [USUAL, STATELESS] {
        let recorder = Recorder::replies([
            Reply::json(429, &json!({"error": "slow down"})).header("retry-after", "0"),
            Reply::json(200, &json!({"results": [{"title": "the answer"}]})),
            Reply::json(400, &json!({"error": "bad luck"})),
        ]);
        let mut server = recorded(&recorder, version);
        server.set_log_level("info");
        search(&mut server, "what the user asked");
        search(&mut server, "what the user asked");
        let told = messages(&mut server);
        let words: Vec<_> = told
            .iter()
            .map(|it| it["data"]["message"].clone())
            .collect();
        assert_eq!(
            words,
            ["request failed; retrying", "answered", "failed"],
            "{version}"
        );
        let levels: Vec<_> = told.iter().map(|it| it["level"].clone()).collect();
        assert_eq!(levels, ["info", "info", "warning"]);
        assert_eq!(told[2]["data"]["status"], 400);
        assert_eq!(told[1]["data"]["operation"], "search");
        assert!(told.iter().all(|it| it["logger"] == "exa-mcp-server"));
        let all = json!(told).to_string();
        for secret in [KEY, "the user asked", "the answer", "bad luck"] {
            assert!(!all.contains(secret), "{secret} in {all}");
        }
    }
}

#[test]
fn log_messages_precede_the_result() {
    let recorder = fine();
    let mut server = recorded(&recorder, STATELESS);
    server.set_log_level("debug");
    let arguments = json!({"query": "heat pumps"});
    let id = server.send(
        "tools/call",
        json!({"name": "web_search_exa", "arguments": arguments}),
    );
    assert_eq!(server.next()["method"], MESSAGE);
    assert_eq!(server.next()["method"], MESSAGE);
    assert_eq!(server.next()["id"], id);
    server.assert_silent();
}

#[test]
fn unknown_log_levels_are_rejected() {
    let mut server = McpServer::sandboxed(&[]);
    for level in [json!("loud"), json!(5), Value::Null] {
        let answer = server.ask("logging/setLevel", json!({"level": level}));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    let mut server = McpServer::connect(Program::new(["--sandbox"]), STATELESS);
    server.set_log_level("loud");
    let answer = search(&mut server, "heat pumps");
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let answer = server.ask("logging/setLevel", json!({"level": "info"}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
}

#[test]
fn log_messages_are_rate_limited() {
    let recorder = fine();
    let mut server = recorded(&recorder, USUAL);
    server.set_log_level("debug");
    for number in 0..100 {
        let arguments = json!({"query": format!("heat pumps {number}")});
        server.send(
            "tools/call",
            json!({"name": "web_search_exa", "arguments": arguments}),
        );
    }
    let mut told = 0;
    for _ in 0..100 {
        loop {
            let message = server.next();
            match message.get("id") {
                Some(_) => break,
                None => told += 1,
            }
        }
    }
    told += messages(&mut server).len();
    assert!((50..180).contains(&told), "{told} of 200 messages");
}
