//! The admin API, the dashboard, and the metrics and health endpoints.
//!
//! HandlerFactory see the running server through [`ServerState`] and nothing else.

mod dashboard;
mod health;
mod keys;
mod manage;
mod metrics;
mod overview;
mod page;
mod query;
mod server_state;
mod tokens;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::routing::{get, patch, post};
use exa_mcp_store::StoreError;
use http::request::Parts;
use http::{Response, StatusCode};
use rmcp::model::ErrorCode;
use serde_json::Value;
pub(crate) use server_state::ServerState;

use crate::http_response::{HttpRejection, JsonResponse, denied, error_response};
use crate::telemetry::logging;
use exa_mcp_accounts::{Accounts, AuthError, Token};

type Refused = Box<Response<Body>>;

/// The result of a handler.
type Answered = Result<JsonResponse, HttpRejection>;

/// A response to a request that changed nothing.
fn looked(told: Value) -> Answered {
    Ok(JsonResponse(StatusCode::OK, told))
}

/// All routes of this layer.
pub(crate) fn routes<S: ServerState>() -> Router<Arc<S>> {
    let tokens = get(tokens::tokens::<S>).post(manage::create::<S>);
    Router::new()
        .route("/", get(health::health::<S>))
        .route("/health", get(health::health::<S>))
        .route("/metrics", get(metrics::metrics::<S>))
        .route("/mcp/usage", get(tokens::own_usage::<S>))
        .route("/admin/tokens", tokens)
        .route("/admin/tokens/{id}", patch(manage::amend::<S>))
        .route("/admin/tokens/{id}/rotate", post(manage::rotate::<S>))
        .route("/admin/tokens/{id}/revoke", post(manage::revoke::<S>))
        .route("/admin/tokens/{id}/expire", post(manage::expire::<S>))
        .route("/admin/audit", get(overview::audit::<S>))
        .route("/admin/keys", get(keys::list::<S>))
        .route("/admin/keys/{id}/reset", post(keys::reset::<S>))
        .route("/admin/usage", get(overview::usage::<S>))
        .route("/admin/state", get(overview::state::<S>))
        .merge(dashboard::routes::<S>())
}

/// Authenticates the holder of a token.
fn holder<'a, S: ServerState>(
    server: &'a S,
    parts: &Parts,
) -> Result<(Arc<Token>, &'a Accounts), Refused> {
    let Some(pool) = server.pool() else {
        let why = "There are no tokens here: every client brings its own Exa key";
        let code = ErrorCode::METHOD_NOT_FOUND.0;
        return Err(Box::new(error_response(StatusCode::NOT_FOUND, code, why)));
    };
    let token = server.authenticate(parts)?;
    let token = token.ok_or_else(|| Box::new(denied(AuthError::Unknown, false)))?;
    logging::record_user(&token.owner());
    Ok((token, pool))
}

/// Authenticates an admin.
fn admin<'a, S: ServerState>(
    server: &'a S,
    parts: &Parts,
) -> Result<(Arc<Token>, &'a Accounts), Refused> {
    let (token, pool) = holder(server, parts)?;
    let admitted = token.check_admin();
    admitted.map_err(|why| {
        tracing::info!(user = %token.owner(), token = token.id, "denied: no admin");
        let target = Some(token.id.as_str());
        let address = address(server, parts);
        pool.audit
            .record_denial("denied.not_admin", &address, target, None);
        Box::new(denied(why, true))
    })?;
    Ok((token, pool))
}

/// The address of a client, as the audit log shows it.
fn address<S: ServerState>(server: &S, parts: &Parts) -> String {
    server.client_address(parts).to_canonical().to_string()
}

fn unreadable(error: &StoreError) -> Refused {
    tracing::warn!(%error, "the store could not be used for an admin");
    let why = match error {
        // The request that finds this out says what all later ones are told.
        StoreError::Replaced | StoreError::Newer(_) => error.to_string(),
        _ => "The store cannot be used now; try again later".to_owned(),
    };
    let code = ErrorCode::INTERNAL_ERROR.0;
    Box::new(error_response(StatusCode::SERVICE_UNAVAILABLE, code, &why))
}
