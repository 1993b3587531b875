//! Limits that refuse a call.

use std::time::Duration;

use serde_json::{Value, json};

/// A limit of the caller is reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LimitExceeded {
    /// Which limit, as it is called among the limits.
    pub limit: &'static str,
    /// What happened, and when to come back.
    pub message: String,
    /// How long it takes until there is room.
    pub retry_after: Duration,
    /// The state of the budget that refused the call.
    pub budget: Option<BudgetShortfall>,
}

/// The state of a budget that refused a call, in millionths of a dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetShortfall {
    /// The most that the call can cost.
    pub would_cost: u64,
    /// What is left of the budget.
    pub left: u64,
    /// What is spent.
    pub spent: u64,
    /// What is reserved for calls and runs under way.
    pub reserved: u64,
}

impl LimitExceeded {
    /// Returns the whole seconds after which to come back.
    #[must_use]
    pub fn retry_after_seconds(&self) -> u64 {
        (self.retry_after.as_secs_f64().ceil() as u64).max(1)
    }

    /// Returns what code reads: which limit, when to come back, and the state of the budget in dollars.
    #[must_use]
    pub fn detail(&self) -> Vec<(&'static str, Value)> {
        let mut detail = vec![
            ("limit", json!(self.limit)),
            ("retryAfter", json!(self.retry_after_seconds())),
        ];
        if let Some(budget) = self.budget {
            detail.extend([
                ("wouldCost", json!(dollars(budget.would_cost))),
                ("left", json!(dollars(budget.left))),
                ("spent", json!(dollars(budget.spent))),
                ("reserved", json!(dollars(budget.reserved))),
            ]);
        }
        detail
    }
}

fn dollars(micro: u64) -> f64 {
    micro as f64 / 1e6
}
