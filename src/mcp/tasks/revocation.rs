//! Stops the tasks of owners whose tokens have all ended.
//!
//! A task belongs to a user, who may have several tokens, so it continues as long as one of them is valid: rotating a
//! token stops nothing. Owners without a known token are left alone: another server on the same store may know them.

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::super::scope::end_reason;
use super::{TaskRecord, Tasks, Tools};
use exa_mcp_accounts::{AuthError, TokenDirectory, now};
use exa_mcp_model::Identity;

/// How often the tokens of task owners are checked.
const PAUSE: Duration = Duration::from_millis(500);

/// Stops the tasks of owners without a valid token.
pub(super) struct TaskRevocation<'a, T> {
    pub(super) tasks: &'a Tasks<T>,
    pub(super) tokens: &'a TokenDirectory,
}

impl<T: Tools> TaskRevocation<'_, T> {
    /// Stops the tasks of owners whose tokens have all ended, forever.
    pub(super) async fn watch(&self) {
        let mut ticks = interval(PAUSE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let owners: HashSet<Identity> = {
                let running = self.tasks.running();
                running.values().map(|task| task.owner.clone()).collect()
            };
            for (owner, reason) in self.tokens.owners_without_access(&owners, now()) {
                self.stop_all(&owner, reason).await;
            }
        }
    }

    /// Stops the tasks of an owner that run in this process.
    async fn stop_all(&self, owner: &Identity, reason: AuthError) {
        let ids: Vec<String> = {
            let running = self.tasks.running();
            let own = running.iter().filter(|(_, task)| task.owner == *owner);
            own.map(|(id, _)| id.clone()).collect()
        };
        for id in ids {
            self.stop_revoked(owner, &id, reason).await;
        }
    }

    /// Stops a task whose owner has no valid token.
    async fn stop_revoked(&self, owner: &Identity, id: &str, reason: AuthError) {
        let text = format!(
            "stopped: {}, and its owner has no other",
            end_reason(reason)
        );
        match self.tasks.stop(owner, id, &text).await {
            Ok(_) => tracing::info!(task = id, ?reason, "stopped: its token has ended"),
            Err(error) => {
                tracing::warn!(task = id, error = %error.message, "could not be stopped");
            }
        }
    }

    /// Stops a task that is about to be resumed, if its owner has no valid token; returns whether it did.
    pub(super) async fn stop_if_revoked(&self, owner: &Identity, record: &TaskRecord) -> bool {
        // A finished task is resumed only to cancel its job at Exa.
        if record.is_final() {
            return false;
        }
        let owners = HashSet::from([owner.clone()]);
        let ended = self.tokens.owners_without_access(&owners, now());
        let Some((_, reason)) = ended.first() else {
            return false;
        };
        self.stop_revoked(owner, &record.id, *reason).await;
        true
    }
}
