//! Users cannot access each other's data.

use serde_json::{Value, json};

use super::{bearer, request, search};
use crate::support::{HttpServer, HttpSession};

const TOKENS: [(&str, &str); 2] = [
    ("USER_TOKENS", "a-token:ann,a2-token:ann,b-token:bob"),
    ("ENABLED_TOOLS", "default,notes"),
];

fn cache_id(result: &Value) -> String {
    let id = result["structuredContent"]["metadata"]["cacheId"].as_str();
    id.unwrap_or_else(|| panic!("no cache id in {result}"))
        .to_owned()
}

#[test]
fn foreign_session_is_not_found() {
    let server = HttpServer::sandboxed(&TOKENS);
    let (ann, bob) = (bearer("a-token"), bearer("b-token"));
    let session = HttpSession::new(&server, &[("authorization", &ann)]);
    let foreign = [
        ("authorization", bob.as_str()),
        ("mcp-session-id", &session.id),
    ];
    let ping = request(1, "ping", json!({}));
    let denied = server.post(&foreign, &ping);
    let unknown = server.post(&[("authorization", &bob), ("mcp-session-id", "x")], &ping);
    assert_eq!(
        (denied.status, denied.text()),
        (unknown.status, unknown.text())
    );
    assert_eq!(denied.status, 404);
    let mut stream = foreign.to_vec();
    stream.push(("accept", "text/event-stream"));
    assert_eq!(server.get("/mcp", &stream).status, 404);
    assert_eq!(server.send("DELETE", "/mcp", &foreign, b"").status, 404);
    assert_eq!(session.post(&ping).status, 200, "it is still there");
    // Another token of the same user gives access to the same data.
    let second = bearer("a2-token");
    let own = [
        ("authorization", second.as_str()),
        ("mcp-session-id", &session.id),
    ];
    assert_eq!(server.post(&own, &ping).status, 200);
}

#[test]
fn foreign_results_notes_and_tasks_are_not_found() {
    let server = HttpServer::sandboxed(&TOKENS);
    let (ann, bob) = (bearer("a-token"), bearer("b-token"));
    let mut ann = HttpSession::new(&server, &[("authorization", &ann)]);
    let mut bob = HttpSession::new(&server, &[("authorization", &bob)]);
    let id = cache_id(&ann.call("web_search_exa", search()));
    let again = json!({"cache_id": id});
    assert_eq!(ann.call("web_search_exa", again.clone())["isError"], false);
    assert_eq!(bob.call("web_search_exa", again)["isError"], true);
    let uri = format!("exa://results/{id}");
    assert!(
        ann.request("resources/read", json!({"uri": uri}))
            .get("result")
            .is_some()
    );
    assert!(
        bob.request("resources/read", json!({"uri": uri}))
            .get("error")
            .is_some()
    );
    assert!(
        !bob.request("resources/list", json!({}))
            .to_string()
            .contains(&id)
    );

    let note = ann.call("create_note", json!({"title": "mine", "content": "secret"}));
    let note = note["structuredContent"].to_string();
    let start = note.find("note:///").expect("the address of a note");
    let uri: String = note[start..]
        .chars()
        .take_while(|letter| *letter != '"')
        .collect();
    assert!(
        ann.request("resources/read", json!({"uri": uri}))
            .to_string()
            .contains("secret")
    );
    assert!(
        bob.request("resources/read", json!({"uri": uri}))
            .get("error")
            .is_some()
    );

    let start =
        json!({"operation": "websets.create", "args": {"search": {"query": "x", "count": 1}}});
    let call = json!({"name": "manage_websets", "arguments": start, "task": {}});
    let task = ann.request("tools/call", call);
    let id = task["result"]["task"]["taskId"]
        .as_str()
        .unwrap_or_else(|| panic!("{task}"))
        .to_owned();
    let same = json!({"taskId": id});
    assert!(
        ann.request("tasks/get", same.clone())
            .get("result")
            .is_some()
    );
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let response = bob.request(method, same.clone());
        assert_eq!(response["error"]["code"], -32602, "{method}: {response}");
    }
    assert!(
        !bob.request("tasks/list", json!({}))
            .to_string()
            .contains(&id)
    );
}

#[test]
fn passthrough_keys_own_their_state() {
    let server = HttpServer::sandboxed(&[]);
    let mut one = HttpSession::new(&server, &[("x-api-key", "first-key-of-all")]);
    let mut other = HttpSession::new(&server, &[("x-api-key", "second-key-of-all")]);
    let id = cache_id(&one.call("web_search_exa", search()));
    assert_eq!(
        other.call("web_search_exa", json!({"cache_id": id}))["isError"],
        true
    );
    // The same key in another session identifies the same user.
    let mut again = HttpSession::new(&server, &[("authorization", "Bearer first-key-of-all")]);
    assert_eq!(
        again.call("web_search_exa", json!({"cache_id": id}))["isError"],
        false
    );
    let foreign = [
        ("x-api-key", "second-key-of-all"),
        ("mcp-session-id", one.id.as_str()),
    ];
    assert_eq!(
        server.post(&foreign, &request(1, "ping", json!({}))).status,
        404
    );
}

#[test]
fn anonymous_sessions_are_isolated() {
    let server = HttpServer::with_upstream("http://127.0.0.1:1", &[("ENABLED_TOOLS", "notes")]);
    let mut one = HttpSession::new(&server, &[]);
    let mut other = HttpSession::new(&server, &[]);
    one.call("create_note", json!({"title": "mine", "content": "secret"}));
    assert!(
        one.request("resources/list", json!({}))
            .to_string()
            .contains("note:///")
    );
    assert!(
        !other
            .request("resources/list", json!({}))
            .to_string()
            .contains("note:///")
    );
    let with_key = [
        ("x-api-key", "some-key-of-mine"),
        ("mcp-session-id", one.id.as_str()),
    ];
    assert_eq!(
        server
            .post(&with_key, &request(1, "ping", json!({})))
            .status,
        404
    );
}
