//! Pings of idle clients over HTTP, up to 2025-11-25: only on an open stream, which ends if nobody responds.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{DEFAULT_VERSION, Events, HttpServer, HttpSession};

/// Longer than the interval and the timeout of pings together.
const SEVERAL_INTERVALS: Duration = Duration::from_millis(3_500);

fn server() -> HttpServer {
    HttpServer::sandboxed(&[
        ("EXA_MCP_PING_INTERVAL", "1"),
        ("EXA_MCP_CLIENT_TIMEOUT", "1"),
        // A test that waits in vain times out.
        ("EXA_MCP_KEEP_ALIVE", "600"),
    ])
}

fn stream(server: &HttpServer, session: &HttpSession) -> Events {
    let mut headers = session.headers();
    headers.push(("accept", "text/event-stream"));
    server.events("GET", "/mcp", &headers, b"")
}

/// Returns the methods of all messages until the stream ends.
fn methods_until_end(mut events: Events) -> Vec<Value> {
    let mut methods = Vec::new();
    while let Some((_, data)) = events.next() {
        if !data.is_empty() {
            let message: Value = serde_json::from_str(&data).expect("JSON in an event");
            methods.push(message["method"].clone());
        }
    }
    methods
}

#[test]
fn idle_sessions_with_a_stream_are_pinged() {
    let server = server();
    for version in ["2025-03-26", DEFAULT_VERSION] {
        let mut session = server.session(version, &[]);
        // Without a stream there is nobody to ping, and nothing to be read later.
        thread::sleep(SEVERAL_INTERVALS);
        let opened = Instant::now();
        let mut events = stream(&server, &session);
        for _ in 0..3 {
            let ping = events.message();
            assert_eq!(ping["method"], "ping", "{ping}");
            let response = json!({"jsonrpc": "2.0", "id": ping["id"], "result": {}});
            assert_eq!(session.post(&response).status, 202);
        }
        assert!(opened.elapsed() > Duration::from_secs(2));
        session.request("ping", json!({}));
    }
}

#[test]
fn stream_of_a_dead_client_ends_and_its_session_continues() {
    let server = server();
    let mut session = HttpSession::new(&server, &[]);
    let start = Instant::now();
    let methods = methods_until_end(stream(&server, &session));
    let pings = methods.iter().filter(|method| **method == "ping").count();
    assert_eq!(pings, 2, "{methods:?}");
    assert!(start.elapsed() < Duration::from_secs(20));
    session.request("tools/list", json!({}));
    let mut again = stream(&server, &session);
    assert_eq!(again.message()["method"], "ping");
}

#[test]
fn sse_connection_of_a_dead_client_ends() {
    let server = server();
    let mut events = server.events("GET", "/sse", &[], b"");
    let (_, endpoint) = events.next().expect("the endpoint");
    let post = |message: &Value| {
        assert_eq!(server.post_to(&endpoint, &[], message).status, 202);
    };
    post(&crate::support::initialize("2024-11-05"));
    assert_eq!(events.message()["id"], 1);
    post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let ping = events.message();
    assert_eq!(ping["method"], "ping", "{ping}");
    post(&json!({"jsonrpc": "2.0", "id": ping["id"], "result": {}}));
    let methods = methods_until_end(events);
    let pings = methods.iter().filter(|method| **method == "ping").count();
    assert_eq!(pings, 2, "{methods:?}");
}
