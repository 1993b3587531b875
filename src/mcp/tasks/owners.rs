//! Stopping the tasks of those whose tokens have all ended.
//!
//! A task belongs to a user, who may hold several tokens, so it goes on as long as one of them is valid:
//! rotating a token stops nothing. Owners of whom no token is known are left alone: they may be known to
//! another server that shares the store.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::super::scope::ended;
use super::{Record, Tasks, Tools};
use exa_mcp_accounts::{AuthError, TokenDirectory, now};
use exa_mcp_model::Identity;

/// How often the tokens of those with tasks are looked at.
const PAUSE: Duration = Duration::from_millis(500);

impl<T: Tools> Tasks<T> {
    /// Makes tasks depend on the tokens of their owners. Must be called inside a runtime.
    pub(in super::super) fn depend_on(&self, tokens: Arc<TokenDirectory>) {
        // Known at once: tasks of earlier processes are taken up right after this.
        let _ = self.shared.tokens.set(Arc::clone(&tokens));
        let tasks = self.clone();
        tokio::spawn(async move { tasks.follow(&tokens).await });
    }

    /// Stops the tasks of those whose tokens have all ended, for ever.
    async fn follow(&self, tokens: &TokenDirectory) {
        let mut ticks = interval(PAUSE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let owners: HashSet<Identity> = {
                let running = self.running();
                running.values().map(|task| task.owner.clone()).collect()
            };
            for (owner, why) in tokens.owners_without_access(&owners, now()) {
                self.stop_all(&owner, why).await;
            }
        }
    }

    /// Stops the tasks of an owner that run here.
    async fn stop_all(&self, owner: &Identity, why: AuthError) {
        let ids: Vec<String> = {
            let running = self.running();
            let own = running.iter().filter(|(_, task)| task.owner == *owner);
            own.map(|(id, _)| id.clone()).collect()
        };
        for id in ids {
            self.stop_for(owner, &id, why).await;
        }
    }

    /// Stops a task whose owner is not admitted any more.
    async fn stop_for(&self, owner: &Identity, id: &str, why: AuthError) {
        let text = format!("stopped: {}, and its owner has no other", ended(why));
        match self.stop(owner, id, &text).await {
            Ok(_) => tracing::info!(task = id, reason = ?why, "stopped: its token has ended"),
            Err(error) => {
                tracing::warn!(task = id, error = %error.message, "could not be stopped");
            }
        }
    }

    /// Stops a task that is about to be taken up, if its owner is not admitted any more; says whether it
    /// did.
    pub(super) async fn stop_unadmitted(&self, owner: &Identity, record: &Record) -> bool {
        // One that has ended already is taken up to be stopped at Exa.
        let Some(tokens) = self.shared.tokens.get().filter(|_| !record.is_final()) else {
            return false;
        };
        let owners = HashSet::from([owner.clone()]);
        let ended = tokens.owners_without_access(&owners, now());
        let Some((_, why)) = ended.first() else {
            return false;
        };
        self.stop_for(owner, &record.id, *why).await;
        true
    }
}
