//! What every request passes first: whom it calls, which page sends it, and what every answer carries.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::middleware::Next;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};

use super::allowed::Hosts;
use super::gate::Gate;
use super::peer::Peer;
use super::state::Shared;
use crate::http_response::{FORBIDDEN, bad_request, empty_response, error_response};
use exa_mcp_store::Store;

/// What every answer carries: it is for this one request, and for no page to show.
const ALWAYS: [(HeaderName, &str); 6] = [
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

/// What pages may read beside the body.
const EXPOSED: &str = "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, Retry-After";
/// The code of whoever cannot be served now.
const UNAVAILABLE: i32 = -32603;
const METHODS: &str = "GET, POST, PATCH, DELETE, OPTIONS";
const HEADERS: &str = "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, \
                       Mcp-Protocol-Version, Mcp-Method, Mcp-Name, X-API-Key, X-Exa-Api-Key";

/// Paths that only tell how the server is.
const LOOKS: [&str; 2] = ["/health", "/metrics"];

/// Guards everything.
pub(super) async fn guard<M: Send + Sync + 'static>(
    State(shared): State<Arc<Shared<M>>>,
    request: Request<Body>,
    next: Next,
) -> Response<Body> {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let mut answer = match check(&shared, &request) {
        Err(refused) => *refused,
        Ok(()) if request.method() == Method::OPTIONS => permission(request.headers()),
        Ok(()) if !is_look(&request) && shared.store.blocking_error().is_some() => {
            with_origin(refused_by_store(&*shared.store), origin.as_ref())
        }
        Ok(()) => {
            let answer = next.run(request).await;
            with_origin(answer, origin.as_ref())
        }
    };
    for (name, value) in ALWAYS {
        let headers = answer.headers_mut();
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    answer
}

fn check<M>(shared: &Shared<M>, request: &Request<Body>) -> Result<(), Box<Response<Body>>> {
    let headers = request.headers();
    let forbidden = |why: &str| Box::new(error_response(StatusCode::FORBIDDEN, FORBIDDEN, why));
    if headers.contains_key(header::TRANSFER_ENCODING)
        && headers.contains_key(header::CONTENT_LENGTH)
    {
        let why = "a body has either a length or chunks";
        return Err(Box::new(bad_request(why)));
    }
    if !shared.config.hosts.allow(request.uri(), headers) && !is_look_from_here(request) {
        tracing::info!("denied: a foreign host");
        deny(shared, request, "denied.host");
        return Err(forbidden(
            "Forbidden: the server is not called by this host; EXA_MCP_ALLOWED_HOSTS says by which it is",
        ));
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let known = |origin: &HeaderValue| {
        let config = &shared.config;
        origin.to_str().is_ok_and(|origin| {
            config.origins.allow(origin) || config.hosts.is_own_page(origin, headers)
        })
    };
    if !origins.all(known) {
        tracing::info!("denied: a foreign origin");
        deny(shared, request, "denied.origin");
        return Err(forbidden(
            "Forbidden: pages of this origin may not call; EXA_MCP_ALLOWED_ORIGINS says which may",
        ));
    }
    Ok(())
}

/// Nothing is served with a store that holds other data than before, or that a newer program has taken over.
fn refused_by_store(store: &dyn Store) -> Response<Body> {
    let why = store.blocking_error().map(|why| why.to_string());
    let why = why.unwrap_or_default();
    error_response(StatusCode::SERVICE_UNAVAILABLE, UNAVAILABLE, &why)
}

/// Whether a request only asks how the server is.
fn is_look(request: &Request<Body>) -> bool {
    let path = request.uri().path();
    path == "/" || LOOKS.contains(&path)
}

/// Whether this machine, under one of its own names, asks how the server is. Health checks and scrapers
/// beside the server do so, whatever clients call it.
fn is_look_from_here(request: &Request<Body>) -> bool {
    let peer = request.extensions().get::<Peer>();
    LOOKS.contains(&request.uri().path())
        && peer.is_some_and(|peer| peer.0.ip().to_canonical().is_loopback())
        && Hosts::loopback().allow(request.uri(), request.headers())
}

/// Keeps that a request was denied, where such things are kept.
fn deny<M>(shared: &Shared<M>, request: &Request<Body>, action: &'static str) {
    if let Gate::Pool(pool) = &shared.gate {
        let peer = request.extensions().get::<Peer>();
        let peer = peer.map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.0.ip());
        let address = shared.config.proxies.client(peer, request.headers());
        let address = address.to_canonical().to_string();
        pool.audit.record_denial(action, &address, None, None);
    }
}

/// Tells a browser what the page may do. Only pages that may call come here.
fn permission(headers: &HeaderMap) -> Response<Body> {
    let mut answer = with_origin(
        empty_response(StatusCode::NO_CONTENT),
        headers.get(header::ORIGIN),
    );
    if headers.contains_key(header::ORIGIN) {
        let answer = answer.headers_mut();
        let wanted = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS);
        let allowed = wanted.cloned().unwrap_or(HeaderValue::from_static(HEADERS));
        answer.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        let methods = HeaderValue::from_static(METHODS);
        answer.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
        answer.insert(
            header::ACCESS_CONTROL_MAX_AGE,
            HeaderValue::from_static("600"),
        );
    }
    answer
}

fn with_origin(mut answer: Response<Body>, origin: Option<&HeaderValue>) -> Response<Body> {
    let headers = answer.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        let exposed = HeaderValue::from_static(EXPOSED);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    answer
}
