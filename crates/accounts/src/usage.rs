//! Who used how much. A count is in the store before the answer it belongs to leaves.

use std::borrow::Cow;
use std::collections::{HashMap, hash_map};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::daily::{self, Day};
use super::now;
use exa_mcp_model::ids;
use exa_mcp_model::lock;
use exa_mcp_store::{Batch, Count, CountChange, Step, Store, StoreError};

/// Requests, whatever they asked for.
pub const REQUESTS: &str = "requests";
/// When the last request came, in milliseconds since 1970.
pub const LAST_USED: &str = "lastUsedAt";

/// The most counts that are written together.
const MOST_AT_ONCE: usize = 1_000;

/// How long an answer waits for its count when the store is stuck.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long to wait before counts that could not be written are tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// Counts for all. Clones share everything.
#[derive(Clone)]
pub struct Usage {
    queue: mpsc::UnboundedSender<Entry>,
    store: Arc<dyn Store>,
}

/// What someone did, and whom to tell that it is written.
struct Entry {
    who: Who,
    steps: Vec<Noted>,
    written: oneshot::Sender<()>,
}

/// A number, and how it changes.
type Noted = (Cow<'static, str>, Step);

/// Who is counted, and on which day.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Who {
    subject: String,
    user: String,
    day: Day,
}

impl Usage {
    /// Counts into a store. Must be called inside a runtime.
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let (queue, entries) = mpsc::unbounded_channel();
        tokio::spawn(write(Arc::clone(&store), entries));
        Self { queue, store }
    }

    /// A meter for one of those who are counted, and the person that is counted by day with them.
    pub(crate) fn meter(&self, subject: &str, user: &str) -> Meter {
        Meter(Arc::new(Reading {
            usage: self.clone(),
            subject: subject.to_owned(),
            user: user.to_owned(),
            pending: Mutex::default(),
        }))
    }

    /// What is counted, of one or of all.
    pub async fn counts(&self, subject: Option<&str>) -> Result<Vec<Count>, StoreError> {
        self.store.counts(subject.map(str::to_owned)).await
    }

    async fn write(&self, who: Who, steps: Vec<Noted>) {
        let (written, done) = oneshot::channel();
        let entry = Entry {
            who,
            steps,
            written,
        };
        if self.queue.send(entry).is_ok() {
            // A store that is stuck must not hold up answers for ever; the count stays in the queue.
            let _ = timeout(PATIENCE, done).await;
        }
    }
}

/// Counts for one of those who are counted. Clones share everything.
#[derive(Clone)]
pub struct Meter(Arc<Reading>);

struct Reading {
    usage: Usage,
    subject: String,
    user: String,
    pending: Mutex<Vec<Noted>>,
}

impl Meter {
    /// Notes a request.
    pub fn request(&self) {
        let moment = u64::try_from(now()).unwrap_or_default();
        self.step(REQUESTS.into(), Step::Add(1));
        self.step(LAST_USED.into(), Step::Reach(moment));
    }

    /// Notes so many of something.
    pub fn add(&self, name: impl Into<Cow<'static, str>>, amount: u64) {
        self.step(name.into(), Step::Add(amount));
    }

    fn step(&self, name: Cow<'static, str>, step: Step) {
        lock(&self.0.pending).push((name, step));
    }

    /// Writes what was noted; when this returns, it is in the store.
    pub async fn commit(&self) {
        let steps = std::mem::take(&mut *lock(&self.0.pending));
        if !steps.is_empty() {
            self.0.usage.write(self.0.who(), steps).await;
        }
    }
}

impl Drop for Reading {
    /// A request that was never answered counts as well, only nobody waits for it.
    fn drop(&mut self) {
        let steps = std::mem::take(&mut *lock(&self.pending));
        if !steps.is_empty() {
            let (written, _) = oneshot::channel();
            let _ = self.usage.queue.send(Entry {
                who: self.who(),
                steps,
                written,
            });
        }
    }
}

impl Reading {
    fn who(&self) -> Who {
        Who {
            subject: self.subject.clone(),
            user: self.user.clone(),
            day: Day::of(now()),
        }
    }
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Meter").field(&self.0.subject).finish()
    }
}

/// Writes what is queued, as much at once as there is: many answers share one write.
async fn write(store: Arc<dyn Store>, mut entries: mpsc::UnboundedReceiver<Entry>) {
    let mut unwritten = Unwritten::default();
    loop {
        let first = match unwritten.is_empty() {
            true => entries.recv().await,
            // What could not be written is tried again, with or without company.
            false => timeout(PAUSE, entries.recv()).await.unwrap_or_default(),
        };
        if first.is_none() && unwritten.is_empty() {
            return;
        }
        // Whoever is about to finish now is written with the first.
        yield_now().await;
        let mut waiting = Vec::new();
        let mut next = first;
        while let Some(entry) = next {
            unwritten.fresh.note(entry.who, entry.steps);
            waiting.push(entry.written);
            next = match waiting.len() < MOST_AT_ONCE {
                true => entries.try_recv().ok(),
                false => None,
            };
        }
        if let Err(error) = unwritten.write(&*store).await {
            tracing::warn!(%error, "usage could not be written; it is kept and tried again");
            if entries.is_closed() {
                return;
            }
        }
        for written in waiting {
            // Whoever asked may have gone away.
            let _ = written.send(());
        }
    }
}

/// What is not known to be in the store.
#[derive(Default)]
struct Unwritten {
    /// Who writes, and how many batches it has told.
    writer: String,
    number: u64,
    /// What was told to the store without hearing that it is written. It may be, so it is told again as
    /// it was, and nothing is added to it.
    told: Option<Batch>,
    fresh: Fresh,
}

impl Unwritten {
    fn is_empty(&self) -> bool {
        self.told.is_none() && self.fresh.is_empty()
    }

    async fn write(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        if self.writer.is_empty() {
            let name = ids::random_id();
            self.writer = name.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        }
        while !self.is_empty() {
            let batch = self.told.get_or_insert_with(|| {
                self.number += 1;
                Batch {
                    writer: self.writer.clone(),
                    number: self.number,
                    changes: std::mem::take(&mut self.fresh).spread().changes(),
                }
            });
            store.count_once(batch.clone()).await?;
            self.told = None;
        }
        Ok(())
    }
}

/// What was noted since the last batch, taken together for each of those who are counted.
#[derive(Default)]
struct Fresh(HashMap<Who, HashMap<Cow<'static, str>, Step>>);

impl Fresh {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn note(&mut self, who: Who, steps: Vec<Noted>) {
        let sums = self.0.entry(who).or_default();
        for (name, step) in steps {
            join(sums.entry(name), step);
        }
    }

    /// The same with everything that it changes: the numbers of the day, of the month, of the person.
    fn spread(self) -> Sum {
        let mut sum = Sum::default();
        for (who, steps) in self.0 {
            for (name, step) in steps {
                let change = CountChange {
                    subject: who.subject.clone(),
                    name: name.into_owned(),
                    step,
                };
                let also = daily::also(who.day, &who.subject, &who.user, &change);
                also.into_iter().for_each(|change| sum.add(change));
                sum.add(change);
            }
        }
        sum
    }
}

/// Takes a step together with those of the same number.
fn join<K>(known: hash_map::Entry<'_, K, Step>, step: Step) {
    known
        .and_modify(|sum| {
            *sum = match (*sum, step) {
                (Step::Add(a), Step::Add(b)) => Step::Add(a.saturating_add(b)),
                (Step::Reach(a), Step::Reach(b)) => Step::Reach(a.max(b)),
                // Each number is of one kind.
                (_, latest) => latest,
            }
        })
        .or_insert(step);
}

/// Changes, with those of the same number taken together.
#[derive(Default)]
struct Sum(HashMap<(String, String), Step>);

impl Sum {
    fn add(&mut self, change: CountChange) {
        join(self.0.entry((change.subject, change.name)), change.step);
    }

    fn changes(self) -> Vec<CountChange> {
        let changes = self.0.into_iter();
        let changes = changes.map(|((subject, name), step)| CountChange {
            subject,
            name,
            step,
        });
        changes.collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;
    use exa_mcp_store::{MemoryStore, Pending, kept_in_memory};

    async fn requests(usage: &Usage, subject: &str) -> u64 {
        let counts = usage.counts(Some(subject)).await.unwrap();
        let requests = counts.iter().find(|count| count.name == REQUESTS);
        requests.map_or(0, |count| count.value)
    }

    #[tokio::test]
    async fn what_is_committed_is_in_the_store() {
        let usage = Usage::new(Arc::new(MemoryStore::default()));
        let meter = usage.meter("ann", "ann");
        meter.request();
        meter.add("tokens", 7);
        assert_eq!(requests(&usage, "ann").await, 0);
        meter.commit().await;
        meter.commit().await;
        assert_eq!(requests(&usage, "ann").await, 1);
        assert_eq!(requests(&usage, "bob").await, 0);
        let counts = usage.counts(Some("ann")).await.unwrap();
        let names: Vec<_> = counts.iter().map(|count| count.name.as_str()).collect();
        assert_eq!(names, [LAST_USED, REQUESTS, "tokens"]);
    }

    #[derive(Default)]
    struct Moody {
        store: MemoryStore,
        fails: AtomicBool,
        writes: AtomicUsize,
        told: Mutex<Vec<Batch>>,
    }

    /// A store that fails to count as long as it is told to.
    impl Store for Moody {
        kept_in_memory!();

        fn count(&self, changes: Vec<CountChange>) -> Pending<'_, ()> {
            self.writes.fetch_add(1, Ordering::SeqCst);
            match self.fails.load(Ordering::SeqCst) {
                true => Box::pin(async { Err(StoreError::Unavailable("moody".to_owned())) }),
                false => self.store.count(changes),
            }
        }
        fn count_once(&self, batch: Batch) -> Pending<'_, ()> {
            self.told.lock().unwrap().push(batch.clone());
            self.count(batch.changes)
        }
    }

    /// Three requests while the store fails, and a while in which it does not any more.
    async fn through_bad_times(store: &Arc<Moody>) -> Usage {
        store.fails.store(true, Ordering::SeqCst);
        let usage = Usage::new(store.clone());
        for _ in 0..3 {
            let meter = usage.meter("ann", "ann");
            meter.request();
            meter.commit().await;
        }
        assert_eq!(requests(&usage, "ann").await, 0);
        store.fails.store(false, Ordering::SeqCst);
        tokio::time::sleep(2 * PAUSE).await;
        usage
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_lost_while_the_store_fails() {
        let usage = through_bad_times(&Arc::default()).await;
        assert_eq!(requests(&usage, "ann").await, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_have_been_written_is_told_again_as_it_was() {
        let store = Arc::new(Moody::default());
        let usage = through_bad_times(&store).await;
        let told = std::mem::take(&mut *store.told.lock().unwrap());
        let (last, tries) = told.split_last().unwrap();
        let first = tries.first().unwrap();
        assert!(tries.len() > 1 && tries.iter().all(|told| told == first));
        // What came later is another batch.
        assert_eq!(
            (&last.writer, last.number),
            (&first.writer, first.number + 1)
        );
        assert_eq!(requests(&usage, "ann").await, 3);
    }

    #[tokio::test]
    async fn many_answers_share_a_write() {
        let store = Arc::new(Moody::default());
        let usage = Usage::new(store.clone());
        let mut all = tokio::task::JoinSet::new();
        for _ in 0..500 {
            let meter = usage.meter("ann", "ann");
            all.spawn(async move {
                meter.request();
                meter.commit().await;
            });
        }
        all.join_all().await;
        assert_eq!(requests(&usage, "ann").await, 500);
        assert!(store.writes.load(Ordering::SeqCst) < 250);
    }
}
