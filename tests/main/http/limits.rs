//! Too much, too slow, too many.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use super::{bearer, request};
use crate::support::{HttpServer, HttpSession, USUAL, initialize};

/// Waits until the server closes a connection and gives what it said before.
fn until_closed(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    // A reset is an end as well.
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
    // Nothing of the body was sent, and the answer is there.
    let answer = until_closed(stream);
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("\"code\":-32600"), "{answer}");
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
    assert!(sent < 100_000_000, "the server reads for ever");
    let mut session = HttpSession::usual(&server, &[]);
    session.ask("ping", json!({}));
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
    let answer = until_closed(half);
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    for stream in slow {
        until_closed(stream);
    }
    assert_eq!(server.get("/health", &[]).status, 200);
}

#[test]
fn connections_beyond_the_limit_wait() {
    let server = HttpServer::sandboxed(&[("EXA_MCP_MAX_CONNECTIONS", "2")]);
    let held: Vec<TcpStream> = (0..2).map(|_| server.connect()).collect();
    // Both are in before the third one comes.
    for mut stream in &held {
        let request = format!("GET /health HTTP/1.1\r\nhost: {}\r\n\r\n", server.address);
        stream
            .write_all(request.as_bytes())
            .expect("the server reads");
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("an answer");
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
    assert!(third.read(&mut [0]).is_err(), "there was no place");
    drop(held);
    third
        .set_read_timeout(Some(Duration::from_secs(30)))
        .expect("a timeout");
    assert!(until_closed(third).starts_with("HTTP/1.1 200"));
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
        stream.read_exact(&mut [0]).expect("an answer");
    }
    assert_eq!(until_closed(server.connect()), "");
}

#[test]
fn idle_sessions_expire() {
    let server = HttpServer::sandboxed(&[("EXA_MCP_SESSION_IDLE", "1")]);
    let idle = HttpSession::usual(&server, &[]);
    let followed = HttpSession::usual(&server, &[]);
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
    let sessions: Vec<_> = (0..3).map(|_| HttpSession::usual(&server, &ann)).collect();
    let alive =
        |session: &HttpSession<'_>| session.post(&request(9, "ping", json!({}))).status == 200;
    let alive: Vec<bool> = sessions.iter().map(alive).collect();
    assert_eq!(alive, [false, true, true]);
    let _first = HttpSession::usual(&server, &bob);
    // The server is full; a session of Bob's own makes way, none of Ann's.
    let _second = HttpSession::usual(&server, &bob);
    assert_eq!(sessions[1].post(&request(9, "ping", json!({}))).status, 200);
    assert_eq!(sessions[2].post(&request(9, "ping", json!({}))).status, 200);
}

#[test]
fn full_server_sends_retry_after() {
    let server = HttpServer::sandboxed(&[("EXA_MCP_MAX_SESSIONS", "1")]);
    let session = HttpSession::usual(&server, &[]);
    let mut headers = session.headers();
    headers.push(("accept", "text/event-stream"));
    let _stream = server.events("GET", "/mcp", &headers, b"");
    let reply = server.post(&[("x-api-key", "another-client")], &initialize(USUAL));
    assert_eq!(reply.status, 503);
    assert!(reply.header("retry-after").is_some());
    assert_eq!(reply.json()["error"]["code"], -32603);
    // Whoever needs no session is served.
    assert_eq!(server.stateless(&[], "tools/list", json!({})).status, 200);
}
