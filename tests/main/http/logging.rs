//! The log at `debug`: every line of a request has its ids.

use std::io::Write;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::admin::{Admin, start};
use super::{bearer, request, search};
use crate::support::{
    DEFAULT_VERSION, HttpServer, HttpSession, McpServer, Program, Recorder, Response, initialize,
};

/// Waits for a log line that contains all these parts.
#[track_caller]
fn line(server: &HttpServer, parts: &[&str]) -> String {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let log = server.log();
        let mut lines = log.lines();
        if let Some(line) = lines.find(|line| parts.iter().all(|part| line.contains(part))) {
            return line.to_owned();
        }
        assert!(Instant::now() < deadline, "no line with {parts:?} in {log}");
        sleep(Duration::from_millis(20));
    }
}

/// Returns a different search for each id, so that none is cached.
fn call(id: &Value) -> Value {
    let search = json!({"query": format!("about {id}"), "numResults": 1});
    let params = json!({"name": "web_search_exa", "arguments": search});
    let mut call = request(1, "tools/call", params);
    call["id"] = id.clone();
    call
}

#[test]
fn request_log_lines_name_user_session_and_ids() {
    let variables = [
        ("EXA_MCP_LOG_LEVEL", "debug"),
        ("USER_TOKENS", "the-token-of-ann:ann,the-token-of-bob:bob"),
        ("EXA_API_KEYS", "pool-key-one"),
    ];
    let server = HttpServer::sandboxed(&variables);
    let (ann, bob) = (bearer("the-token-of-ann"), bearer("the-token-of-bob"));
    let headers = [("authorization", ann.as_str()), ("x-request-id", "edge-17")];
    let session = HttpSession::new(&server, &headers);
    let other = HttpSession::new(&server, &[("authorization", &bob)]);
    for id in [json!("ann-own-1"), json!(4711)] {
        assert_eq!(session.post(&call(&id)).status, 200);
    }
    assert_eq!(other.post(&call(&json!("bob-own-1"))).status, 200);
    let params = json!({"name": "web_search_exa", "arguments": search()});
    server.send_stateless(&[("authorization", &bob)], "tools/call", params);
    // The HTTP+SSE transport of 2024-11-05.
    let stream = [("accept", "text/event-stream"), headers[0]];
    let mut events = server.events("GET", "/sse", &stream, b"");
    let (_, endpoint) = events.next().expect("an endpoint");
    let post = |message: &Value| server.post_to(&endpoint, &headers, message);
    post(&initialize("2024-11-05"));
    events.message();
    post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    post(&call(&json!("sse-own-1")));
    events.message();

    for id in ["ann-own-1", "4711", "bob-own-1", "sse-own-1"] {
        let own = format!("rpc_id=\"{id}\"");
        let user = if id.starts_with("bob") {
            "user:bob"
        } else {
            "user:ann"
        };
        for what in ["request received", "operation=\"search\""] {
            let line = line(&server, &[&own, what]);
            assert!(line.contains(&format!("user=\"{user}\"")), "{line}");
            assert!(line.contains("session=\""), "{line}");
        }
    }
    let line = line(&server, &["rpc_id=\"ann-own-1\"", "request received"]);
    assert!(line.contains("id=\"edge-17\""), "{line}");
    let log = server.log();
    for line in log.lines().filter(|line| line.contains("request{")) {
        assert!(line.contains("user=\"user:"), "{line}");
    }
    for line in log.lines().filter(|line| line.contains("asked method")) {
        assert!(line.contains("rpc_id=\""), "{line}");
    }
    // Session ids are not logged, because a reader of the log could take over the session.
    let sse = endpoint.split("sessionId=").nth(1).expect("an id");
    for secret in [&*session.id, &*other.id, sse, "the-token-of"] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}

#[test]
fn rejected_request_log_names_the_user() {
    let server = start(&[("EXA_MCP_LOG_LEVEL", "debug")]);
    let admin = Admin(&server);
    let ping = |token: &str| {
        let authorization = bearer(token);
        server.send_stateless(
            &[("authorization", &authorization)],
            "tools/list",
            json!({}),
        )
    };
    let (revoked, id) = admin.create(&json!({"userId": "rita"}));
    admin.post(&id, "revoke", &json!({}));
    assert_eq!(ping(&revoked).status, 403);
    line(&server, &["denied", "Revoked", "user=\"user:rita\"", &id]);
    let (expired, id) = admin.create(&json!({"userId": "erna"}));
    admin.post(&id, "expire", &json!({"expiresAt": "2001-01-01"}));
    assert_eq!(ping(&expired).status, 403);
    line(&server, &["denied", "Expired", "user=\"user:erna\"", &id]);
    let limits = json!({"requestsPerMinute": 1});
    let (limited, _) = admin.create(&json!({"userId": "lena", "limits": limits}));
    assert_eq!(ping(&limited).status, 200);
    assert_eq!(ping(&limited).status, 429);
    line(
        &server,
        &[
            "denied",
            "requestsPerMinute",
            "user=\"user:lena\"",
            "rpc_id=",
        ],
    );
    for token in [&revoked, &expired, &limited] {
        assert!(!server.log().contains(token.as_str()), "{token}");
    }
}

#[test]
fn stdio_log_names_the_local_user() {
    let program = Program::new(["--sandbox"]).env("EXA_MCP_LOG_LEVEL", "debug");
    let mut server = McpServer::connect(program, DEFAULT_VERSION);
    let id = json!("stdio-own-1");
    server.write(call(&id).to_string().as_bytes());
    assert_eq!(server.response(&id)["result"]["isError"], false);
    let log = server.shut_down().stderr;
    let mut lines = log
        .lines()
        .filter(|line| line.contains("operation=\"search\""));
    let line = lines.next().unwrap_or_else(|| panic!("{log}"));
    let named = "user=\"local\" rpc_id=\"stdio-own-1\"";
    assert!(line.contains(named), "{line}");
}

/// A client that leaves before its response is no error of the server.
#[test]
fn client_that_leaves_is_no_error() {
    let slow = json!({"results": [], "costDollars": {"total": 0.001}});
    let exa = Recorder::always(Response::slow_json(Duration::from_secs(2), &slow));
    let server = HttpServer::with_upstream(&exa.url(), &[("EXA_MCP_LOG_LEVEL", "info")]);
    let key = [("x-api-key", "the-key-of-the-client")];
    let search = json!({"name": "web_search_exa", "arguments": {"query": "q"}});
    let call = server.stateless_request(&key, "tools/call", search);
    let subscription = json!({"notifications": {"resourcesListChanged": true}});
    let listen = server.stateless_request(&key, "subscriptions/listen", subscription);
    for request in [&call, &listen] {
        let mut client = server.connect();
        client.write_all(request).expect("the server reads");
        sleep(Duration::from_millis(500));
        drop(client);
    }
    assert_eq!(exa.take().len(), 1);
    sleep(Duration::from_millis(500));
    assert!(!server.log().contains("ERROR"), "{}", server.log());
}
