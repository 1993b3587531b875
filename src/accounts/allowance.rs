//! Whether a token may do more just now.
//!
//! Requests a minute and dollars are counted in the store, so that all servers that share it count
//! together. Calls at once are counted by each server for itself. A store that fails locks nobody out:
//! requests are then counted here alone, and dollars not at all.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use super::audit::Audit;
use super::daily::{Day, Spent, dollars};
use super::{Directory, Token, now, timestamp};
use crate::store::{Pending, Store, StoreError, Taken, Window, Windows};

const MINUTE: Duration = Duration::from_secs(60);

/// How long the store may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// When to come back while too many calls are under way.
const SOON: Duration = Duration::from_secs(1);

/// What watches over the limits of all tokens.
pub(super) struct Warden {
    pub(super) store: Arc<dyn Store>,
    pub(super) directory: Arc<Directory>,
    pub(super) audit: Audit,
    /// Requests, while the store cannot count them.
    pub(super) spare: Mutex<Windows>,
}

/// What one token may still do. Clones share everything.
#[derive(Clone)]
pub struct Allowance {
    warden: Arc<Warden>,
    token: Arc<Token>,
    address: Arc<str>,
}

/// A limit is reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct OverLimit {
    /// Which limit, as it is called among the limits.
    pub limit: &'static str,
    /// What happened, and when to come back.
    pub message: String,
    /// How long it takes until there is room.
    pub retry_after: Duration,
}

impl OverLimit {
    /// The whole seconds after which to come back.
    pub fn seconds(&self) -> u64 {
        (self.retry_after.as_secs_f64().ceil() as u64).max(1)
    }
}

/// A call that may be made; it counts as under way until this is dropped.
#[derive(Debug, Default)]
pub struct Permit {
    calls: Option<Arc<AtomicUsize>>,
    /// What the caller should know.
    pub warnings: Vec<String>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(calls) = &self.calls {
            calls.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Allowance {
    pub(super) fn new(warden: &Arc<Warden>, token: &Arc<Token>, address: &str) -> Self {
        Self {
            warden: Arc::clone(warden),
            token: Arc::clone(token),
            address: Arc::from(address),
        }
    }

    /// The token as it is now: a connection may live longer than its limits.
    fn token(&self) -> Arc<Token> {
        let current = self.warden.directory.get(&self.token.id);
        current.unwrap_or_else(|| Arc::clone(&self.token))
    }

    /// Counts requests, or says when to come back.
    pub async fn requests(&self, amount: u64) -> Result<(), OverLimit> {
        let token = self.token();
        let Some(most) = token.in_force.requests_per_minute.filter(|_| amount > 0) else {
            return Ok(());
        };
        let window = Window {
            key: format!("requests:{}", token.id),
            most,
            amount,
            length: MINUTE,
        };
        let taken = self.warden.take(window).await;
        if taken.allowed {
            return Ok(());
        }
        let mut over = OverLimit {
            limit: "requestsPerMinute",
            message: String::new(),
            retry_after: taken.retry_after,
        };
        over.message = format!(
            "Limit reached: {most} requests a minute with this token. Come back in {} seconds.",
            over.seconds()
        );
        Err(self.denied(over))
    }

    /// Lets a call of a tool begin, or says when to come back.
    pub async fn call(&self) -> Result<Permit, OverLimit> {
        let token = self.token();
        let mut permit = Permit::default();
        if let Some(most) = token.in_force.concurrent_calls {
            let calls = Arc::clone(&token.calls);
            let before = calls.fetch_add(1, Ordering::SeqCst);
            // From here on the permit takes it back.
            permit.calls = Some(calls);
            if before as u64 >= most {
                return Err(self.denied(too_many_at_once(most)));
            }
        }
        if token.in_force.count_dollars() {
            let day = Day::of(now());
            let spent = self.warden.spent(&token, day).await;
            if let Some(over) = over_budget(&token, spent, day) {
                return Err(self.denied(over));
            }
            permit.warnings = warnings(&token, spent, day);
            for warning in &permit.warnings {
                tracing::warn!(token = token.id, "{warning}");
            }
        }
        Ok(permit)
    }

    fn denied(&self, over: OverLimit) -> OverLimit {
        let detail = json!({"limit": over.limit});
        let target = Some(self.token.id.as_str());
        let audit = &self.warden.audit;
        audit.deny("denied.limit", &self.address, target, Some(detail));
        over
    }
}

impl fmt::Debug for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Allowance").field(&self.token.id).finish()
    }
}

impl Warden {
    async fn take(&self, window: Window) -> Taken {
        match patiently(self.store.take(window.clone())).await {
            Ok(taken) => taken,
            Err(error) => {
                tracing::warn!(%error, "requests are counted by this server alone");
                let now = u64::try_from(now()).unwrap_or_default();
                let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
                spare.take(window, now)
            }
        }
    }

    async fn spent(&self, token: &Token, day: Day) -> Spent {
        match patiently(self.store.counts(Some(day.spending(&token.id)))).await {
            Ok(counts) => Spent::read(day, &counts),
            Err(error) => {
                tracing::warn!(%error, "what was spent cannot be read; the call is made");
                Spent::default()
            }
        }
    }
}

/// Waits for the store, but not for long: a request is worth more than its count.
async fn patiently<T>(pending: Pending<'_, T>) -> Result<T, StoreError> {
    let late = |_| Err(StoreError::Unavailable("it does not answer".to_owned()));
    timeout(PATIENCE, pending).await.unwrap_or_else(late)
}

fn too_many_at_once(most: u64) -> OverLimit {
    OverLimit {
        limit: "concurrentCalls",
        message: format!(
            "Limit reached: {most} calls at once with this token. Call again when one of them has ended."
        ),
        retry_after: SOON,
    }
}

/// The budgets with what counts towards them: the name of the hard limit, its sum, that of the soft
/// one, what was spent, the period, and when it ends.
fn budgets(token: &Token, spent: Spent, day: Day) -> [Budget; 2] {
    let limits = &token.in_force;
    [
        Budget {
            limit: "dollarsPerDay",
            hard: limits.dollars_per_day,
            soft: limits.soft_dollars_per_day,
            spent: dollars(spent.today),
            period: "day",
            ends: day.end(),
        },
        Budget {
            limit: "dollarsPerMonth",
            hard: limits.dollars_per_month,
            soft: limits.soft_dollars_per_month,
            spent: dollars(spent.this_month),
            period: "month",
            ends: day.month_end(),
        },
    ]
}

struct Budget {
    limit: &'static str,
    hard: Option<f64>,
    soft: Option<f64>,
    spent: f64,
    period: &'static str,
    ends: i64,
}

/// The budget that is used up; of several the one that renews last.
fn over_budget(token: &Token, spent: Spent, day: Day) -> Option<OverLimit> {
    let budgets = budgets(token, spent, day).into_iter();
    let used_up = budgets.filter(|budget| budget.hard.is_some_and(|hard| budget.spent >= hard));
    let budget = used_up.max_by_key(|budget| budget.ends)?;
    let wait = u64::try_from(budget.ends.saturating_sub(now())).unwrap_or_default();
    Some(OverLimit {
        limit: budget.limit,
        message: format!(
            "Budget used up: this token spent ${:.4} of ${} a {}. The call was not made; the budget renews at {} (UTC).",
            budget.spent,
            budget.hard.unwrap_or_default(),
            budget.period,
            timestamp(budget.ends),
        ),
        retry_after: Duration::from_millis(wait),
    })
}

fn warnings(token: &Token, spent: Spent, day: Day) -> Vec<String> {
    let budgets = budgets(token, spent, day).into_iter();
    let beyond = budgets.filter(|budget| budget.soft.is_some_and(|soft| budget.spent >= soft));
    let warning = |budget: Budget| {
        format!(
            "this token spent ${:.4} this {}, beyond the mark of ${}; the {} ends at {} (UTC)",
            budget.spent,
            budget.period,
            budget.soft.unwrap_or_default(),
            budget.period,
            timestamp(budget.ends),
        )
    };
    beyond.map(warning).collect()
}
