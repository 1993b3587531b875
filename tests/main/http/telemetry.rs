//! Metrics, request ids in the log, and trace headers for Exa.

use serde_json::json;

use super::{bearer, search};
use crate::support::{HttpServer, HttpSession, Recorder, Response};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn exa() -> Recorder {
    let body = json!({"requestId": "r", "results": [], "costDollars": {"total": 0.007}});
    Recorder::always(Response::json(200, &body))
}

#[test]
fn metrics_are_visible_to_loopback_and_admins() {
    let exa = exa();
    let variables = [
        ("MCP_AUTH_TOKEN", "admin-token"),
        ("USER_TOKENS", "a-token:ann"),
    ];
    let server = HttpServer::with_upstream(&exa.url(), &variables);
    let ann = bearer("a-token");
    let mut session = HttpSession::new(&server, &[("authorization", &ann)]);
    let call = json!({"name": "web_search_exa", "arguments": search()});
    session.request("tools/call", call);
    let unknown = "a_method_that_nobody_knows";
    session.request(unknown, json!({}));
    let response = server.get("/metrics", &[]);
    assert_eq!(response.status, 200);
    let text = response.text();
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
    // A proxy on this host forwards requests of others.
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
    let server = HttpServer::with_upstream(&exa.url(), &[]);
    let key = ("x-api-key", "the-key-of-ann");
    let mut session = HttpSession::new(&server, &[key, ("traceparent", TRACE)]);
    let call = json!({"name": "web_search_exa", "arguments": {"query": "by header"}});
    session.request("tools/call", call);
    assert_eq!(exa.only_request().header("traceparent"), [TRACE]);

    // The request's own metadata takes precedence.
    let own = TRACE.replace("b7ad", "c7ad");
    let call = json!({"name": "web_search_exa", "arguments": {"query": "by meta"},
        "_meta": {"traceparent": own, "tracestate": "vendor=1"}});
    session.request("tools/call", call);
    let request = exa.only_request();
    assert_eq!(request.header("traceparent"), [own.as_str()]);
    assert_eq!(request.header("tracestate"), ["vendor=1"]);

    // Invalid trace headers are not forwarded.
    let call = json!({"name": "web_search_exa", "arguments": {"query": "neither"}});
    let mut session = HttpSession::new(&server, &[key, ("traceparent", "nonsense")]);
    session.request("tools/call", call);
    assert!(exa.only_request().header("traceparent").is_empty());
}

#[test]
fn request_id_is_logged() {
    let exa = exa();
    let server = HttpServer::with_upstream(&exa.url(), &[("EXA_MCP_LOG_LEVEL", "info")]);
    let named = [
        ("x-api-key", "the-key-of-ann"),
        ("x-request-id", "deploy-7.a_b"),
    ];
    let mut session = HttpSession::new(&server, &named);
    let call = json!({"name": "web_search_exa", "arguments": search()});
    session.request("tools/call", call);
    let body = server.get("/health", &[("x-request-id", "deploy-7.a_b")]);
    assert_eq!(body.header("x-request-id"), Some("deploy-7.a_b"));
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
