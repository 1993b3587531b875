//! Checks host and origin of every request, and adds security headers to every response.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::middleware::Next;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};

use super::allow_lists::AllowedHosts;
use super::auth::AuthMode;
use super::peer::Peer;
use super::state::HttpState;
use crate::http_response::{
    FORBIDDEN, HttpRejection, bad_request, empty_response, error_without_id,
};
use exa_mcp_store::Store;

/// Headers of every response, unless it sets its own.
const SECURITY_HEADERS: [(HeaderName, &str); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; frame-ancestors 'none'",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (header::CACHE_CONTROL, "no-store"),
];

/// The response headers that web pages may read.
const EXPOSED_HEADERS: &str = "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, Retry-After";
/// The error code while the store is unusable.
const UNAVAILABLE: i32 = -32603;
const ALLOWED_METHODS: &str = "GET, POST, PATCH, DELETE, OPTIONS";
const ALLOWED_HEADERS: &str = "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, \
                       Mcp-Protocol-Version, Mcp-Method, Mcp-Name, X-API-Key, X-Exa-Api-Key";

/// Paths that only report the state of the server.
const MONITORING_PATHS: [&str; 2] = ["/health", "/metrics"];

/// The middleware in front of all routes.
pub(super) async fn guard<M: Send + Sync + 'static>(
    State(state): State<Arc<HttpState<M>>>,
    request: Request<Body>,
    next: Next,
) -> Response<Body> {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let mut response = match check(&state, &request) {
        Err(rejection) => *rejection,
        Ok(()) if request.method() == Method::OPTIONS => preflight_response(request.headers()),
        Ok(()) if !is_monitoring_request(&request) && state.store.blocking_error().is_some() => {
            with_cors_headers(store_unavailable(&*state.store), origin.as_ref())
        }
        Ok(()) => {
            let response = next.run(request).await;
            with_cors_headers(response, origin.as_ref())
        }
    };
    for (name, value) in SECURITY_HEADERS {
        let headers = response.headers_mut();
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}

fn check<M>(state: &HttpState<M>, request: &Request<Body>) -> Result<(), HttpRejection> {
    let headers = request.headers();
    let forbidden =
        |reason: &str| Box::new(error_without_id(StatusCode::FORBIDDEN, FORBIDDEN, reason));
    if headers.contains_key(header::TRANSFER_ENCODING)
        && headers.contains_key(header::CONTENT_LENGTH)
    {
        let reason = "Content-Length and Transfer-Encoding must not be combined";
        return Err(Box::new(bad_request(reason)));
    }
    if !state.config.hosts.allows(request.uri(), headers) && !is_local_monitoring_request(request) {
        tracing::info!("denied: host not allowed");
        audit_denial(state, request, "denied.host");
        return Err(forbidden(
            "Forbidden: host not allowed; add it to EXA_MCP_ALLOWED_HOSTS",
        ));
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let is_allowed = |origin: &HeaderValue| {
        let config = &state.config;
        origin.to_str().is_ok_and(|origin| {
            config.origins.allows(origin) || config.hosts.is_own_page(origin, headers)
        })
    };
    if !origins.all(is_allowed) {
        tracing::info!("denied: origin not allowed");
        audit_denial(state, request, "denied.origin");
        return Err(forbidden(
            "Forbidden: origin not allowed; add it to EXA_MCP_ALLOWED_ORIGINS",
        ));
    }
    Ok(())
}

/// Rejects all requests while the store holds other data than before, or was upgraded by a newer version.
fn store_unavailable(store: &dyn Store) -> Response<Body> {
    let reason = store.blocking_error().map(|reason| reason.to_string());
    let reason = reason.unwrap_or_default();
    error_without_id(StatusCode::SERVICE_UNAVAILABLE, UNAVAILABLE, &reason)
}

/// Returns whether a request only reads the state of the server.
fn is_monitoring_request(request: &Request<Body>) -> bool {
    let path = request.uri().path();
    path == "/" || MONITORING_PATHS.contains(&path)
}

/// Returns whether a process on this machine reads the state of the server under a loopback name, as health
/// checks and scrapers do. Such requests pass regardless of the allowed hosts.
fn is_local_monitoring_request(request: &Request<Body>) -> bool {
    let peer = request.extensions().get::<Peer>();
    MONITORING_PATHS.contains(&request.uri().path())
        && peer.is_some_and(|peer| peer.0.ip().to_canonical().is_loopback())
        && AllowedHosts::loopback().allows(request.uri(), request.headers())
}

/// Records a denied request in the audit log, in pool mode.
fn audit_denial<M>(state: &HttpState<M>, request: &Request<Body>, action: &'static str) {
    if let AuthMode::Pool(accounts) = &state.auth_mode {
        let peer = request.extensions().get::<Peer>();
        let peer = peer.map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0.ip());
        let address = state.config.proxies.client_address(peer, request.headers());
        let address = address.to_canonical().to_string();
        accounts.audit.record_denial(action, &address, None, None);
    }
}

/// Responds to a CORS preflight request of an allowed origin.
fn preflight_response(headers: &HeaderMap) -> Response<Body> {
    let mut response = with_cors_headers(
        empty_response(StatusCode::NO_CONTENT),
        headers.get(header::ORIGIN),
    );
    if headers.contains_key(header::ORIGIN) {
        let response = response.headers_mut();
        let requested = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS);
        let allowed = requested
            .cloned()
            .unwrap_or(HeaderValue::from_static(ALLOWED_HEADERS));
        response.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        let methods = HeaderValue::from_static(ALLOWED_METHODS);
        response.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
        response.insert(
            header::ACCESS_CONTROL_MAX_AGE,
            HeaderValue::from_static("600"),
        );
    }
    response
}

fn with_cors_headers(mut response: Response<Body>, origin: Option<&HeaderValue>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        let exposed = HeaderValue::from_static(EXPOSED_HEADERS);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    response
}
