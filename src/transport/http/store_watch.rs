//! Watching whether the store still is the one with which the server began.

use std::sync::Arc;
use std::time::Duration;

use super::gate::Gate;
use super::state::Shared;
use exa_mcp_accounts::{Token, TokenSource};
use exa_mcp_store::StoreError;

/// How often the store is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Looks at the store, for ever. What it finds is in [`exa_mcp_store::Store::refusal`].
pub(super) async fn watch<M>(shared: Arc<Shared<M>>) {
    let mut told = false;
    loop {
        tokio::time::sleep(LOOK).await;
        // A store that does not answer is another matter: it may still be the same.
        let replaced = matches!(shared.store.verify().await, Err(StoreError::Replaced));
        if replaced && !told {
            tell_revoked(&shared.gate);
        }
        told = replaced;
    }
}

/// Names the tokens of the configuration that were revoked in the data that is gone: a server that accepts
/// the store as it is lets their holders in again.
fn tell_revoked(gate: &Gate) {
    let Gate::Pool(pool) = gate else {
        return;
    };
    let is_revoked =
        |token: &&Arc<Token>| token.source == TokenSource::Environment && token.revoked.is_some();
    for token in pool.directory.tokens().iter().filter(is_revoked) {
        tracing::error!(
            token = token.id,
            user = token.user,
            "this token of the configuration was revoked; remove it from USER_TOKENS before a restart, or it is \
             valid again"
        );
    }
}
