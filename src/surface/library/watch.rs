//! Hearing of changes.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::time::{Instant, sleep_until};

use super::watched::Mark;
use super::{Changed, Library};
use crate::accounts::Identity;
use crate::surface::{Address, Change, ResultCache};

/// The least time between two looks.
const SHORTEST: Duration = Duration::from_millis(100);

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The list of resources is another one.
    Listed,
    /// A resource, and what is within it, is another one, or is gone.
    Changed(Address),
    /// Changes came too fast; any resource may be another one.
    Missed,
}

/// Hears what happens to the resources of one owner.
pub struct Watch {
    owner: Identity,
    changes: Receiver<Arc<Changed>>,
    results: Receiver<Change>,
    cache: ResultCache,
    /// When to look whether answers have become too old: the cache looks only when it is used.
    look_at: Option<Instant>,
    /// Events that came together with another one.
    more: VecDeque<Event>,
    /// What is said of this owner elsewhere is passed on while this is kept.
    _mark: Mark,
}

impl Library {
    /// Listens from now on to what happens to the resources of this owner.
    pub fn watch(&self, owner: &Identity) -> Watch {
        let results = &self.shelves.results;
        let mut watch = Watch {
            owner: owner.clone(),
            changes: self.shelves.changes.subscribe(),
            results: results.changes(),
            cache: results.clone(),
            look_at: None,
            more: VecDeque::new(),
            _mark: self.shelves.watched.mark(owner),
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
    /// The next event; `None` when the library is gone.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.more.pop_front() {
                return Some(event);
            }
            tokio::select! {
                changed = self.changes.recv() => match changed {
                    Ok(changed) if changed.owner.as_ref().is_none_or(|owner| *owner == self.owner) => {
                        return Some(changed.event.clone());
                    }
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => return Some(self.missed()),
                    Err(RecvError::Closed) => return None,
                },
                change = self.results.recv() => match change {
                    Ok(change) => self.result_changed(change),
                    Err(RecvError::Lagged(_)) => return Some(self.missed()),
                    Err(RecvError::Closed) => return None,
                },
                () = at(self.look_at) => self.look_later(),
            }
        }
    }

    /// Has the cache drop what is too old, and comes back for the rest.
    fn look_later(&mut self) {
        let kept = self.cache.list(&self.owner);
        let oldest = kept.last().map(|kept| kept.kept_at);
        let age = oldest.map(|since| since.elapsed().unwrap_or_default());
        let left = age.map(|age| self.cache.ttl().saturating_sub(age));
        self.look_at = left.map(|left| Instant::now() + left.max(SHORTEST));
    }

    fn missed(&mut self) -> Event {
        self.more.push_back(Event::Missed);
        Event::Listed
    }

    /// A new result is only new in the list; one that is gone is also gone for whoever follows it.
    fn result_changed(&mut self, change: Change) {
        match change {
            Change::Added { owner, .. } if owner == self.owner => {
                self.more.push_back(Event::Listed);
                if self.look_at.is_none() {
                    self.look_later();
                }
            }
            Change::Gone { owner, id } if owner == self.owner => {
                let gone = Event::Changed(Address::Result(id));
                self.more.extend([gone, Event::Listed]);
            }
            _ => {}
        }
    }
}
