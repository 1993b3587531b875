//! `/mcp/usage` and `/admin/*`: who used how much, and looking after the server.

mod asked;
mod keys;
mod manage;
mod overview;
mod page;
mod tokens;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::routing::{get, patch, post};
use http::request::Parts;
use http::{Response, StatusCode};
use rmcp::model::ErrorCode;
use serde_json::Value;
pub(super) use tokens::own_usage;

use super::Mcp;
use super::answers::{Told, TurnedAway, denied, refuse};
use super::gate::Gate;
use super::mcp::address;
use super::state::Shared;
use crate::accounts::{Denied, Pool, Token};
use crate::logging;
use crate::store::StoreError;

type Refused = Box<Response<Body>>;

/// What a handler here gives.
type Answered = Result<Told, TurnedAway>;

/// What is told to those who only look.
fn looked(told: Value) -> Answered {
    Ok(Told(StatusCode::OK, told))
}

/// Everything below `/admin`.
pub(super) fn routes<M: Mcp>() -> Router<Arc<Shared<M>>> {
    let tokens = get(tokens::tokens::<M>).post(manage::create::<M>);
    Router::new()
        .route("/admin/tokens", tokens)
        .route("/admin/tokens/{id}", patch(manage::amend::<M>))
        .route("/admin/tokens/{id}/rotate", post(manage::rotate::<M>))
        .route("/admin/tokens/{id}/revoke", post(manage::revoke::<M>))
        .route("/admin/tokens/{id}/expire", post(manage::expire::<M>))
        .route("/admin/audit", get(overview::audit::<M>))
        .route("/admin/keys", get(keys::list::<M>))
        .route("/admin/keys/{id}/reset", post(keys::reset::<M>))
        .route("/admin/usage", get(overview::usage::<M>))
        .route("/admin/state", get(overview::state::<M>))
}

/// Lets a holder of a token in.
fn holder<'a, M: Mcp>(
    shared: &'a Shared<M>,
    parts: &Parts,
) -> Result<(Arc<Token>, &'a Pool), Refused> {
    let Gate::Pool(pool) = &shared.gate else {
        let why = "There are no tokens here: every client brings its own Exa key";
        let code = ErrorCode::METHOD_NOT_FOUND.0;
        return Err(Box::new(refuse(StatusCode::NOT_FOUND, code, why)));
    };
    let entry = shared.gate.admit(parts, address(shared, parts))?;
    let unknown = || Box::new(denied(Denied::Unknown, false));
    let token = entry.token.ok_or_else(unknown)?;
    logging::record_user(&token.owner());
    Ok((token, pool))
}

/// Lets an admin in.
pub(super) fn admin<'a, M: Mcp>(
    shared: &'a Shared<M>,
    parts: &Parts,
) -> Result<(Arc<Token>, &'a Pool), Refused> {
    let (token, pool) = holder(shared, parts)?;
    let admitted = token.admit_admin();
    admitted.map_err(|why| {
        tracing::info!(user = %token.owner(), token = token.id, "denied: no admin");
        let address = address(shared, parts).to_canonical().to_string();
        let target = Some(token.id.as_str());
        pool.audit.deny("denied.not_admin", &address, target, None);
        Box::new(denied(why, true))
    })?;
    Ok((token, pool))
}

fn unreadable(error: &StoreError) -> Refused {
    tracing::warn!(%error, "the store could not be used for an admin");
    let why = match error {
        // The request that finds this out says what all later ones are told.
        StoreError::Replaced | StoreError::Newer(_) => error.to_string(),
        _ => "The store cannot be used now; try again later".to_owned(),
    };
    let code = ErrorCode::INTERNAL_ERROR.0;
    Box::new(refuse(StatusCode::SERVICE_UNAVAILABLE, code, &why))
}
