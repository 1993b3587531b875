//! Detects a replaced store.

use std::sync::Arc;
use std::time::Duration;

use super::auth::AuthMode;
use super::state::HttpState;
use exa_mcp_accounts::{Token, TokenSource};
use exa_mcp_store::StoreError;

/// How often the store is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Checks the store forever. The result is available from [`exa_mcp_store::Store::refusal`].
pub(super) async fn watch<M>(state: Arc<HttpState<M>>) {
    let mut was_replaced = false;
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        // An unreachable store may still be the same.
        let replaced = matches!(state.store.verify().await, Err(StoreError::Replaced));
        if replaced && !was_replaced {
            log_revoked_tokens(&state.auth_mode);
        }
        was_replaced = replaced;
    }
}

/// Logs the configured tokens that were revoked in the lost data. A server that accepts the replaced store
/// would accept them again.
fn log_revoked_tokens(gate: &AuthMode) {
    let AuthMode::Pool(accounts) = gate else {
        return;
    };
    let is_revoked =
        |token: &&Arc<Token>| token.source == TokenSource::Environment && token.revoked.is_some();
    for token in accounts.directory.tokens().iter().filter(is_revoked) {
        tracing::error!(
            token = token.id,
            user = token.user,
            "this token of the configuration was revoked; remove it from USER_TOKENS before a restart, or it is \
             valid again"
        );
    }
}
