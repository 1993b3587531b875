//! Enforces the limits of a token.
//!
//! Requests per minute, concurrent calls and dollars are counted in the store, so that servers that share it count
//! together. While the store fails, each server counts requests and calls on its own; the operator decides whether
//! paid calls are made then.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use super::audit::AuditLog;
use super::budget::{self, BudgetAccount, BudgetLedger, CallSlot};
use super::daily::{ANONYMOUS, Day, Spending, dollars};
use super::usage::UsageRecorder;
use super::{Token, TokenDirectory, now};
use exa_mcp_model::time::format_timestamp;
use exa_mcp_model::{LimitExceeded, lock};
use exa_mcp_store::{
    BudgetState, MemoryWindows, SlotLimit, Store, StoreError, StoreFuture, WindowDecision,
    WindowRequest,
};

const MINUTE: Duration = Duration::from_secs(60);

/// How long the store may take.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// When to retry while too many calls are in progress.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Enforces the limits of all tokens.
pub(super) struct RateLimiter {
    pub(super) store: Arc<dyn Store>,
    pub(super) directory: Arc<TokenDirectory>,
    pub(super) audit: AuditLog,
    pub(super) usage: UsageRecorder,
    pub(super) ledger: Arc<BudgetLedger>,
    /// Counts requests while the store fails.
    pub(super) local_windows: Mutex<MemoryWindows>,
}

/// The limits of one token. Clones share everything.
#[derive(Clone)]
pub struct Allowance {
    limiter: Arc<RateLimiter>,
    token: Arc<Token>,
    address: Arc<str>,
}

/// Permission for a call, which counts as in progress until this is dropped.
#[derive(Debug, Default)]
pub struct CallPermit {
    calls: Option<Arc<AtomicUsize>>,
    slot: Option<CallSlot>,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
}

impl CallPermit {
    /// Returns the slot of the call, if calls are limited.
    pub fn slot(&self) -> Option<&CallSlot> {
        self.slot.as_ref()
    }
}

impl Drop for CallPermit {
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

    /// Returns the current state of the token, because its limits may change while a connection is open.
    fn token(&self) -> Arc<Token> {
        let current = self.limiter.directory.get(&self.token.id);
        current.unwrap_or_else(|| Arc::clone(&self.token))
    }

    /// Counts requests.
    ///
    /// # Errors
    /// The limit is reached.
    pub async fn count_requests(&self, amount: u64) -> Result<(), LimitExceeded> {
        let token = self.token();
        let per_minute = token.effective_limits.requests_per_minute;
        let Some(limit) = per_minute.filter(|_| amount > 0) else {
            return Ok(());
        };
        let request = WindowRequest {
            key: format!("requests:{}", token.id),
            limit,
            amount,
            length: MINUTE,
        };
        let decision = self.limiter.consume(request).await;
        if decision.allowed {
            return Ok(());
        }
        let mut exceeded = LimitExceeded {
            limit: "requestsPerMinute",
            message: String::new(),
            retry_after: decision.retry_after,
            budget: None,
        };
        exceeded.message = format!(
            "Limit reached: {limit} requests per minute with this token. Retry in {} seconds.",
            exceeded.retry_after_seconds()
        );
        Err(self.record_rejection(exceeded))
    }

    /// Permits a tool call. For a call that starts a job, `job_cost` is its possible cost in millionths of a dollar;
    /// such a call also counts against the jobs that are still in progress.
    ///
    /// # Errors
    /// A limit is reached.
    pub async fn start_call(&self, job_cost: Option<u64>) -> Result<CallPermit, LimitExceeded> {
        let token = self.token();
        let mut permit = CallPermit::default();
        if let Some(max_groups) = token.effective_limits.concurrent_calls {
            let limit = SlotLimit {
                max_groups,
                counts_durable: job_cost.is_some(),
            };
            self.acquire_slot(&token, limit, &mut permit).await?;
        }
        if token.effective_limits.has_spending_limit() {
            let day = Day::from_timestamp(now());
            let spending = self.limiter.spending(&token, day).await;
            // Fail now instead of reporting that a job has started which cannot be paid for.
            let exceeded = job_cost.and_then(|cost| exceeded_budget(&token, spending, day, cost));
            if let Some(exceeded) = exceeded {
                return Err(self.record_rejection(exceeded));
            }
            permit.warnings = warnings(&token, spending, day);
            for warning in &permit.warnings {
                tracing::warn!(token = token.id, "{warning}");
            }
        }
        Ok(permit)
    }

    /// Permits a call that another server started.
    pub async fn resume_call(&self) -> CallPermit {
        let token = self.token();
        let mut permit = CallPermit::default();
        if token.effective_limits.concurrent_calls.is_some() {
            let slot = self
                .limiter
                .ledger
                .acquire_slot(&slot_key(&token), None)
                .await;
            permit.slot = slot.ok().flatten();
        }
        permit
    }

    async fn acquire_slot(
        &self,
        token: &Token,
        limit: SlotLimit,
        permit: &mut CallPermit,
    ) -> Result<(), LimitExceeded> {
        let calls = Arc::clone(&token.calls);
        let before = calls.fetch_add(1, Ordering::SeqCst);
        // From here on dropping the permit decrements the count.
        permit.calls = Some(calls);
        let key = slot_key(token);
        let slot = self.limiter.ledger.acquire_slot(&key, Some(limit));
        let is_allowed = match slot.await {
            Ok(slot) => {
                permit.slot = slot;
                permit.slot.is_some()
            }
            Err(error) => {
                tracing::warn!(%error, "store failed; counting concurrent calls on this server only");
                (before as u64) < limit.max_groups
            }
        };
        if is_allowed {
            Ok(())
        } else {
            Err(self.record_rejection(too_many_calls(limit.max_groups)))
        }
    }

    /// Returns the account that pays for the requests of the token.
    pub fn account(&self) -> BudgetAccount {
        let (limiter, token) = (&self.limiter, &self.token);
        let user = token.user.as_deref().unwrap_or(ANONYMOUS);
        let (limits_of, audit) = (self.clone(), self.clone());
        let limits = move || limits_of.token().effective_limits.clone();
        let usage = Some(limiter.usage.clone());
        let account = BudgetAccount::new(&limiter.ledger, &token.id, user, limits, usage);
        account.on_rejection(move |exceeded| audit.record_denial(exceeded))
    }

    /// Returns the id of the token.
    pub fn token_id(&self) -> &str {
        &self.token.id
    }

    /// Records the rejection in the audit log.
    fn record_rejection(&self, exceeded: LimitExceeded) -> LimitExceeded {
        self.record_denial(&exceeded);
        exceeded
    }

    fn record_denial(&self, exceeded: &LimitExceeded) {
        let detail = json!({"limit": exceeded.limit});
        let target = Some(self.token.id.as_str());
        let audit = &self.limiter.audit;
        audit.record_denial("denied.limit", &self.address, target, Some(detail));
    }
}

impl fmt::Debug for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Allowance").field(&self.token.id).finish()
    }
}

impl RateLimiter {
    async fn consume(&self, request: WindowRequest) -> WindowDecision {
        match with_timeout(self.store.consume(request.clone())).await {
            Ok(decision) => decision,
            Err(error) => {
                tracing::warn!(%error, "store failed; counting requests on this server only");
                let now = u64::try_from(now()).unwrap_or_default();
                lock(&self.local_windows).consume(request, now)
            }
        }
    }

    async fn spending(&self, token: &Token, day: Day) -> Spending {
        match with_timeout(self.store.counters(Some(day.spending_subject(&token.id)))).await {
            Ok(counters) => Spending::from_counters(day, &counters),
            Err(error) => {
                tracing::warn!(%error, "cannot read the spending of a token; making the call anyway");
                Spending::default()
            }
        }
    }
}

/// Returns the key of the slots for calls of a token.
fn slot_key(token: &Token) -> String {
    format!("calls:{}", token.id)
}

/// Waits briefly for the store: serving the request matters more than counting it.
async fn with_timeout<T>(future: StoreFuture<'_, T>) -> Result<T, StoreError> {
    let timed_out = |_| Err(StoreError::Unavailable("it does not respond".to_owned()));
    timeout(STORE_TIMEOUT, future)
        .await
        .unwrap_or_else(timed_out)
}

fn too_many_calls(max: u64) -> LimitExceeded {
    LimitExceeded {
        limit: "concurrentCalls",
        message: format!(
            "Limit reached: {max} concurrent calls with this token, including tasks and runs in progress. Call again \
             when one of them has ended."
        ),
        retry_after: RETRY_AFTER,
        budget: None,
    }
}

/// Returns the soft limits of the token with what counts towards them.
fn soft_budgets(token: &Token, spending: Spending, day: Day) -> [SoftBudget; 2] {
    let limits = &token.effective_limits;
    [
        SoftBudget {
            limit: limits.soft_dollars_per_day,
            spent: spending.today,
            reserved: spending.reserved_today,
            period: "day",
            ends_at: day.end(),
        },
        SoftBudget {
            limit: limits.soft_dollars_per_month,
            spent: spending.this_month,
            reserved: spending.reserved_this_month,
            period: "month",
            ends_at: day.month_end(),
        },
    ]
}

struct SoftBudget {
    limit: Option<f64>,
    /// Millionths of a dollar.
    spent: u64,
    reserved: u64,
    period: &'static str,
    ends_at: i64,
}

impl SoftBudget {
    /// Returns the spent and reserved amount in dollars.
    fn used(&self) -> f64 {
        dollars(self.spent.saturating_add(self.reserved))
    }
}

/// Returns an error if a budget does not have this cost left.
fn exceeded_budget(
    token: &Token,
    spending: Spending,
    day: Day,
    cost: u64,
) -> Option<LimitExceeded> {
    let states = [
        BudgetState {
            spent: spending.today,
            reserved: spending.reserved_today,
        },
        BudgetState {
            spent: spending.this_month,
            reserved: spending.reserved_this_month,
        },
    ];
    budget::exceeded_limit(&token.effective_limits, cost, &states, day)
}

fn warnings(token: &Token, spending: Spending, day: Day) -> Vec<String> {
    let budgets = soft_budgets(token, spending, day).into_iter();
    let exceeded =
        budgets.filter(|budget| budget.limit.is_some_and(|limit| budget.used() >= limit));
    let warning = |budget: SoftBudget| {
        format!(
            "this token has spent ${:.4} this {} and reserved ${:.4}, above its soft limit of ${}; the {} ends at \
             {} (UTC)",
            dollars(budget.spent),
            budget.period,
            dollars(budget.reserved),
            budget.limit.unwrap_or_default(),
            budget.period,
            format_timestamp(budget.ends_at),
        )
    };
    exceeded.map(warning).collect()
}
