//! The Exa API keys of this server: `GET /admin/keys` and `POST /admin/keys/{id}/reset`.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use http::request::Parts;
use http::{Request, StatusCode};
use serde_json::{Value, json};

use super::manage::AdminRequest;
use super::{ApiResult, ServerState, ok_json, require_admin};
use crate::http_response::{FORBIDDEN, error_without_id};
use exa_mcp_accounts::Accounts;
use exa_mcp_exa_client::{KeyFault, KeyPool, KeyState};

/// `GET /admin/keys`: returns the state of the Exa API keys.
pub(super) async fn list<S: ServerState>(State(server): State<Arc<S>>, parts: Parts) -> ApiResult {
    let (_, accounts) = require_admin(&*server, &parts)?;
    let keys = server.keys();
    let states = keys
        .map(|keys| states_by_id(accounts, &keys))
        .unwrap_or_default();
    let delays = states
        .iter()
        .map(|(_, key)| key.ready_in.unwrap_or_default());
    ok_json(json!({
        "keys": states.iter().map(|(id, state)| key_json(id, state)).collect::<Vec<_>>(),
        "nextReadyInSeconds": delays.min().map(seconds),
    }))
}

/// `POST /admin/keys/{id}/reset`: clears the faults of a key, so that it is used again immediately.
pub(super) async fn reset<S: ServerState>(
    State(server): State<Arc<S>>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> ApiResult {
    let admin = AdminRequest::read(&*server, request, &[]).await?;
    let keys = server.keys();
    let before = keys
        .as_ref()
        .and_then(|keys| keys.reset(|key| admin.accounts.key_id(key.expose()) == id));
    let (Some(keys), Some(before)) = (keys, before) else {
        let reason = "no Exa API key has this id; GET /admin/keys lists them";
        return Err(Box::new(error_without_id(StatusCode::NOT_FOUND, FORBIDDEN, reason)).into());
    };
    let detail = json!({
        "keyPrefix": before.prefix,
        "state": before.condition.as_str(),
        "lastProblem": before.last_fault.map(KeyFault::as_str),
    });
    admin.record_audit("key.reset", &id, detail).await;
    let states = states_by_id(admin.accounts, &keys);
    let now = states.iter().find(|(known, _)| *known == id);
    ok_json(now.map_or(Value::Null, |(id, state)| key_json(id, state)))
}

/// Returns the id and state of every key.
fn states_by_id(accounts: &Accounts, keys: &KeyPool) -> Vec<(String, KeyState)> {
    keys.states_with_ids(|key| accounts.key_id(key.expose()))
}

fn key_json(id: &str, key: &KeyState) -> Value {
    json!({
        "id": id,
        "prefix": key.prefix,
        "state": key.condition.as_str(),
        "inFlight": key.in_flight,
        "calls": key.calls,
        "readyInSeconds": key.ready_in.map(seconds),
        "failures": key.failures,
        "lastProblem": key.last_fault.map(KeyFault::as_str),
        "limitedFor": key.limited_classes,
    })
}

fn seconds(duration: Duration) -> u64 {
    duration.as_secs_f64().ceil() as u64
}
