//! Requests that are rejected before their bodies are read: the client still gets the response.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use crate::support::HttpServer;

/// A rejected request: its method, path and headers, and the status of the response.
type Rejection = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    u16,
);

const JSON: (&str, &str) = ("content-type", "application/json");
const WRONG: (&str, &str) = ("authorization", "Bearer wrong");
const USER: (&str, &str) = ("authorization", "Bearer ann-token");
const ADMIN: (&str, &str) = ("authorization", "Bearer admin-token");

/// Every kind of rejection that does not depend on the body.
const REJECTIONS: [Rejection; 12] = [
    ("POST", "/mcp", &[JSON], 401),
    (
        "POST",
        "/mcp",
        &[JSON, USER, ("origin", "https://evil.example")],
        403,
    ),
    ("POST", "/mcp", &[JSON, USER, ("host", "evil.example")], 403),
    (
        "POST",
        "/mcp",
        &[JSON, USER, ("mcp-session-id", "unknown")],
        404,
    ),
    ("PUT", "/mcp", &[JSON, USER], 405),
    ("POST", "/mcp", &[USER, ("content-type", "text/plain")], 415),
    ("POST", "/nowhere", &[JSON, USER], 404),
    ("POST", "/health", &[JSON], 405),
    ("POST", "/messages?sessionId=unknown", &[JSON, USER], 404),
    ("POST", "/messages?sessionId=unknown", &[JSON], 401),
    ("POST", "/admin/tokens", &[JSON], 401),
    ("POST", "/admin/tokens", &[JSON, USER], 403),
];

fn pool() -> HttpServer {
    HttpServer::sandboxed(&[
        ("MCP_AUTH_TOKEN", "admin-token"),
        ("USER_TOKENS", "ann-token:ann"),
        ("EXA_MCP_MAX_CONNECTIONS_PER_ADDRESS", "1000"),
    ])
}

fn head(server: &HttpServer, (method, path, headers, _): &Rejection, length: &str) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        head += &format!("host: {}\r\n", server.address);
    }
    for (name, value) in *headers {
        head += &format!("{name}: {value}\r\n");
    }
    format!("{head}{length}\r\n\r\n")
}

/// Reads a response to its end; a connection reset fails the test.
fn read_response(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => text.extend_from_slice(&buffer[..read]),
            Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&text)),
        }
        // A persistent connection has no end; the head and the body arrive together.
        if text.windows(4).any(|window| window == b"\r\n\r\n") {
            break;
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[track_caller]
fn assert_status(read_response: &str, rejection: &Rejection, how: &str) {
    let status = format!("HTTP/1.1 {} ", rejection.3);
    assert!(
        read_response.starts_with(&status),
        "{how} {rejection:?}: {read_response:?}"
    );
}

/// Sends everything before reading anything, as simple clients do.
fn send_all(
    server: &HttpServer,
    rejection: &Rejection,
    size: usize,
    pieces: usize,
    pause: Duration,
) {
    let mut stream = server.connect();
    let head = head(server, rejection, &format!("content-length: {size}"));
    stream.write_all(head.as_bytes()).expect("the head is sent");
    let body = vec![b' '; size];
    for piece in body.chunks(size.div_ceil(pieces)) {
        thread::sleep(pause);
        stream.write_all(piece).expect("the body is sent");
    }
    assert_status(&read_response(stream), rejection, &format!("{size} bytes"));
}

#[test]
fn rejection_arrives_after_a_single_write_body() {
    let server = pool();
    for rejection in &REJECTIONS {
        for size in [1, 1_000, 200_000, 700_000, 3_000_000] {
            for _ in 0..4 {
                send_all(&server, rejection, size, 1, Duration::ZERO);
            }
        }
    }
}

#[test]
fn rejection_arrives_during_a_slow_body() {
    let server = pool();
    thread::scope(|scope| {
        for rejection in &REJECTIONS {
            for (size, pieces) in [(40, 4), (300_000, 10), (2_500_000, 10)] {
                let server = &server;
                scope.spawn(move || {
                    send_all(server, rejection, size, pieces, Duration::from_millis(60));
                });
            }
        }
    });
}

#[test]
fn rejection_of_a_long_body_arrives() {
    let server = pool();
    let long: Rejection = ("POST", "/mcp", &[JSON, USER], 413);
    for size in [5_000_000, 9_000_000] {
        for _ in 0..5 {
            send_all(&server, &long, size, 1, Duration::ZERO);
        }
    }
    let admin: Rejection = ("POST", "/admin/tokens", &[JSON, ADMIN], 413);
    send_all(&server, &admin, 6_000_000, 3, Duration::from_millis(50));
}

#[test]
fn chunked_body_is_rejected_the_same_way() {
    let server = pool();
    for rejection in &REJECTIONS {
        let mut stream = server.connect();
        let head = head(&server, rejection, "transfer-encoding: chunked");
        stream.write_all(head.as_bytes()).expect("the head is sent");
        let chunk = format!("{:x}\r\n{}\r\n", 50_000, " ".repeat(50_000));
        for _ in 0..20 {
            stream
                .write_all(chunk.as_bytes())
                .expect("a chunk is taken");
        }
        stream.write_all(b"0\r\n\r\n").expect("the end is taken");
        assert_status(&read_response(stream), rejection, "chunks");
    }
}

#[test]
fn expect_continue_is_rejected_before_the_body() {
    let server = pool();
    for rejection in &REJECTIONS {
        let expects = "expect: 100-continue\r\ncontent-length: 800000";
        let mut waits = server.connect();
        let head = head(&server, rejection, expects);
        waits.write_all(head.as_bytes()).expect("the head is sent");
        assert_status(&read_response(waits), rejection, "waiting");
        // A client that does not wait gets the response, too.
        let mut sends = server.connect();
        sends.write_all(head.as_bytes()).expect("the head is sent");
        sends
            .write_all(&vec![b' '; 800_000])
            .expect("the body is sent");
        assert_status(&read_response(sends), rejection, "sending");
    }
    // An accepted request is asked for its body.
    let mut stream = server.connect();
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let fine: Rejection = ("POST", "/mcp", &[JSON, USER], 200);
    let length = format!("expect: 100-continue\r\ncontent-length: {}", ping.len());
    let head = head(&server, &fine, &length);
    stream.write_all(head.as_bytes()).expect("the head is sent");
    let mut interim = [0; 25];
    stream
        .read_exact(&mut interim)
        .expect("an interim response");
    assert_eq!(&interim[..21], b"HTTP/1.1 100 Continue");
    stream.write_all(ping).expect("the body is sent");
    assert!(read_response(stream).starts_with("HTTP/1.1 "));
}

#[test]
fn connection_survives_a_rejected_short_body() {
    let server = pool();
    let mut stream = server.connect();
    for rejection in &REJECTIONS[..4] {
        let head = head(&server, rejection, "content-length: 20000");
        stream.write_all(head.as_bytes()).expect("the head is sent");
        thread::sleep(Duration::from_millis(20));
        stream.write_all(&[b' '; 20_000]).expect("the body is sent");
        let text = read_response(stream.try_clone().expect("a stream"));
        assert_status(&text, rejection, "again");
        assert!(!text.contains("connection: close"), "{text}");
    }
}

#[test]
fn wrong_token_is_rejected_then_throttled_during_upload() {
    let server = pool();
    let mut statuses = Vec::new();
    for _ in 0..30 {
        let mut stream = server.connect();
        let rejection: Rejection = ("POST", "/mcp", &[JSON, WRONG], 0);
        let head = head(&server, &rejection, "content-length: 400000");
        stream.write_all(head.as_bytes()).expect("the head is sent");
        stream
            .write_all(&vec![b' '; 400_000])
            .expect("the body is sent");
        let text = read_response(stream);
        statuses.push(text.get(9..12).map(str::to_owned).expect("a status"));
    }
    assert_eq!(statuses[0], "401");
    let refused = |status: &String| ["401", "429"].contains(&status.as_str());
    assert!(statuses.iter().all(refused), "{statuses:?}");
}
