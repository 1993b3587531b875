//! Whether a token may do more just now.
//!
//! Requests a minute, calls at once and dollars are counted in the store, so that all servers that share it
//! count together. While the store fails, each server counts requests and calls for itself; whether calls that
//! cost something are made then is for the operator to say.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use super::audit::Audit;
use super::budget::{self, Account, HeldSlot, Ledger};
use super::daily::{ANONYMOUS, Day, Spent, dollars};
use super::usage::Usage;
use super::{Directory, Token, now};
use exa_mcp_model::time::format_timestamp;
use exa_mcp_model::{LimitExceeded, lock};
use exa_mcp_store::{BudgetState, Pending, SlotLimit, Store, StoreError, Taken, Window, Windows};

const MINUTE: Duration = Duration::from_secs(60);

/// How long the store may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// When to come back while too many calls are under way.
const SOON: Duration = Duration::from_secs(1);

/// Enforces the limits of all tokens.
pub(super) struct RateLimiter {
    pub(super) store: Arc<dyn Store>,
    pub(super) directory: Arc<Directory>,
    pub(super) audit: Audit,
    pub(super) usage: Usage,
    pub(super) ledger: Arc<Ledger>,
    /// Requests, while the store cannot count them.
    pub(super) spare: Mutex<Windows>,
}

/// What one token may still do. Clones share everything.
#[derive(Clone)]
pub struct Allowance {
    limiter: Arc<RateLimiter>,
    token: Arc<Token>,
    address: Arc<str>,
}

/// A call that may be made; it counts as under way until this is dropped.
#[derive(Debug, Default)]
pub struct Permit {
    calls: Option<Arc<AtomicUsize>>,
    slot: Option<HeldSlot>,
    /// What the caller should know.
    pub warnings: Vec<String>,
}

impl Permit {
    /// The slot of the call, where calls are counted.
    pub fn slot(&self) -> Option<&HeldSlot> {
        self.slot.as_ref()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(calls) = &self.calls {
            calls.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Allowance {
    pub(super) fn new(limiter: &Arc<RateLimiter>, token: &Arc<Token>, address: &str) -> Self {
        Self {
            limiter: Arc::clone(limiter),
            token: Arc::clone(token),
            address: Arc::from(address),
        }
    }

    /// The token as it is now: a connection may live longer than its limits.
    fn token(&self) -> Arc<Token> {
        let current = self.limiter.directory.get(&self.token.id);
        current.unwrap_or_else(|| Arc::clone(&self.token))
    }

    /// Counts requests, or says when to come back.
    pub async fn requests(&self, amount: u64) -> Result<(), LimitExceeded> {
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
        let taken = self.limiter.take(window).await;
        if taken.allowed {
            return Ok(());
        }
        let mut over = LimitExceeded {
            limit: "requestsPerMinute",
            message: String::new(),
            retry_after: taken.retry_after,
            budget: None,
        };
        over.message = format!(
            "Limit reached: {most} requests a minute with this token. Come back in {} seconds.",
            over.retry_after_seconds()
        );
        Err(self.denied(over))
    }

    /// Lets a call of a tool begin, or says when to come back. One that starts work, which may cost so many
    /// millionths of a dollar, counts beside the runs that were started before and have not ended.
    pub async fn call(&self, starts_work: Option<u64>) -> Result<Permit, LimitExceeded> {
        let token = self.token();
        let mut permit = Permit::default();
        if let Some(most) = token.in_force.concurrent_calls {
            let limit = SlotLimit {
                most,
                counts_lasting: starts_work.is_some(),
            };
            self.occupy(&token, limit, &mut permit).await?;
        }
        if token.in_force.count_dollars() {
            let day = Day::of(now());
            let spent = self.limiter.spent(&token, day).await;
            // Nobody is told that work has begun which cannot be paid for.
            let over = starts_work.and_then(|cost| over_budget(&token, spent, day, cost));
            if let Some(over) = over {
                return Err(self.denied(over));
            }
            permit.warnings = warnings(&token, spent, day);
            for warning in &permit.warnings {
                tracing::warn!(token = token.id, "{warning}");
            }
        }
        Ok(permit)
    }

    /// Lets a call go on that another server began.
    pub async fn resumed_call(&self) -> Permit {
        let token = self.token();
        let mut permit = Permit::default();
        if token.in_force.concurrent_calls.is_some() {
            let slot = self.limiter.ledger.occupy(&slots(&token), None).await;
            permit.slot = slot.ok().flatten();
        }
        permit
    }

    async fn occupy(
        &self,
        token: &Token,
        limit: SlotLimit,
        permit: &mut Permit,
    ) -> Result<(), LimitExceeded> {
        let calls = Arc::clone(&token.calls);
        let before = calls.fetch_add(1, Ordering::SeqCst);
        // From here on the permit takes it back.
        permit.calls = Some(calls);
        let has_room = match self.limiter.ledger.occupy(&slots(token), Some(limit)).await {
            Ok(slot) => {
                permit.slot = slot;
                permit.slot.is_some()
            }
            Err(error) => {
                tracing::warn!(%error, "calls at once are counted by this server alone");
                (before as u64) < limit.most
            }
        };
        match has_room {
            true => Ok(()),
            false => Err(self.denied(too_many_at_once(limit.most))),
        }
    }

    /// The account that pays for what the token's holder asks for.
    pub fn account(&self) -> Account {
        let (limiter, token) = (&self.limiter, &self.token);
        let user = token.user.as_deref().unwrap_or(ANONYMOUS);
        let (own, teller) = (self.clone(), self.clone());
        let limits = move || own.token().in_force.clone();
        let usage = Some(limiter.usage.clone());
        let account = Account::new(&limiter.ledger, &token.id, user, limits, usage);
        account.telling(move |over| teller.tell_denied(over))
    }

    /// The id of the token.
    pub fn token_id(&self) -> &str {
        &self.token.id
    }

    fn denied(&self, over: LimitExceeded) -> LimitExceeded {
        self.tell_denied(&over);
        over
    }

    fn tell_denied(&self, over: &LimitExceeded) {
        let detail = json!({"limit": over.limit});
        let target = Some(self.token.id.as_str());
        let audit = &self.limiter.audit;
        audit.deny("denied.limit", &self.address, target, Some(detail));
    }
}

impl fmt::Debug for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Allowance").field(&self.token.id).finish()
    }
}

impl RateLimiter {
    async fn take(&self, window: Window) -> Taken {
        match patiently(self.store.take(window.clone())).await {
            Ok(taken) => taken,
            Err(error) => {
                tracing::warn!(%error, "requests are counted by this server alone");
                let now = u64::try_from(now()).unwrap_or_default();
                let mut spare = lock(&self.spare);
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

/// What the slots of a token's calls are called.
fn slots(token: &Token) -> String {
    format!("calls:{}", token.id)
}

/// Waits for the store, but not for long: a request is worth more than its count.
async fn patiently<T>(pending: Pending<'_, T>) -> Result<T, StoreError> {
    let late = |_| Err(StoreError::Unavailable("it does not answer".to_owned()));
    timeout(PATIENCE, pending).await.unwrap_or_else(late)
}

fn too_many_at_once(most: u64) -> LimitExceeded {
    LimitExceeded {
        limit: "concurrentCalls",
        message: format!(
            "Limit reached: {most} calls at once with this token, tasks and runs under way included. Call again when \
             one of them has ended."
        ),
        retry_after: SOON,
        budget: None,
    }
}

/// The marks of the budgets with what counts towards them.
fn marks(token: &Token, spent: Spent, day: Day) -> [Budget; 2] {
    let limits = &token.in_force;
    [
        Budget {
            soft: limits.soft_dollars_per_day,
            spent: spent.today,
            reserved: spent.reserved_today,
            period: "day",
            ends: day.end(),
        },
        Budget {
            soft: limits.soft_dollars_per_month,
            spent: spent.this_month,
            reserved: spent.reserved_this_month,
            period: "month",
            ends: day.month_end(),
        },
    ]
}

struct Budget {
    soft: Option<f64>,
    /// Millionths of a dollar.
    spent: u64,
    reserved: u64,
    period: &'static str,
    ends: i64,
}

impl Budget {
    /// What is spent and reserved, in dollars.
    fn used(&self) -> f64 {
        dollars(self.spent.saturating_add(self.reserved))
    }
}

/// The budget that has not enough left for what costs so much.
fn over_budget(token: &Token, spent: Spent, day: Day, cost: u64) -> Option<LimitExceeded> {
    let states = [
        BudgetState {
            spent: spent.today,
            reserved: spent.reserved_today,
        },
        BudgetState {
            spent: spent.this_month,
            reserved: spent.reserved_this_month,
        },
    ];
    budget::exceeded(&token.in_force, cost, &states, day)
}

fn warnings(token: &Token, spent: Spent, day: Day) -> Vec<String> {
    let budgets = marks(token, spent, day).into_iter();
    let beyond = budgets.filter(|budget| budget.soft.is_some_and(|soft| budget.used() >= soft));
    let warning = |budget: Budget| {
        format!(
            "this token spent ${:.4} this {} and reserved ${:.4}, beyond the mark of ${}; the {} ends at {} (UTC)",
            dollars(budget.spent),
            budget.period,
            dollars(budget.reserved),
            budget.soft.unwrap_or_default(),
            budget.period,
            format_timestamp(budget.ends),
        )
    };
    beyond.map(warning).collect()
}
