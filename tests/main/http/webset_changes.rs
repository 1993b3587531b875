//! Polling of subscribed websets for several clients, and its end.

use std::thread;
use std::time::Duration;

use serde_json::json;

use super::admin::{ADMIN, Admin};
use super::bearer;
use crate::support::{Events, HttpServer, HttpSession, Sandbox};

/// Longer than the interval of one second.
const SEVERAL_INTERVALS: Duration = Duration::from_millis(3_500);

fn start(sandbox: &Sandbox) -> HttpServer {
    let variables = [
        ("MCP_AUTH_TOKEN", ADMIN),
        ("USER_TOKENS", "a-token:ann:,b-token:bob:"),
        ("EXA_API_KEYS", "the-only-key-of-all"),
        ("EXA_MCP_WEBSET_POLL_INTERVAL", "1"),
    ];
    HttpServer::with_upstream(&sandbox.url(), &variables)
}

/// Starts a session that subscribes to a webset and listens.
fn subscriber<'a>(server: &'a HttpServer, token: &str, uri: &str) -> (HttpSession<'a>, Events) {
    let authorization = bearer(token);
    let mut session = HttpSession::new(server, &[("authorization", &authorization)]);
    let answer = session.request("resources/subscribe", json!({"uri": uri}));
    assert_eq!(answer["result"], json!({}), "{answer}");
    let mut headers = session.headers();
    headers.push(("accept", "text/event-stream"));
    let events = server.events("GET", "/mcp", &headers, b"");
    (session, events)
}

fn create(server: &HttpServer, token: &str, name: &str) -> String {
    let authorization = bearer(token);
    let mut session = HttpSession::new(server, &[("authorization", &authorization)]);
    let arguments = json!({"operation": "websets.create", "args": {"externalId": name}});
    let result = session.call("manage_websets", arguments);
    assert_eq!(result["isError"], false, "{result}");
    format!("exa://websets/{name}")
}

/// Returns the number of polls within some intervals of a second.
fn polls(sandbox: &Sandbox) -> usize {
    let before = sandbox.requests("websets.get").len();
    thread::sleep(SEVERAL_INTERVALS);
    sandbox.requests("websets.get").len() - before
}

#[test]
fn sessions_of_an_owner_share_polls() {
    let sandbox = Sandbox::start();
    let server = start(&sandbox);
    let uri = create(&server, "a-token", "a");
    let subscribers: Vec<_> = (0..10)
        .map(|_| subscriber(&server, "a-token", &uri))
        .collect();
    let one_owner = polls(&sandbox);
    assert!((2..=4).contains(&one_owner), "{one_owner}");
    let (other, _events) = subscriber(&server, "b-token", &uri);
    let two_owners = polls(&sandbox);
    assert!((5..=8).contains(&two_owners), "{two_owners}");
    for (session, events) in subscribers {
        drop(events);
        let response = server.send("DELETE", "/mcp", &session.headers(), b"");
        assert_eq!(response.status, 204);
    }
    let response = server.send("DELETE", "/mcp", &other.headers(), b"");
    assert_eq!(response.status, 204);
    thread::sleep(Duration::from_millis(1_200));
    assert_eq!(polls(&sandbox), 0);
}

#[test]
fn polling_stops_with_the_token() {
    let sandbox = Sandbox::start();
    let server = start(&sandbox);
    let admin = Admin(&server);
    let (token, id) = admin.create(&json!({"userId": "carl"}));
    let uri = create(&server, &token, "c");
    let _subscriber = subscriber(&server, &token, &uri);
    assert!(polls(&sandbox) > 0);
    admin.post(&id, "revoke", &json!({}));
    thread::sleep(Duration::from_millis(200));
    assert_eq!(polls(&sandbox), 0);
}
