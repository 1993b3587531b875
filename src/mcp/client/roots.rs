//! The roots of a session's client, cached if the client notifies of changes.

use exa_mcp_model::lock;
use std::sync::{Arc, Mutex};

/// A cache of a client's roots. Clones share it.
#[derive(Clone, Default)]
pub(in super::super) struct KnownRoots {
    /// The client notifies of changes, so the cached roots are valid until it does.
    notifies_changes: bool,
    cache: Arc<Mutex<RootsCache>>,
}

#[derive(Default)]
struct RootsCache {
    /// Counts the changes.
    generation: u64,
    roots: Option<Vec<String>>,
}

impl KnownRoots {
    /// Sets whether the client notifies of changes.
    pub(super) fn with_change_notifications(&self, notifies_changes: bool) -> Self {
        Self {
            notifies_changes,
            cache: Arc::clone(&self.cache),
        }
    }

    /// Returns the cached roots, if they are valid.
    pub(super) fn get(&self) -> Option<Vec<String>> {
        lock(&self.cache)
            .roots
            .clone()
            .filter(|_| self.notifies_changes)
    }

    /// Returns the current generation, which a request notes before it is sent.
    pub(super) fn generation(&self) -> u64 {
        lock(&self.cache).generation
    }

    /// Caches the response to a request of this generation, unless the roots have changed since.
    pub(super) fn put(&self, generation: u64, roots: &[String]) {
        let mut cache = lock(&self.cache);
        if cache.generation == generation {
            cache.roots = Some(roots.to_vec());
        }
    }

    /// Invalidates the cache, because the client notified of a change.
    pub(in super::super) fn invalidate(&self) {
        let mut cache = lock(&self.cache);
        cache.generation += 1;
        cache.roots = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn does_not_cache_a_response_from_before_a_change() {
        let known = KnownRoots::default().with_change_notifications(true);
        let generation = known.generation();
        known.invalidate();
        known.put(generation, &["file:///old".to_owned()]);
        assert_eq!(known.get(), None);
        known.put(known.generation(), &["file:///new".to_owned()]);
        assert_eq!(known.get(), Some(vec!["file:///new".to_owned()]));
        known.invalidate();
        assert_eq!(known.get(), None);
    }

    #[test]
    fn does_not_cache_without_change_notifications() {
        let known = KnownRoots::default().with_change_notifications(false);
        known.put(known.generation(), &["file:///a".to_owned()]);
        assert_eq!(known.get(), None);
    }
}
