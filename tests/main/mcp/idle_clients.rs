//! Pings of idle clients, up to 2025-11-25.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{DEFAULT_VERSION, McpServer, Program, STATELESS_VERSION};

/// Longer than the interval and the timeout of pings together.
const SEVERAL_INTERVALS: Duration = Duration::from_millis(3_500);

/// A server that pings clients that are idle for a second, and waits a second for the response.
fn program() -> Program {
    Program::new(["--sandbox"])
        .env("EXA_MCP_PING_INTERVAL", "1")
        .env("EXA_MCP_CLIENT_TIMEOUT", "1")
}

/// Returns the id of the next message, which must be a ping.
#[track_caller]
fn next_ping(server: &mut McpServer) -> Value {
    let message = server.next();
    assert_eq!(message["method"], "ping", "{message}");
    message["id"].clone()
}

fn respond(server: &mut McpServer, id: &Value) {
    let response = json!({"jsonrpc": "2.0", "id": id, "result": {}});
    server.write(response.to_string().as_bytes());
}

#[test]
fn idle_clients_are_pinged() {
    for version in ["2024-11-05", DEFAULT_VERSION] {
        let mut server = McpServer::connect(program(), version);
        for _ in 0..2 {
            let since = Instant::now();
            let id = next_ping(&mut server);
            let waited = since.elapsed();
            assert!(waited > Duration::from_millis(800), "{waited:?}");
            respond(&mut server, &id);
        }
        // An error is a response too: the client is alive.
        let id = next_ping(&mut server);
        let error = json!({"code": -32601, "message": "Method not found"});
        let response = json!({"jsonrpc": "2.0", "id": id, "error": error});
        server.write(response.to_string().as_bytes());
        next_ping(&mut server);
    }
}

#[test]
fn busy_and_newer_clients_are_not_pinged() {
    let mut server = McpServer::connect(program(), DEFAULT_VERSION);
    let start = Instant::now();
    while start.elapsed() < SEVERAL_INTERVALS {
        server.request("ping", json!({}));
        server.assert_silent();
    }
    for (interval, version) in [("1", STATELESS_VERSION), ("0", DEFAULT_VERSION)] {
        let program = program().env("EXA_MCP_PING_INTERVAL", interval);
        let mut server = McpServer::connect(program, version);
        server.request("tools/list", json!({}));
        assert_eq!(server.try_message(SEVERAL_INTERVALS), None, "{version}");
    }
}

/// Many small clients respond to nothing. They are served, but not pinged again until they have sent something.
#[test]
fn silent_clients_are_served_and_left_alone() {
    let mut server = McpServer::connect(program(), DEFAULT_VERSION);
    let ids = [next_ping(&mut server), {
        let cancelled = server.next();
        assert_eq!(cancelled["method"], "notifications/cancelled");
        next_ping(&mut server)
    }];
    assert_ne!(ids[0], ids[1]);
    assert_eq!(server.next()["method"], "notifications/cancelled");
    assert_eq!(server.try_message(SEVERAL_INTERVALS), None);
    server.request("tools/list", json!({}));
    next_ping(&mut server);
    let exit = server.shut_down();
    assert!(exit.stderr.contains("does not respond"), "{}", exit.stderr);
}
