//! Places that all clients share: no address can take all of them.
//!
//! Each address has at most so many. When all are taken, a newcomer gets the place of an address that has
//! clearly more than its own, the least useful one first.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use exa_mcp_accounts::ClientAddress;
use exa_mcp_model::lock;

/// The part of all places that no single address may take.
const RESERVED_PART: usize = 8;

/// What a place is used for; the first kinds lose it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Use {
    /// Nothing yet, or nothing any more.
    Idle,
    /// Work for somebody who has proved nothing.
    Guest,
    /// Work for somebody who is known; nobody else gets the place.
    Known,
}

/// What a place is used for now.
#[derive(Debug, Default)]
pub(super) struct Activity(AtomicU8);

impl Activity {
    pub(super) fn set(&self, current: Use) {
        self.0.store(current as u8, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Use {
        match self.0.load(Ordering::Relaxed) {
            0 => Use::Idle,
            1 => Use::Guest,
            _ => Use::Known,
        }
    }
}

/// How a full address is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WhenAddressIsFull {
    /// Its newcomer gets no place.
    Refuse,
    /// Its newcomer gets the oldest of its places that is idle.
    ReplaceIdle,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// The address has as many as one may have.
    AddressIsFull,
    /// All are taken, and nobody has more than a fair share.
    AllTaken,
}

/// Places that all clients share.
pub(super) struct FairPlaces {
    most: usize,
    most_per_address: usize,
    when_address_is_full: WhenAddressIsFull,
    taken: Mutex<Taken>,
    freed: Notify,
}

#[derive(Default)]
struct Taken {
    last_id: u64,
    /// By ids, which grow: a smaller one is older.
    places: HashMap<u64, TakenPlace>,
    by_address: HashMap<ClientAddress, usize>,
}

struct TakenPlace {
    /// None for a proxy, which speaks for many.
    address: Option<ClientAddress>,
    activity: Arc<Activity>,
    lost: CancellationToken,
}

/// A place, until this is dropped.
pub(super) struct Place {
    places: Arc<FairPlaces>,
    id: u64,
    /// Cancelled when somebody else got the place.
    pub(super) lost: CancellationToken,
}

impl FairPlaces {
    pub(super) fn new(
        most: usize,
        most_per_address: usize,
        when_address_is_full: WhenAddressIsFull,
    ) -> Self {
        let fair = most.saturating_sub(most / RESERVED_PART);
        Self {
            most,
            most_per_address: most_per_address.min(fair),
            when_address_is_full,
            taken: Mutex::default(),
            freed: Notify::new(),
        }
    }

    /// Takes a place for an address; without one, for a proxy that is trusted.
    pub(super) fn enter(
        self: &Arc<Self>,
        address: Option<ClientAddress>,
        activity: Arc<Activity>,
    ) -> Result<Place, NoPlace> {
        let mut taken = lock(&self.taken);
        let own = address.map_or(0, |address| taken.count(address));
        if address.is_some() && own >= self.most_per_address {
            let own = |place: &TakenPlace| place.address == address;
            let idle = |place: &TakenPlace| own(place) && place.activity.get() == Use::Idle;
            let victim = match self.when_address_is_full {
                WhenAddressIsFull::Refuse => None,
                WhenAddressIsFull::ReplaceIdle => taken.oldest(idle),
            };
            // Where nobody could get a place, one may become free for this address as well.
            let why = if taken.places.len() >= self.most {
                NoPlace::AllTaken
            } else {
                NoPlace::AddressIsFull
            };
            taken.take_away(victim.ok_or(why)?);
        } else if taken.places.len() >= self.most {
            let victim = taken.unfair(own).ok_or(NoPlace::AllTaken)?;
            taken.take_away(victim);
        }
        taken.last_id += 1;
        let id = taken.last_id;
        let lost = CancellationToken::new();
        let place = TakenPlace {
            address,
            activity,
            lost: lost.clone(),
        };
        taken.places.insert(id, place);
        if let Some(address) = address {
            *taken.by_address.entry(address).or_default() += 1;
        }
        let places = Arc::clone(self);
        Ok(Place { places, id, lost })
    }

    /// Takes one place away from an address that has more than one, as for a newcomer.
    pub(super) fn shed(&self) {
        let mut taken = lock(&self.taken);
        if let Some(victim) = taken.unfair(0) {
            taken.take_away(victim);
        }
    }

    /// Waits until a place has become free since this was last asked.
    pub(super) async fn freed(&self) {
        self.freed.notified().await;
    }
}

impl Taken {
    fn count(&self, address: ClientAddress) -> usize {
        self.by_address.get(&address).copied().unwrap_or_default()
    }

    fn oldest(&self, which: impl Fn(&TakenPlace) -> bool) -> Option<u64> {
        let found = self.places.iter().filter(|(_, place)| which(place));
        found.map(|(id, _)| *id).min()
    }

    /// The place to take away for a newcomer whose address has `own` places: one of the address that has
    /// most, idle before busy, old before new.
    fn unfair(&self, own: usize) -> Option<u64> {
        let candidates = self.places.iter().filter_map(|(id, place)| {
            let count = self.count(place.address?);
            let current = place.activity.get();
            let fair = count > own + 1 && current != Use::Known;
            fair.then_some((std::cmp::Reverse(count), current, *id))
        });
        candidates.min().map(|(_, _, id)| id)
    }

    fn take_away(&mut self, id: u64) {
        if let Some(place) = self.remove(id) {
            place.lost.cancel();
        }
    }

    fn remove(&mut self, id: u64) -> Option<TakenPlace> {
        let place = self.places.remove(&id)?;
        if let Some(address) = place.address
            && let Some(count) = self.by_address.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
        Some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if lock(&self.places.taken).remove(self.id).is_some() {
            self.places.freed.notify_one();
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

    fn enter(places: &Arc<FairPlaces>, last: u8, current: Use) -> Result<Place, NoPlace> {
        let activity = Arc::new(Activity::default());
        activity.set(current);
        places.enter(address(last), activity)
    }

    fn places(most: usize, per_address: usize, when_full: WhenAddressIsFull) -> Arc<FairPlaces> {
        Arc::new(FairPlaces::new(most, per_address, when_full))
    }

    #[test]
    fn no_address_takes_all() {
        let places = places(16, 100, WhenAddressIsFull::Refuse);
        let held: Vec<Place> = (0..14)
            .map(|_| enter(&places, 1, Use::Guest).unwrap())
            .collect();
        let refused = enter(&places, 1, Use::Guest).err();
        assert_eq!(refused, Some(NoPlace::AddressIsFull));
        let _others = [2, 3].map(|last| enter(&places, last, Use::Guest).unwrap());
        // All are taken; the oldest of the address that has most makes way.
        let _newcomer = enter(&places, 4, Use::Guest).unwrap();
        let lost: Vec<bool> = held.iter().map(|place| place.lost.is_cancelled()).collect();
        assert!(lost[0] && !lost[1..].contains(&true), "{lost:?}");
    }

    #[test]
    fn several_addresses_together_lock_nobody_out() {
        let places = places(8, 2, WhenAddressIsFull::Refuse);
        let held: Vec<Place> = (0..8)
            .map(|count| enter(&places, count / 2, Use::Guest).unwrap())
            .collect();
        let mut newcomers = Vec::new();
        for last in 10..14 {
            newcomers.push(enter(&places, last, Use::Guest).unwrap());
        }
        // Now everybody has one.
        let refused = enter(&places, 20, Use::Guest).err();
        assert_eq!(refused, Some(NoPlace::AllTaken));
        let lost = held.iter().filter(|place| place.lost.is_cancelled());
        assert_eq!(lost.count(), 4);
        drop(newcomers);
        assert!(enter(&places, 20, Use::Guest).is_ok());
        drop(held);
        let taken = lock(&places.taken);
        assert!(taken.places.is_empty() && taken.by_address.is_empty());
    }

    #[test]
    fn idle_ones_make_way_first_and_known_ones_never() {
        let places = places(4, 4, WhenAddressIsFull::Refuse);
        let known = enter(&places, 1, Use::Known).unwrap();
        let busy = enter(&places, 1, Use::Guest).unwrap();
        let idle = enter(&places, 1, Use::Idle).unwrap();
        let _proxy = places.enter(None, Arc::default()).unwrap();
        let _first = enter(&places, 2, Use::Guest).unwrap();
        assert!(idle.lost.is_cancelled() && !busy.lost.is_cancelled());
        let _second = enter(&places, 3, Use::Guest).unwrap();
        assert!(busy.lost.is_cancelled());
        let refused = enter(&places, 4, Use::Guest).err();
        assert_eq!(refused, Some(NoPlace::AllTaken));
        assert!(!known.lost.is_cancelled());
    }

    #[test]
    fn a_full_address_replaces_what_it_does_not_use() {
        let places = places(100, 2, WhenAddressIsFull::ReplaceIdle);
        let first = enter(&places, 1, Use::Idle).unwrap();
        let second = enter(&places, 1, Use::Guest).unwrap();
        let third = enter(&places, 1, Use::Guest).unwrap();
        assert!(first.lost.is_cancelled() && !second.lost.is_cancelled());
        let refused = enter(&places, 1, Use::Idle).err();
        assert_eq!(refused, Some(NoPlace::AddressIsFull));
        drop((first, third));
        assert!(enter(&places, 1, Use::Idle).is_ok());
    }
}
