//! Hearing of changes.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::Event;
use crate::tools::ResultCache;
use crate::tools::watchers::{ExpectedSubscription, Followed, Subscription};
use exa_mcp_model::Identity;

/// The least time between two looks.
const SHORTEST: Duration = Duration::from_millis(100);

/// Hears what happens to the resources of one owner.
pub struct Watch {
    owner: Identity,
    subscription: Subscription,
    cache: ResultCache,
    /// When to look whether answers have become too old: the cache looks only when it is used.
    look_at: Option<Instant>,
}

/// A watch whose owner is not known yet.
pub struct ExpectedWatch {
    expected: ExpectedSubscription,
    cache: ResultCache,
}

impl ExpectedWatch {
    /// Listens from now on.
    pub(super) fn new(results: &ResultCache) -> Self {
        Self {
            expected: results.watchers().expect(),
            cache: results.clone(),
        }
    }

    /// The watch of this owner, with what has happened meanwhile.
    pub fn of(self, owner: &Identity) -> Watch {
        let mut watch = Watch {
            owner: owner.clone(),
            subscription: self.expected.subscribe(owner),
            cache: self.cache,
            look_at: None,
        };
        watch.look_later();
        watch
    }
}

/// Waits until this moment; without one, for ever.
pub(super) async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => pending().await,
    }
}

impl Watch {
    /// The next event.
    pub async fn next(&mut self) -> Event {
        loop {
            tokio::select! {
                event = self.subscription.next() => {
                    if event == Event::Listed && self.look_at.is_none() {
                        self.look_later();
                    }
                    return event;
                }
                () = at(self.look_at) => self.look_later(),
            }
        }
    }

    /// Hears of these resources only.
    pub(crate) fn only(&self, followed: Arc<Mutex<Followed>>) {
        self.subscription.only(followed);
    }

    /// Hears no longer of changes of the list.
    pub(crate) fn ignore_lists(&self) {
        self.subscription.ignore_lists();
    }

    /// Does not hear of changes of the list until [`Self::resume_lists`].
    pub(crate) fn pause_lists(&self) {
        self.subscription.pause_lists();
    }

    /// Hears of changes of the list again, and of one in between.
    pub(crate) fn resume_lists(&self) {
        self.subscription.resume_lists();
    }

    /// Has the cache drop what is too old, and comes back for the rest.
    fn look_later(&mut self) {
        let kept = self.cache.list(&self.owner);
        let oldest = kept.last().map(|kept| kept.kept_at);
        let age = oldest.map(|since| since.elapsed().unwrap_or_default());
        let left = age.map(|age| self.cache.ttl().saturating_sub(age));
        self.look_at = left.map(|left| Instant::now() + left.max(SHORTEST));
    }
}
