//! Serializes requests of a session that share an id.
//!
//! rmcp keys the requests of a session by id: of two concurrent requests with the same id, one would never
//! get a response. The protocol forbids clients to reuse ids, but those that do still get responses this
//! way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use exa_mcp_model::lock;
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

/// A session id and a request id.
type Key = (String, String);

/// The ids of the requests in flight, by session.
#[derive(Default)]
pub(super) struct RequestIds(Mutex<HashMap<Key, Arc<tokio::sync::Mutex<()>>>>);

/// Reserves a request id. The next request with the same id continues when this is dropped.
pub(super) struct RequestIdGuard {
    ids: Arc<RequestIds>,
    key: Key,
    lock: Option<OwnedMutexGuard<()>>,
}

impl RequestIds {
    /// Waits until no other request of the session has this id.
    pub(super) async fn acquire(self: &Arc<Self>, session: &str, id: &Value) -> RequestIdGuard {
        let key = (session.to_owned(), id.to_string());
        let entry = Arc::clone(lock(&self.0).entry(key.clone()).or_default());
        // Created before the wait, so that a cancelled request cleans up after itself.
        let mut guard = RequestIdGuard {
            ids: Arc::clone(self),
            key,
            lock: None,
        };
        guard.lock = Some(entry.lock_owned().await);
        guard
    }
}

impl Drop for RequestIdGuard {
    fn drop(&mut self) {
        let mut locks = lock(&self.ids.0);
        self.lock = None;
        let is_last = locks
            .get(&self.key)
            .is_some_and(|entry| Arc::strong_count(entry) == 1);
        if is_last {
            locks.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn serializes_equal_ids_within_a_session() {
        let ids = Arc::new(RequestIds::default());
        let moment = Duration::from_millis(10);
        let first = ids.acquire("a", &json!(1)).await;
        for (session, id) in [("a", json!(2)), ("a", json!("1")), ("b", json!(1))] {
            assert!(timeout(moment, ids.acquire(session, &id)).await.is_ok());
        }
        let one = json!(1);
        let mut second = Box::pin(ids.acquire("a", &one));
        assert!(timeout(moment, &mut second).await.is_err());
        // Cancelled while it waits.
        let third = timeout(moment, ids.acquire("a", &json!(1))).await;
        assert!(third.is_err());
        drop(first);
        let second = timeout(moment, second).await;
        assert!(second.is_ok());
        drop(second);
        assert!(lock(&ids.0).is_empty());
    }
}
