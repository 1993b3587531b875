//! `/` and `/health`: is it there, and is it well?

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::State;
use http::{Response, StatusCode};
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::Mcp;
use super::answers::json_answer;
use super::state::Shared;
use crate::store::Store;
use crate::telemetry::Gauges;

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
    let gauges = shared.mcp.gauges();
    let has_key = !shared.gate.needs_token() || has_ready_key(&gauges);
    let (code, status) = match (shared.draining.is_cancelled(), well && has_key) {
        (true, _) => (StatusCode::SERVICE_UNAVAILABLE, "ending"),
        (false, true) => (StatusCode::OK, "ok"),
        // Most requests need no store, and kept answers no key, so the server is not taken out of
        // service.
        (false, false) => (StatusCode::OK, "degraded"),
    };
    let health = json!({
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
        "store": if well { "ok" } else { "unavailable" },
        "sessions": shared.sessions.count() + shared.streams.count(),
    });
    json_answer(code, &health)
}

/// Whether one of the server's own keys can be used now.
fn has_ready_key(gauges: &Gauges) -> bool {
    let mut keys = gauges.keys.iter();
    keys.any(|(state, count)| *state == "ready" && *count > 0)
}
