//! Gives every request an id for the log, and counts it.

use std::time::Duration;

use axum::body::Body;
use axum::middleware::Next;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode, header};
use tracing::Instrument;

use super::peer::Peer;
use crate::mcp::request::REQUEST_ID_HEADER;
use crate::telemetry;
use crate::telemetry::logging;
use exa_mcp_model::ids;

/// The maximum length of a request id sent by a client.
const MAX_REQUEST_ID_LEN: usize = 64;

/// Paths counted separately. All others count as `other`.
const PATHS: [&str; 10] = [
    "/",
    "/health",
    "/metrics",
    "/mcp",
    "/mcp/usage",
    "/sse",
    "/messages",
    "/admin",
    "/admin/tokens",
    "/admin/keys",
];

/// RPC methods counted separately. Tool calls record themselves when they end.
const METHODS: [&str; 22] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "tasks/get",
    "tasks/result",
    "tasks/list",
    "tasks/cancel",
    "tasks/update",
    "skills/list",
    "skills/get",
    "resources/directory/read",
];

/// Headers that mark a request as forwarded by a proxy.
const FORWARDING_HEADERS: [&str; 3] = ["forwarded", "x-forwarded-for", "x-real-ip"];

/// Gives every request an id, which its log lines contain, and counts it.
pub(super) async fn observe(mut request: Request<Body>, next: Next) -> Response<Body> {
    let id = request_id(&request);
    let path = request.uri().path();
    let path = PATHS.into_iter().find(|known| *known == path);
    let span = match &id {
        Some(id) => logging::http_span(id.to_str().unwrap_or_default()),
        None => tracing::Span::none(),
    };
    if let Some(id) = id.clone() {
        request.headers_mut().insert(REQUEST_ID_HEADER, id);
    }
    let mut response = next.run(request).instrument(span).await;
    if let Some(id) = id {
        response.headers_mut().insert(REQUEST_ID_HEADER, id);
    }
    if let Some(metrics) = telemetry::metrics() {
        metrics.record_http_request(path.unwrap_or("other"), response.status().as_u16());
    }
    response
}

/// Returns the request's own id if it is safe to log, otherwise a new one.
fn request_id(request: &Request<Body>) -> Option<HeaderValue> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let client_id = request.headers().get(REQUEST_ID_HEADER);
    let client_id = client_id.filter(|id| (1..=MAX_REQUEST_ID_LEN).contains(&id.len()));
    let client_id = client_id.filter(|id| id.as_bytes().iter().all(plain));
    let new = || HeaderValue::from_str(&ids::random_id().ok()?).ok();
    client_id.cloned().or_else(new)
}

/// Records a completed MCP request.
pub(super) fn record_rpc(method: &str, status: StatusCode, duration: Duration) {
    let Some(metrics) = telemetry::metrics().filter(|_| method != "tools/call") else {
        return;
    };
    let method = METHODS.into_iter().find(|known| *known == method);
    metrics.record_mcp_request(
        method.unwrap_or("other"),
        None,
        !status.is_success(),
        duration,
    );
}

/// Returns whether a request comes directly from this machine.
pub(super) fn is_local(parts: &Parts) -> bool {
    let peer = parts.extensions.get::<Peer>();
    let local = peer.is_some_and(|peer| peer.0.ip().to_canonical().is_loopback());
    let forwarded = FORWARDING_HEADERS
        .iter()
        .any(|name| parts.headers.contains_key(*name));
    local && !forwarded && parts.headers.get(header::ORIGIN).is_none()
}
