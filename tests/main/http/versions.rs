//! All protocol versions on one endpoint.

use std::io::Write;

use serde_json::{Value, json};

use super::{ACCEPT_EVENTS, request, search};
use crate::support::{DEFAULT_VERSION, HttpServer, HttpSession, STATELESS_VERSION, initialize};

const SESSION_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

#[test]
fn legacy_versions_have_sessions() {
    let server = HttpServer::sandboxed(&[]);
    for version in SESSION_VERSIONS {
        let mut session = server.session(version, &[]);
        assert_eq!(
            session.initialize_result["serverInfo"]["name"],
            "exa-mcp-server"
        );
        let tasks = session.initialize_result["capabilities"]
            .get("tasks")
            .is_some();
        assert_eq!(tasks, version == DEFAULT_VERSION, "{version}");
        let extensions = session.initialize_result["capabilities"].get("extensions");
        let skills = json!({"io.modelcontextprotocol/skills": {"directoryRead": true}});
        let expected = (version >= "2025-06-18").then_some(&skills);
        assert_eq!(extensions, expected, "{version}");
        let tools = session.request("tools/list", json!({}));
        let tool = &tools["result"]["tools"][0];
        assert!(
            tools["result"].get("ttlMs").is_none() && tools["result"].get("resultType").is_none()
        );
        assert_eq!(
            tool.get("annotations").is_some(),
            version >= "2025-03-26",
            "{version}"
        );
        let result = session.call("web_search_exa", search());
        assert_eq!(result["isError"], false, "{version}");
        let structured = result.get("structuredContent").is_some();
        assert_eq!(structured, version >= "2025-06-18", "{version}");
    }
}

#[test]
fn stateless_version_needs_no_session() {
    let server = HttpServer::sandboxed(&[]);
    let discovered = server.send_stateless(&[], "server/discover", json!({}));
    assert_eq!(discovered.status, 200);
    assert_eq!(discovered.header("mcp-session-id"), None);
    let versions = discovered.json()["result"]["supportedVersions"].to_string();
    assert!(
        versions.contains(STATELESS_VERSION) && versions.contains(DEFAULT_VERSION),
        "{versions}"
    );
    let tools = server
        .send_stateless(&[ACCEPT_EVENTS], "tools/list", json!({}))
        .json();
    assert!(tools["result"]["ttlMs"].is_u64(), "{tools}");
    let call = json!({"name": "web_search_exa", "arguments": search()});
    let response = server.send_stateless(&[ACCEPT_EVENTS], "tools/call", call);
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(response.json()["result"]["isError"], false);
    // A stray session id is ignored.
    let response =
        server.send_stateless(&[("mcp-session-id", "nonsense")], "tools/list", json!({}));
    assert_eq!(response.status, 200);
    // Removed methods and unknown methods are not found.
    for method in ["ping", "logging/setLevel", "tasks/list", "no/such"] {
        let response = server.send_stateless(&[], method, json!({"level": "info"}));
        assert_eq!(response.status, 404, "{method}");
        assert_eq!(response.json()["error"]["code"], -32601, "{method}");
    }
    // Their parameters are not validated.
    for method in ["initialize", "logging/setLevel", "resources/subscribe"] {
        let response = server.send_stateless(&[], method, json!({}));
        assert_eq!(response.status, 404, "{method}");
        assert_eq!(response.json()["error"]["code"], -32601, "{method}");
    }
    // Headers and body must agree.
    let body = request(1, "tools/list", crate::support::stateless_params(json!({})));
    let headers = [
        ("mcp-protocol-version", STATELESS_VERSION),
        ("mcp-method", "tools/call"),
    ];
    let response = server.post(&headers, &body);
    assert_eq!(
        (response.status, response.json()["error"]["code"].as_i64()),
        (400, Some(-32020))
    );
}

#[test]
fn serves_both_protocol_generations_concurrently() {
    let server = HttpServer::sandboxed(&[]);
    let mut session = HttpSession::new(&server, &[]);
    for _ in 0..5 {
        assert_eq!(
            server.send_stateless(&[], "tools/list", json!({})).status,
            200
        );
        session.request("tools/list", json!({}));
    }
}

#[test]
fn accept_header_selects_stream_or_json() {
    let server = HttpServer::sandboxed(&[]);
    let session = HttpSession::new(&server, &[]);
    let mut headers = session.headers();
    headers.push(ACCEPT_EVENTS);
    let call =
        json!({"name": "web_search_exa", "arguments": search(), "_meta": {"progressToken": "p"}});
    let response = server.post(&headers, &request(7, "tools/call", call.clone()));
    let events = response.events();
    assert_eq!(
        events.last().map(|event| event["id"].clone()),
        Some(json!(7))
    );
    for accept in ["application/json", "*/*", "application/*;q=0.8"] {
        let mut headers = session.headers();
        headers.push(("accept", accept));
        let response = server.post(&headers, &request(8, "tools/call", call.clone()));
        assert_eq!(
            response.header("content-type"),
            Some("application/json"),
            "{accept}"
        );
        assert_eq!(response.json()["id"], 8);
    }
    let mut headers = session.headers();
    headers.push(("accept", "text/html"));
    let response = server.post(&headers, &request(9, "ping", json!({})));
    assert_eq!(
        (response.status, response.json()["error"]["code"].as_i64()),
        (406, Some(-32600))
    );
}

#[test]
fn session_stream_carries_change_notifications() {
    let server = HttpServer::sandboxed(&[]);
    let mut session = HttpSession::new(&server, &[]);
    let mut headers = session.headers();
    headers.push(("accept", "text/event-stream"));
    let mut events = server.events("GET", "/mcp", &headers, b"");
    assert_eq!(events.head.status, 200);
    assert_eq!(
        events.head.header("content-type"),
        Some("text/event-stream")
    );
    session.request("resources/list", json!({}));
    session.call("web_search_exa", search());
    let notification = events.message();
    assert_eq!(
        notification["method"],
        "notifications/resources/list_changed"
    );
}

#[test]
fn idle_stream_sends_keep_alives() {
    let server = HttpServer::sandboxed(&[("EXA_MCP_KEEP_ALIVE", "1")]);
    let session = HttpSession::new(&server, &[]);
    let mut headers = session.headers();
    headers.push(("accept", "text/event-stream"));
    for path in ["/mcp", "/sse"] {
        let mut events = server.events("GET", path, &headers, b"");
        loop {
            let line = events.line().expect("a line");
            if line.starts_with(':') {
                break;
            }
        }
    }
}

#[test]
fn quick_results_are_sent_whole_and_slow_ones_streamed() {
    let sandbox = crate::support::Sandbox::start();
    let server = HttpServer::with_upstream(&sandbox.url(), &[("EXA_MCP_KEEP_ALIVE", "1")]);
    let session = HttpSession::new(&server, &[("x-api-key", "some-key-of-mine")]);
    let mut headers = session.headers();
    headers.push(ACCEPT_EVENTS);
    let quick = server.post(&headers, &request(7, "ping", json!({})));
    assert!(quick.header("content-length").is_some());
    assert_eq!(quick.header("content-type"), Some("text/event-stream"));
    assert_eq!(quick.events().last().unwrap()["id"], 7);
    sandbox.fault("search", "delay=2500");
    let call = json!({"name": "web_search_exa", "arguments": search()});
    let body = request(8, "tools/call", call).to_string();
    headers.push(("content-type", "application/json"));
    let mut slow = server.events("POST", "/mcp", &headers, body.as_bytes());
    assert_eq!(slow.head.header("content-length"), None);
    assert_eq!(slow.head.header("content-type"), Some("text/event-stream"));
    let mut lines = std::iter::from_fn(|| slow.line());
    assert!(lines.any(|line| line.starts_with(':')));
    assert_eq!(slow.message()["id"], 8);
}

#[test]
fn call_can_be_cancelled() {
    let sandbox = crate::support::Sandbox::start();
    sandbox.fault("search", "delay=60000");
    let server = HttpServer::with_upstream(&sandbox.url(), &[]);
    let session = HttpSession::new(&server, &[("x-api-key", "some-key-of-mine")]);
    let mut headers = session.headers();
    headers.extend([ACCEPT_EVENTS, ("content-type", "application/json")]);
    let call = json!({"name": "web_search_exa", "arguments": search()});
    let body = request(7, "tools/call", call).to_string();
    let mut events = server.events("POST", "/mcp", &headers, body.as_bytes());
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    assert_eq!(session.post(&cancel).status, 202);
    let mut rest = Vec::new();
    while let Some((_, data)) = events.next() {
        rest.push(data);
    }
    assert!(
        rest.iter().all(|data| !data.contains("\"result\"")),
        "{rest:?}"
    );
}

#[test]
fn interrupted_stream_can_be_resumed() {
    let sandbox = crate::support::Sandbox::start();
    sandbox.fault("search", "delay=1000");
    let server = HttpServer::with_upstream(&sandbox.url(), &[]);
    let key = ("x-api-key", "some-key-of-mine");
    let session = HttpSession::new(&server, &[key]);
    let mut headers = session.headers();
    headers.extend([ACCEPT_EVENTS, ("content-type", "application/json")]);
    let call = json!({"name": "web_search_exa", "arguments": search()});
    let body = request(7, "tools/call", call).to_string();
    let mut events = server.events("POST", "/mcp", &headers, body.as_bytes());
    let last = loop {
        let line = events.line().expect("an event");
        if let Some(id) = line.strip_prefix("id:") {
            break id.trim().to_owned();
        }
    };
    // The client loses the connection while the call runs.
    drop(events);
    let mut headers = session.headers();
    headers.extend([ACCEPT_EVENTS, ("last-event-id", last.as_str())]);
    let answer = server.events("GET", "/mcp", &headers, b"").message();
    assert_eq!(answer["id"], 7, "{answer}");
    assert_eq!(answer["result"]["isError"], false, "{answer}");
}

/// Starts a slow call, and returns the lines before its response.
fn start_slow_call(server: &HttpServer, session: &HttpSession) -> Vec<String> {
    let mut headers = session.headers();
    headers.extend([ACCEPT_EVENTS, ("content-type", "application/json")]);
    let call = json!({"name": "web_search_exa", "arguments": search()});
    let body = request(7, "tools/call", call).to_string();
    let mut events = server.events("POST", "/mcp", &headers, body.as_bytes());
    let mut lines = Vec::new();
    while let Some(line) = events.line().filter(|line| !line.is_empty()) {
        lines.push(line);
    }
    lines
}

#[test]
fn result_is_replayed_after_reconnect() {
    for version in ["2025-06-18", "2025-11-25"] {
        let sandbox = crate::support::Sandbox::start();
        sandbox.fault("search", "delay=500");
        let server = HttpServer::with_upstream(&sandbox.url(), &[]);
        let session = server.session(version, &[("x-api-key", "some-key-of-mine")]);
        let lines = start_slow_call(&server, &session);
        let last = lines.iter().find_map(|line| line.strip_prefix("id: "));
        let resume = |last: &str| {
            let mut headers = session.headers();
            headers.extend([ACCEPT_EVENTS, ("last-event-id", last)]);
            server.get("/mcp", &headers)
        };
        std::thread::sleep(std::time::Duration::from_millis(1500));
        for _ in 0..2 {
            let response = resume(last.expect("an id"));
            let messages = response.events();
            let [answer] = messages.as_slice() else {
                panic!("{messages:?}")
            };
            assert_eq!(answer["id"], 7, "{answer}");
            assert_eq!(answer["result"]["isError"], false, "{answer}");
        }
    }
}

#[test]
fn standalone_messages_arrive_after_every_reconnect() {
    let variables = [
        ("ENABLED_TOOLS", "default,notes"),
        ("EXA_MCP_KEEP_ALIVE", "1"),
    ];
    let server = HttpServer::sandboxed(&variables);
    let mut session = HttpSession::new(&server, &[]);
    // Only clients that have listed resources are notified of changes.
    session.request("resources/list", json!({}));
    let mut last: Option<String> = None;
    for number in 0..3 {
        let own = session.headers();
        let own: Vec<(String, String)> = own
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let mut headers: Vec<(&str, &str)> = own
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        headers.push(("accept", "text/event-stream"));
        if let Some(last) = &last {
            headers.push(("last-event-id", last));
        }
        let mut standing = server.events("GET", "/mcp", &headers, b"");
        let note = json!({"title": format!("note {number}"), "content": "c"});
        session.call("create_note", note);
        let mut id = None;
        loop {
            let line = standing.line().expect("news");
            id = line
                .strip_prefix("id:")
                .map(|id| id.trim().to_owned())
                .or(id);
            if line.contains("list_changed") {
                break;
            }
        }
        last = id;
        drop(standing);
        // The server notices when it next sends something.
        std::thread::sleep(std::time::Duration::from_millis(2_500));
    }
}

#[test]
fn empty_events_only_go_to_clients_that_support_them() {
    for (version, knows) in [
        ("2025-03-26", false),
        ("2025-06-18", false),
        ("2025-11-25", true),
    ] {
        let sandbox = crate::support::Sandbox::start();
        sandbox.fault("search", "delay=200");
        let server = HttpServer::with_upstream(&sandbox.url(), &[("EXA_MCP_KEEP_ALIVE", "1")]);
        let session = server.session(version, &[("x-api-key", "some-key-of-mine")]);
        let lines = start_slow_call(&server, &session);
        assert!(
            lines.iter().any(|line| line.starts_with("id: ")),
            "{lines:?}"
        );
        let empty = |line: &String| line.trim_end() == "data:";
        assert_eq!(lines.iter().any(empty), knows, "{version}: {lines:?}");
        let mut headers = session.headers();
        headers.push(("accept", "text/event-stream"));
        let mut standing = server.events("GET", "/mcp", &headers, b"");
        let mut lines = Vec::new();
        while !lines
            .last()
            .is_some_and(|line: &String| line.starts_with(':'))
        {
            lines.push(standing.line().expect("a line"));
        }
        assert_eq!(lines.iter().any(empty), knows, "{version}: {lines:?}");
        let initialize_text = server.post(&[ACCEPT_EVENTS], &initialize(version)).text();
        assert!(
            !initialize_text.contains("data:\n") && !initialize_text.contains("data: \n"),
            "{initialize_text}"
        );
    }
}

#[test]
fn batches_are_accepted_by_one_version_only() {
    let server = HttpServer::sandboxed(&[]);
    let batch = json!([
        request(1, "ping", json!({})),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        request(2, "tools/call", json!({"name": "web_search_exa", "arguments": search()})),
        request(3, "tools/call", json!({"name": 5})),
        7,
    ]);
    let session = server.session("2025-03-26", &[]);
    let response = session.post(&batch);
    assert_eq!(response.status, 200);
    let answers = response.json();
    let answers: Vec<(Value, Value)> = answers
        .as_array()
        .expect("an array")
        .iter()
        .map(|answer| (answer["id"].clone(), answer["error"]["code"].clone()))
        .collect();
    let none = Value::Null;
    let expected = [
        (json!(1), none.clone()),
        (json!(2), none.clone()),
        (json!(3), json!(-32602)),
        (none.clone(), json!(-32600)),
    ];
    assert_eq!(answers, expected);
    let notes = json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]);
    assert_eq!(session.post(&notes).status, 202);
    for bad in [
        json!([]),
        json!([initialize("2025-03-26")]),
        json!(vec![request(1, "ping", json!({})); 101]),
    ] {
        assert_eq!(session.post(&bad).status, 400);
    }
    for version in ["2025-06-18", "2025-11-25"] {
        let response = server.session(version, &[]).post(&batch);
        assert_eq!(
            (response.status, response.json()["error"]["code"].as_i64()),
            (400, Some(-32600))
        );
    }
    assert_eq!(server.post(&[], &batch).status, 400);
}

/// The protocol forbids duplicate ids, but every request still gets a response.
#[test]
fn requests_with_equal_ids_all_get_responses() {
    let server = HttpServer::sandboxed(&[]);
    let session = server.session("2025-03-26", &[]);
    let find = json!({"name": "web_search_exa", "arguments": search()});
    for id in [json!(5), json!("five")] {
        let same = |method: &str, params: Value| {
            let mut same = request(1, method, params);
            same["id"] = id.clone();
            same
        };
        let batch = json!([
            same("ping", json!({})),
            same("tools/call", find.clone()),
            request(6, "ping", json!({})),
            same("tools/call", json!({"name": "nobody"})),
            same("ping", json!({})),
        ]);
        for _ in 0..3 {
            let response = session.post(&batch);
            assert_eq!(response.status, 200, "{}", response.text());
            let answers = response.json();
            let answers = answers.as_array().expect("an array");
            let own = answers.iter().filter(|answer| answer["id"] == id);
            let own: Vec<&Value> = own.collect();
            assert_eq!((answers.len(), own.len()), (5, 4), "{answers:?}");
            assert_eq!(own[0]["result"], json!({}));
            assert_eq!(own[1]["result"]["isError"], false, "{own:?}");
            assert_eq!(own[2]["error"]["code"], -32602, "{own:?}");
            assert_eq!(own[3]["result"], json!({}));
        }
    }
    // The same in separate concurrent requests.
    let session = HttpSession::new(&server, &[]);
    let call = request(5, "tools/call", find);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let answer = session.post(&call).json();
                assert_eq!(answer["id"], 5);
                assert_eq!(answer["result"]["isError"], false, "{answer}");
            });
        }
    });
}

#[test]
fn connection_is_reused() {
    let server = HttpServer::sandboxed(&[]);
    let mut stream = server.connect();
    for _ in 0..3 {
        let request = format!("GET /health HTTP/1.1\r\nhost: {}\r\n\r\n", server.address);
        stream
            .write_all(request.as_bytes())
            .expect("the server reads");
        let mut answer = [0; 12];
        std::io::Read::read_exact(&mut stream, &mut answer).expect("a response");
        assert_eq!(&answer, b"HTTP/1.1 200");
        let mut rest = Vec::new();
        let mut byte = [0];
        while !rest.ends_with(b"}") {
            std::io::Read::read_exact(&mut stream, &mut byte).expect("the rest");
            rest.push(byte[0]);
        }
    }
}
