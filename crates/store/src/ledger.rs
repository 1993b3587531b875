//! Budget reservations, and slots that bound concurrent work.
//!
//! A reservation sets money aside before it is spent. It counts towards one or more budgets, each of which is a pair
//! of counters: the amount spent and the amount reserved. However often a caller settles a reservation, it is
//! settled once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::counters::{CounterUpdate, MemoryCounters};

/// An amount that is set aside until the actual cost is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The unique id.
    pub id: String,
    /// The process that settles it. If that process ends, another one takes over.
    pub holder: String,
    /// The amount that is set aside.
    pub amount: u64,
    /// The budgets that it counts towards.
    pub budgets: Vec<BudgetCounters>,
    /// Data that its holder needs to settle it; opaque to the store.
    pub body: String,
}

/// The counters of one budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetCounters {
    /// The subject of both counters.
    pub subject: String,
    /// The name of the counter of spent amounts.
    pub spent: String,
    /// The name of the counter of reserved amounts.
    pub reserved: String,
    /// The most that may be spent and reserved in total.
    #[serde(rename = "most")]
    pub limit: Option<u64>,
}

/// The current values of a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetState {
    /// The amount spent.
    pub spent: u64,
    /// The amount reserved on top of that.
    pub reserved: u64,
}

/// The outcome of [`Store::reserve`](crate::Store::reserve), with the state of each budget after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReserveOutcome {
    /// The amount is set aside.
    Held(Vec<BudgetState>),
    /// At least one budget does not have enough left; nothing is set aside.
    Exceeded(Vec<BudgetState>),
    /// A reservation with this id was settled before this call arrived.
    AlreadySettled,
}

/// The outcome of [`Store::reassign`](crate::Store::reassign).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReassignOutcome {
    /// The reservation is changed.
    Done,
    /// The claim belongs to another reservation; nothing is changed.
    Claimed,
    /// The reservation is settled, or another process holds it.
    Gone,
}

/// One of a bounded number of concurrent jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The name of the bounded resource.
    pub key: String,
    /// The id of this slot.
    pub id: String,
    /// Slots of the same group count as one.
    pub group: String,
    /// The process that does the work.
    pub holder: String,
    /// Whether the work continues when its process ends.
    pub is_durable: bool,
}

/// How many slots may be in use for another one to be acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotLimit {
    /// The maximum number of groups.
    pub max_groups: u64,
    /// Whether groups that consist of durable slots count.
    pub counts_durable: bool,
}

impl SlotLimit {
    /// Returns whether another group fits beside these slots, given as `(group, is_durable)`.
    pub(super) fn allows<'a>(self, slots: impl Iterator<Item = (&'a str, bool)>) -> bool {
        let counted = slots.filter(|(_, is_durable)| self.counts_durable || !is_durable);
        let groups: BTreeSet<&str> = counted.map(|(group, _)| group).collect();
        (groups.len() as u64) < self.max_groups
    }
}

/// Returns whether each budget has this amount left.
pub(super) fn fits(amount: u64, budgets: &[BudgetCounters], states: &[BudgetState]) -> bool {
    budgets.iter().zip(states).all(|(budget, state)| {
        let total = state
            .spent
            .saturating_add(state.reserved)
            .saturating_add(amount);
        budget.limit.is_none_or(|limit| total <= limit)
    })
}

/// Reservations and slots in memory.
#[derive(Default)]
pub(super) struct MemoryLedger {
    open: BTreeMap<String, Reservation>,
    claims: HashMap<String, String>,
    slots: BTreeMap<String, BTreeMap<String, Slot>>,
}

impl MemoryLedger {
    pub(super) fn reserve(
        &mut self,
        counters: &mut MemoryCounters,
        reservation: Reservation,
    ) -> ReserveOutcome {
        let states = |counters: &MemoryCounters| -> Vec<BudgetState> {
            let state = |budget: &BudgetCounters| BudgetState {
                spent: counters.get(&budget.subject, &budget.spent),
                reserved: counters.get(&budget.subject, &budget.reserved),
            };
            reservation.budgets.iter().map(state).collect()
        };
        if self.open.contains_key(&reservation.id) {
            return ReserveOutcome::Held(states(counters));
        }
        let before = states(counters);
        if !fits(reservation.amount, &reservation.budgets, &before) {
            return ReserveOutcome::Exceeded(before);
        }
        for budget in &reservation.budgets {
            counters.add(&budget.subject, &budget.reserved, reservation.amount);
        }
        let after = states(counters);
        self.open.insert(reservation.id.clone(), reservation);
        ReserveOutcome::Held(after)
    }

    pub(super) fn settle(
        &mut self,
        counters: &mut MemoryCounters,
        id: &str,
        updates: Vec<CounterUpdate>,
    ) -> bool {
        let Some(settled) = self.open.remove(id) else {
            return false;
        };
        for budget in &settled.budgets {
            counters.subtract(&budget.subject, &budget.reserved, settled.amount);
        }
        for update in updates {
            counters.apply(update);
        }
        true
    }

    pub(super) fn reassign(
        &mut self,
        current: &Reservation,
        changed: Reservation,
        claim: Option<String>,
    ) -> ReassignOutcome {
        let Some(known) = self.open.get_mut(&changed.id) else {
            return ReassignOutcome::Gone;
        };
        if known != current {
            return ReassignOutcome::Gone;
        }
        if let Some(claim) = claim {
            let owner = self.claims.entry(claim).or_insert(changed.id.clone());
            if *owner != changed.id {
                return ReassignOutcome::Claimed;
            }
        }
        known.holder = changed.holder;
        known.body = changed.body;
        ReassignOutcome::Done
    }

    pub(super) fn reservations(&self) -> Vec<Reservation> {
        self.open.values().cloned().collect()
    }

    pub(super) fn acquire_slot(&mut self, slot: Slot, limit: Option<SlotLimit>) -> bool {
        let slots = self.slots.entry(slot.key.clone()).or_default();
        let others = slots.values().filter(|other| other.id != slot.id);
        let others = others.map(|other| (other.group.as_str(), other.is_durable));
        if limit.is_some_and(|limit| !limit.allows(others)) {
            return false;
        }
        slots.insert(slot.id.clone(), slot);
        true
    }

    pub(super) fn release_slot(&mut self, key: &str, id: &str) {
        if let Some(slots) = self.slots.get_mut(key) {
            slots.remove(id);
            if slots.is_empty() {
                self.slots.remove(key);
            }
        }
    }

    pub(super) fn slots(&self, key: &str) -> Vec<Slot> {
        let slots = self.slots.get(key);
        slots
            .into_iter()
            .flat_map(BTreeMap::values)
            .cloned()
            .collect()
    }
}
