//! `/metrics`: metrics for Prometheus.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};

use super::{HttpRejection, ServerState, require_admin};
use crate::http_response::{FORBIDDEN, RejectionResponse, error_without_id};
use crate::telemetry::{Gauges, Metrics};

/// Returns the metrics to clients on this machine and to admins.
pub(super) async fn metrics<S: ServerState>(
    State(server): State<Arc<S>>,
    parts: Parts,
) -> Result<Response<Body>, RejectionResponse> {
    if !server.has_public_metrics() && !server.is_local_request(&parts) {
        admit(&*server, &parts)?;
    }
    let gauges = Gauges {
        sessions: server.session_count(),
        requests: server.request_count(),
        store: server.is_store_healthy().await,
        uptime: server.uptime(),
        ..server.gauges()
    };
    let mut response = Response::new(Body::from(Metrics::start().encode_text(&gauges)));
    let text = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(text));
    Ok(response)
}

fn admit<S: ServerState>(server: &S, parts: &Parts) -> Result<(), HttpRejection> {
    if server.accounts().is_none() {
        let reason =
            "Forbidden: request the metrics from this machine, or set EXA_MCP_METRICS=public";
        return Err(Box::new(error_without_id(
            StatusCode::FORBIDDEN,
            FORBIDDEN,
            reason,
        )));
    }
    require_admin(server, parts).map(drop)
}
