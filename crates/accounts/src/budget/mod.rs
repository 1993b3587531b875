//! Budgets: each request to Exa reserves its possible cost before it is sent, and settles the actual cost after.

mod account;
mod call_slots;
mod ledger;
mod record;
mod recovery;
#[cfg(test)]
mod tests;
mod write_queue;

pub(super) use account::exceeded_limit;
pub use account::{BudgetAccount, Charge, CountedCharge, JobSlotHandle, WorstCaseCost};
pub use call_slots::CallSlot;
pub use ledger::{BudgetHold, BudgetLedger};
pub use record::JobRecord;

/// What to do when a budget cannot be enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnenforcedAction {
    /// Reject the call.
    Deny,
    /// Make the call.
    Allow,
}

/// How the server treats budgets that it cannot enforce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetPolicy {
    /// While the store fails.
    pub on_store_failure: UnenforcedAction,
    /// For operations without a known price.
    pub unpriced: UnenforcedAction,
}

impl Default for BudgetPolicy {
    fn default() -> Self {
        Self {
            on_store_failure: UnenforcedAction::Deny,
            unpriced: UnenforcedAction::Deny,
        }
    }
}
