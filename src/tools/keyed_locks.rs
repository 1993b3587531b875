//! Locks by key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use exa_mcp_model::lock;
use tokio::sync::OwnedMutexGuard;

type AsyncMutex = tokio::sync::Mutex<()>;

/// Locks by key. Each exists while it is held or waited for.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyedLocks(Arc<Mutex<HashMap<String, Weak<AsyncMutex>>>>);

impl KeyedLocks {
    /// Waits for the lock of a key.
    pub(super) async fn lock(&self, key: &str) -> OwnedMutexGuard<()> {
        self.of_key(key).lock_owned().await
    }

    fn of_key(&self, key: &str) -> Arc<AsyncMutex> {
        let mut locks = lock(&self.0);
        if let Some(known) = locks.get(key).and_then(Weak::upgrade) {
            return known;
        }
        locks.retain(|_, unused| unused.strong_count() > 0);
        let new = Arc::default();
        locks.insert(key.to_owned(), Arc::downgrade(&new));
        new
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn keys_are_locked_separately() {
        let locks = KeyedLocks::default();
        let held = locks.lock("a").now_or_never().unwrap();
        assert!(locks.lock("a").now_or_never().is_none());
        assert!(locks.lock("b").now_or_never().is_some());
        drop(held);
        assert!(locks.lock("a").now_or_never().is_some());
    }

    #[test]
    fn unused_locks_are_removed() {
        let locks = KeyedLocks::default();
        for key in 0..100 {
            locks.lock(&key.to_string()).now_or_never().unwrap();
        }
        assert_eq!(lock(&locks.0).len(), 1);
    }
}
