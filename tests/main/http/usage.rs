//! Usage statistics, and shutdown.

use std::io::{Read, Write};

use serde_json::json;

use super::{bearer, request, search};
use crate::support::{HttpServer, HttpSession, Sandbox, signal};

#[test]
fn finished_calls_are_counted_after_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("store.db").display());
    let variables = [
        (
            "USER_TOKENS",
            "a-token:ann,b-token:bob; DROP TABLE counters",
        ),
        ("EXA_MCP_STORE", store.as_str()),
    ];
    let (ann, bob) = (bearer("a-token"), bearer("b-token"));
    let mut expected = 0;
    for _ in 0..3 {
        let mut server = HttpServer::sandboxed(&variables);
        let mut session = HttpSession::new(&server, &[("authorization", &ann)]);
        expected += 1;
        for _ in 0..4 {
            session.call("web_search_exa", search());
            let call = json!({"name": "web_search_exa", "arguments": search()});
            let response = server.send_stateless(&[("authorization", &ann)], "tools/call", call);
            assert_eq!(response.status, 200);
            expected += 2;
        }
        signal(server.process_id(), "KILL");
        server.wait();
        let server = HttpServer::sandboxed(&variables);
        let usage = server.get("/mcp/usage", &[("authorization", &ann)]).json();
        assert_eq!(usage["usageCount"], expected, "{usage}");
        let other = server.get("/mcp/usage", &[("authorization", &bob)]).json();
        assert_eq!(other["usageCount"], 0);
    }
}

#[test]
fn calls_are_counted_by_outcome() {
    let server = HttpServer::sandboxed(&[("MCP_AUTH_TOKEN", "admin-secret")]);
    let headers = [("authorization", "Bearer admin-secret")];
    let mut session = HttpSession::new(&server, &headers);
    session.call("web_search_exa", search());
    session.call("web_search_exa", search());
    session.call("web_search_exa", json!({}));
    session.request("tools/call", json!({"name": "no_such_tool"}));
    session.request("tools/call", json!({"name": 5}));
    session.request("no/such", json!({}));
    session.request("prompts/get", json!({"name": "nothing"}));
    let call = json!({"name": "no_such_tool", "arguments": {}});
    server.send_stateless(&headers, "tools/call", call);
    let usage = server.get("/mcp/usage", &headers).json();
    assert_eq!(usage["usageCount"], 9);
    let details = &usage["details"];
    assert_eq!(details["tool:web_search_exa"], 3, "{usage}");
    assert_eq!(details["operation:search"], 2, "{usage}");
    assert_eq!(details["cacheHits"], 1, "{usage}");
    assert_eq!(details["errors"], 6, "{usage}");
    assert!(
        details["tokens"].as_u64().is_some_and(|tokens| tokens > 0),
        "{usage}"
    );
    assert!(
        details["microdollars"]
            .as_u64()
            .is_some_and(|cost| cost > 0),
        "{usage}"
    );
    assert!(details.get("tool:no_such_tool").is_none(), "{usage}");
}

#[test]
fn no_usage_without_tokens() {
    let server = HttpServer::sandboxed(&[]);
    for path in ["/mcp/usage", "/admin/tokens"] {
        let response = server.get(path, &[("authorization", "Bearer anything")]);
        assert_eq!(response.status, 404, "{path}");
    }
}

#[test]
fn shutdown_finishes_calls_and_closes_streams() {
    let sandbox = Sandbox::start();
    sandbox.fault("search", "delay=3000");
    let mut server = HttpServer::with_upstream(&sandbox.url(), &[]);
    let key = [("x-api-key", "a-key-of-mine")];
    let session = HttpSession::new(&server, &key);
    let mut headers = session.headers();
    headers.push(("accept", "text/event-stream"));
    let mut standing = server.events("GET", "/mcp", &headers, b"");
    let mut oldest = server.events("GET", "/sse", &[key[0]], b"");
    let call = json!({"name": "web_search_exa", "arguments": search()});
    let body = request(7, "tools/call", call).to_string();
    let mut stream = server.connect();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\nx-api-key: a-key-of-mine\r\nmcp-session-id: {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        session.id,
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("the server reads");
    // The call is running once Exa has received the request.
    sandbox.await_requests("search", 1);
    signal(server.process_id(), "TERM");
    while standing.line().is_some() {}
    while oldest.line().is_some() {}
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("a response");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        answer.contains("\"id\":7") && answer.contains("\"isError\":false"),
        "{answer}"
    );
    assert_eq!(server.wait(), Some(0));
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[test]
fn slow_call_does_not_delay_shutdown() {
    let sandbox = Sandbox::start();
    sandbox.fault("search", "delay=60000");
    let mut server = HttpServer::with_upstream(&sandbox.url(), &[("EXA_MCP_DRAIN_TIMEOUT", "1")]);
    let session = HttpSession::new(&server, &[("x-api-key", "a-key-of-mine")]);
    let mut headers = session.headers();
    headers.extend([super::ACCEPT_EVENTS, ("content-type", "application/json")]);
    let call = json!({"name": "web_search_exa", "arguments": search()});
    let body = request(7, "tools/call", call).to_string();
    let mut events = server.events("POST", "/mcp", &headers, body.as_bytes());
    signal(server.process_id(), "INT");
    while events.line().is_some() {}
    assert_eq!(server.wait(), Some(0));
}

/// Queries the store of a stopped server.
fn rows(store: &std::path::Path, sql: &str) -> Vec<String> {
    let file = rusqlite::Connection::open(store).expect("a store");
    let mut statement = file.prepare(sql).expect("SQL");
    let rows = statement.query_map([], |row| row.get(0)).expect("rows");
    rows.map(|row| row.expect("a string")).collect()
}

#[test]
fn daily_usage_expires_but_totals_remain() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = format!("sqlite:{}", path.display());
    let start = |days: &str| {
        let variables = [
            ("MCP_AUTH_TOKEN", "a"),
            ("EXA_MCP_STORE", store.as_str()),
            ("EXA_MCP_USAGE_DAYS", days),
        ];
        HttpServer::sandboxed(&variables)
    };
    let admin = bearer("a");
    let headers = [("authorization", admin.as_str())];
    let mut server = start("10");
    HttpSession::new(&server, &headers).call("web_search_exa", search());
    let days = server.get("/admin/usage?days=99", &headers).json();
    assert_eq!(
        days["days"].as_array().map(Vec::len),
        Some(10),
        "no more than the retention period"
    );
    signal(server.process_id(), "TERM");
    server.wait();

    let old = "INSERT INTO counters
        WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 2000)
        SELECT 'day:' || date('now', '-' || (n + 20) || ' days'), 'requests', n FROM n";
    let file = rusqlite::Connection::open(&path).expect("a store");
    file.execute(old, []).expect("old days");
    drop(file);
    let mut server = start("30");
    let left = "SELECT DISTINCT subject FROM counters WHERE subject LIKE 'day:%' ORDER BY subject";
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    // 21 to 29 days ago, and today.
    while rows(&path, left).len() > 10 {
        assert!(
            std::time::Instant::now() < deadline,
            "{}",
            rows(&path, left).len()
        );
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(rows(&path, left).len(), 10);
    let usage = server.get("/mcp/usage", &headers).json();
    assert_eq!(usage["usageCount"], 2, "{usage}");
    assert!(
        usage["usage"]["dollarsThisMonth"].as_f64() > Some(0.0),
        "{usage}"
    );
    signal(server.process_id(), "TERM");
    server.wait();
}
