//! Budgets: money is set aside before a request is sent, and settled after it.

mod account;
mod entry;
mod ledger;
mod permits;
mod queue;
mod sweep;
#[cfg(test)]
mod tests;

pub(super) use account::exceeded;
pub use account::{Account, Charge, CountedCharge, RunOutcome, RunSlotHandle, Worst};
pub use entry::RunRecord;
pub use ledger::{Hold, Ledger, OpenRun};
pub use permits::HeldSlot;

/// What happens where a budget cannot be enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unenforced {
    /// The call is refused.
    Deny,
    /// The call is made.
    Allow,
}

/// What happens where budgets cannot be enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetPolicy {
    /// While the store fails.
    pub on_store_failure: Unenforced,
    /// For operations without a known price.
    pub unpriced: Unenforced,
}

impl Default for BudgetPolicy {
    fn default() -> Self {
        Self {
            on_store_failure: Unenforced::Deny,
            unpriced: Unenforced::Deny,
        }
    }
}
