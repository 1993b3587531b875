//! Whose resources somebody watches here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::accounts::Identity;

/// Whose resources somebody watches. Clones share everything.
#[derive(Clone, Default)]
pub(super) struct Watched(Arc<Mutex<HashMap<Identity, usize>>>);

impl Watched {
    /// Notes that somebody watches, until the mark is dropped.
    pub(super) fn mark(&self, owner: &Identity) -> Mark {
        *self.owners().entry(owner.clone()).or_default() += 1;
        Mark {
            watched: self.clone(),
            owner: owner.clone(),
        }
    }

    pub(super) fn contains(&self, owner: &Identity) -> bool {
        self.owners().contains_key(owner)
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<Identity, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody watches.
pub(super) struct Mark {
    watched: Watched,
    owner: Identity,
}

impl Drop for Mark {
    fn drop(&mut self) {
        let mut owners = self.watched.owners();
        if let Some(count) = owners.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                owners.remove(&self.owner);
            }
        }
    }
}
