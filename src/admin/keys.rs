//! The Exa API keys of this server: `GET /admin/keys` and `POST /admin/keys/{id}/reset`.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use http::request::Parts;
use http::{Request, StatusCode};
use serde_json::{Value, json};

use super::manage::wish;
use super::{Answered, ServerState, admin, looked};
use crate::http_response::{FORBIDDEN, error_response};
use exa_mcp_accounts::Accounts;
use exa_mcp_exa_client::{KeyFault, KeyPool, KeyState};

/// `GET /admin/keys`: how the Exa keys stand.
pub(super) async fn list<S: ServerState>(State(server): State<Arc<S>>, parts: Parts) -> Answered {
    let (_, pool) = admin(&*server, &parts)?;
    let keys = server.keys();
    let states = keys.map(|keys| identified(pool, &keys)).unwrap_or_default();
    let waits = states
        .iter()
        .map(|(_, key)| key.ready_in.unwrap_or_default());
    looked(
        json!({ "keys": states.iter().map(|(id, state)| key(id, state)).collect::<Vec<_>>(), "nextReadyInSeconds": waits.min().map(seconds), }),
    )
}

/// `POST /admin/keys/{id}/reset`: forgets the faults of a key, so that it is used again at once.
pub(super) async fn reset<S: ServerState>(
    State(server): State<Arc<S>>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> Answered {
    let wish = wish(&*server, request, &[]).await?;
    let keys = server.keys();
    let before = keys
        .as_ref()
        .and_then(|keys| keys.reset(|key| wish.pool.key_id(key.expose()) == id));
    let (Some(keys), Some(before)) = (keys, before) else {
        let why = "no Exa key has this id; GET /admin/keys lists them";
        return Err(Box::new(error_response(StatusCode::NOT_FOUND, FORBIDDEN, why)).into());
    };
    let detail = json!({ "keyPrefix": before.prefix, "state": before.condition.as_str(), "lastProblem": before.last_fault.map(KeyFault::as_str), });
    wish.note("key.reset", &id, detail).await;
    let states = identified(wish.pool, &keys);
    let now = states.iter().find(|(known, _)| *known == id);
    looked(now.map_or(Value::Null, |(id, state)| key(id, state)))
}

/// Returns the state of every key with the id of the key.
fn identified(pool: &Accounts, keys: &KeyPool) -> Vec<(String, KeyState)> {
    keys.states_with_ids(|key| pool.key_id(key.expose()))
}

fn key(id: &str, key: &KeyState) -> Value {
    json!({ "id": id, "prefix": key.prefix, "state": key.condition.as_str(), "inFlight": key.in_flight, "calls": key.calls, "readyInSeconds": key.ready_in.map(seconds), "failures": key.failures, "lastProblem": key.last_fault.map(KeyFault::as_str), "limitedFor": key.limited_classes, })
}

fn seconds(duration: Duration) -> u64 {
    duration.as_secs_f64().ceil() as u64
}
