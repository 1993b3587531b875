//! The documented quick start for teams: the same variables, paths, headers and bodies.

use serde_json::{Value, json};

use crate::support::{HttpServer, initialize};

const VARIABLES: [(&str, &str); 4] = [
    ("EXA_API_KEYS", "exa-key-1,exa-key-2"),
    ("MCP_AUTH_TOKEN", "admin-secret"),
    (
        "USER_TOKENS",
        "alice-token:alice:2999-12-31,bob-token:bob:never",
    ),
    (
        "ENABLED_TOOLS",
        "web_search_exa,get_code_context_exa,crawling_exa",
    ),
];

const ALICE: (&str, &str) = ("Authorization", "Bearer alice-token");
const ADMIN: (&str, &str) = ("Authorization", "Bearer admin-secret");

#[test]
fn quick_start_user_and_admin() {
    let server = HttpServer::sandboxed(&VARIABLES);

    // The default headers of curl.
    let headers = [ALICE, ("User-Agent", "curl/8.5.0"), ("Accept", "*/*")];
    let response = server.post(&headers, &initialize("2024-11-05"));
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("application/json"));
    let body = response.json();
    assert_eq!(body["id"], 1);
    assert_eq!(body["result"]["protocolVersion"], "2024-11-05");
    assert_eq!(body["result"]["serverInfo"]["name"], "exa-mcp-server");
    let session = response
        .header("mcp-session-id")
        .expect("a session")
        .to_owned();

    let call = json!({"jsonrpc": "2.0", "method": "tools/call", "id": 2, "params": {
        "name": "web_search_exa", "arguments": {"query": "latest AI news"},
    }});
    let headers = [ALICE, ("Accept", "*/*"), ("Mcp-Session-Id", &session)];
    let body = server.post(&headers, &call).json();
    assert_eq!(body["result"]["isError"], false, "{body}");
    let text = body["result"]["content"][0]["text"].as_str();
    assert!(
        text.is_some_and(|text| text.starts_with("search: 10 results")),
        "{body}"
    );

    let usage = server.get("/mcp/usage", &[ALICE]);
    assert_eq!(usage.status, 200);
    let usage = usage.json();
    let last_used = usage["lastUsedAt"].as_str().expect("a time").to_owned();
    assert!(last_used.ends_with('Z') && last_used.len() == "2025-12-05T10:30:00.000Z".len());
    for (name, value) in [
        ("userId", json!("alice")),
        ("role", json!("user")),
        ("expiresAt", json!("2999-12-31T00:00:00.000Z")),
        ("isExpired", json!(false)),
        ("usageCount", json!(2)),
    ] {
        assert_eq!(usage[name], value, "{name}");
    }

    let statistics = server.get("/admin/tokens", &[ADMIN]);
    assert_eq!(statistics.status, 200);
    let statistics = statistics.json();
    assert_eq!(
        statistics["stats"],
        json!({
            "totalTokens": 3, "activeTokens": 3, "expiredTokens": 0, "totalUsage": 2,
            "tokensByUser": {"alice": 1, "anonymous": 1, "bob": 1},
        })
    );
    let tokens = statistics["tokens"].as_array().expect("tokens");
    let roles: Vec<&Value> = tokens.iter().map(|token| &token["role"]).collect();
    assert_eq!(roles, ["admin", "user", "user"]);
    let alice = &tokens[1];
    for (name, value) in [
        ("tokenPrefix", json!("al...")),
        ("userId", json!("alice")),
        ("expiresAt", json!("2999-12-31T00:00:00.000Z")),
        ("isActive", json!(true)),
        ("isExpired", json!(false)),
        ("usageCount", json!(2)),
        ("lastUsedAt", json!(last_used)),
    ] {
        assert_eq!(alice[name], value, "{name}");
    }
    assert_eq!(tokens[2]["expiresAt"], Value::Null);
    assert_eq!(tokens[2]["lastUsedAt"], Value::Null);

    let denied = server.get("/admin/tokens", &[ALICE]);
    assert_eq!(denied.status, 403);
    assert_eq!(
        denied.text(),
        r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"Forbidden: Admin token required"},"id":null}"#
    );

    let ended = server.send(
        "DELETE",
        "/mcp",
        &[ALICE, ("Mcp-Session-Id", &session)],
        b"",
    );
    assert_eq!(ended.status, 204);
    assert_eq!(server.post(&headers, &call).status, 404);
}

#[test]
fn quick_start_date_is_in_the_past() {
    let variables = [("USER_TOKENS", "alice-token:alice:2025-12-31")];
    let server = HttpServer::sandboxed(&variables);
    for response in [
        server.post(&[ALICE], &initialize("2024-11-05")),
        server.get("/mcp/usage", &[ALICE]),
        server.get("/admin/tokens", &[ALICE]),
    ] {
        assert_eq!(response.status, 403);
        assert_eq!(
            response.text(),
            r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"Forbidden: Token has expired"},"id":null}"#
        );
    }
}

#[test]
fn health_is_public() {
    let server = HttpServer::sandboxed(&VARIABLES);
    for path in ["/", "/health"] {
        let response = server.get(path, &[]);
        assert_eq!(response.status, 200);
        let health = response.json();
        for (name, value) in [
            ("status", json!("ok")),
            ("server", json!("exa-mcp-server")),
            ("version", json!(env!("CARGO_PKG_VERSION"))),
            ("mode", json!("pool")),
            ("authRequired", json!(true)),
            ("store", json!("ok")),
        ] {
            assert_eq!(health[name], value, "{name}");
        }
        assert!(health["uptimeSeconds"].is_u64());
    }
    let open = HttpServer::sandboxed(&[]);
    let health = open.get("/health", &[]).json();
    assert_eq!(health["mode"], "passthrough");
    assert_eq!(health["authRequired"], false);
}
