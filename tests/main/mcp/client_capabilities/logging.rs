//! Log messages for the client.

use serde_json::{Value, json};

use crate::support::{
    API_KEY, DEFAULT_VERSION, McpServer, Program, Recorder, Response, STATELESS_VERSION,
};

const MESSAGE: &str = "notifications/message";

fn recorded(recorder: &Recorder, version: &str) -> McpServer {
    let program = Program::new([]).env("EXA_BASE_URL", &recorder.url());
    McpServer::connect(program, version)
}

fn success_response() -> Recorder {
    Recorder::always(Response::json(
        200,
        &json!({"results": [{"title": "the answer"}]}),
    ))
}

fn search(server: &mut McpServer, query: &str) -> Value {
    let arguments = json!({"query": query, "fresh": true});
    let call = json!({"name": "web_search_exa", "arguments": arguments});
    server.request("tools/call", call)
}

/// Returns the log messages received so far.
fn messages(server: &mut McpServer) -> Vec<Value> {
    let mut messages = Vec::new();
    while let Some(message) = server.try_notification(MESSAGE) {
        messages.push(message);
    }
    messages
}

#[test]
fn no_log_messages_without_a_level() {
    for version in [DEFAULT_VERSION, STATELESS_VERSION] {
        let recorder = success_response();
        let mut server = recorded(&recorder, version);
        search(&mut server, "heat pumps");
        assert_eq!(messages(&mut server), Vec::<Value>::new(), "{version}");
    }
}

#[test]
fn log_level_is_a_threshold() {
    for version in [DEFAULT_VERSION, STATELESS_VERSION] {
        let recorder = success_response();
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
            let logged = messages(&mut server);
            assert_eq!(logged.len(), expected, "{version} {level}: {logged:?}");
        }
    }
}

#[test]
fn log_messages_report_failures_without_content() {
    for version in [DEFAULT_VERSION, STATELESS_VERSION] {
        let recorder = Recorder::responses([
            Response::json(429, &json!({"error": "slow down"})).header("retry-after", "0"),
            Response::json(200, &json!({"results": [{"title": "the answer"}]})),
            Response::json(400, &json!({"error": "bad luck"})),
        ]);
        let mut server = recorded(&recorder, version);
        server.set_log_level("info");
        search(&mut server, "what the user asked");
        search(&mut server, "what the user asked");
        let logged = messages(&mut server);
        let words: Vec<_> = logged
            .iter()
            .map(|it| it["data"]["message"].clone())
            .collect();
        assert_eq!(
            words,
            ["request failed; retrying", "answered", "failed"],
            "{version}"
        );
        let levels: Vec<_> = logged.iter().map(|it| it["level"].clone()).collect();
        assert_eq!(levels, ["info", "info", "warning"]);
        assert_eq!(logged[2]["data"]["status"], 400);
        assert_eq!(logged[1]["data"]["operation"], "search");
        assert!(logged.iter().all(|it| it["logger"] == "exa-mcp-server"));
        let all = json!(logged).to_string();
        for secret in [API_KEY, "the user asked", "the answer", "bad luck"] {
            assert!(!all.contains(secret), "{secret} in {all}");
        }
    }
}

#[test]
fn log_messages_precede_the_result() {
    let recorder = success_response();
    let mut server = recorded(&recorder, STATELESS_VERSION);
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
        let body = server.request("logging/setLevel", json!({"level": level}));
        assert_eq!(body["error"]["code"], -32602, "{body}");
    }
    let mut server = McpServer::connect(Program::new(["--sandbox"]), STATELESS_VERSION);
    server.set_log_level("loud");
    let body = search(&mut server, "heat pumps");
    assert_eq!(body["error"]["code"], -32602, "{body}");
    let body = server.request("logging/setLevel", json!({"level": "info"}));
    assert_eq!(body["error"]["code"], -32601, "{body}");
}

#[test]
fn log_messages_are_rate_limited() {
    let recorder = success_response();
    let mut server = recorded(&recorder, DEFAULT_VERSION);
    server.set_log_level("debug");
    for number in 0..100 {
        let arguments = json!({"query": format!("heat pumps {number}")});
        server.send(
            "tools/call",
            json!({"name": "web_search_exa", "arguments": arguments}),
        );
    }
    let mut logged = 0;
    for _ in 0..100 {
        loop {
            let message = server.next();
            match message.get("id") {
                Some(_) => break,
                None => logged += 1,
            }
        }
    }
    logged += messages(&mut server).len();
    assert!((50..180).contains(&logged), "{logged} of 200 messages");
}
