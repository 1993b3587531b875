//! Reservations of money, and slots for work under way.
//!
//! A reservation sets money aside before it is spent. It counts towards one or more budgets, each of which is
//! a pair of counters: what is spent, and what is reserved. It is settled exactly once, however often that is
//! asked for.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::counters::{CountChange, Numbers};

/// Money that is set aside until it is known how much of it was spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Its id, which no other reservation ever has.
    pub id: String,
    /// The process that settles it; another one does when that process has ended.
    pub holder: String,
    /// How much is set aside.
    pub amount: u64,
    /// The budgets that it counts towards.
    pub budgets: Vec<BudgetCounters>,
    /// Whatever its holder needs to settle it; not read by the store.
    pub body: String,
}

/// The counters of one budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetCounters {
    /// Whose counters.
    #[serde(rename = "subject")]
    pub subject: String,
    /// The name of the counter of what is spent.
    #[serde(rename = "spent")]
    pub spent: String,
    /// The name of the counter of what is reserved.
    #[serde(rename = "reserved")]
    pub reserved: String,
    /// The most that may be spent and reserved together.
    #[serde(rename = "most")]
    pub most: Option<u64>,
}

/// How a budget stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetState {
    /// What is spent.
    pub spent: u64,
    /// What is reserved beside it.
    pub reserved: u64,
}

/// The outcome of a reservation, with the state of each budget after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// The money is set aside.
    Held(Vec<BudgetState>),
    /// At least one budget has not enough left; nothing is set aside.
    Exceeded(Vec<BudgetState>),
    /// A reservation of this id was settled before it arrived.
    Closed,
}

/// The outcome of a change of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reassigned {
    /// It is changed.
    Done,
    /// The claim belongs to another reservation; nothing is changed.
    Claimed,
    /// It is settled, or another process holds it.
    Gone,
}

/// A place among a bounded number of pieces of work under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// What is bounded.
    pub key: String,
    /// The id of this entry.
    pub id: String,
    /// Entries of the same group count as one.
    pub group: String,
    /// The process that does the work.
    pub holder: String,
    /// The work goes on when its process ends.
    pub is_lasting: bool,
}

/// How many slots there may be for another one to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotLimit {
    /// The most groups.
    pub most: u64,
    /// Whether groups of lasting entries alone count.
    pub counts_lasting: bool,
}

impl SlotLimit {
    /// Whether there is room beside the groups of these entries, given as group and whether it is lasting.
    pub(super) fn allows<'a>(self, entries: impl Iterator<Item = (&'a str, bool)>) -> bool {
        let counted = entries.filter(|(_, is_lasting)| self.counts_lasting || !is_lasting);
        let groups: BTreeSet<&str> = counted.map(|(group, _)| group).collect();
        (groups.len() as u64) < self.most
    }
}

/// Whether each budget has enough left.
pub(super) fn fits(amount: u64, budgets: &[BudgetCounters], states: &[BudgetState]) -> bool {
    budgets.iter().zip(states).all(|(budget, state)| {
        let wanted = state
            .spent
            .saturating_add(state.reserved)
            .saturating_add(amount);
        budget.most.is_none_or(|most| wanted <= most)
    })
}

/// Reservations and slots in memory.
#[derive(Default)]
pub(super) struct Ledger {
    open: BTreeMap<String, Reservation>,
    claims: HashMap<String, String>,
    slots: BTreeMap<String, BTreeMap<String, Slot>>,
}

impl Ledger {
    pub(super) fn reserve(&mut self, numbers: &mut Numbers, wanted: Reservation) -> Reserved {
        let states = |numbers: &Numbers| -> Vec<BudgetState> {
            let state = |budget: &BudgetCounters| BudgetState {
                spent: numbers.get(&budget.subject, &budget.spent),
                reserved: numbers.get(&budget.subject, &budget.reserved),
            };
            wanted.budgets.iter().map(state).collect()
        };
        if self.open.contains_key(&wanted.id) {
            return Reserved::Held(states(numbers));
        }
        let before = states(numbers);
        if !fits(wanted.amount, &wanted.budgets, &before) {
            return Reserved::Exceeded(before);
        }
        for budget in &wanted.budgets {
            numbers.add(&budget.subject, &budget.reserved, wanted.amount);
        }
        let after = states(numbers);
        self.open.insert(wanted.id.clone(), wanted);
        Reserved::Held(after)
    }

    pub(super) fn settle(
        &mut self,
        numbers: &mut Numbers,
        id: &str,
        changes: Vec<CountChange>,
    ) -> bool {
        let Some(settled) = self.open.remove(id) else {
            return false;
        };
        for budget in &settled.budgets {
            numbers.subtract(&budget.subject, &budget.reserved, settled.amount);
        }
        changes
            .into_iter()
            .for_each(|change| numbers.change(change));
        true
    }

    pub(super) fn reassign(
        &mut self,
        present: &Reservation,
        changed: Reservation,
        claim: Option<String>,
    ) -> Reassigned {
        let Some(known) = self.open.get_mut(&changed.id) else {
            return Reassigned::Gone;
        };
        if known != present {
            return Reassigned::Gone;
        }
        if let Some(claim) = claim {
            let owner = self.claims.entry(claim).or_insert(changed.id.clone());
            if *owner != changed.id {
                return Reassigned::Claimed;
            }
        }
        known.holder = changed.holder;
        known.body = changed.body;
        Reassigned::Done
    }

    pub(super) fn reservations(&self) -> Vec<Reservation> {
        self.open.values().cloned().collect()
    }

    pub(super) fn occupy(&mut self, slot: Slot, limit: Option<SlotLimit>) -> bool {
        let slots = self.slots.entry(slot.key.clone()).or_default();
        let mut others = slots.values().filter(|other| other.id != slot.id);
        let entries = others
            .by_ref()
            .map(|other| (other.group.as_str(), other.is_lasting));
        if limit.is_some_and(|limit| !limit.allows(entries)) {
            return false;
        }
        slots.insert(slot.id.clone(), slot);
        true
    }

    pub(super) fn vacate(&mut self, key: &str, id: &str) {
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
