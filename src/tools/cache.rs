//! Answers that are kept for a while, so that looking at one again costs nothing.
//!
//! An answer belongs to whoever asked for it; nobody else finds it, not even by its id.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Map, Value};
use tokio::sync::broadcast;

use super::Address;
use super::watchers::{Event, Watchers};
use crate::render::{Answer, Envelope, Level, Rendered, View};
use exa_mcp_model::ids;
use exa_mcp_model::{Identity, lock};

/// How long an answer is kept unless the operator says otherwise.
const DEFAULT_TTL: Duration = Duration::from_secs(300);

/// How many bytes of answers are kept unless the operator says otherwise.
const DEFAULT_BYTES: usize = 32 * 1024 * 1024;

/// What an entry costs beside its texts: itself, its id in four places, its slots in two tables that are
/// half empty, and what the allocator rounds up.
const OVERHEAD: usize = 950;

/// The part of a text that is lost beside it: between texts that come and go, memory has gaps that
/// nothing fits into.
const LOST: usize = 5;

/// Additions that a slow listener may miss before it is told that it missed some.
const MOST_ADDITIONS: usize = 64;

/// CachedResult answers, shared by all clones.
#[derive(Clone)]
pub(crate) struct ResultCache {
    inner: Arc<Mutex<Inner>>,
    hashers: Arc<[RandomState; 2]>,
    limits: Limits,
    /// What is told to other servers.
    additions: broadcast::Sender<Identity>,
    /// Whoever wants to hear of changes here.
    watchers: Watchers,
}

/// How much is kept, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all answers together.
    pub bytes: usize,
    /// The life of an answer.
    pub ttl: Duration,
}

impl Limits {
    /// Whether no answer at all is kept.
    pub fn keeps_nothing(&self) -> bool {
        self.bytes == 0 || self.ttl.is_zero()
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: DEFAULT_BYTES,
            ttl: DEFAULT_TTL,
        }
    }
}

/// A kept answer.
#[derive(Clone, Debug)]
pub(crate) struct CachedResult {
    /// Its id.
    pub id: String,
    /// What was asked, in a line.
    pub title: String,
    /// The operation that was called.
    pub operation: String,
    /// The size of the answer.
    pub bytes: usize,
    /// How many results it has.
    pub results: usize,
    /// When it was kept.
    pub kept_at: SystemTime,
    /// The API's answer as JSON text.
    pub answer: Arc<str>,
    /// The level that the request was made for, where a tool chose what to ask for.
    pub asked: Option<Level>,
    /// Characters of text that the request asked for.
    pub extract: Option<usize>,
}

impl CachedResult {
    /// The answer as it is to be shown; whoever shows it adds what there is to say.
    pub(super) fn opened(&self) -> Answer<'_> {
        let answer = serde_json::from_str(&self.answer).unwrap_or_default();
        Answer {
            operation: &self.operation,
            envelope: Envelope::open(answer),
            told: Map::new(),
            cache_id: Some(&self.id),
            repeatable: true,
            cached: true,
            asked: self.asked,
            mended: Vec::new(),
            warnings: Vec::new(),
            sent_filters: Vec::new(),
        }
    }
}

/// An answer that is to be kept.
pub(super) struct Fresh<'a> {
    pub(super) title: String,
    pub(super) operation: &'a str,
    pub(super) arguments: &'a Map<String, Value>,
    pub(super) results: usize,
    pub(super) answer: String,
    pub(super) asked: Option<Level>,
    pub(super) extract: Option<usize>,
}

/// How an answer is to be shown: the same wish gets the same text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wish {
    pub(super) view: View,
    /// The level that the caller named.
    pub(super) level: Option<Level>,
    /// What was put right in the arguments.
    pub(super) mended: Vec<String>,
    /// Filters that Exa applied.
    pub(super) sent_filters: Vec<String>,
}

/// The last wish for an answer, and what came of it.
struct Look {
    wish: Wish,
    rendered: Arc<Rendered>,
    bytes: usize,
}

#[derive(Default)]
struct Inner {
    /// Boxed: a table has room for twice as many as there are.
    entries: HashMap<String, Box<Entry>>,
    /// Ids, the oldest first.
    order: VecDeque<String>,
    /// The latest answer to each question.
    questions: HashMap<u128, String>,
    bytes: usize,
}

struct Entry {
    owner: Identity,
    kept: CachedResult,
    question: u128,
    since: Instant,
    /// Of the answer alone.
    bytes: usize,
    look: Option<Box<Look>>,
}

impl Entry {
    fn all_bytes(&self) -> usize {
        self.bytes + self.look.as_ref().map_or(0, |look| look.bytes)
    }
}

impl Default for ResultCache {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl ResultCache {
    /// An empty cache; one without bytes or time keeps nothing.
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            inner: Arc::default(),
            hashers: Arc::new([RandomState::new(), RandomState::new()]),
            limits,
            additions: broadcast::channel(MOST_ADDITIONS).0,
            watchers: Watchers::default(),
        }
    }

    /// How much is kept, and for how long.
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// How long an answer is kept.
    pub(crate) fn ttl(&self) -> Duration {
        self.limits.ttl
    }

    /// What is kept for this owner, newest first.
    pub(crate) fn list(&self, owner: &Identity) -> Vec<CachedResult> {
        let inner = self.open();
        let entries = inner
            .order
            .iter()
            .rev()
            .filter_map(|id| inner.entries.get(id));
        let own = entries.filter(|entry| entry.owner == *owner);
        own.map(|entry| entry.kept.clone()).collect()
    }

    /// One answer; `None` for an unknown, foreign or expired id.
    pub(crate) fn get(&self, owner: &Identity, id: &str) -> Option<CachedResult> {
        let inner = self.open();
        let entry = inner
            .entries
            .get(id)
            .filter(|entry| entry.owner == *owner)?;
        Some(entry.kept.clone())
    }

    /// The answer to the same question.
    pub(super) fn same(
        &self,
        owner: &Identity,
        operation: &str,
        arguments: &Map<String, Value>,
    ) -> Option<CachedResult> {
        let question = self.question(owner, operation, arguments);
        let inner = self.open();
        let id = inner.questions.get(&question)?;
        let entry = inner
            .entries
            .get(id)
            .filter(|entry| entry.owner == *owner)?;
        Some(entry.kept.clone())
    }

    /// Returns how many bytes an answer may have to be kept: one must not throw out all others.
    pub(super) fn max_answer_bytes(&self) -> usize {
        if self.limits.ttl.is_zero() {
            return 0;
        }
        self.limits.bytes / 2
    }

    /// Keeps an answer; one that is too large for the cache is not kept.
    pub(super) fn keep(&self, owner: &Identity, fresh: Fresh<'_>) -> Option<CachedResult> {
        let texts = fresh.answer.len() + fresh.title.len() + fresh.operation.len();
        let bytes = texts + texts / LOST + OVERHEAD;
        if bytes > self.max_answer_bytes() {
            return None;
        }
        let id = format!("r_{}", ids::random_id().ok()?);
        let question = self.question(owner, fresh.operation, fresh.arguments);
        let kept = CachedResult {
            id: id.clone(),
            title: fresh.title,
            operation: fresh.operation.to_owned(),
            bytes: fresh.answer.len(),
            results: fresh.results,
            kept_at: SystemTime::now(),
            answer: fresh.answer.into(),
            asked: fresh.asked,
            extract: fresh.extract,
        };
        let mut inner = self.open();
        while inner.bytes + bytes > self.limits.bytes {
            self.drop_oldest(&mut inner)?;
        }
        inner.bytes += bytes;
        inner.order.push_back(id.clone());
        inner.questions.insert(question, id.clone());
        let entry = Entry {
            owner: owner.clone(),
            kept: kept.clone(),
            question,
            since: Instant::now(),
            bytes,
            look: None,
        };
        inner.entries.insert(id, Box::new(entry));
        drop(inner);
        self.watchers.tell(owner, &Event::Listed);
        let _ = self.additions.send(owner.clone());
        Some(kept)
    }

    /// An answer as it was last shown, if it is wished in the same way again.
    pub(super) fn seen(&self, owner: &Identity, id: &str, wish: &Wish) -> Option<Arc<Rendered>> {
        let inner = self.open();
        let entry = inner.entries.get(id).filter(|entry| entry.owner == *owner);
        let look = entry?.look.as_ref().filter(|look| look.wish == *wish)?;
        Some(Arc::clone(&look.rendered))
    }

    /// Remembers how an answer was shown. It counts as a part of the answer, and is not worth the place
    /// of others.
    pub(super) fn show(&self, owner: &Identity, id: &str, wish: Wish, rendered: Arc<Rendered>) {
        // Text and data say the same, and data is several times larger in memory.
        let bytes = rendered.text.len() * 4 + OVERHEAD;
        let mut inner = self.open();
        let used = inner.bytes;
        let entry = inner.entries.get_mut(id);
        let Some(entry) = entry.filter(|entry| entry.owner == *owner) else {
            return;
        };
        let used = used.saturating_sub(entry.all_bytes() - entry.bytes);
        entry.look = (used + bytes <= self.limits.bytes).then(|| {
            Box::new(Look {
                wish,
                rendered,
                bytes,
            })
        });
        let kept = entry.look.as_ref().map_or(0, |look| look.bytes);
        inner.bytes = used + kept;
    }

    /// Whoever wants to hear of changes.
    pub(super) fn watchers(&self) -> &Watchers {
        &self.watchers
    }

    /// The owners of answers that are kept from now on.
    pub(super) fn additions(&self) -> broadcast::Receiver<Identity> {
        self.additions.subscribe()
    }

    /// The cache without what is too old.
    fn open(&self) -> MutexGuard<'_, Inner> {
        let mut inner = lock(&self.inner);
        let ttl = self.limits.ttl;
        while inner
            .order
            .front()
            .and_then(|id| inner.entries.get(id))
            .is_some_and(|entry| entry.since.elapsed() >= ttl)
        {
            self.drop_oldest(&mut inner);
        }
        inner
    }

    fn drop_oldest(&self, inner: &mut Inner) -> Option<()> {
        let id = inner.order.pop_front()?;
        let entry = inner.entries.remove(&id)?;
        inner.bytes = inner.bytes.saturating_sub(entry.all_bytes());
        if inner.questions.get(&entry.question) == Some(&id) {
            inner.questions.remove(&entry.question);
        }
        let gone = Event::Changed(Address::Result(id));
        self.watchers.tell(&entry.owner, &gone);
        self.watchers.tell(&entry.owner, &Event::Listed);
        Some(())
    }

    /// A question in brief. The hashes have secret seeds, so that nobody can make two questions meet.
    fn question(&self, owner: &Identity, operation: &str, arguments: &Map<String, Value>) -> u128 {
        let mut sorted: Vec<(&String, &Value)> = arguments.iter().collect();
        sorted.sort_by_key(|(name, _)| *name);
        let text = serde_json::to_string(&sorted).unwrap_or_default();
        let [first, second] = self.hashers.as_ref();
        let all = (owner, operation, text);
        (u128::from(first.hash_one(&all)) << 64) | u128::from(second.hash_one(&all))
    }
}

#[cfg(test)]
#[allow(dead_code)]
impl ResultCache {
    /// Keeps an answer for a test.
    pub(crate) fn add(
        &self,
        owner: &Identity,
        title: &str,
        operation: &str,
        answer: &Value,
    ) -> CachedResult {
        let fresh = Fresh {
            title: title.to_owned(),
            operation,
            arguments: &Map::new(),
            results: Envelope::open(answer.clone()).results.len(),
            answer: answer.to_string(),
            asked: None,
            extract: None,
        };
        self.keep(owner, fresh)
            .unwrap_or_else(|| unreachable!("a small answer is kept"))
    }

    /// Takes the oldest answer away.
    pub(crate) fn forget_oldest(&self) {
        let mut inner = self.open();
        self.drop_oldest(&mut inner);
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
#[allow(clippy::unwrap_used)]
mod tests;
