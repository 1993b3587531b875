//! `/` and `/health`: is it there, and is it well?

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::State;
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::Mcp;
use super::answers::json_answer;
use super::state::Shared;
use exa_mcp_exa_client::KeyCondition;
use exa_mcp_store::{Store, StoreError};

/// How long the store may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long an answer of the store is good enough: whoever asks for health asks often.
const FRESH: Duration = Duration::from_secs(5);

/// How the store was when it was last looked at.
#[derive(Default)]
pub(super) struct StoreState(Mutex<Option<(Instant, bool)>>);

impl StoreState {
    pub(super) async fn is_well(&self, store: &dyn Store) -> bool {
        let mut known = self.0.lock().await;
        if let Some((at, well)) = *known
            && at.elapsed() < FRESH
        {
            return well;
        }
        let well = matches!(timeout(PATIENCE, store.check()).await, Ok(Ok(_)));
        *known = Some((Instant::now(), well));
        well
    }
}

/// Tells how the server is; nothing that helps an attacker.
pub(super) async fn health<M: Mcp>(State(shared): State<Arc<Shared<M>>>) -> Response<Body> {
    let well = shared.store_state.is_well(&*shared.store).await;
    let refusal = shared.store.refusal();
    let gauges = shared.mcp.gauges();
    let keys = shared.gate.needs_token().then_some(&gauges.keys);
    let has_key = keys.is_none_or(|keys| has_usable_key(keys));
    let has_failing_key = keys.is_some_and(|keys| count(keys, KeyCondition::Failing) > 0);
    let (code, status) = if shared.draining.is_cancelled() {
        (StatusCode::SERVICE_UNAVAILABLE, "ending")
    } else if refusal.is_some() {
        // Nothing is served any more, so others are to do it.
        (StatusCode::SERVICE_UNAVAILABLE, "unhealthy")
    } else if well && has_key && !has_failing_key {
        (StatusCode::OK, "ok")
    } else {
        // Most requests need no store, and kept answers no key, so the server is not taken out of
        // service.
        (StatusCode::OK, "degraded")
    };
    let mut health = json!({
        "status": status,
        "server": env!("CARGO_PKG_NAME"),
        "version": env!("CARGO_PKG_VERSION"),
        "mode": shared.gate.mode(),
        "authRequired": shared.gate.needs_token(),
        "uptimeSeconds": shared.started.elapsed().as_secs(),
        "upstream": match gauges.upstream {
            _ if !has_key => "no key ready",
            None => "unknown",
            Some(true) => "ok",
            Some(false) => "failing",
        },
        "store": match &refusal {
            Some(StoreError::Replaced) => "replaced",
            Some(_) => "newer",
            None if well => "ok",
            None => "unavailable",
        },
        "sessions": shared.sessions.count() + shared.streams.count(),
    });
    if let Some(keys) = keys {
        let keys: Map<String, Value> = keys
            .iter()
            .map(|(state, count)| ((*state).to_owned(), json!(count)))
            .collect();
        put(&mut health, "keys", Value::Object(keys));
    }
    if let Some(refusal) = refusal {
        put(&mut health, "problem", json!(refusal.to_string()));
    }
    json_answer(code, &health)
}

fn put(health: &mut Value, name: &str, value: Value) {
    if let Value::Object(fields) = health {
        fields.insert(name.to_owned(), value);
    }
}

/// Whether a call can be made now with one of the server's own keys.
fn has_usable_key(keys: &[(&'static str, usize)]) -> bool {
    count(keys, KeyCondition::Ready) + count(keys, KeyCondition::HalfOpen) > 0
}

fn count(keys: &[(&'static str, usize)], condition: KeyCondition) -> usize {
    let counts = keys
        .iter()
        .filter(|(state, _)| *state == condition.as_str());
    counts.map(|(_, count)| count).sum()
}
