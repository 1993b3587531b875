//! Errors about exceeded limits.

use std::time::Duration;

use serde_json::{Value, json};

/// A limit of the caller is exceeded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LimitExceeded {
    /// The name of the limit.
    pub limit: &'static str,
    /// What happened, and when to try again.
    pub message: String,
    /// The time until the call may succeed.
    pub retry_after: Duration,
    /// The state of the budget, if it is the exceeded limit.
    pub budget: Option<BudgetShortfall>,
}

/// The state of an exceeded budget, in millionths of a dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetShortfall {
    /// The maximum cost of the call.
    pub would_cost: u64,
    /// The remaining budget.
    pub remaining: u64,
    /// The amount that is spent.
    pub spent: u64,
    /// The amount that is reserved for calls and runs in progress.
    pub reserved: u64,
}

impl LimitExceeded {
    /// Returns the seconds after which to try again, rounded up.
    #[must_use]
    pub fn retry_after_seconds(&self) -> u64 {
        (self.retry_after.as_secs_f64().ceil() as u64).max(1)
    }

    /// Returns the structured details: the limit, when to try again, and the state of the budget in dollars.
    #[must_use]
    pub fn detail(&self) -> Vec<(&'static str, Value)> {
        let mut detail = vec![
            ("limit", json!(self.limit)),
            ("retryAfter", json!(self.retry_after_seconds())),
        ];
        if let Some(budget) = self.budget {
            detail.extend([
                ("wouldCost", json!(dollars(budget.would_cost))),
                ("left", json!(dollars(budget.remaining))),
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
