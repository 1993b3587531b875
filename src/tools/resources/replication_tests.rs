//! Replication of changes between servers.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::broadcast;
use tokio::time::{sleep, timeout};

use super::super::{MAX_PENDING_CHANGES, Resources};
use super::*;
use crate::operations::OperationExecutor;
use crate::tools::ResultCache;
use exa_mcp_exa_client::{ExaConfig, ExaHttp};
use exa_mcp_store::{CounterUpdate, MemoryStore, StoreError, StoreFuture, delegate_store_methods};

/// A store that broadcasts messages to all servers, or fails on request.
struct BroadcastStore {
    store: MemoryStore,
    messages: broadcast::Sender<StoreMessage>,
    fails: AtomicBool,
}

impl Default for BroadcastStore {
    fn default() -> Self {
        Self {
            store: MemoryStore::default(),
            messages: broadcast::channel(1_000).0,
            fails: AtomicBool::default(),
        }
    }
}

impl Store for BroadcastStore {
    delegate_store_methods!();

    fn update_counters(&self, updates: Vec<CounterUpdate>) -> StoreFuture<'_, ()> {
        self.store.update_counters(updates)
    }
    fn publish(&self, messages: Vec<String>) -> StoreFuture<'_, ()> {
        if self.fails.load(Ordering::SeqCst) {
            return Box::pin(async { Err(StoreError::Unavailable("test failure".to_owned())) });
        }
        for message in messages {
            let _ = self
                .messages
                .send(StoreMessage::Received(Arc::from(message)));
        }
        Box::pin(async { Ok(()) })
    }
    fn subscribe(&self) -> Option<Receiver<StoreMessage>> {
        Some(self.messages.subscribe())
    }
}

/// Creates a server on the store.
fn server(shared_store: &Arc<BroadcastStore>) -> (Resources, ResultCache) {
    let executor = OperationExecutor::new(
        ExaHttp::new(ExaConfig::default()).unwrap(),
        None,
        std::sync::Arc::new(crate::operations::spend::Unlimited),
    );
    let results = ResultCache::default();
    let resources = Resources::new(executor, results.clone(), None, true);
    let store: Arc<dyn Store> = shared_store.clone();
    resources.replicate(&store);
    (resources, results)
}

fn ann() -> Identity {
    Identity::user("ann")
}

fn changed(name: &str) -> ResourceEvent {
    ResourceEvent::Updated(ResourceUri::Webset(name.to_owned()))
}

#[tokio::test(start_paused = true)]
async fn notifies_the_owner_on_every_server_and_nobody_else() {
    let store = Arc::new(BroadcastStore::default());
    let ((here, _), (there, results)) = (server(&store), server(&store));
    let mut sent = store.messages.subscribe();
    let (mut ann_watch, mut bob_watch) = (here.watch(&ann()), here.watch(&Identity::user("bob")));
    there.notify(&ann(), changed("a"));
    assert_eq!(ann_watch.next().await, changed("a"));
    results.add(&ann(), "t", "search", &serde_json::json!({"results": []}));
    assert_eq!(ann_watch.next().await, ResourceEvent::ListChanged);
    // Equal changes within a batch are sent once.
    for _ in 0..100 {
        there.notify(&ann(), changed("b"));
    }
    assert_eq!(ann_watch.next().await, changed("b"));
    sleep(10 * BATCH_TIME).await;
    assert!(
        timeout(RETRY_DELAY, ann_watch.next()).await.is_err(),
        "no event is repeated"
    );
    assert!(
        timeout(RETRY_DELAY, bob_watch.next()).await.is_err(),
        "another owner is not notified"
    );
    // Received changes are not published again.
    let mut messages = 0;
    while sent.try_recv().is_ok() {
        messages += 1;
    }
    assert_eq!(messages, 3);
}

#[tokio::test(start_paused = true)]
async fn retries_failed_publications() {
    let store = Arc::new(BroadcastStore::default());
    let ((here, _), (there, _)) = (server(&store), server(&store));
    let (mut near, mut far) = (there.watch(&ann()), here.watch(&ann()));
    store.fails.store(true, Ordering::SeqCst);
    there.notify(&ann(), changed("a"));
    assert_eq!(
        near.next().await,
        changed("a"),
        "local watchers are notified at once"
    );
    assert!(timeout(10 * RETRY_DELAY, far.next()).await.is_err());
    store.fails.store(false, Ordering::SeqCst);
    assert_eq!(far.next().await, changed("a"));
}

#[tokio::test(start_paused = true)]
async fn reports_lost_messages_as_changes_of_anything() {
    let store = Arc::new(BroadcastStore::default());
    let (here, _) = server(&store);
    let mut ann_watch = here.watch(&ann());
    // Unknown and invalid messages are ignored.
    for message in [
        "",
        "{}",
        "[",
        r#"{"from": "x", "resources": {"resource": {"owner": "user:ann", "uri": "file:///etc"}}}"#,
    ] {
        let _ = store
            .messages
            .send(StoreMessage::Received(Arc::from(message)));
    }
    assert!(timeout(RETRY_DELAY, ann_watch.next()).await.is_err());
    let _ = store.messages.send(StoreMessage::Missed);
    assert_eq!(ann_watch.next().await, ResourceEvent::ListChanged);
    assert_eq!(ann_watch.next().await, ResourceEvent::Lagged);
}

#[tokio::test(start_paused = true)]
async fn collapses_too_many_changes_into_one() {
    let store = Arc::new(BroadcastStore::default());
    let ((here, _), (there, _)) = (server(&store), server(&store));
    let mut ann_watch = here.watch(&ann());
    for number in 0..3 * MAX_PENDING_CHANGES {
        there.notify(
            &Identity::user(&number.to_string()),
            ResourceEvent::ListChanged,
        );
    }
    assert_eq!(ann_watch.next().await, ResourceEvent::ListChanged);
    assert_eq!(ann_watch.next().await, ResourceEvent::Lagged);
}
