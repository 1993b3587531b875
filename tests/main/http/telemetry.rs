//! What operators see: numbers, ids in the log, traces that go on to Exa.

use serde_json::json;

use super::{bearer, search};
use crate::support::{HttpServer, HttpSession, Recorder, Reply};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn exa() -> Recorder {
    let answer = json!({"requestId": "r", "results": [], "costDollars": {"total": 0.007}});
    Recorder::always(Reply::json(200, &answer))
}

#[test]
fn metrics_are_visible_to_loopback_and_admins() {
    let exa = exa();
    let variables = [
        ("MCP_AUTH_TOKEN", "admin-token"),
        ("USER_TOKENS", "a-token:ann"),
    ];
    let server = HttpServer::upstream(&exa.url(), &variables);
    let ann = bearer("a-token");
    let mut session = HttpSession::usual(&server, &[("authorization", &ann)]);
    let call = json!({"name": "web_search_exa", "arguments": search()});
    session.ask("tools/call", call);
    let unknown = "a_method_that_nobody_knows";
    session.ask(unknown, json!({}));
    let reply = server.get("/metrics", &[]);
    assert_eq!(reply.status, 200);
    let text = reply.text();
    for part in [
        r#"exa_mcp_http_requests_total{path="/mcp",status="200"}"#,
        r#"mcp_server_operation_duration_seconds_count{mcp_method_name="tools/call",gen_ai_tool_name="web_search_exa",error_type=""} 1"#,
        r#"mcp_server_operation_duration_seconds_count{mcp_method_name="initialize""#,
        r#"exa_mcp_upstream_duration_seconds_count{operation="search",status="200"} 1"#,
        "exa_mcp_cost_dollars_total 0.007",
        "exa_mcp_sessions 1",
        "exa_mcp_store_up 1",
        r#"exa_mcp_keys{state="ready"} 1"#,
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    for secret in [unknown, "a-token", "admin-token", "ann", "rust"] {
        assert!(!text.contains(secret), "{secret}");
    }
    // A proxy on this machine speaks for others.
    let forwarded = ("x-forwarded-for", "192.0.2.1");
    let status = |token: &str| {
        let token = bearer(token);
        let headers = [forwarded, ("authorization", token.as_str())];
        server.get("/metrics", &headers).status
    };
    assert_eq!(server.get("/metrics", &[forwarded]).status, 401);
    assert_eq!(status("a-token"), 403);
    assert_eq!(status("admin-token"), 200);
}

#[test]
fn metrics_may_be_public() {
    let forwarded = [("x-forwarded-for", "192.0.2.1")];
    let shut = HttpServer::sandboxed(&[]);
    assert_eq!(shut.get("/metrics", &forwarded).status, 403);
    let open = HttpServer::sandboxed(&[("EXA_MCP_METRICS", "public")]);
    assert_eq!(open.get("/metrics", &forwarded).status, 200);
}

#[test]
fn trace_context_is_propagated_to_exa() {
    let exa = exa();
    let server = HttpServer::upstream(&exa.url(), &[]);
    let key = ("x-api-key", "the-key-of-ann");
    let mut session = HttpSession::usual(&server, &[key, ("traceparent", TRACE)]);
    let call = json!({"name": "web_search_exa", "arguments": {"query": "by header"}});
    session.ask("tools/call", call);
    assert_eq!(exa.only().header("traceparent"), [TRACE]);

    // What the request itself says counts more.
    let own = TRACE.replace("b7ad", "c7ad");
    let call = json!({"name": "web_search_exa", "arguments": {"query": "by meta"},
        "_meta": {"traceparent": own, "tracestate": "vendor=1"}});
    session.ask("tools/call", call);
    let seen = exa.only();
    assert_eq!(seen.header("traceparent"), [own.as_str()]);
    assert_eq!(seen.header("tracestate"), ["vendor=1"]);

    // What is no trace goes no further.
    let call = json!({"name": "web_search_exa", "arguments": {"query": "neither"}});
    let mut session = HttpSession::usual(&server, &[key, ("traceparent", "nonsense")]);
    session.ask("tools/call", call);
    assert!(exa.only().header("traceparent").is_empty());
}

#[test]
fn request_id_is_logged() {
    let exa = exa();
    let server = HttpServer::upstream(&exa.url(), &[("EXA_MCP_LOG_LEVEL", "info")]);
    let named = [
        ("x-api-key", "the-key-of-ann"),
        ("x-request-id", "deploy-7.a_b"),
    ];
    let mut session = HttpSession::usual(&server, &named);
    let call = json!({"name": "web_search_exa", "arguments": search()});
    session.ask("tools/call", call);
    let answer = server.get("/health", &[("x-request-id", "deploy-7.a_b")]);
    assert_eq!(answer.header("x-request-id"), Some("deploy-7.a_b"));
    let strange = server.get("/health", &[("x-request-id", "a b;c")]);
    assert_ne!(strange.header("x-request-id"), Some("a b;c"));
    assert!(
        strange
            .header("x-request-id")
            .is_some_and(|id| id.len() > 10)
    );
    let log = server.log();
    let line = log
        .lines()
        .find(|line| line.contains("operation=\"search\""));
    assert!(
        line.is_some_and(|line| line.contains("deploy-7.a_b")),
        "{log}"
    );
}
