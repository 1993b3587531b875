//! A limited number of slots, shared fairly between client addresses.
//!
//! Each address has a maximum. When all slots are taken, a new client takes one from the address with the
//! most slots, if that address holds clearly more than the new client's. The least active slot goes first.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use exa_mcp_accounts::ClientAddress;
use exa_mcp_model::lock;

/// An address leaves at least one in this many slots to others.
const RESERVED_FRACTION: usize = 8;

/// The activity of a slot, in eviction order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum ActivityKind {
    /// No request in progress.
    Idle,
    /// Working for an unverified client.
    Anonymous,
    /// Working for a verified client. The slot is not evicted.
    Verified,
}

/// The current activity of a slot.
#[derive(Debug, Default)]
pub(super) struct Activity(AtomicU8);

impl Activity {
    pub(super) fn set(&self, current: ActivityKind) {
        self.0.store(current as u8, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> ActivityKind {
        match self.0.load(Ordering::Relaxed) {
            0 => ActivityKind::Idle,
            1 => ActivityKind::Anonymous,
            _ => ActivityKind::Verified,
        }
    }
}

/// What happens when an address has reached its maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressLimitPolicy {
    /// The new client gets no slot.
    Reject,
    /// The new client replaces the oldest idle slot of its address.
    ReplaceIdle,
}

/// The reason that no slot is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotError {
    /// The address has reached its maximum.
    AddressLimit,
    /// All slots are taken, and no address has more than its fair share.
    AllTaken,
}

/// A limited number of slots, shared fairly between client addresses.
pub(super) struct FairSlots {
    max: usize,
    max_per_address: usize,
    address_limit_policy: AddressLimitPolicy,
    table: Mutex<SlotTable>,
    freed: Notify,
}

#[derive(Default)]
struct SlotTable {
    last_id: u64,
    /// Keyed by ascending ids: a smaller id is older.
    slots: HashMap<u64, OccupiedSlot>,
    by_address: HashMap<ClientAddress, usize>,
}

struct OccupiedSlot {
    /// `None` for a trusted proxy, which serves many clients.
    address: Option<ClientAddress>,
    activity: Arc<Activity>,
    evicted: CancellationToken,
}

/// An occupied slot, released on drop.
pub(super) struct Slot {
    slots: Arc<FairSlots>,
    id: u64,
    /// Cancelled when the slot is given to another client.
    pub(super) evicted: CancellationToken,
}

impl FairSlots {
    pub(super) fn new(
        max: usize,
        max_per_address: usize,
        address_limit_policy: AddressLimitPolicy,
    ) -> Self {
        let fair = max.saturating_sub(max / RESERVED_FRACTION);
        Self {
            max,
            max_per_address: max_per_address.min(fair),
            address_limit_policy,
            table: Mutex::default(),
            freed: Notify::new(),
        }
    }

    /// Acquires a slot for an address, or for a trusted proxy if `address` is `None`.
    pub(super) fn acquire(
        self: &Arc<Self>,
        address: Option<ClientAddress>,
        activity: Arc<Activity>,
    ) -> Result<Slot, SlotError> {
        let mut table = lock(&self.table);
        let own = address.map_or(0, |address| table.count(address));
        if address.is_some() && own >= self.max_per_address {
            let is_own = |slot: &OccupiedSlot| slot.address == address;
            let is_own_idle =
                |slot: &OccupiedSlot| is_own(slot) && slot.activity.get() == ActivityKind::Idle;
            let victim = match self.address_limit_policy {
                AddressLimitPolicy::Reject => None,
                AddressLimitPolicy::ReplaceIdle => table.oldest(is_own_idle),
            };
            // When all slots are taken, one may become free for this address as well.
            let error = if table.slots.len() >= self.max {
                SlotError::AllTaken
            } else {
                SlotError::AddressLimit
            };
            table.evict(victim.ok_or(error)?);
        } else if table.slots.len() >= self.max {
            let victim = table.eviction_candidate(own).ok_or(SlotError::AllTaken)?;
            table.evict(victim);
        }
        table.last_id += 1;
        let id = table.last_id;
        let evicted = CancellationToken::new();
        let slot = OccupiedSlot {
            address,
            activity,
            evicted: evicted.clone(),
        };
        table.slots.insert(id, slot);
        if let Some(address) = address {
            *table.by_address.entry(address).or_default() += 1;
        }
        let slots = Arc::clone(self);
        Ok(Slot { slots, id, evicted })
    }

    /// Evicts one slot of an address that has more than one.
    pub(super) fn evict_one(&self) {
        let mut table = lock(&self.table);
        if let Some(victim) = table.eviction_candidate(0) {
            table.evict(victim);
        }
    }

    /// Waits until a slot is released.
    pub(super) async fn wait_for_release(&self) {
        self.freed.notified().await;
    }
}

impl SlotTable {
    fn count(&self, address: ClientAddress) -> usize {
        self.by_address.get(&address).copied().unwrap_or_default()
    }

    fn oldest(&self, filter: impl Fn(&OccupiedSlot) -> bool) -> Option<u64> {
        let found = self.slots.iter().filter(|(_, slot)| filter(slot));
        found.map(|(id, _)| *id).min()
    }

    /// Returns the slot to evict for a client whose address has `own` slots: one of the largest address,
    /// idle before busy, old before new.
    fn eviction_candidate(&self, own: usize) -> Option<u64> {
        let candidates = self.slots.iter().filter_map(|(id, slot)| {
            let count = self.count(slot.address?);
            let current = slot.activity.get();
            let is_evictable = count > own + 1 && current != ActivityKind::Verified;
            is_evictable.then_some((std::cmp::Reverse(count), current, *id))
        });
        candidates.min().map(|(_, _, id)| id)
    }

    fn evict(&mut self, id: u64) {
        if let Some(slot) = self.remove(id) {
            slot.evicted.cancel();
        }
    }

    fn remove(&mut self, id: u64) -> Option<OccupiedSlot> {
        let slot = self.slots.remove(&id)?;
        if let Some(address) = slot.address
            && let Some(count) = self.by_address.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
        Some(slot)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if lock(&self.slots.table).remove(self.id).is_some() {
            self.slots.freed.notify_one();
        }
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::unwrap_used)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn address(last: u8) -> Option<ClientAddress> {
        Some(IpAddr::from([192, 0, 2, last]).into())
    }

    fn acquire(slots: &Arc<FairSlots>, last: u8, current: ActivityKind) -> Result<Slot, SlotError> {
        let activity = Arc::new(Activity::default());
        activity.set(current);
        slots.acquire(address(last), activity)
    }

    fn slots(max: usize, per_address: usize, policy: AddressLimitPolicy) -> Arc<FairSlots> {
        Arc::new(FairSlots::new(max, per_address, policy))
    }

    #[test]
    fn one_address_cannot_take_everything() {
        let slots = slots(16, 100, AddressLimitPolicy::Reject);
        let held: Vec<Slot> = (0..14)
            .map(|_| acquire(&slots, 1, ActivityKind::Anonymous).unwrap())
            .collect();
        let rejected = acquire(&slots, 1, ActivityKind::Anonymous).err();
        assert_eq!(rejected, Some(SlotError::AddressLimit));
        let _others = [2, 3].map(|last| acquire(&slots, last, ActivityKind::Anonymous).unwrap());
        // All slots are taken; the oldest one of the largest address is evicted.
        let _newcomer = acquire(&slots, 4, ActivityKind::Anonymous).unwrap();
        let evicted: Vec<bool> = held
            .iter()
            .map(|slot| slot.evicted.is_cancelled())
            .collect();
        assert!(evicted[0] && !evicted[1..].contains(&true), "{evicted:?}");
    }

    #[test]
    fn several_addresses_cannot_lock_out_others() {
        let slots = slots(8, 2, AddressLimitPolicy::Reject);
        let held: Vec<Slot> = (0..8)
            .map(|count| acquire(&slots, count / 2, ActivityKind::Anonymous).unwrap())
            .collect();
        let mut newcomers = Vec::new();
        for last in 10..14 {
            newcomers.push(acquire(&slots, last, ActivityKind::Anonymous).unwrap());
        }
        // Now every address has one.
        let rejected = acquire(&slots, 20, ActivityKind::Anonymous).err();
        assert_eq!(rejected, Some(SlotError::AllTaken));
        let evicted = held.iter().filter(|slot| slot.evicted.is_cancelled());
        assert_eq!(evicted.count(), 4);
        drop(newcomers);
        assert!(acquire(&slots, 20, ActivityKind::Anonymous).is_ok());
        drop(held);
        let table = lock(&slots.table);
        assert!(table.slots.is_empty() && table.by_address.is_empty());
    }

    #[test]
    fn evicts_idle_slots_first_and_verified_ones_never() {
        let slots = slots(4, 4, AddressLimitPolicy::Reject);
        let known = acquire(&slots, 1, ActivityKind::Verified).unwrap();
        let busy = acquire(&slots, 1, ActivityKind::Anonymous).unwrap();
        let idle = acquire(&slots, 1, ActivityKind::Idle).unwrap();
        let _proxy = slots.acquire(None, Arc::default()).unwrap();
        let _first = acquire(&slots, 2, ActivityKind::Anonymous).unwrap();
        assert!(idle.evicted.is_cancelled() && !busy.evicted.is_cancelled());
        let _second = acquire(&slots, 3, ActivityKind::Anonymous).unwrap();
        assert!(busy.evicted.is_cancelled());
        let rejected = acquire(&slots, 4, ActivityKind::Anonymous).err();
        assert_eq!(rejected, Some(SlotError::AllTaken));
        assert!(!known.evicted.is_cancelled());
    }

    #[test]
    fn replaces_an_idle_slot_of_a_full_address() {
        let slots = slots(100, 2, AddressLimitPolicy::ReplaceIdle);
        let first = acquire(&slots, 1, ActivityKind::Idle).unwrap();
        let second = acquire(&slots, 1, ActivityKind::Anonymous).unwrap();
        let third = acquire(&slots, 1, ActivityKind::Anonymous).unwrap();
        assert!(first.evicted.is_cancelled() && !second.evicted.is_cancelled());
        let rejected = acquire(&slots, 1, ActivityKind::Idle).err();
        assert_eq!(rejected, Some(SlotError::AddressLimit));
        drop((first, third));
        assert!(acquire(&slots, 1, ActivityKind::Idle).is_ok());
    }
}
