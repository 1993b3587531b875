//! What every request leaves for operators: a count, and an id in the log.

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

/// The longest id that is taken from a client.
const LONGEST_ID: usize = 64;

/// Paths that are told apart; all others are counted together.
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

/// Methods that are told apart. Calls of tools tell of themselves, at their end.
const METHODS: [&str; 19] = [
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
];

/// Headers by which a proxy says that a request is not its own.
const FORWARDED: [&str; 3] = ["forwarded", "x-forwarded-for", "x-real-ip"];

/// Gives every request an id, which its log lines carry, and counts it.
pub(super) async fn observed(mut request: Request<Body>, next: Next) -> Response<Body> {
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
    let mut answer = next.run(request).instrument(span).await;
    if let Some(id) = id {
        answer.headers_mut().insert(REQUEST_ID_HEADER, id);
    }
    if let Some(metrics) = telemetry::metrics() {
        metrics.answered(path.unwrap_or("other"), answer.status().as_u16());
    }
    answer
}

/// The id that a request brings, if it can stand in a log; otherwise a new one.
fn request_id(request: &Request<Body>) -> Option<HeaderValue> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let brought = request.headers().get(REQUEST_ID_HEADER);
    let brought = brought.filter(|id| (1..=LONGEST_ID).contains(&id.len()));
    let brought = brought.filter(|id| id.as_bytes().iter().all(plain));
    let new = || HeaderValue::from_str(&ids::random_id().ok()?).ok();
    brought.cloned().or_else(new)
}

/// Counts a request of MCP that was answered.
pub(super) fn served(method: &str, status: StatusCode, took: Duration) {
    let Some(metrics) = telemetry::metrics().filter(|_| method != "tools/call") else {
        return;
    };
    let method = METHODS.into_iter().find(|known| *known == method);
    metrics.served(method.unwrap_or("other"), None, !status.is_success(), took);
}

/// Whether a request comes straight from this machine.
pub(super) fn is_from_here(parts: &Parts) -> bool {
    let peer = parts.extensions.get::<Peer>();
    let local = peer.is_some_and(|peer| peer.0.ip().to_canonical().is_loopback());
    let forwarded = FORWARDED
        .iter()
        .any(|name| parts.headers.contains_key(*name));
    local && !forwarded && parts.headers.get(header::ORIGIN).is_none()
}
