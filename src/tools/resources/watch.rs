//! Watches the resources of an owner.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::ResourceEvent;
use crate::tools::ResultCache;
use crate::tools::watchers::{PendingSubscription, Subscription, Watched};
use exa_mcp_model::Identity;

/// The minimum time between two checks for expired results.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// Receives the events of the resources of one owner.
pub struct ResourceWatch {
    owner: Identity,
    subscription: Subscription,
    cache: ResultCache,
    /// When to check for expired results: the cache evicts them only when it is used.
    next_check: Option<Instant>,
}

/// A watch whose owner is not known yet.
pub struct PendingWatch {
    pending: PendingSubscription,
    cache: ResultCache,
}

impl PendingWatch {
    /// Starts to record events.
    pub(super) fn new(results: &ResultCache) -> Self {
        Self {
            pending: results.watchers().prepare(),
            cache: results.clone(),
        }
    }

    /// Returns the watch of an owner, with the events recorded so far.
    pub fn into_watch(self, owner: &Identity) -> ResourceWatch {
        let mut watch = ResourceWatch {
            owner: owner.clone(),
            subscription: self.pending.subscribe(owner),
            cache: self.cache,
            next_check: None,
        };
        watch.schedule_check();
        watch
    }
}

/// Waits until an instant, or forever without one.
pub(super) async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => pending().await,
    }
}

impl ResourceWatch {
    /// Waits for the next event.
    pub async fn next(&mut self) -> ResourceEvent {
        loop {
            tokio::select! {
                event = self.subscription.next() => {
                    if event == ResourceEvent::ListChanged && self.next_check.is_none() {
                        self.schedule_check();
                    }
                    return event;
                }
                () = at(self.next_check) => self.schedule_check(),
            }
        }
    }

    /// Limits the events to these, those that are pending included.
    pub(crate) fn watch_only(&self, watched: Arc<Mutex<Watched>>) {
        self.subscription.watch_only(watched);
    }

    /// Makes the cache evict expired results, and schedules the next check.
    fn schedule_check(&mut self) {
        let cached = self.cache.list(&self.owner);
        let oldest = cached.last().map(|cached| cached.stored_at);
        let age = oldest.map(|since| since.elapsed().unwrap_or_default());
        let left = age.map(|age| self.cache.ttl().saturating_sub(age));
        self.next_check = left.map(|left| Instant::now() + left.max(MIN_INTERVAL));
    }
}
