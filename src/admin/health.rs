//! The health check at `/` and `/health`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};

use crate::http_response::json_response;
use exa_mcp_exa_client::KeyCondition;
use exa_mcp_store::StoreError;

use super::ServerState;

/// Reports the health of the server, without details that could help an attacker.
pub(super) async fn health<S: ServerState>(State(server): State<Arc<S>>) -> Response<Body> {
    let store_healthy = server.is_store_healthy().await;
    let needs_token = server.accounts().is_some();
    let refusal = server.store().blocking_error();
    let gauges = server.gauges();
    let keys = needs_token.then_some(&gauges.keys);
    let has_key = keys.is_none_or(|keys| has_usable_key(keys));
    let has_failing_key = keys.is_some_and(|keys| count(keys, KeyCondition::Failing) > 0);
    let (code, status) = if server.is_draining() {
        (StatusCode::SERVICE_UNAVAILABLE, "ending")
    } else if refusal.is_some() {
        // This server rejects all requests, so a load balancer must use others.
        (StatusCode::SERVICE_UNAVAILABLE, "unhealthy")
    } else if store_healthy && has_key && !has_failing_key {
        (StatusCode::OK, "ok")
    } else {
        // Most requests need no store, and cached results need no key, so the server stays in service.
        (StatusCode::OK, "degraded")
    };
    let mut health = json!({
        "status": status,
        "server": env!("CARGO_PKG_NAME"),
        "version": env!("CARGO_PKG_VERSION"),
        "mode": server.mode(),
        "authRequired": needs_token,
        "uptimeSeconds": server.uptime().as_secs(),
        "upstream": match gauges.upstream {
            _ if !has_key => "no key ready",
            None => "unknown",
            Some(true) => "ok",
            Some(false) => "failing",
        },
        "store": match &refusal {
            Some(StoreError::Replaced) => "replaced",
            Some(_) => "newer",
            None if store_healthy => "ok",
            None => "unavailable",
        },
        "sessions": server.session_count(),
    });
    if let Some(keys) = keys {
        let keys: Map<String, Value> = keys
            .iter()
            .map(|(state, count)| ((*state).to_owned(), json!(count)))
            .collect();
        set_field(&mut health, "keys", Value::Object(keys));
    }
    if let Some(refusal) = refusal {
        set_field(&mut health, "problem", json!(refusal.to_string()));
    }
    json_response(code, &health)
}

fn set_field(health: &mut Value, name: &str, value: Value) {
    if let Value::Object(fields) = health {
        fields.insert(name.to_owned(), value);
    }
}

/// Returns whether one of the server's own keys can be used now.
fn has_usable_key(keys: &[(&'static str, usize)]) -> bool {
    count(keys, KeyCondition::Ready) + count(keys, KeyCondition::HalfOpen) > 0
}

fn count(keys: &[(&'static str, usize)], condition: KeyCondition) -> usize {
    let counts = keys
        .iter()
        .filter(|(state, _)| *state == condition.as_str());
    counts.map(|(_, count)| count).sum()
}
