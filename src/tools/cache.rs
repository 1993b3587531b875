//! A cache of results, so that reading one again costs nothing.
//!
//! A result belongs to the caller that requested it; nobody else finds it, even by its id.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Map, Value};
use tokio::sync::{OwnedMutexGuard, broadcast};

use super::ResourceUri;
use super::expansion::Expansion;
use super::keyed_locks::KeyedLocks;
use super::watchers::{ResourceEvent, Watchers};
use crate::render::{ColumnTitles, ContentLevel, Envelope, RenderInput, Rendered, View};
use exa_mcp_model::{Identity, ids, lock};

/// How long a result is cached by default.
const DEFAULT_TTL: Duration = Duration::from_secs(300);

/// The default size of the cache, in bytes.
const DEFAULT_MAX_BYTES: usize = 32 * 1024 * 1024;

/// Bytes of an entry beside its texts: the struct, four copies of its id, slots in two half-empty tables, and
/// allocator rounding.
const ENTRY_OVERHEAD: usize = 950;

/// One byte per this many is added for memory fragmentation.
const FRAGMENTATION_DIVISOR: usize = 5;

/// Additions that a slow receiver may have pending before it lags.
const MAX_PENDING_ADDITIONS: usize = 64;

/// The cached results, shared by all clones.
#[derive(Clone)]
pub(crate) struct ResultCache {
    inner: Arc<Mutex<Inner>>,
    hashers: Arc<[RandomState; 2]>,
    limits: CacheLimits,
    /// Owners of new results, for replication to other servers.
    additions: broadcast::Sender<Identity>,
    /// Subscribers to changes on this server.
    watchers: Watchers,
    /// Purchases of more contents, by the ids of their results.
    purchases: KeyedLocks,
}

/// The size of the cache and the lifetime of its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// Maximum bytes of all results together.
    pub bytes: usize,
    /// How long a result is cached.
    pub ttl: Duration,
}

impl CacheLimits {
    /// Returns whether nothing is cached.
    pub fn is_disabled(&self) -> bool {
        self.bytes == 0 || self.ttl.is_zero()
    }
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self {
            bytes: DEFAULT_MAX_BYTES,
            ttl: DEFAULT_TTL,
        }
    }
}

/// A cached result.
#[derive(Clone, Debug)]
pub(crate) struct CachedResult {
    /// Its id.
    pub id: String,
    /// The request in one line.
    pub title: String,
    /// The operation that was called.
    pub operation: String,
    /// The size of the response, in bytes.
    pub bytes: usize,
    /// The number of results in the response.
    pub results: usize,
    /// When it was stored.
    pub stored_at: SystemTime,
    /// The response as JSON text.
    pub response: Arc<str>,
    /// The level for which the tool chose the arguments of the request, if it did.
    pub requested_level: Option<ContentLevel>,
    /// Characters of text that the request asked for, if it did.
    pub extract: Option<usize>,
    /// Fields that were only requested in case the caller wants more.
    pub extra: Vec<String>,
    /// How to get the contents of a higher level, if the request did not have them.
    pub expansion: Option<Arc<Expansion>>,
}

impl CachedResult {
    /// Returns the level of what was requested from Exa, if the tool chose it and there is no more.
    pub(super) fn fetched_level(&self) -> Option<ContentLevel> {
        self.requested_level.filter(|_| self.extra.is_empty())
    }

    /// Returns the input for rendering, without warnings and corrections.
    pub(super) fn to_render_input(&self) -> RenderInput<'_> {
        let response: Value = serde_json::from_str(&self.response).unwrap_or_default();
        RenderInput {
            operation: &self.operation,
            envelope: Envelope::from(response),
            named: Vec::new(),
            tool_fields: Map::new(),
            cache_id: Some(&self.id),
            repeatable: true,
            cached: true,
            requested_level: self.fetched_level(),
            is_expandable: self.expansion.is_some(),
            titles: ColumnTitles::default(),
            corrections: Vec::new(),
            warnings: Vec::new(),
            sent_filters: Vec::new(),
            paging_stop: None,
        }
    }
}

/// A result to store.
pub(super) struct NewResult<'a> {
    pub(super) title: String,
    pub(super) operation: &'a str,
    pub(super) arguments: &'a Map<String, Value>,
    pub(super) results: usize,
    pub(super) response: String,
    pub(super) requested_level: Option<ContentLevel>,
    pub(super) extract: Option<usize>,
    pub(super) extra: Vec<String>,
    pub(super) expansion: Option<Arc<Expansion>>,
}

/// How a cached result is to be rendered; equal requests give equal text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RequestedView {
    pub(super) view: View,
    /// The level that the caller named, if any.
    pub(super) level: Option<ContentLevel>,
    /// Corrections made to the arguments.
    pub(super) corrections: Vec<String>,
    /// Filters applied by Exa.
    pub(super) sent_filters: Vec<String>,
}

/// The last rendering of a cached result.
struct CachedView {
    requested: RequestedView,
    rendered: Arc<Rendered>,
    bytes: usize,
}

#[derive(Default)]
struct Inner {
    /// Boxed, because a table reserves up to twice as many slots as it uses.
    entries: HashMap<String, Box<CacheEntry>>,
    /// Ids, oldest first.
    order: VecDeque<String>,
    /// The id of the latest result of each request.
    by_request: HashMap<u128, String>,
    bytes: usize,
}

struct CacheEntry {
    owner: Identity,
    result: CachedResult,
    request_hash: u128,
    stored: Instant,
    /// Bytes of the result, without the rendering.
    bytes: usize,
    view: Option<Box<CachedView>>,
}

impl CacheEntry {
    fn total_bytes(&self) -> usize {
        self.bytes + self.view.as_ref().map_or(0, |view| view.bytes)
    }
}

impl Default for ResultCache {
    fn default() -> Self {
        Self::new(CacheLimits::default())
    }
}

impl ResultCache {
    /// Creates an empty cache; with limits of zero it stores nothing.
    pub(crate) fn new(limits: CacheLimits) -> Self {
        Self {
            inner: Arc::default(),
            hashers: Arc::new([RandomState::new(), RandomState::new()]),
            limits,
            additions: broadcast::channel(MAX_PENDING_ADDITIONS).0,
            watchers: Watchers::default(),
            purchases: KeyedLocks::default(),
        }
    }

    /// Waits until no other call buys more contents for the result with this id.
    pub(super) async fn lock_purchase(&self, id: &str) -> OwnedMutexGuard<()> {
        self.purchases.lock(id).await
    }

    /// Returns the limits of the cache.
    pub(crate) fn limits(&self) -> CacheLimits {
        self.limits
    }

    /// Returns how long a result is cached.
    pub(crate) fn ttl(&self) -> Duration {
        self.limits.ttl
    }

    /// Returns the cached results of an owner, newest first.
    pub(crate) fn list(&self, owner: &Identity) -> Vec<CachedResult> {
        let inner = self.lock_and_evict();
        let entries = inner
            .order
            .iter()
            .rev()
            .filter_map(|id| inner.entries.get(id));
        let own = entries.filter(|entry| entry.owner == *owner);
        own.map(|entry| entry.result.clone()).collect()
    }

    /// Returns a cached result; `None` for an unknown, foreign or expired id.
    pub(crate) fn get(&self, owner: &Identity, id: &str) -> Option<CachedResult> {
        let inner = self.lock_and_evict();
        let entry = inner
            .entries
            .get(id)
            .filter(|entry| entry.owner == *owner)?;
        Some(entry.result.clone())
    }

    /// Returns the cached result of the same request.
    pub(super) fn find_by_request(
        &self,
        owner: &Identity,
        operation: &str,
        arguments: &Map<String, Value>,
    ) -> Option<CachedResult> {
        let request_hash = self.request_hash(owner, operation, arguments);
        let inner = self.lock_and_evict();
        let id = inner.by_request.get(&request_hash)?;
        let entry = inner
            .entries
            .get(id)
            .filter(|entry| entry.owner == *owner)?;
        Some(entry.result.clone())
    }

    /// Returns the maximum size of a cached response: one must not evict all others.
    pub(super) fn max_response_bytes(&self) -> usize {
        if self.limits.ttl.is_zero() {
            return 0;
        }
        self.limits.bytes / 2
    }

    /// Stores a result, unless it is too large.
    pub(super) fn insert(
        &self,
        owner: &Identity,
        new_result: NewResult<'_>,
    ) -> Option<CachedResult> {
        let expansion = new_result.expansion.as_ref().map_or(0, |it| it.bytes());
        let texts = new_result.response.len()
            + new_result.title.len()
            + new_result.operation.len()
            + expansion;
        let bytes = texts + texts / FRAGMENTATION_DIVISOR + ENTRY_OVERHEAD;
        if bytes > self.max_response_bytes() {
            return None;
        }
        let request_hash = self.request_hash(owner, new_result.operation, new_result.arguments);
        let mut inner = self.lock_and_evict();
        let id = format!("r_{}", ids::random_id().ok()?);
        let result = CachedResult {
            id: id.clone(),
            title: new_result.title,
            operation: new_result.operation.to_owned(),
            bytes: new_result.response.len(),
            results: new_result.results,
            stored_at: SystemTime::now(),
            response: new_result.response.into(),
            requested_level: new_result.requested_level,
            extract: new_result.extract,
            extra: new_result.extra,
            expansion: new_result.expansion,
        };
        while inner.bytes + bytes > self.limits.bytes {
            self.evict_oldest(&mut inner)?;
        }
        inner.bytes += bytes;
        inner.order.push_back(id.clone());
        inner.by_request.insert(request_hash, id.clone());
        let entry = CacheEntry {
            owner: owner.clone(),
            result: result.clone(),
            request_hash,
            stored: Instant::now(),
            bytes,
            view: None,
        };
        inner.entries.insert(id, Box::new(entry));
        drop(inner);
        self.watchers.notify(owner, &ResourceEvent::ListChanged);
        let _ = self.additions.send(owner.clone());
        Some(result)
    }

    /// Replaces a result by one with more contents, unless it is too large.
    pub(super) fn replace(&self, owner: &Identity, result: &CachedResult) {
        let mut inner = self.lock_and_evict();
        let used = inner.bytes;
        let entry = inner.entries.get_mut(&result.id);
        let Some(entry) = entry.filter(|entry| entry.owner == *owner) else {
            return;
        };
        let added = result.bytes.saturating_sub(entry.result.bytes);
        let bytes = entry.bytes + added + added / FRAGMENTATION_DIVISOR;
        let total = used.saturating_sub(entry.total_bytes()) + bytes;
        if total > self.limits.bytes || bytes > self.max_response_bytes() {
            return;
        }
        entry.view = None;
        entry.bytes = bytes;
        entry.result = result.clone();
        inner.bytes = total;
        drop(inner);
        let updated = ResourceEvent::Updated(ResourceUri::Result(result.id.clone()));
        self.watchers.notify(owner, &updated);
    }

    /// Returns the last rendering of a result, if it was requested in the same manner.
    pub(super) fn cached_view(
        &self,
        owner: &Identity,
        id: &str,
        requested: &RequestedView,
    ) -> Option<Arc<Rendered>> {
        let inner = self.lock_and_evict();
        let entry = inner.entries.get(id).filter(|entry| entry.owner == *owner);
        let view = entry?
            .view
            .as_ref()
            .filter(|view| view.requested == *requested)?;
        Some(Arc::clone(&view.rendered))
    }

    /// Stores a rendering. It counts as a part of its result and never evicts other results.
    pub(super) fn store_view(
        &self,
        owner: &Identity,
        id: &str,
        requested: RequestedView,
        rendered: Arc<Rendered>,
    ) {
        // The structured content has the same information and takes several times the memory.
        let bytes = rendered.text.len() * 4 + ENTRY_OVERHEAD;
        let mut inner = self.lock_and_evict();
        let used = inner.bytes;
        let entry = inner.entries.get_mut(id);
        let Some(entry) = entry.filter(|entry| entry.owner == *owner) else {
            return;
        };
        let used = used.saturating_sub(entry.total_bytes() - entry.bytes);
        entry.view = (used + bytes <= self.limits.bytes).then(|| {
            Box::new(CachedView {
                requested,
                rendered,
                bytes,
            })
        });
        let added = entry.view.as_ref().map_or(0, |view| view.bytes);
        inner.bytes = used + added;
    }

    /// Returns the subscribers to changes.
    pub(super) fn watchers(&self) -> &Watchers {
        &self.watchers
    }

    /// Subscribes to the owners of results stored from now on.
    pub(super) fn additions(&self) -> broadcast::Receiver<Identity> {
        self.additions.subscribe()
    }

    /// Locks the cache after evicting expired results.
    fn lock_and_evict(&self) -> MutexGuard<'_, Inner> {
        let mut inner = lock(&self.inner);
        let ttl = self.limits.ttl;
        while inner
            .order
            .front()
            .and_then(|id| inner.entries.get(id))
            .is_some_and(|entry| entry.stored.elapsed() >= ttl)
        {
            self.evict_oldest(&mut inner);
        }
        inner
    }

    fn evict_oldest(&self, inner: &mut Inner) -> Option<()> {
        let id = inner.order.pop_front()?;
        let entry = inner.entries.remove(&id)?;
        inner.bytes = inner.bytes.saturating_sub(entry.total_bytes());
        if inner.by_request.get(&entry.request_hash) == Some(&id) {
            inner.by_request.remove(&entry.request_hash);
        }
        let removed = ResourceEvent::Updated(ResourceUri::Result(id));
        self.watchers.notify(&entry.owner, &removed);
        self.watchers
            .notify(&entry.owner, &ResourceEvent::ListChanged);
        Some(())
    }

    /// Hashes a request. The seeds are secret, so that nobody can construct collisions.
    fn request_hash(
        &self,
        owner: &Identity,
        operation: &str,
        arguments: &Map<String, Value>,
    ) -> u128 {
        let mut sorted: Vec<(&String, &Value)> = arguments.iter().collect();
        sorted.sort_by_key(|(name, _)| *name);
        let text = serde_json::to_string(&sorted).unwrap_or_default();
        let [first, second] = self.hashers.as_ref();
        let request = (owner, operation, text);
        (u128::from(first.hash_one(&request)) << 64) | u128::from(second.hash_one(&request))
    }
}

#[cfg(test)]
#[allow(dead_code)]
impl ResultCache {
    /// Stores a result for a test.
    pub(crate) fn add(
        &self,
        owner: &Identity,
        title: &str,
        operation: &str,
        response: &Value,
    ) -> CachedResult {
        let new_result = NewResult {
            title: title.to_owned(),
            operation,
            arguments: &Map::new(),
            results: Envelope::from(response.clone()).results.len(),
            response: response.to_string(),
            requested_level: None,
            extract: None,
            extra: Vec::new(),
            expansion: None,
        };
        self.insert(owner, new_result)
            .unwrap_or_else(|| unreachable!("a small response fits"))
    }

    /// Evicts the oldest result.
    pub(crate) fn remove_oldest(&self) {
        let mut inner = self.lock_and_evict();
        self.evict_oldest(&mut inner);
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
#[allow(clippy::unwrap_used)]
mod tests;
