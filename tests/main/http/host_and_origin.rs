//! DNS rebinding, cross-origin requests and request smuggling.

use serde_json::json;

use super::request;
use crate::support::{DEFAULT_VERSION, HttpServer, HttpSession, initialize};

#[test]
fn dns_rebinding_is_rejected() {
    let server = HttpServer::sandboxed(&[]);
    let port = server
        .address
        .split(':')
        .next_back()
        .expect("a port")
        .to_owned();
    for host in [
        format!("localhost:{port}"),
        format!("127.0.0.1:{port}"),
        format!("[::1]:{port}"),
    ] {
        let response = server.post(&[("host", &host)], &initialize(DEFAULT_VERSION));
        assert_eq!(response.status, 200, "{host}");
    }
    for host in [
        "evil.example",
        "evil.example:3000",
        "localhost.evil.example",
        "169.254.169.254",
    ] {
        for path in ["/mcp", "/health", "/sse", "/admin/tokens", "/mcp/usage"] {
            let response = server.get(path, &[("host", host)]);
            assert_eq!(response.status, 403, "{path} {host}");
            assert_eq!(response.header("mcp-session-id"), None);
        }
        let response = server.post(&[("host", host)], &initialize(DEFAULT_VERSION));
        assert_eq!(response.status, 403, "{host}");
    }
}

#[test]
fn loopback_may_always_read_health() {
    let variables = [("EXA_MCP_ALLOWED_HOSTS", "mcp.example.com")];
    let server = HttpServer::sandboxed(&variables);
    for host in ["127.0.0.1", "localhost:3000", "[::1]", "mcp.example.com"] {
        for path in ["/health", "/metrics"] {
            let response = server.get(path, &[("host", host)]);
            assert_eq!(response.status, 200, "{path} {host}");
        }
    }
    for path in ["/", "/mcp", "/sse", "/admin", "/admin/keys", "/health/"] {
        let response = server.get(path, &[("host", "127.0.0.1")]);
        assert_eq!(response.status, 403, "{path}");
    }
    let own = [("host", "127.0.0.1"), ("origin", "https://evil.example")];
    assert_eq!(server.get("/metrics", &own).status, 403);
    assert_eq!(
        server.get("/health", &[("host", "evil.example")]).status,
        403
    );
}

#[test]
fn foreign_origins_are_rejected() {
    let server = HttpServer::sandboxed(&[]);
    for origin in [
        "https://evil.example",
        "http://127.0.0.1.evil.example",
        "null",
        "chrome-extension://x",
    ] {
        let response = server.post(&[("origin", origin)], &initialize(DEFAULT_VERSION));
        assert_eq!(response.status, 403, "{origin}");
        assert_eq!(
            response.header("access-control-allow-origin"),
            None,
            "{origin}"
        );
        let preflight = server.send("OPTIONS", "/mcp", &[("origin", origin)], b"");
        assert_eq!(preflight.status, 403, "{origin}");
    }
    let origin = "http://localhost:6274";
    let response = server.post(&[("origin", origin)], &initialize(DEFAULT_VERSION));
    assert_eq!(response.status, 200);
    assert_eq!(response.header("access-control-allow-origin"), Some(origin));
    assert!(
        response
            .header("access-control-expose-headers")
            .is_some_and(|names| names.contains("Mcp-Session-Id"))
    );
    let preflight = server.send(
        "OPTIONS",
        "/mcp",
        &[
            ("origin", origin),
            ("access-control-request-method", "POST"),
            (
                "access-control-request-headers",
                "authorization,mcp-param-x",
            ),
        ],
        b"",
    );
    assert_eq!(preflight.status, 204);
    assert_eq!(
        preflight.header("access-control-allow-origin"),
        Some(origin)
    );
    assert_eq!(
        preflight.header("access-control-allow-headers"),
        Some("authorization,mcp-param-x")
    );
    assert!(
        preflight
            .header("access-control-allow-methods")
            .is_some_and(|methods| methods.contains("DELETE"))
    );
    assert_eq!(preflight.header("access-control-allow-credentials"), None);
}

#[test]
fn operator_allows_hosts_and_origins() {
    let server = HttpServer::sandboxed(&[
        ("EXA_MCP_ALLOWED_HOSTS", "mcp.example.com"),
        ("EXA_MCP_ALLOWED_ORIGINS", "https://app.example.com"),
    ]);
    let send_request = |host: &str, origin: &str| {
        server.post(
            &[("host", host), ("origin", origin)],
            &initialize(DEFAULT_VERSION),
        )
    };
    assert_eq!(
        send_request("mcp.example.com", "https://app.example.com").status,
        200
    );
    assert_eq!(
        send_request("MCP.EXAMPLE.COM:443", "https://app.example.com").status,
        200
    );
    assert_eq!(
        send_request("localhost", "https://app.example.com").status,
        403
    );
    assert_eq!(
        send_request("mcp.example.com", "http://localhost").status,
        403
    );
}

#[test]
fn ambiguous_requests_are_rejected() {
    let server = HttpServer::sandboxed(&[("MCP_AUTH_TOKEN", "admin-secret")]);
    let good = "Bearer admin-secret";
    let twice = [("authorization", good), ("authorization", "Bearer other")];
    assert_eq!(server.get("/admin/tokens", &twice).status, 400);
    assert_eq!(
        server
            .get("/admin/tokens", &[("authorization", good)])
            .status,
        200
    );
    let session = HttpSession::new(&server, &[("authorization", good)]);
    let mut headers = session.headers();
    headers.push(("mcp-session-id", "other"));
    assert_eq!(
        server.post(&headers, &request(1, "ping", json!({}))).status,
        400
    );

    let address = &server.address;
    let body = initialize(DEFAULT_VERSION).to_string();
    let length = body.len();
    let head = |more: &str| {
        format!(
            "POST /mcp HTTP/1.1\r\nauthorization: {good}\r\ncontent-type: application/json\r\n\
             connection: close\r\n{more}\r\n"
        )
    };
    for (name, more) in [
        (
            "two hosts",
            format!("host: {address}\r\nhost: evil.example\r\ncontent-length: {length}\r\n"),
        ),
        ("no host", format!("content-length: {length}\r\n")),
        (
            "two lengths",
            format!("host: {address}\r\ncontent-length: {length}\r\ncontent-length: 5\r\n"),
        ),
        (
            "a wrong length",
            format!("host: {address}\r\ncontent-length: +{length}\r\n"),
        ),
        (
            "an unknown coding",
            format!("host: {address}\r\ntransfer-encoding: xchunked\r\n"),
        ),
        (
            "space before a colon",
            format!("host: {address}\r\ncontent-length : {length}\r\n"),
        ),
        (
            "a folded header",
            format!("host: {address}\r\nx-a: b\r\n c\r\ncontent-length: {length}\r\n"),
        ),
    ] {
        let bytes = head(&more) + &body;
        let response = server.send_raw(bytes.as_bytes());
        let status = response.as_ref().map(|response| response.status);
        assert!(
            status.is_none_or(|status| (400..500).contains(&status)),
            "{name}: {response:?}"
        );
    }
}

#[test]
fn content_length_with_chunked_does_not_smuggle() {
    let server = HttpServer::sandboxed(&[]);
    let address = &server.address;
    // A parser that trusts the wrong header treats part of the body as another request.
    let hidden = format!("GET /admin/tokens HTTP/1.1\r\nhost: {address}\r\n\r\n");
    let bytes = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"
    );
    let mut stream = server.connect();
    std::io::Write::write_all(&mut stream, bytes.as_bytes()).expect("the server reads");
    let mut answer = String::new();
    let _ = std::io::Read::read_to_string(&mut stream, &mut answer);
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
}
