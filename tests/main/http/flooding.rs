//! Floods by unauthenticated clients: others are still served, and memory is released.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{request, search};
use crate::support::{DEFAULT_VERSION, HttpServer, HttpSession, eventually, initialize};

/// The time in which memory must be released, and how much may remain in use: idle guests keep some sessions, which are
/// spread over the pages of the allocator.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(30);
const MEMORY_TOLERANCE: u64 = 60 * 1024;

/// Connects from one of the many loopback addresses.
fn connect_from(server: &HttpServer, last: u8) -> TcpStream {
    let to: SocketAddr = server.address.parse().expect("an address");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .expect("a runtime");
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        let from = SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0));
        socket.bind(from).expect("127.0.0.0/8 is this machine's");
        let stream = socket.connect(to).await.expect("the server listens");
        stream.into_std().expect("a stream")
    });
    stream.set_nonblocking(false).expect("a stream that waits");
    let timeout = Some(Duration::from_secs(30));
    stream.set_read_timeout(timeout).expect("a timeout");
    stream.set_write_timeout(timeout).expect("a timeout");
    stream
}

/// Sends a request and returns the status; the connection stays open.
fn exchange(stream: &mut TcpStream, head: &str, body: &[u8]) -> Option<u16> {
    let length = body.len();
    let head = format!("{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n");
    let mut whole = head.into_bytes();
    whole.extend_from_slice(body);
    stream.write_all(&whole).ok()?;
    let mut text = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        text.extend_from_slice(&buffer[..read]);
        let received = String::from_utf8_lossy(&text);
        let Some((head, rest)) = received.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.trim().parse::<usize>().ok())?
        });
        let whole = match length {
            Some(length) => rest.len() >= length,
            None => head.contains("204") || rest.ends_with("0\r\n\r\n"),
        };
        if whole {
            return head.get(9..12)?.parse().ok();
        }
    }
}

fn head(server: &HttpServer, method: &str, path: &str, more: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: {}\r\n{more}",
        server.address
    )
}

/// Starts sessions one after the other, each with a different invented key.
fn start_sessions(server: &HttpServer, last: u8, count: usize) -> usize {
    let body = initialize(DEFAULT_VERSION).to_string();
    let mut stream = connect_from(server, last);
    let mut begun = 0;
    for number in 0..count {
        let key = format!("x-api-key: made-up-{last}-{number}\r\n");
        match exchange(
            &mut stream,
            &head(server, "POST", "/mcp", &key),
            body.as_bytes(),
        ) {
            Some(200) => begun += 1,
            Some(_) => {}
            None => stream = connect_from(server, last),
        }
    }
    begun
}

/// Returns the memory of the server in KiB.
fn memory(server: &HttpServer) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process_id()));
    let status = status.expect("the status of a process");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.expect("a number")
}

/// Waits until memory is back near its initial value.
#[track_caller]
fn assert_memory_is_back(server: &HttpServer, before: u64, peak: u64) {
    let ended = Instant::now();
    while memory(server) > before + MEMORY_TOLERANCE {
        let now = memory(server);
        assert!(
            ended.elapsed() < MEMORY_TIMEOUT,
            "{before} KiB before, {peak} KiB in the flood, {now} KiB after it"
        );
        thread::sleep(Duration::from_millis(200));
    }
}

/// Asserts that a client from another address is served.
#[track_caller]
fn assert_others_are_served(server: &HttpServer, last: u8) {
    let mut stream = connect_from(server, last);
    let health = exchange(&mut stream, &head(server, "GET", "/health", ""), b"");
    assert_eq!(health, Some(200), "/health");
    let body = initialize(DEFAULT_VERSION).to_string();
    let key = "x-api-key: somebody-else\r\n";
    let begun = exchange(
        &mut stream,
        &head(server, "POST", "/mcp", key),
        body.as_bytes(),
    );
    assert_eq!(begun, Some(200), "a new session");
}

fn searches(session: &mut HttpSession<'_>) {
    let found = session.call("web_search_exa", search());
    assert_ne!(found["isError"], true, "{found}");
}

#[test]
fn session_flood_does_not_affect_others() {
    let server = HttpServer::sandboxed(&[]);
    let mut old = HttpSession::new(&server, &[("x-api-key", "an-old-client")]);
    searches(&mut old);
    let before = memory(&server);
    let done = AtomicBool::new(false);
    let begun: usize = thread::scope(|scope| {
        let floods: Vec<_> = (2..14)
            .map(|last| {
                let server = &server;
                scope.spawn(move || start_sessions(server, last, 300))
            })
            .collect();
        let watcher = scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                assert_eq!(old.post(&request(9, "ping", json!({}))).status, 200);
                assert_others_are_served(&server, 100);
                thread::sleep(Duration::from_millis(100));
            }
        });
        let begun = floods
            .into_iter()
            .map(|flood| flood.join().expect("a flood"));
        let begun = begun.sum();
        done.store(true, Ordering::SeqCst);
        watcher.join().expect("the others");
        begun
    });
    assert!(begun > 12 * 200, "{begun} sessions are no flood");
    let peak = memory(&server);
    let open = server.get("/health", &[]).json()["sessions"].as_u64();
    // 200 for each flooding address, 200 for the other client's address, and the first client.
    assert!(open.is_some_and(|open| open <= 13 * 200 + 1), "{open:?}");
    searches(&mut old);
    assert_memory_is_back(&server, before, peak);
    searches(&mut old);
    eprintln!(
        "{before} KiB before, {peak} KiB in the flood, {} KiB after",
        memory(&server)
    );
}

/// The sessions of an address that has many of them expire early, but not those of a guest at another address.
#[test]
fn idle_guest_keeps_its_session_in_a_flood() {
    let server = HttpServer::sandboxed(&[("EXA_MCP_MAX_SESSIONS", "400")]);
    let old = HttpSession::new(&server, &[("x-api-key", "an-idle-client")]);
    let begun = start_sessions(&server, 2, 100) + start_sessions(&server, 3, 50);
    assert_eq!(begun, 150);
    let sessions = || server.get("/health", &[]).json()["sessions"].as_u64();
    eventually("the sessions of the flood expire", || {
        sessions().is_some_and(|open| open <= 10)
    });
    assert_eq!(old.post(&request(9, "ping", json!({}))).status, 200);
}

/// How a connection is held open without work.
#[derive(Clone, Copy, Debug)]
enum Idle {
    Sse,
    Streamable,
    Subscription,
    Silent,
    HalfHead,
}

fn hold(server: &HttpServer, last: u8, how: Idle) -> Option<TcpStream> {
    let mut stream = connect_from(server, last);
    let asked = match how {
        Idle::Silent => return Some(stream),
        Idle::HalfHead => "POST /mcp HTT".to_owned(),
        Idle::Sse => head(server, "GET", "/sse", "\r\n"),
        Idle::Streamable => {
            let body = initialize(DEFAULT_VERSION).to_string();
            let head = head(
                server,
                "POST",
                "/mcp",
                "accept: application/json\r\nconnection: close\r\n",
            );
            let whole = format!(
                "{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(whole.as_bytes()).ok()?;
            let mut text = String::new();
            stream.read_to_string(&mut text).ok()?;
            let id = text
                .lines()
                .find_map(|line| line.strip_prefix("mcp-session-id: "))?;
            stream = connect_from(server, last);
            let more = format!(
                "accept: text/event-stream\r\nmcp-session-id: {}\r\n\r\n",
                id.trim()
            );
            self::head(server, "GET", "/mcp", &more)
        }
        Idle::Subscription => {
            let mut message = request(
                1,
                "subscriptions/listen",
                json!({"notifications": {"resourcesListChanged": true}}),
            );
            message["params"] = crate::support::stateless_params(message["params"].take());
            let body = message.to_string();
            let more = format!(
                "accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
                 mcp-method: subscriptions/listen\r\ncontent-type: application/json\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            );
            head(server, "POST", "/mcp", &more)
        }
    };
    stream.write_all(asked.as_bytes()).ok()?;
    Some(stream)
}

#[test]
fn stream_flood_does_not_affect_others() {
    for how in [
        Idle::Sse,
        Idle::Streamable,
        Idle::Subscription,
        Idle::Silent,
        Idle::HalfHead,
    ] {
        let server = HttpServer::sandboxed(&[
            ("EXA_MCP_MAX_CONNECTIONS", "128"),
            ("EXA_MCP_MAX_CONNECTIONS_PER_ADDRESS", "48"),
        ]);
        let mut old = HttpSession::new(&server, &[("x-api-key", "an-old-client")]);
        searches(&mut old);
        let before = memory(&server);
        // More than the limit, from a few addresses.
        let held: Vec<TcpStream> = (0..160)
            .filter_map(|number| hold(&server, 2 + number % 4, how))
            .collect();
        assert!(held.len() > 100, "{how:?}: {} are no flood", held.len());
        for last in 100..110 {
            assert_others_are_served(&server, last);
            searches(&mut old);
        }
        let peak = memory(&server);
        drop(held);
        searches(&mut old);
        assert_memory_is_back(&server, before, peak);
    }
}

#[test]
fn streams_per_address_are_limited_behind_a_proxy() {
    let server = HttpServer::sandboxed(&[
        ("EXA_MCP_TRUSTED_PROXIES", "127.0.0.1"),
        ("EXA_MCP_MAX_STREAMS_PER_ADDRESS", "3"),
    ]);
    let open = |client: &str, stream: &mut TcpStream| {
        let more = format!("x-forwarded-for: {client}\r\n\r\n");
        let asked = head(&server, "GET", "/sse", &more);
        stream
            .write_all(asked.as_bytes())
            .expect("the server reads");
        let mut start = [0; 12];
        stream.read_exact(&mut start).expect("a response");
        String::from_utf8_lossy(&start).into_owned()
    };
    // Idle connections of the same address are closed, however the address is written.
    let clients = ["2001:db8::1", "2001:db8::2", "2001:db8::3:4", "2001:db8::5"];
    let mut held: Vec<TcpStream> = clients
        .iter()
        .map(|client| {
            let mut stream = server.connect();
            assert_eq!(open(client, &mut stream), "HTTP/1.1 200");
            stream
        })
        .collect();
    let mut other = server.connect();
    assert_eq!(open("2001:db8:0:1::1", &mut other), "HTTP/1.1 200");
    let count = || server.get("/health", &[]).json()["sessions"].as_u64();
    let deadline = Instant::now() + Duration::from_secs(10);
    while count() != Some(4) {
        assert!(Instant::now() < deadline, "{:?}", count());
        thread::sleep(Duration::from_millis(20));
    }
    held.clear();
}

/// Returns bodies whose cost is out of proportion to their length.
fn hostile_bodies() -> Vec<(String, Vec<u8>)> {
    let call = |arguments: String| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"exa_api","arguments":{arguments}}}}}"#
        )
        .into_bytes()
    };
    let keys = |count: usize| {
        let keys: Vec<String> = (0..count)
            .map(|number| format!("\"k{number}\":{number}"))
            .collect();
        format!("{{{}}}", keys.join(","))
    };
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"},"#;
    vec![
        ("300,000 keys".to_owned(), call(keys(300_000))),
        ("70,000 keys".to_owned(), call(keys(70_000))),
        ("8,000 keys".to_owned(), call(keys(8_000))),
        (
            "many elements".to_owned(),
            call(format!("[{}0]", "0,".repeat(400_000))),
        ),
        ("deep".to_owned(), call("[".repeat(400_000))),
        (
            "a long text".to_owned(),
            call(format!("{{\"query\":\"{}\"}}", "x".repeat(900_000))),
        ),
        (
            "a long name".to_owned(),
            call(format!("{{\"{}\":1}}", "x".repeat(900_000))),
        ),
        (
            "a long batch".to_owned(),
            format!("[{}1]", ping.repeat(5_000)).into_bytes(),
        ),
    ]
}

#[test]
fn body_flood_does_not_affect_others() {
    let server = HttpServer::sandboxed(&[]);
    let mut old = HttpSession::new(&server, &[("x-api-key", "an-old-client")]);
    searches(&mut old);
    let before = memory(&server);
    let bodies = hostile_bodies();
    let mut peak = before;
    for (name, body) in &bodies {
        let done = AtomicBool::new(false);
        let slowest = thread::scope(|scope| {
            for last in 2..6 {
                let (server, done) = (&server, &done);
                scope.spawn(move || {
                    let mut stream = connect_from(server, last);
                    while !done.load(Ordering::SeqCst) {
                        let head = head(
                            server,
                            "POST",
                            "/mcp",
                            "mcp-protocol-version: 2025-03-26\r\n",
                        );
                        if exchange(&mut stream, &head, body).is_none() {
                            stream = connect_from(server, last);
                        }
                    }
                });
            }
            let mut waits: Vec<Duration> = (0..30)
                .map(|_| {
                    thread::sleep(Duration::from_millis(20));
                    let asked = Instant::now();
                    assert_eq!(server.get("/health", &[]).status, 200);
                    asked.elapsed()
                })
                .collect();
            searches(&mut old);
            peak = peak.max(memory(&server));
            done.store(true, Ordering::SeqCst);
            waits.sort();
            waits[waits.len() / 2]
        });
        eprintln!("{name}: /health took {slowest:?}");
        // This allows for an unoptimised program on a busy machine; without the limit it takes seconds.
        assert!(
            slowest < Duration::from_millis(500),
            "{name}: /health took {slowest:?}"
        );
    }
    assert_memory_is_back(&server, before, peak);
    eprintln!(
        "{before} KiB before, {peak} KiB in the flood, {} KiB after",
        memory(&server)
    );
}

#[test]
fn too_long_body_names_the_setting() {
    let server = HttpServer::sandboxed(&[]);
    let session = HttpSession::new(&server, &[]);
    let call = |bytes: usize| {
        let csv = format!("name,url\n{}", "a,https://a.example\n".repeat(bytes / 20));
        let args = json!({"csvContent": csv, "format": "csv", "entity": {"type": "company"}});
        let arguments = json!({"operation": "imports.create", "args": args});
        session.post(&request(
            5,
            "tools/call",
            json!({"name": "manage_websets", "arguments": arguments}),
        ))
    };
    let refused = call(1_100_000);
    assert_eq!(refused.status, 413);
    let message: Value = refused.json();
    let message = message["error"]["message"].as_str().expect("a message");
    for word in ["1048576", "EXA_MCP_MAX_BODY_BYTES", "csvContent"] {
        assert!(message.contains(word), "{message}");
    }
    assert_eq!(call(900_000).status, 200);
    let larger = HttpServer::sandboxed(&[("EXA_MCP_MAX_BODY_BYTES", "3000000")]);
    let session = HttpSession::new(&larger, &[]);
    let long = json!({"name": "exa_api", "arguments": {"query": "x".repeat(2_000_000)}});
    assert_eq!(session.post(&request(5, "tools/call", long)).status, 200);
}

#[test]
fn tasks_per_address_are_limited_across_keys() {
    let server = HttpServer::sandboxed(&[("EXA_MCP_MAX_TASKS_PER_ADDRESS", "2")]);
    let started = |key: &str| {
        let session = HttpSession::new(&server, &[("x-api-key", key)]);
        let arguments =
            json!({"operation": "agent.runs.create", "args": {"query": "Find three companies"}});
        let params = json!({"name": "exa_api", "arguments": arguments, "task": {"ttl": 60_000}});
        session.post(&request(3, "tools/call", params)).json()
    };
    let responses: Vec<Value> = ["one", "two", "three"].map(started).into();
    for response in &responses[..2] {
        assert!(response["result"]["task"].is_object(), "{response}");
    }
    let message = responses[2]["error"]["message"]
        .as_str()
        .unwrap_or_default();
    assert!(
        message.contains("EXA_MCP_MAX_TASKS_PER_ADDRESS"),
        "{}",
        responses[2]
    );
}
