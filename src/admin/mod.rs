//! The admin API, the dashboard, and the metrics and health endpoints.
//!
//! HandlerFactory see the running server through [`ServerState`] and nothing else.

mod dashboard;
mod health;
mod index;
mod keys;
mod manage;
mod metrics;
mod overview;
mod query;
mod server_state;
mod token_page;
mod tokens;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, patch, post};
use exa_mcp_store::StoreError;
use http::StatusCode;
use http::request::Parts;
use rmcp::model::ErrorCode;
use serde_json::Value;
pub(crate) use server_state::ServerState;

use crate::http_response::{
    HttpRejection, JsonResponse, RejectionResponse, denied, error_without_id,
};
use crate::telemetry::logging;
use exa_mcp_accounts::{Accounts, AuthError, Token};

/// The result of a handler.
type ApiResult = Result<JsonResponse, RejectionResponse>;

/// Returns a JSON response with status 200.
fn ok_json(body: Value) -> ApiResult {
    Ok(JsonResponse(StatusCode::OK, body))
}

/// Returns all routes of this layer.
pub(crate) fn routes<S: ServerState>() -> Router<Arc<S>> {
    let tokens = get(tokens::tokens::<S>).post(manage::create::<S>);
    Router::new()
        .route("/", get(index::index::<S>))
        .route("/health", get(health::health::<S>))
        .route("/metrics", get(metrics::metrics::<S>))
        .route("/mcp/usage", get(tokens::own_usage::<S>))
        .route("/admin/tokens", tokens)
        .route("/admin/tokens/{id}", patch(manage::update::<S>))
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
fn require_token<'a, S: ServerState>(
    server: &'a S,
    parts: &Parts,
) -> Result<(Arc<Token>, &'a Accounts), HttpRejection> {
    let Some(accounts) = server.accounts() else {
        let reason = "This server has no tokens: every client uses its own Exa API key";
        let code = ErrorCode::METHOD_NOT_FOUND.0;
        return Err(Box::new(error_without_id(
            StatusCode::NOT_FOUND,
            code,
            reason,
        )));
    };
    let token = server.authenticate(parts)?;
    let token = token.ok_or_else(|| Box::new(denied(AuthError::Unknown, false)))?;
    logging::record_user(&token.owner());
    Ok((token, accounts))
}

/// Authenticates an admin.
fn require_admin<'a, S: ServerState>(
    server: &'a S,
    parts: &Parts,
) -> Result<(Arc<Token>, &'a Accounts), HttpRejection> {
    let (token, accounts) = require_token(server, parts)?;
    let admitted = token.check_admin();
    admitted.map_err(|reason| {
        tracing::info!(user = %token.owner(), token = token.id, "denied: not an admin");
        let target = Some(token.id.as_str());
        let address = address(server, parts);
        accounts
            .audit
            .record_denial("denied.not_admin", &address, target, None);
        Box::new(denied(reason, true))
    })?;
    Ok((token, accounts))
}

/// Returns the address of a client as shown in the audit log.
fn address<S: ServerState>(server: &S, parts: &Parts) -> String {
    server.client_address(parts).to_canonical().to_string()
}

fn store_error(error: &StoreError) -> HttpRejection {
    tracing::warn!(%error, "the store failed during an admin request");
    let reason = match error {
        // All later requests are rejected with the same message.
        StoreError::Replaced | StoreError::Newer(_) => error.to_string(),
        _ => "The store is unavailable; try again later".to_owned(),
    };
    let code = ErrorCode::INTERNAL_ERROR.0;
    Box::new(error_without_id(
        StatusCode::SERVICE_UNAVAILABLE,
        code,
        &reason,
    ))
}
