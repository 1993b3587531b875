//! JSON-RPC errors and HTTP status codes.

use serde_json::{Value, json};

use super::request;
use crate::support::{DEFAULT_VERSION, HttpServer, HttpSession, initialize};

const JSON: (&str, &str) = ("content-type", "application/json");

#[test]
fn non_message_body_gets_a_json_error() {
    let server = HttpServer::sandboxed(&[]);
    for (body, code) in [
        ("{", -32700),
        ("", -32700),
        ("not json", -32700),
        ("\"text\"", -32600),
        ("{\"id\":1}", -32600),
        ("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", -32600),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":18446744073709551615,\"method\":\"ping\"}",
            -32600,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
            -32600,
        ),
    ] {
        let response = server.send("POST", "/mcp", &[JSON], body.as_bytes());
        assert_eq!(response.status, 400, "{body}");
        assert_eq!(
            response.header("content-type"),
            Some("application/json"),
            "{body}"
        );
        let answer = response.json();
        assert_eq!(answer["jsonrpc"], "2.0", "{body}");
        assert_eq!(answer["error"]["code"], code, "{body}");
        assert!(answer.get("id").is_some(), "{body}");
    }
}

#[test]
fn distinguishes_invalid_params_from_unknown_method() {
    let server = HttpServer::sandboxed(&[]);
    let mut session = HttpSession::new(&server, &[]);
    for (method, params, code) in [
        ("tools/call", json!({"name": 5}), -32602),
        (
            "tools/call",
            json!({"name": "web_search_exa", "arguments": []}),
            -32602,
        ),
        ("tools/call", json!({"name": "no_such_tool"}), -32602),
        ("resources/read", json!({}), -32602),
        ("tools/list", json!({"cursor": 5}), -32602),
        ("prompts/get", json!({"name": "nothing"}), -32602),
        ("no/such", json!({}), -32601),
        (
            "exa-mcp-server/unknown-to-rmcp/tools/list",
            json!({}),
            -32601,
        ),
    ] {
        let answer = session.request(method, params);
        assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
    }
    // Some clients send lone surrogates, and integers written as fractions.
    let lenient = r#"{"jsonrpc":"2.0","id":7.0,"method":"tools/call","params":{"name":"web_search_exa","arguments":{"query":"a \ud83d b"}}}"#;
    let mut headers = session.headers();
    headers.push(JSON);
    let response = server.send("POST", "/mcp", &headers, lenient.as_bytes());
    assert_eq!(
        response.json()["result"]["isError"],
        false,
        "{}",
        response.text()
    );
    assert_eq!(response.json()["id"], 7);
}

#[test]
fn session_is_required_and_must_exist() {
    let server = HttpServer::sandboxed(&[]);
    let ping = request(3, "ping", json!({}));
    let response = server.post(&[], &ping);
    assert_eq!(
        (response.status, response.json()["id"].clone()),
        (400, json!(3))
    );
    for id in ["nonsense", "", &"x".repeat(1000)] {
        let response = server.post(&[("mcp-session-id", id)], &ping);
        assert_eq!(response.status, 404, "{id}");
        assert_eq!(response.json()["error"]["message"], "Session not found");
        assert_eq!(
            server
                .get(
                    "/mcp",
                    &[("mcp-session-id", id), ("accept", "text/event-stream")]
                )
                .status,
            404
        );
        assert_eq!(
            server
                .send("DELETE", "/mcp", &[("mcp-session-id", id)], b"")
                .status,
            404
        );
    }
    let mut session = HttpSession::new(&server, &[]);
    let again = session.post(&initialize(DEFAULT_VERSION));
    assert_eq!(
        (again.status, again.json()["error"]["code"].clone()),
        (400, json!(-32600))
    );
    session.request("ping", json!({}));
    let unknown = [
        ("mcp-session-id", session.id.as_str()),
        ("mcp-protocol-version", "1999-01-01"),
    ];
    let response = server.post(&unknown, &ping);
    assert_eq!(
        (response.status, response.json()["error"]["code"].clone()),
        (400, json!(-32600))
    );
}

#[test]
fn path_method_and_content_type_are_checked() {
    let server = HttpServer::sandboxed(&[]);
    assert_eq!(server.get("/nowhere", &[]).status, 404);
    assert_eq!(server.get("/nowhere", &[]).text(), "Not found");
    assert_eq!(server.send("PUT", "/mcp", &[], b"").status, 405);
    assert_eq!(
        server.send("PUT", "/mcp", &[], b"").header("allow"),
        Some("GET, POST, DELETE")
    );
    assert_eq!(server.send("POST", "/health", &[], b"").status, 405);
    let session = HttpSession::new(&server, &[]);
    let mut headers = session.headers();
    headers.push(("content-type", "text/plain"));
    let body = request(1, "ping", json!({})).to_string();
    let response = server.send("POST", "/mcp", &headers, body.as_bytes());
    assert_eq!(
        (response.status, response.json()["error"]["code"].clone()),
        (415, json!(-32600))
    );
    let response = server.get("/mcp", &session.headers());
    assert_eq!(
        (response.status, response.json()["id"].clone()),
        (406, Value::Null)
    );
}

#[test]
fn responses_carry_security_headers() {
    let server = HttpServer::sandboxed(&[]);
    for path in ["/", "/health", "/mcp", "/nowhere", "/admin/tokens"] {
        let response = server.get(path, &[]);
        assert_eq!(
            response.header("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
        assert_eq!(response.header("x-frame-options"), Some("DENY"), "{path}");
        assert_eq!(response.header("cache-control"), Some("no-store"), "{path}");
        let policy = response
            .header("content-security-policy")
            .unwrap_or_default();
        assert!(policy.contains("default-src 'none'"), "{path}");
        assert_eq!(response.header("server"), None);
    }
}

#[test]
fn large_responses_are_compressed_on_request() {
    let server = HttpServer::sandboxed(&[]);
    let plain = server.send_stateless(&[], "tools/list", json!({}));
    let packed = server.send_stateless(&[("accept-encoding", "gzip")], "tools/list", json!({}));
    assert_eq!(plain.header("content-encoding"), None);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() * 2 < plain.body.len());
}
