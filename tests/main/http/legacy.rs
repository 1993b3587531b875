//! The HTTP+SSE transport of 2024-11-05.

use std::time::Duration;

use serde_json::{Value, json};

use super::{bearer, request, search};
use crate::support::{Events, HttpServer, HttpSession, Recorder, Response, eventually, initialize};

const STREAM: (&str, &str) = ("accept", "text/event-stream");

/// Opens a stream and returns the endpoint for messages.
fn open(server: &HttpServer, path: &str, headers: &[(&str, &str)]) -> (Events, String) {
    let mut all = vec![STREAM];
    all.extend_from_slice(headers);
    let mut events = server.events("GET", path, &all, b"");
    assert_eq!(events.head.status, 200);
    assert_eq!(
        events.head.header("content-type"),
        Some("text/event-stream")
    );
    let (name, endpoint) = events.next().expect("an endpoint");
    assert_eq!(name, "endpoint");
    assert!(endpoint.starts_with("/messages?sessionId="), "{endpoint}");
    (events, endpoint)
}

fn wait_for_response(events: &mut Events, id: u64) -> Value {
    loop {
        let message = events.message();
        if message["id"] == id && message.get("method").is_none() {
            return message;
        }
    }
}

#[test]
fn serves_http_sse_clients() {
    let server = HttpServer::sandboxed(&[("USER_TOKENS", "a-token:ann,b-token:bob")]);
    let ann = bearer("a-token");
    let headers = [("authorization", ann.as_str())];
    let (mut events, endpoint) = open(&server, "/sse", &headers);
    let post = |message: &Value| server.post_to(&endpoint, &headers, message);
    assert_eq!(post(&initialize("2024-11-05")).status, 202);
    let initialize_message = wait_for_response(&mut events, 1);
    assert_eq!(
        initialize_message["result"]["protocolVersion"],
        "2024-11-05"
    );
    assert_eq!(
        post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).status,
        202
    );
    // Line breaks in a message must not break the event.
    let call = json!({"name": "web_search_exa", "arguments": search()});
    let pretty = serde_json::to_string_pretty(&request(2, "tools/call", call)).expect("JSON");
    let json = [
        ("authorization", ann.as_str()),
        ("content-type", "application/json"),
    ];
    assert_eq!(
        server
            .send("POST", &endpoint, &json, pretty.as_bytes())
            .status,
        202
    );
    let called = wait_for_response(&mut events, 2);
    assert_eq!(called["result"]["isError"], false, "{called}");
    let bad = server.send("POST", &endpoint, &json, b"{");
    assert_eq!(
        (bad.status, bad.json()["error"]["code"].clone()),
        (400, json!(-32700))
    );
    let usage = server.get("/mcp/usage", &headers).json();
    assert_eq!(usage["usageCount"], 2);
    assert_eq!(usage["details"]["tool:web_search_exa"], 1);
}

#[test]
fn only_the_owner_posts_to_a_connection() {
    let server = HttpServer::sandboxed(&[("USER_TOKENS", "a-token:ann,b-token:bob")]);
    let (ann, bob) = (bearer("a-token"), bearer("b-token"));
    let (_events, endpoint) = open(&server, "/sse", &[("authorization", &ann)]);
    let initialize_message = initialize("2024-11-05");
    assert_eq!(
        server
            .post_to(&endpoint, &[("authorization", &bob)], &initialize_message)
            .status,
        404
    );
    assert_eq!(
        server.post_to(&endpoint, &[], &initialize_message).status,
        401
    );
    let own = [("authorization", ann.as_str())];
    for other in [
        "/messages",
        "/messages?sessionId=",
        "/messages?sessionId=nonsense",
    ] {
        assert_eq!(
            server.post_to(other, &own, &initialize_message).status,
            404,
            "{other}"
        );
    }
}

#[test]
fn every_post_needs_the_key_of_its_connection() {
    let exa = Recorder::always(Response::json(
        200,
        &json!({"results": [], "requestId": "r"}),
    ));
    let server = HttpServer::with_upstream(&exa.url(), &[]);
    for name in ["x-api-key", "x-exa-api-key", "authorization"] {
        let own = if name == "authorization" {
            bearer("the-key-of-ann")
        } else {
            "the-key-of-ann".to_owned()
        };
        let (mut events, endpoint) = open(&server, "/sse", &[(name, &own)]);
        let initialize_message = initialize("2024-11-05");
        let lost = server.post_to("/messages?sessionId=nonsense", &[], &initialize_message);
        assert_eq!(lost.status, 404);
        for others in [&[][..], &[(name, "another-key")], &[("x-api-key", " ")]] {
            let response = server.post_to(&endpoint, others, &initialize_message);
            assert_eq!(response.status, 404, "{name} {others:?}");
            // The response does not reveal whether the connection exists.
            assert_eq!(response.text(), lost.text());
        }
        let credentials = [(name, own.as_str())];
        assert_eq!(
            server
                .post_to(&endpoint, &credentials, &initialize_message)
                .status,
            202
        );
        wait_for_response(&mut events, 1);
        let call = request(
            2,
            "tools/call",
            json!({"name": "web_search_exa", "arguments": {"query": name}}),
        );
        assert_eq!(server.post_to(&endpoint, &[], &call).status, 404);
        assert_eq!(exa.take().len(), 0, "the key was used up");
        assert_eq!(server.post_to(&endpoint, &credentials, &call).status, 202);
        wait_for_response(&mut events, 2);
        assert_eq!(exa.take().len(), 1);
    }
}

#[test]
fn key_in_url_is_repeated_in_the_post_url() {
    let allowed = [("EXA_MCP_ALLOW_KEY_IN_URL", "true")];
    let exa = Recorder::always(Response::json(
        200,
        &json!({"results": [], "requestId": "r"}),
    ));
    let server = HttpServer::with_upstream(&exa.url(), &allowed);
    let (mut events, endpoint) = open(&server, "/sse?exaApiKey=a%26key+of%3Dmine", &[]);
    let initialize_message = initialize("2024-11-05");
    assert_eq!(
        server.post_to(&endpoint, &[], &initialize_message).status,
        202
    );
    wait_for_response(&mut events, 1);
    let (without_key, _) = endpoint.split_once('&').expect("a key");
    assert_eq!(
        server.post_to(without_key, &[], &initialize_message).status,
        404
    );
    let header = [("x-api-key", "a&key of=mine")];
    let (_events, endpoint) = open(&server, "/sse", &header);
    assert!(!endpoint.contains("mine"), "{endpoint}");
}

#[test]
fn session_post_needs_its_key() {
    let exa = Recorder::always(Response::json(
        200,
        &json!({"results": [], "requestId": "r"}),
    ));
    let server = HttpServer::with_upstream(&exa.url(), &[]);
    let key = ("x-api-key", "the-key-of-ann");
    let session = HttpSession::new(&server, &[key]);
    let id = ("mcp-session-id", session.id.as_str());
    let params = json!({"name": "web_search_exa", "arguments": search()});
    let call = request(5, "tools/call", params);
    for others in [&[id][..], &[id, ("x-api-key", "another-key")]] {
        assert_eq!(server.post(others, &call).status, 404, "{others:?}");
        assert_eq!(server.send("DELETE", "/mcp", others, b"").status, 404);
    }
    assert_eq!(exa.take().len(), 0);
    assert_eq!(server.post(&[id, key], &call).status, 200);
    assert_eq!(exa.take().len(), 1);
}

#[test]
fn connection_ends_with_its_stream() {
    let server = HttpServer::sandboxed(&[("EXA_MCP_KEEP_ALIVE", "1")]);
    let (events, endpoint) = open(&server, "/sse", &[]);
    let initialize_message = initialize("2024-11-05");
    assert_eq!(
        server.post_to(&endpoint, &[], &initialize_message).status,
        202
    );
    drop(events);
    while server.get("/health", &[]).json()["sessions"] != 0 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(
        server.post_to(&endpoint, &[], &initialize_message).status,
        404
    );
}

#[test]
fn tools_query_parameter_narrows_for_http_sse() {
    // This upstream is never called.
    let server = HttpServer::with_upstream("http://127.0.0.1:9", &[]);
    let (mut events, endpoint) = open(
        &server,
        "/sse?tools=web_fetch_exa",
        &[("x-api-key", "a-key-of-mine")],
    );
    let own = [("x-api-key", "a-key-of-mine")];
    let initialize_message = server.post_to(&endpoint, &own, &initialize("2024-11-05"));
    assert_eq!(initialize_message.status, 202);
    wait_for_response(&mut events, 1);
    server.post_to(&endpoint, &own, &request(2, "tools/list", json!({})));
    let tools = wait_for_response(&mut events, 2)["result"]["tools"].clone();
    assert_eq!(tools.as_array().map(Vec::len), Some(1));
    let other = [("x-api-key", "another-key")];
    assert_eq!(
        server
            .post_to(&endpoint, &other, &request(3, "ping", json!({})))
            .status,
        404
    );
}

/// Returns an initialized connection.
fn connection(server: &HttpServer, version: &str) -> (Events, String) {
    let (mut events, endpoint) = open(server, "/sse", &[KEY]);
    let initialize_message = server.post_to(&endpoint, &[KEY], &initialize(version));
    assert_eq!(initialize_message.status, 202);
    wait_for_response(&mut events, 1);
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(server.post_to(&endpoint, &[KEY], &ready).status, 202);
    (events, endpoint)
}

const KEY: (&str, &str) = ("x-api-key", "the-key-of-ann");

fn slow_upstream(pause: Duration) -> (Recorder, HttpServer) {
    let found = json!({"results": [], "requestId": "r"});
    let exa = Recorder::always(Response::slow_json(pause, &found));
    let server = HttpServer::with_upstream(&exa.url(), &[]);
    (exa, server)
}

fn call(id: u64) -> Value {
    let arguments = json!({"query": format!("question {id}")});
    let params = json!({"name": "web_search_exa", "arguments": arguments});
    request(id, "tools/call", params)
}

#[test]
fn cancelled_requests_free_their_slots() {
    let (_exa, server) = slow_upstream(Duration::from_secs(2));
    let (mut events, endpoint) = connection(&server, "2024-11-05");
    for id in 1000..1300 {
        let response = server.post_to(&endpoint, &[KEY], &call(id));
        assert_eq!(response.status, 202, "{id}: {}", response.text());
        let params = json!({"requestId": id});
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        assert_eq!(server.post_to(&endpoint, &[KEY], &cancel).status, 202);
    }
    let ping = request(2, "ping", json!({}));
    assert_eq!(server.post_to(&endpoint, &[KEY], &ping).status, 202);
    wait_for_response(&mut events, 2);
}

#[test]
fn finished_batches_free_their_slots() {
    let (_exa, server) = slow_upstream(Duration::ZERO);
    let (mut events, endpoint) = connection(&server, "2025-03-26");
    for number in 0..6 {
        let ids = (10 + number * 100)..(109 + number * 100);
        let batch: Vec<Value> = ids.map(|id| request(id, "ping", json!({}))).collect();
        let response = server.post_to(&endpoint, &[KEY], &Value::Array(batch));
        assert_eq!(response.status, 202, "{number}: {}", response.text());
        let bodies = events.message();
        assert_eq!(bodies.as_array().map(Vec::len), Some(99));
    }
    // A batch that is rejected as a whole gets one response, too.
    let (mut events, endpoint) = connection(&server, "2024-11-05");
    for _ in 0..6 {
        let batch: Vec<Value> = (0..99).map(|id| request(id, "ping", json!({}))).collect();
        let response = server.post_to(&endpoint, &[KEY], &Value::Array(batch));
        assert_eq!(response.status, 202, "{}", response.text());
        assert_eq!(events.message()["error"]["code"], -32600);
    }
}

#[test]
fn client_responses_take_no_slots() {
    let structured = json!({"answer": {"method": "x"}, "citations": [], "requestId": "r"});
    let exa = Recorder::always(Response::json(200, &structured));
    let server = HttpServer::with_upstream(&exa.url(), &[("ENABLED_TOOLS", "granular")]);
    let (mut events, endpoint) = connection(&server, "2025-06-18");
    for id in 1000..1300 {
        let arguments = json!({"query": "q", "outputSchema": {"type": "object"}});
        let params = json!({"name": "answer", "arguments": arguments});
        let response = server.post_to(&endpoint, &[KEY], &request(id, "tools/call", params));
        assert_eq!(response.status, 202, "{id}: {}", response.text());
        let body = wait_for_response(&mut events, id);
        assert!(body.to_string().contains("\"method\""), "{body}");
    }
}

#[test]
fn requests_per_connection_are_limited() {
    let (_exa, server) = slow_upstream(Duration::from_secs(120));
    let (mut events, endpoint) = connection(&server, "2024-11-05");
    let mut sent = 1000..2000;
    let full = sent.find(|id| server.post_to(&endpoint, &[KEY], &call(*id)).status == 429);
    let full = full.expect("the connection takes no more requests");
    assert!((1256..1600).contains(&full), "{full}");
    let cancel = |id: u64| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    for id in 1000..1010 {
        assert_eq!(server.post_to(&endpoint, &[KEY], &cancel(id)).status, 202);
    }
    let ping = request(2, "ping", json!({}));
    eventually("another connection is accepted", || {
        server.post_to(&endpoint, &[KEY], &ping).status == 202
    });
    wait_for_response(&mut events, 2);
}
