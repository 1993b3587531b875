//! Requests of a session that share an id wait for each other.
//!
//! rmcp keys the requests of a session by their ids: of two under way with the same id, one would never be
//! answered. The protocol forbids that clients reuse an id, but a client that does deserves an answer too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use exa_mcp_model::lock;
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

/// A session, and an id of a request in it.
type Key = (String, String);

/// The ids of requests under way, by session.
#[derive(Default)]
pub(super) struct RequestIds(Mutex<HashMap<Key, Arc<tokio::sync::Mutex<()>>>>);

/// The turn of one request; the next one with the same id begins when this is dropped.
pub(super) struct Turn {
    ids: Arc<RequestIds>,
    key: Key,
    guard: Option<OwnedMutexGuard<()>>,
}

impl RequestIds {
    /// Waits until no other request of the session has this id.
    pub(super) async fn enter(self: &Arc<Self>, session: &str, id: &Value) -> Turn {
        let key = (session.to_owned(), id.to_string());
        let place = Arc::clone(lock(&self.0).entry(key.clone()).or_default());
        // Made before the wait, so that a request that is given up meanwhile leaves nothing behind.
        let mut turn = Turn {
            ids: Arc::clone(self),
            key,
            guard: None,
        };
        turn.guard = Some(place.lock_owned().await);
        turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut places = lock(&self.ids.0);
        self.guard = None;
        let is_last = places
            .get(&self.key)
            .is_some_and(|place| Arc::strong_count(place) == 1);
        if is_last {
            places.remove(&self.key);
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
    async fn equal_ids_of_one_session_take_turns() {
        let ids = Arc::new(RequestIds::default());
        let moment = Duration::from_millis(10);
        let first = ids.enter("a", &json!(1)).await;
        for (session, id) in [("a", json!(2)), ("a", json!("1")), ("b", json!(1))] {
            assert!(timeout(moment, ids.enter(session, &id)).await.is_ok());
        }
        let one = json!(1);
        let mut second = Box::pin(ids.enter("a", &one));
        assert!(timeout(moment, &mut second).await.is_err());
        // One that is given up while it waits.
        let third = timeout(moment, ids.enter("a", &json!(1))).await;
        assert!(third.is_err());
        drop(first);
        let second = timeout(moment, second).await;
        assert!(second.is_ok());
        drop(second);
        assert!(lock(&ids.0).is_empty());
    }
}
