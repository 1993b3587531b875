//! Records usage. Counters are stored before the response of the request is sent.

use std::borrow::Cow;
use std::collections::{HashMap, hash_map};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::daily::{self, Day};
use super::now;
use exa_mcp_model::{ids, lock};
use exa_mcp_store::{Counter, CounterBatch, CounterOp, CounterUpdate, Store, StoreError};

/// The counter of requests.
pub const REQUESTS: &str = "requests";
/// The counter with the time of the last request, in milliseconds since 1970.
pub const LAST_USED: &str = "lastUsedAt";

/// The maximum number of entries in a batch.
const MAX_BATCH: usize = 1_000;

/// How long a response waits for the store.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait before a failed write is retried.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Records the usage of all tokens. Clones share everything.
#[derive(Clone)]
pub struct UsageRecorder {
    queue: mpsc::UnboundedSender<UsageEntry>,
    store: Arc<dyn Store>,
}

/// Usage to write, and a channel that reports when it is written.
struct UsageEntry {
    subject: UsageSubject,
    changes: Vec<UsageChange>,
    written: oneshot::Sender<()>,
}

/// The name of a counter and its change.
type UsageChange = (Cow<'static, str>, CounterOp);

/// Whose usage is recorded, and on which day.
#[derive(Clone, PartialEq, Eq, Hash)]
struct UsageSubject {
    token: String,
    user: String,
    day: Day,
}

impl UsageRecorder {
    /// Creates a recorder for a store. Must be called inside a runtime.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let (queue, entries) = mpsc::unbounded_channel();
        tokio::spawn(run_writer(Arc::clone(&store), entries));
        Self { queue, store }
    }

    /// Returns a meter for a token and its user.
    pub(crate) fn meter(&self, token: &str, user: &str) -> UsageMeter {
        UsageMeter(Arc::new(MeterState {
            recorder: self.clone(),
            token: token.to_owned(),
            user: user.to_owned(),
            pending: Mutex::default(),
        }))
    }

    /// Returns the counters of one subject, or of all.
    ///
    /// # Errors
    /// The store fails.
    pub async fn counters(&self, subject: Option<&str>) -> Result<Vec<Counter>, StoreError> {
        self.store.counters(subject.map(str::to_owned)).await
    }

    async fn write(&self, subject: UsageSubject, changes: Vec<UsageChange>) {
        let (written, done) = oneshot::channel();
        let entry = UsageEntry {
            subject,
            changes,
            written,
        };
        if self.queue.send(entry).is_ok() {
            // A hanging store must not block responses forever; the entry stays in the queue.
            let _ = timeout(STORE_TIMEOUT, done).await;
        }
    }
}

/// Records the usage of one token. Clones share everything.
#[derive(Clone)]
pub struct UsageMeter(Arc<MeterState>);

struct MeterState {
    recorder: UsageRecorder,
    token: String,
    user: String,
    pending: Mutex<Vec<UsageChange>>,
}

impl UsageMeter {
    /// Records a request.
    pub fn record_request(&self) {
        let time = u64::try_from(now()).unwrap_or_default();
        self.push(REQUESTS.into(), CounterOp::Add(1));
        self.push(LAST_USED.into(), CounterOp::RaiseTo(time));
    }

    /// Adds to a counter.
    pub fn add(&self, name: impl Into<Cow<'static, str>>, amount: u64) {
        self.push(name.into(), CounterOp::Add(amount));
    }

    fn push(&self, name: Cow<'static, str>, op: CounterOp) {
        lock(&self.0.pending).push((name, op));
    }

    /// Writes the recorded usage and waits until it is stored.
    pub async fn commit(&self) {
        let changes = std::mem::take(&mut *lock(&self.0.pending));
        if !changes.is_empty() {
            self.0.recorder.write(self.0.subject(), changes).await;
        }
    }
}

impl Drop for MeterState {
    /// Queues usage that was not committed, without waiting for it.
    fn drop(&mut self) {
        let changes = std::mem::take(&mut *lock(&self.pending));
        if !changes.is_empty() {
            let (written, _) = oneshot::channel();
            let _ = self.recorder.queue.send(UsageEntry {
                subject: self.subject(),
                changes,
                written,
            });
        }
    }
}

impl MeterState {
    fn subject(&self) -> UsageSubject {
        UsageSubject {
            token: self.token.clone(),
            user: self.user.clone(),
            day: Day::from_timestamp(now()),
        }
    }
}

impl std::fmt::Debug for UsageMeter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("UsageMeter").field(&self.0.token).finish()
    }
}

/// Writes queued entries in batches, so that many responses share one write.
async fn run_writer(store: Arc<dyn Store>, mut entries: mpsc::UnboundedReceiver<UsageEntry>) {
    let mut unwritten = Unwritten::default();
    loop {
        let first = if unwritten.is_empty() {
            entries.recv().await
        } else {
            // A failed write is retried even if no new entry arrives.
            timeout(RETRY_DELAY, entries.recv())
                .await
                .unwrap_or_default()
        };
        if first.is_none() && unwritten.is_empty() {
            return;
        }
        // Let requests that are about to finish join the batch.
        yield_now().await;
        let mut waiting = Vec::new();
        let mut next = first;
        while let Some(entry) = next {
            unwritten.pending.add(entry.subject, entry.changes);
            waiting.push(entry.written);
            next = if waiting.len() < MAX_BATCH {
                entries.try_recv().ok()
            } else {
                None
            };
        }
        if let Err(error) = unwritten.write(&*store).await {
            tracing::warn!(%error, "cannot write usage; trying again");
            if entries.is_closed() {
                return;
            }
        }
        for written in waiting {
            // The request may have been cancelled.
            let _ = written.send(());
        }
    }
}

/// Usage that is not known to be stored.
#[derive(Default)]
struct Unwritten {
    /// The name of the writer and the number of its last batch.
    writer: String,
    sequence: u64,
    /// The batch that was sent without a response. It may be stored, so it is resent unchanged.
    sent: Option<CounterBatch>,
    pending: PendingUsage,
}

impl Unwritten {
    fn is_empty(&self) -> bool {
        self.sent.is_none() && self.pending.is_empty()
    }

    async fn write(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        if self.writer.is_empty() {
            let name = ids::random_id();
            self.writer = name.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        }
        while !self.is_empty() {
            let batch = self.sent.get_or_insert_with(|| {
                self.sequence += 1;
                CounterBatch {
                    writer: self.writer.clone(),
                    sequence: self.sequence,
                    updates: std::mem::take(&mut self.pending).into_updates(),
                }
            });
            store.update_counters_once(batch.clone()).await?;
            self.sent = None;
        }
        Ok(())
    }
}

/// Usage since the last batch, merged by subject and counter.
#[derive(Default)]
struct PendingUsage(HashMap<UsageSubject, HashMap<Cow<'static, str>, CounterOp>>);

impl PendingUsage {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, subject: UsageSubject, changes: Vec<UsageChange>) {
        let totals = self.0.entry(subject).or_default();
        for (name, op) in changes {
            merge(totals.entry(name), op);
        }
    }

    /// Returns the updates of the tokens' counters and those derived from them, merged by counter.
    fn into_updates(self) -> Vec<CounterUpdate> {
        let mut totals: HashMap<(String, String), CounterOp> = HashMap::new();
        let mut add = |update: CounterUpdate| {
            merge(totals.entry((update.subject, update.name)), update.op);
        };
        for (UsageSubject { token, user, day }, changes) in self.0 {
            for (name, op) in changes {
                let update = CounterUpdate {
                    subject: token.clone(),
                    name: name.into_owned(),
                    op,
                };
                let derived = daily::derived_updates(day, &token, &user, &update);
                derived.into_iter().for_each(&mut add);
                add(update);
            }
        }
        let updates = totals.into_iter();
        updates
            .map(|((subject, name), op)| CounterUpdate { subject, name, op })
            .collect()
    }
}

/// Merges a change with the earlier ones of the same counter.
fn merge<K>(entry: hash_map::Entry<'_, K, CounterOp>, op: CounterOp) {
    entry
        .and_modify(|total| {
            *total = match (*total, op) {
                (CounterOp::Add(a), CounterOp::Add(b)) => CounterOp::Add(a.saturating_add(b)),
                (CounterOp::RaiseTo(a), CounterOp::RaiseTo(b)) => CounterOp::RaiseTo(a.max(b)),
                // Each counter is only ever changed in one way.
                (_, latest) => latest,
            }
        })
        .or_insert(op);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;
    use exa_mcp_store::{MemoryStore, StoreFuture, delegate_store_methods};

    async fn requests(usage: &UsageRecorder, subject: &str) -> u64 {
        let counters = usage.counters(Some(subject)).await.unwrap();
        let requests = counters.iter().find(|counter| counter.name == REQUESTS);
        requests.map_or(0, |counter| counter.value)
    }

    #[tokio::test]
    async fn committed_usage_is_stored() {
        let usage = UsageRecorder::new(Arc::new(MemoryStore::default()));
        let meter = usage.meter("ann", "ann");
        meter.record_request();
        meter.add("tokens", 7);
        assert_eq!(requests(&usage, "ann").await, 0);
        meter.commit().await;
        meter.commit().await;
        assert_eq!(requests(&usage, "ann").await, 1);
        assert_eq!(requests(&usage, "bob").await, 0);
        let counters = usage.counters(Some("ann")).await.unwrap();
        let names: Vec<_> = counters
            .iter()
            .map(|counter| counter.name.as_str())
            .collect();
        assert_eq!(names, [LAST_USED, REQUESTS, "tokens"]);
    }

    #[derive(Default)]
    struct FailingStore {
        store: MemoryStore,
        fails: AtomicBool,
        writes: AtomicUsize,
        batches: Mutex<Vec<CounterBatch>>,
    }

    /// A store that fails to count while `fails` is set.
    impl Store for FailingStore {
        delegate_store_methods!();

        fn update_counters(&self, updates: Vec<CounterUpdate>) -> StoreFuture<'_, ()> {
            self.writes.fetch_add(1, Ordering::SeqCst);
            if self.fails.load(Ordering::SeqCst) {
                return Box::pin(async { Err(StoreError::Unavailable("test".to_owned())) });
            }
            self.store.update_counters(updates)
        }
        fn update_counters_once(&self, batch: CounterBatch) -> StoreFuture<'_, ()> {
            self.batches.lock().unwrap().push(batch.clone());
            self.update_counters(batch.updates)
        }
    }

    /// Records three requests while the store fails, and waits for the retry.
    async fn record_during_failure(store: &Arc<FailingStore>) -> UsageRecorder {
        store.fails.store(true, Ordering::SeqCst);
        let usage = UsageRecorder::new(store.clone());
        for _ in 0..3 {
            let meter = usage.meter("ann", "ann");
            meter.record_request();
            meter.commit().await;
        }
        assert_eq!(requests(&usage, "ann").await, 0);
        store.fails.store(false, Ordering::SeqCst);
        tokio::time::sleep(2 * RETRY_DELAY).await;
        usage
    }

    #[tokio::test(start_paused = true)]
    async fn retries_failed_writes() {
        let usage = record_during_failure(&Arc::default()).await;
        assert_eq!(requests(&usage, "ann").await, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn resends_a_failed_batch_unchanged() {
        let store = Arc::new(FailingStore::default());
        let usage = record_during_failure(&store).await;
        let batches = std::mem::take(&mut *store.batches.lock().unwrap());
        let (last, tries) = batches.split_last().unwrap();
        let first = tries.first().unwrap();
        assert!(tries.len() > 1 && tries.iter().all(|batch| batch == first));
        // Later usage is another batch.
        assert_eq!(
            (&last.writer, last.sequence),
            (&first.writer, first.sequence + 1)
        );
        assert_eq!(requests(&usage, "ann").await, 3);
    }

    #[tokio::test]
    async fn responses_share_writes() {
        let store = Arc::new(FailingStore::default());
        let usage = UsageRecorder::new(store.clone());
        let mut all = tokio::task::JoinSet::new();
        for _ in 0..500 {
            let meter = usage.meter("ann", "ann");
            all.spawn(async move {
                meter.record_request();
                meter.commit().await;
            });
        }
        all.join_all().await;
        assert_eq!(requests(&usage, "ann").await, 500);
        assert!(store.writes.load(Ordering::SeqCst) < 250);
    }
}
