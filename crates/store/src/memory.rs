//! A store in memory, bounded in size and lost with the process.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::ready;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use super::counters::MemoryCounters;
use super::ledger::MemoryLedger;
use super::{
    Clock, Counter, CounterUpdate, Document, DocumentKey, DocumentQuery, ExpectedRevision,
    LivenessGuard, MemoryWindows, ReassignOutcome, Reservation, ReserveOutcome, Slot, SlotLimit,
    Store, StoreError, StoreFuture, WindowDecision, WindowRequest, WriteOptions, expiry,
    system_clock,
};
use exa_mcp_model::lock;

/// The estimated size of a document besides its id and body.
const OVERHEAD: usize = 256;

/// The size limits of a [`MemoryStore`], for all owners together.
#[derive(Clone, Copy, Debug)]
pub struct MemoryLimits {
    /// The maximum number of documents.
    pub documents: usize,
    /// The maximum size in bytes.
    pub bytes: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self {
            documents: 10_000,
            bytes: 64 * 1024 * 1024,
        }
    }
}

/// A store in memory.
pub struct MemoryStore {
    documents: Mutex<Documents>,
    counters: Mutex<MemoryCounters>,
    windows: Mutex<MemoryWindows>,
    /// Locked after the counters.
    ledger: Mutex<MemoryLedger>,
    limits: MemoryLimits,
    clock: Clock,
}

#[derive(Default)]
struct Documents {
    entries: BTreeMap<u64, DocumentEntry>,
    sequences: HashMap<DocumentKey, u64>,
    /// Expiry times with the sequence numbers of their documents.
    expiries: BTreeSet<(u64, u64)>,
    last_sequence: u64,
    bytes: usize,
}

struct DocumentEntry {
    key: DocumentKey,
    document: Document,
    expires_at: Option<u64>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new(MemoryLimits::default())
    }
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new(limits: MemoryLimits) -> Self {
        Self::with_clock(limits, system_clock())
    }

    pub(super) fn with_clock(limits: MemoryLimits, clock: Clock) -> Self {
        Self {
            documents: Mutex::default(),
            counters: Mutex::default(),
            windows: Mutex::default(),
            ledger: Mutex::default(),
            limits,
            clock,
        }
    }

    /// Locks the documents after removing expired ones.
    fn documents(&self, now: u64) -> MutexGuard<'_, Documents> {
        let mut documents = lock(&self.documents);
        documents.remove_expired(now);
        documents
    }

    fn put_now(
        &self,
        key: DocumentKey,
        body: String,
        options: WriteOptions,
    ) -> Result<u64, StoreError> {
        let now = (self.clock)();
        let mut documents = self.documents(now);
        let current = documents.find(&key).map(|entry| &entry.document);
        check_revision(options.expected, current)?;
        let current = current.map(|document| (document.clone(), size(&key, &document.body)));
        if current.is_none()
            && let Some(max) = options.max_documents
            && documents.count_like(&key) >= max
        {
            return Err(StoreError::TooMany(max));
        }
        let freed = current.as_ref().map_or(0, |(_, size)| *size);
        let bytes = (documents.bytes - freed).saturating_add(size(&key, &body));
        let count = documents.entries.len() + usize::from(current.is_none());
        if bytes > self.limits.bytes || count > self.limits.documents {
            return Err(StoreError::Full);
        }
        documents.remove(&key);
        let current = current.map(|(document, _)| document);
        let document = documents.build(&key, body, current, now);
        let revision = document.revision;
        documents.insert(DocumentEntry {
            key,
            expires_at: options.time_to_live.map(|time| expiry(now, time)),
            document,
        });
        Ok(revision)
    }

    fn list_now(&self, query: &DocumentQuery) -> Vec<Document> {
        let documents = self.documents((self.clock)());
        let matches = |entry: &&DocumentEntry| {
            let owner = query.owner.as_ref();
            entry.key.collection == query.collection
                && owner.is_none_or(|owner| *owner == entry.key.owner)
        };
        let before = query.before.unwrap_or(u64::MAX);
        let newest_first = documents.entries.range(..before).rev();
        newest_first
            .map(|(_, entry)| entry)
            .filter(matches)
            .take(query.limit)
            .map(|entry| entry.document.clone())
            .collect()
    }
}

/// Rejects a write whose expected revision is not the stored one.
pub(super) fn check_revision(
    expected: ExpectedRevision,
    current: Option<&Document>,
) -> Result<(), StoreError> {
    let matches = match (expected, current) {
        (ExpectedRevision::Any, _) | (ExpectedRevision::Absent, None) => true,
        (ExpectedRevision::Exact(revision), Some(current)) => revision == current.revision,
        (ExpectedRevision::Absent, Some(_)) | (ExpectedRevision::Exact(_), None) => false,
    };
    matches.then_some(()).ok_or(StoreError::Conflict)
}

fn size(key: &DocumentKey, body: &str) -> usize {
    OVERHEAD + key.id.len() + body.len()
}

impl Documents {
    fn find(&self, key: &DocumentKey) -> Option<&DocumentEntry> {
        self.entries.get(self.sequences.get(key)?)
    }

    /// Counts the documents of the same owner and collection.
    fn count_like(&self, key: &DocumentKey) -> usize {
        let is_like =
            |other: &&DocumentKey| other.owner == key.owner && other.collection == key.collection;
        self.sequences.keys().filter(is_like).count()
    }

    /// Builds the next revision of a document, or the first one.
    fn build(
        &mut self,
        key: &DocumentKey,
        body: String,
        current: Option<Document>,
        now: u64,
    ) -> Document {
        let body = Arc::from(body);
        if let Some(current) = current {
            return Document {
                body,
                revision: current.revision + 1,
                modified_at: now,
                ..current
            };
        }
        self.last_sequence += 1;
        Document {
            owner: key.owner.as_str().to_owned(),
            id: key.id.clone(),
            body,
            revision: 1,
            sequence: self.last_sequence,
            created_at: now,
            modified_at: now,
        }
    }

    fn insert(&mut self, entry: DocumentEntry) {
        let sequence = entry.document.sequence;
        self.bytes = self
            .bytes
            .saturating_add(size(&entry.key, &entry.document.body));
        self.expiries
            .extend(entry.expires_at.map(|expires_at| (expires_at, sequence)));
        self.sequences.insert(entry.key.clone(), sequence);
        self.entries.insert(sequence, entry);
    }

    fn remove(&mut self, key: &DocumentKey) -> bool {
        let Some(sequence) = self.sequences.remove(key) else {
            return false;
        };
        let Some(entry) = self.entries.remove(&sequence) else {
            return false;
        };
        if let Some(expires_at) = entry.expires_at {
            self.expiries.remove(&(expires_at, sequence));
        }
        self.bytes = self.bytes.saturating_sub(size(key, &entry.document.body));
        true
    }

    fn remove_expired(&mut self, now: u64) {
        while let Some((expires_at, sequence)) = self.expiries.first().copied()
            && expires_at <= now
        {
            self.expiries.remove(&(expires_at, sequence));
            if let Some(key) = self.entries.get(&sequence).map(|entry| entry.key.clone()) {
                self.remove(&key);
            }
        }
    }
}

impl Store for MemoryStore {
    fn put(&self, key: DocumentKey, body: String, options: WriteOptions) -> StoreFuture<'_, u64> {
        Box::pin(ready(self.put_now(key, body, options)))
    }

    fn get(&self, key: DocumentKey) -> StoreFuture<'_, Option<Document>> {
        let documents = self.documents((self.clock)());
        let document = documents.find(&key).map(|entry| entry.document.clone());
        Box::pin(ready(Ok(document)))
    }

    fn delete(&self, key: DocumentKey) -> StoreFuture<'_, bool> {
        let existed = self.documents((self.clock)()).remove(&key);
        Box::pin(ready(Ok(existed)))
    }

    fn list(&self, query: DocumentQuery) -> StoreFuture<'_, Vec<Document>> {
        Box::pin(ready(Ok(self.list_now(&query))))
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn mark_alive(&self, _name: String) -> StoreFuture<'_, LivenessGuard> {
        Box::pin(ready(Ok(LivenessGuard::new(()))))
    }

    fn is_alive(&self, _name: String) -> StoreFuture<'_, bool> {
        Box::pin(ready(Ok(false)))
    }

    fn update_counters(&self, updates: Vec<CounterUpdate>) -> StoreFuture<'_, ()> {
        let mut counters = lock(&self.counters);
        for update in updates {
            counters.apply(update);
        }
        Box::pin(ready(Ok(())))
    }

    fn counters(&self, subject: Option<String>) -> StoreFuture<'_, Vec<Counter>> {
        let counters = lock(&self.counters).list(subject.as_deref());
        Box::pin(ready(Ok(counters)))
    }

    fn delete_counters(&self, subjects: Range<String>) -> StoreFuture<'_, bool> {
        lock(&self.counters).delete(&subjects);
        Box::pin(ready(Ok(false)))
    }

    fn consume(&self, request: WindowRequest) -> StoreFuture<'_, WindowDecision> {
        let mut windows = lock(&self.windows);
        Box::pin(ready(Ok(windows.consume(request, (self.clock)()))))
    }

    fn reserve(&self, reservation: Reservation) -> StoreFuture<'_, ReserveOutcome> {
        let mut counters = lock(&self.counters);
        let outcome = lock(&self.ledger).reserve(&mut counters, reservation);
        Box::pin(ready(Ok(outcome)))
    }

    fn settle(
        &self,
        reservation: Reservation,
        updates: Vec<CounterUpdate>,
    ) -> StoreFuture<'_, bool> {
        let mut counters = lock(&self.counters);
        let settled = lock(&self.ledger).settle(&mut counters, &reservation.id, updates);
        Box::pin(ready(Ok(settled)))
    }

    fn reassign(
        &self,
        current: Reservation,
        changed: Reservation,
        claim: Option<String>,
    ) -> StoreFuture<'_, ReassignOutcome> {
        let outcome = lock(&self.ledger).reassign(&current, changed, claim);
        Box::pin(ready(Ok(outcome)))
    }

    fn reservations(&self) -> StoreFuture<'_, Vec<Reservation>> {
        Box::pin(ready(Ok(lock(&self.ledger).reservations())))
    }

    fn acquire_slot(&self, slot: Slot, limit: Option<SlotLimit>) -> StoreFuture<'_, bool> {
        Box::pin(ready(Ok(lock(&self.ledger).acquire_slot(slot, limit))))
    }

    fn release_slot(&self, key: String, id: String) -> StoreFuture<'_, ()> {
        lock(&self.ledger).release_slot(&key, &id);
        Box::pin(ready(Ok(())))
    }

    fn slots(&self, key: String) -> StoreFuture<'_, Vec<Slot>> {
        Box::pin(ready(Ok(lock(&self.ledger).slots(&key))))
    }

    fn check(&self) -> StoreFuture<'_, String> {
        let description = "in memory; lost when the server stops";
        Box::pin(ready(Ok(description.to_owned())))
    }
}
