//! Documents in memory: gone with the process, bounded while it lives.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::ready;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use super::counters::Numbers;
use super::ledger::Ledger;
use super::{
    Clock, Count, CountChange, Document, Expected, LivenessGuard, Pending, Place, Query,
    Reassigned, Reservation, Reserved, Rules, Slot, SlotLimit, Store, StoreError, Taken, Window,
    Windows, end, system_clock,
};
use exa_mcp_model::lock;

/// What a document costs beside its text.
const OVERHEAD: usize = 256;

/// How much a store in memory holds, of everybody together.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Documents.
    pub entries: usize,
    /// Bytes.
    pub bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            entries: 10_000,
            bytes: 64 * 1024 * 1024,
        }
    }
}

/// Documents in memory.
pub struct MemoryStore {
    shelf: Mutex<Shelf>,
    numbers: Mutex<Numbers>,
    windows: Mutex<Windows>,
    /// Locked after the numbers.
    ledger: Mutex<Ledger>,
    bounds: Bounds,
    clock: Clock,
}

#[derive(Default)]
struct Shelf {
    kept: BTreeMap<u64, Kept>,
    numbers: HashMap<Place, u64>,
    /// When documents expire, with their numbers.
    ends: BTreeSet<(u64, u64)>,
    last: u64,
    bytes: usize,
}

struct Kept {
    place: Place,
    document: Document,
    expires: Option<u64>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new(Bounds::default())
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new(bounds: Bounds) -> Self {
        Self::with_clock(bounds, system_clock())
    }

    pub(super) fn with_clock(bounds: Bounds, clock: Clock) -> Self {
        Self {
            shelf: Mutex::default(),
            numbers: Mutex::default(),
            windows: Mutex::default(),
            ledger: Mutex::default(),
            bounds,
            clock,
        }
    }

    /// The shelf without what has expired.
    fn shelf(&self, now: u64) -> MutexGuard<'_, Shelf> {
        let mut shelf = lock(&self.shelf);
        shelf.sweep(now);
        shelf
    }

    fn put_now(&self, place: Place, body: String, rules: Rules) -> Result<u64, StoreError> {
        let now = (self.clock)();
        let mut shelf = self.shelf(now);
        let present = shelf.find(&place).map(|kept| &kept.document);
        check(rules.expected, present)?;
        let present = present.map(|document| (document.clone(), cost(&place, &document.body)));
        if present.is_none()
            && let Some(most) = rules.most
            && shelf.count(&place) >= most
        {
            return Err(StoreError::TooMany(most));
        }
        let freed = present.as_ref().map_or(0, |(_, cost)| *cost);
        let bytes = (shelf.bytes - freed).saturating_add(cost(&place, &body));
        let entries = shelf.kept.len() + usize::from(present.is_none());
        if bytes > self.bounds.bytes || entries > self.bounds.entries {
            return Err(StoreError::Full);
        }
        shelf.take(&place);
        let document = shelf.document(&place, body, present.map(|(document, _)| document), now);
        let revision = document.revision;
        shelf.add(Kept {
            place,
            expires: rules.time_to_live.map(|time| end(now, time)),
            document,
        });
        Ok(revision)
    }

    fn list_now(&self, query: &Query) -> Vec<Document> {
        let shelf = self.shelf((self.clock)());
        let wanted = |kept: &&Kept| {
            let owner = query.owner.as_ref();
            kept.place.collection == query.collection
                && owner.is_none_or(|owner| *owner == kept.place.owner)
        };
        let before = query.before.unwrap_or(u64::MAX);
        let kept = shelf.kept.range(..before).rev().map(|(_, kept)| kept);
        kept.filter(wanted)
            .take(query.limit)
            .map(|kept| kept.document.clone())
            .collect()
    }
}

/// Refuses a document where something else is than its writer thinks.
pub(super) fn check(expected: Expected, present: Option<&Document>) -> Result<(), StoreError> {
    let met = match (expected, present) {
        (Expected::Anything, _) | (Expected::Nothing, None) => true,
        (Expected::Revision(revision), Some(present)) => revision == present.revision,
        (Expected::Nothing, Some(_)) | (Expected::Revision(_), None) => false,
    };
    met.then_some(()).ok_or(StoreError::Conflict)
}

fn cost(place: &Place, body: &str) -> usize {
    OVERHEAD + place.id.len() + body.len()
}

impl Shelf {
    fn find(&self, place: &Place) -> Option<&Kept> {
        self.kept.get(self.numbers.get(place)?)
    }

    fn count(&self, like: &Place) -> usize {
        let same =
            |place: &&Place| place.owner == like.owner && place.collection == like.collection;
        self.numbers.keys().filter(same).count()
    }

    fn document(
        &mut self,
        place: &Place,
        body: String,
        present: Option<Document>,
        now: u64,
    ) -> Document {
        let body = Arc::from(body);
        if let Some(present) = present {
            return Document {
                body,
                revision: present.revision + 1,
                modified: now,
                ..present
            };
        }
        self.last += 1;
        Document {
            owner: place.owner.as_str().to_owned(),
            id: place.id.clone(),
            body,
            revision: 1,
            number: self.last,
            created: now,
            modified: now,
        }
    }

    fn add(&mut self, kept: Kept) {
        let number = kept.document.number;
        self.bytes = self
            .bytes
            .saturating_add(cost(&kept.place, &kept.document.body));
        self.ends.extend(kept.expires.map(|end| (end, number)));
        self.numbers.insert(kept.place.clone(), number);
        self.kept.insert(number, kept);
    }

    fn take(&mut self, place: &Place) -> bool {
        let Some(number) = self.numbers.remove(place) else {
            return false;
        };
        let Some(kept) = self.kept.remove(&number) else {
            return false;
        };
        if let Some(end) = kept.expires {
            self.ends.remove(&(end, number));
        }
        self.bytes = self.bytes.saturating_sub(cost(place, &kept.document.body));
        true
    }

    fn sweep(&mut self, now: u64) {
        while let Some((end, number)) = self.ends.first().copied()
            && end <= now
        {
            self.ends.remove(&(end, number));
            if let Some(place) = self.kept.get(&number).map(|kept| kept.place.clone()) {
                self.take(&place);
            }
        }
    }
}

impl Store for MemoryStore {
    fn put(&self, place: Place, body: String, rules: Rules) -> Pending<'_, u64> {
        Box::pin(ready(self.put_now(place, body, rules)))
    }

    fn get(&self, place: Place) -> Pending<'_, Option<Document>> {
        let shelf = self.shelf((self.clock)());
        let found = shelf.find(&place).map(|kept| kept.document.clone());
        Box::pin(ready(Ok(found)))
    }

    fn delete(&self, place: Place) -> Pending<'_, bool> {
        let gone = self.shelf((self.clock)()).take(&place);
        Box::pin(ready(Ok(gone)))
    }

    fn list(&self, query: Query) -> Pending<'_, Vec<Document>> {
        Box::pin(ready(Ok(self.list_now(&query))))
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn announce(&self, _name: String) -> Pending<'_, LivenessGuard> {
        Box::pin(ready(Ok(LivenessGuard::new(()))))
    }

    fn lives(&self, _name: String) -> Pending<'_, bool> {
        Box::pin(ready(Ok(false)))
    }

    fn count(&self, changes: Vec<CountChange>) -> Pending<'_, ()> {
        let mut numbers = lock(&self.numbers);
        changes
            .into_iter()
            .for_each(|change| numbers.change(change));
        Box::pin(ready(Ok(())))
    }

    fn counts(&self, subject: Option<String>) -> Pending<'_, Vec<Count>> {
        let counts = lock(&self.numbers).list(subject.as_deref());
        Box::pin(ready(Ok(counts)))
    }

    fn forget(&self, subjects: Range<String>) -> Pending<'_, bool> {
        lock(&self.numbers).forget(&subjects);
        Box::pin(ready(Ok(false)))
    }

    fn take(&self, window: Window) -> Pending<'_, Taken> {
        let mut windows = lock(&self.windows);
        Box::pin(ready(Ok(windows.take(window, (self.clock)()))))
    }

    fn reserve(&self, wanted: Reservation) -> Pending<'_, Reserved> {
        let mut numbers = lock(&self.numbers);
        let reserved = lock(&self.ledger).reserve(&mut numbers, wanted);
        Box::pin(ready(Ok(reserved)))
    }

    fn settle(&self, settled: Reservation, changes: Vec<CountChange>) -> Pending<'_, bool> {
        let mut numbers = lock(&self.numbers);
        let done = lock(&self.ledger).settle(&mut numbers, &settled.id, changes);
        Box::pin(ready(Ok(done)))
    }

    fn reassign(
        &self,
        present: Reservation,
        changed: Reservation,
        claim: Option<String>,
    ) -> Pending<'_, Reassigned> {
        let outcome = lock(&self.ledger).reassign(&present, changed, claim);
        Box::pin(ready(Ok(outcome)))
    }

    fn reservations(&self) -> Pending<'_, Vec<Reservation>> {
        Box::pin(ready(Ok(lock(&self.ledger).reservations())))
    }

    fn occupy(&self, slot: Slot, limit: Option<SlotLimit>) -> Pending<'_, bool> {
        Box::pin(ready(Ok(lock(&self.ledger).occupy(slot, limit))))
    }

    fn vacate(&self, key: String, id: String) -> Pending<'_, ()> {
        lock(&self.ledger).vacate(&key, &id);
        Box::pin(ready(Ok(())))
    }

    fn slots(&self, key: String) -> Pending<'_, Vec<Slot>> {
        Box::pin(ready(Ok(lock(&self.ledger).slots(&key))))
    }

    fn check(&self) -> Pending<'_, String> {
        let place = "in memory; gone when the server ends";
        Box::pin(ready(Ok(place.to_owned())))
    }
}
