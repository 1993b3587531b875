//! What servers tell each other, and whom they pass it on to.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::broadcast;
use tokio::time::{sleep, timeout};

use super::super::Resources;
use super::*;
use crate::operations::OperationExecutor;
use crate::tools::ResultCache;
use exa_mcp_exa_client::{ExaConfig, ExaHttp};
use exa_mcp_store::{CounterUpdate, MemoryStore, StoreError, StoreFuture, delegate_store_methods};

/// A store whose words reach everybody who has it, unless it is told to fail.
struct Square {
    store: MemoryStore,
    words: broadcast::Sender<StoreMessage>,
    fails: AtomicBool,
}

impl Default for Square {
    fn default() -> Self {
        Self {
            store: MemoryStore::default(),
            words: broadcast::channel(1_000).0,
            fails: AtomicBool::default(),
        }
    }
}

impl Store for Square {
    delegate_store_methods!();

    fn update_counters(&self, updates: Vec<CounterUpdate>) -> StoreFuture<'_, ()> {
        self.store.update_counters(updates)
    }
    fn publish(&self, words: Vec<String>) -> StoreFuture<'_, ()> {
        if self.fails.load(Ordering::SeqCst) {
            return Box::pin(async { Err(StoreError::Unavailable("moody".to_owned())) });
        }
        for word in words {
            let _ = self.words.send(StoreMessage::Received(Arc::from(word)));
        }
        Box::pin(async { Ok(()) })
    }
    fn subscribe(&self) -> Option<Receiver<StoreMessage>> {
        Some(self.words.subscribe())
    }
}

/// A server on the square.
fn server(square: &Arc<Square>) -> (Resources, ResultCache) {
    let caller = OperationExecutor::new(
        ExaHttp::new(ExaConfig::default()).unwrap(),
        None,
        std::sync::Arc::new(crate::operations::spend::Unlimited),
    );
    let results = ResultCache::default();
    let resources = Resources::new(caller, results.clone(), None, true);
    let store: Arc<dyn Store> = square.clone();
    resources.replicate(&store);
    (resources, results)
}

fn ann() -> Identity {
    Identity::user("ann")
}

fn changed(name: &str) -> Event {
    Event::Changed(Address::Webset(name.to_owned()))
}

#[tokio::test(start_paused = true)]
async fn the_owner_hears_at_every_server_and_nobody_else() {
    let square = Arc::new(Square::default());
    let ((here, _), (there, results)) = (server(&square), server(&square));
    let mut told = square.words.subscribe();
    let (mut anns, mut bobs) = (here.watch(&ann()), here.watch(&Identity::user("bob")));
    there.tell(&ann(), changed("a"));
    assert_eq!(anns.next().await, changed("a"));
    results.add(&ann(), "t", "search", &serde_json::json!({"results": []}));
    assert_eq!(anns.next().await, Event::Listed);
    // The same many times in a moment is told once.
    for _ in 0..100 {
        there.tell(&ann(), changed("b"));
    }
    assert_eq!(anns.next().await, changed("b"));
    sleep(10 * GATHERED).await;
    assert!(
        timeout(PAUSE, anns.next()).await.is_err(),
        "nothing comes twice"
    );
    assert!(
        timeout(PAUSE, bobs.next()).await.is_err(),
        "it is none of his business"
    );
    // What was heard is not told again.
    let mut words = 0;
    while told.try_recv().is_ok() {
        words += 1;
    }
    assert_eq!(words, 3);
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_told_is_told_later() {
    let square = Arc::new(Square::default());
    let ((here, _), (there, _)) = (server(&square), server(&square));
    let (mut near, mut far) = (there.watch(&ann()), here.watch(&ann()));
    square.fails.store(true, Ordering::SeqCst);
    there.tell(&ann(), changed("a"));
    assert_eq!(near.next().await, changed("a"), "at once where it happened");
    assert!(timeout(10 * PAUSE, far.next()).await.is_err());
    square.fails.store(false, Ordering::SeqCst);
    assert_eq!(far.next().await, changed("a"));
}

#[tokio::test(start_paused = true)]
async fn whoever_missed_something_hears_that_anything_may_have_changed() {
    let square = Arc::new(Square::default());
    let (here, _) = server(&square);
    let mut anns = here.watch(&ann());
    // Words that nobody here would say are not listened to.
    for word in [
        "",
        "{}",
        "[",
        r#"{"from": "x", "resources": {"resource": {"owner": "user:ann", "uri": "file:///etc"}}}"#,
    ] {
        let _ = square.words.send(StoreMessage::Received(Arc::from(word)));
    }
    assert!(timeout(PAUSE, anns.next()).await.is_err());
    let _ = square.words.send(StoreMessage::Missed);
    assert_eq!(anns.next().await, Event::Listed);
    assert_eq!(anns.next().await, Event::Missed);
}

#[tokio::test(start_paused = true)]
async fn too_many_changes_are_told_as_one() {
    let square = Arc::new(Square::default());
    let ((here, _), (there, _)) = (server(&square), server(&square));
    let mut anns = here.watch(&ann());
    for number in 0..3 * WAITING_TOO_LONG {
        there.tell(&Identity::user(&number.to_string()), Event::Listed);
    }
    assert_eq!(anns.next().await, Event::Listed);
    assert_eq!(anns.next().await, Event::Missed);
}

/// More changes than may wait for a reader.
const WAITING_TOO_LONG: usize = super::super::WAITING;
