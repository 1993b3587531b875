//! Limits of size, time and number.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use super::{bearer, request};
use crate::support::{DEFAULT_VERSION, HttpServer, HttpSession, initialize};

/// Reads until the server closes the connection.
fn read_until_closed(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    // A reset closes the connection, too.
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn declared_large_body_is_rejected_before_reading() {
    let server = HttpServer::sandboxed(&[]);
    let size = 100 * 1024 * 1024;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {size}\r\n\r\n",
        server.address
    );
    let mut stream = server.connect();
    stream.write_all(head.as_bytes()).expect("the server reads");
    // The response arrives although no part of the body was sent.
    let body = read_until_closed(stream);
    assert!(body.starts_with("HTTP/1.1 413"), "{body}");
    assert!(body.contains("\"code\":-32600"), "{body}");
}

#[test]
fn chunked_body_is_cut_at_the_limit() {
    let server = HttpServer::sandboxed(&[("EXA_MCP_MAX_BODY_BYTES", "100000")]);
    let mut stream = server.connect();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
        server.address
    );
    stream.write_all(head.as_bytes()).expect("the server reads");
    let chunk = format!("2710\r\n{}\r\n", " ".repeat(10_000));
    let mut sent = 0;
    while stream.write_all(chunk.as_bytes()).is_ok() && sent < 100_000_000 {
        sent += 10_000;
    }
    assert!(sent < 100_000_000, "the server never stops reading");
    let mut session = HttpSession::new(&server, &[]);
    session.request("ping", json!({}));
    let long = json!({"name": "web_search_exa", "arguments": {"query": "x".repeat(200_000)}});
    assert_eq!(session.post(&request(5, "tools/call", long)).status, 413);
}

#[test]
fn slow_sender_is_disconnected() {
    let server = HttpServer::sandboxed(&[
        ("EXA_MCP_READ_TIMEOUT", "1"),
        ("EXA_MCP_MAX_CONNECTIONS", "20"),
    ]);
    let slow: Vec<TcpStream> = (0..15)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(b"POST /mcp HT").expect("the server reads");
            stream
        })
        .collect();
    let mut half = server.connect();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{",
        server.address
    );
    half.write_all(head.as_bytes()).expect("the server reads");
    assert_eq!(server.get("/health", &[]).status, 200);
    let body = read_until_closed(half);
    assert!(body.starts_with("HTTP/1.1 408"), "{body}");
    for stream in slow {
        read_until_closed(stream);
    }
    assert_eq!(server.get("/health", &[]).status, 200);
}

#[test]
fn connections_beyond_the_limit_wait() {
    let server = HttpServer::sandboxed(&[("EXA_MCP_MAX_CONNECTIONS", "2")]);
    let held: Vec<TcpStream> = (0..2).map(|_| server.connect()).collect();
    // Both connections are accepted before the third one opens.
    for mut stream in &held {
        let request = format!("GET /health HTTP/1.1\r\nhost: {}\r\n\r\n", server.address);
        stream
            .write_all(request.as_bytes())
            .expect("the server reads");
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a response");
    }
    let mut third = server.connect();
    let request = format!(
        "GET /health HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
        server.address
    );
    third.write_all(request.as_bytes()).expect("it is queued");
    third
        .set_read_timeout(Some(Duration::from_millis(300)))
        .expect("a timeout");
    assert!(
        third.read(&mut [0]).is_err(),
        "the connection limit is reached"
    );
    drop(held);
    third
        .set_read_timeout(Some(Duration::from_secs(30)))
        .expect("a timeout");
    assert!(read_until_closed(third).starts_with("HTTP/1.1 200"));
}

#[test]
fn connections_per_address_are_limited() {
    let server = HttpServer::sandboxed(&[("EXA_MCP_MAX_CONNECTIONS_PER_ADDRESS", "2")]);
    let held: Vec<TcpStream> = (0..2).map(|_| server.connect()).collect();
    for mut stream in &held {
        let request = format!("GET /health HTTP/1.1\r\nhost: {}\r\n\r\n", server.address);
        stream
            .write_all(request.as_bytes())
            .expect("the server reads");
        stream.read_exact(&mut [0]).expect("a response");
    }
    assert_eq!(read_until_closed(server.connect()), "");
}

#[test]
fn idle_sessions_expire() {
    let server = HttpServer::sandboxed(&[("EXA_MCP_SESSION_IDLE", "1")]);
    let idle = HttpSession::new(&server, &[]);
    let followed = HttpSession::new(&server, &[]);
    let mut headers = followed.headers();
    headers.push(("accept", "text/event-stream"));
    let _stream = server.events("GET", "/mcp", &headers, b"");
    let count = || server.get("/health", &[]).json()["sessions"].as_u64();
    assert_eq!(count(), Some(2));
    while count() == Some(2) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(idle.post(&request(1, "ping", json!({}))).status, 404);
    assert_eq!(followed.post(&request(1, "ping", json!({}))).status, 200);
}

#[test]
fn new_sessions_evict_the_oldest_of_the_same_user() {
    let server = HttpServer::sandboxed(&[
        ("USER_TOKENS", "a-token:ann,b-token:bob"),
        ("EXA_MCP_MAX_SESSIONS_PER_USER", "2"),
        ("EXA_MCP_MAX_SESSIONS", "3"),
    ]);
    let (ann, bob) = (bearer("a-token"), bearer("b-token"));
    let (ann, bob) = (
        [("authorization", ann.as_str())],
        [("authorization", bob.as_str())],
    );
    let sessions: Vec<_> = (0..3).map(|_| HttpSession::new(&server, &ann)).collect();
    let alive =
        |session: &HttpSession<'_>| session.post(&request(9, "ping", json!({}))).status == 200;
    let alive: Vec<bool> = sessions.iter().map(alive).collect();
    assert_eq!(alive, [false, true, true]);
    let _first = HttpSession::new(&server, &bob);
    // The server is full; it closes a session of Bob's, not one of Ann's.
    let _second = HttpSession::new(&server, &bob);
    assert_eq!(sessions[1].post(&request(9, "ping", json!({}))).status, 200);
    assert_eq!(sessions[2].post(&request(9, "ping", json!({}))).status, 200);
}

#[test]
fn full_server_sends_retry_after() {
    let server = HttpServer::sandboxed(&[("EXA_MCP_MAX_SESSIONS", "1")]);
    let session = HttpSession::new(&server, &[]);
    let mut headers = session.headers();
    headers.push(("accept", "text/event-stream"));
    let _stream = server.events("GET", "/mcp", &headers, b"");
    let response = server.post(
        &[("x-api-key", "another-client")],
        &initialize(DEFAULT_VERSION),
    );
    assert_eq!(response.status, 503);
    assert!(response.header("retry-after").is_some());
    assert_eq!(response.json()["error"]["code"], -32603);
    // Requests without a session are served.
    assert_eq!(
        server.send_stateless(&[], "tools/list", json!({})).status,
        200
    );
}
