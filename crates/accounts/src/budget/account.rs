//! Accounts that pay for requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::UnenforcedAction;
use super::call_slots::CallSlot;
use super::ledger::{BudgetHold, BudgetLedger, ReserveError};
use super::record::{JobRecord, JobSlot, ReservationBody, budget_counters};
use crate::daily::{Day, MICRODOLLARS, UNPRICED_CALLS, dollars};
use crate::limits::TokenLimits;
use crate::now;
use crate::usage::{UsageMeter, UsageRecorder};
use exa_mcp_model::time::format_timestamp;
use exa_mcp_model::{BudgetShortfall, JobCost, LimitExceeded, MicroDollars};
use exa_mcp_store::{BudgetState, StoreError};

/// When to retry while the store fails.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The account of a token, which pays for its requests. Clones share everything.
#[derive(Clone)]
pub struct BudgetAccount {
    pub(crate) ledger: Arc<BudgetLedger>,
    payer: Arc<str>,
    user: Arc<str>,
    limits: Arc<dyn Fn() -> TokenLimits + Send + Sync>,
    /// Records costs that need no reservation.
    usage: Option<UsageRecorder>,
    /// The slot of the call that the requests belong to, if calls are limited.
    slot: Option<JobSlot>,
    /// Called for each rejection.
    on_rejection: Option<RejectionCallback>,
}

type RejectionCallback = Arc<dyn Fn(&LimitExceeded) + Send + Sync>;

/// The charge for one attempt of a request.
pub enum Charge {
    /// The attempt is free.
    Free,
    /// The cost is counted but not limited.
    Counted(CountedCharge),
    /// The possible cost is reserved.
    Held(Box<BudgetHold>, Option<JobSlotHandle>),
}

/// The slot that a job shares with the call that started it.
pub struct JobSlotHandle(JobSlot);

/// A cost that is counted but not limited. If dropped, the estimate counts.
pub struct CountedCharge {
    meter: UsageMeter,
    estimate: u64,
    unpriced: bool,
    is_open: bool,
}

/// The most that one attempt of a request can cost.
#[derive(Clone, Copy, Debug)]
pub struct WorstCaseCost<'a> {
    /// The operation.
    pub operation: &'a str,
    /// The known maximum, in millionths of a dollar.
    pub microdollars: u64,
    /// Whether some or all of the cost is unknown.
    pub unpriced: bool,
    /// Whether it starts a job that is charged when it ends.
    pub starts_job: bool,
}

impl BudgetAccount {
    /// Creates the account of a payer. `limits` returns its current limits.
    pub fn new(
        ledger: &Arc<BudgetLedger>,
        payer: &str,
        user: &str,
        limits: impl Fn() -> TokenLimits + Send + Sync + 'static,
        usage: Option<UsageRecorder>,
    ) -> Self {
        Self {
            ledger: Arc::clone(ledger),
            payer: Arc::from(payer),
            user: Arc::from(user),
            limits: Arc::new(limits),
            usage,
            slot: None,
            on_rejection: None,
        }
    }

    /// Sets a callback for rejections.
    #[must_use]
    pub(crate) fn on_rejection(
        self,
        callback: impl Fn(&LimitExceeded) + Send + Sync + 'static,
    ) -> Self {
        Self {
            on_rejection: Some(Arc::new(callback)),
            ..self
        }
    }

    /// Returns the same account for the requests of one call.
    #[must_use]
    pub fn for_call(&self, slot: Option<&CallSlot>) -> Self {
        let slot = slot.map(|slot| JobSlot {
            key: slot.key.clone(),
            group: slot.id.clone(),
        });
        Self {
            slot,
            ..self.clone()
        }
    }

    /// Returns the ledger.
    pub fn ledger(&self) -> &Arc<BudgetLedger> {
        &self.ledger
    }

    /// Returns the id of the paying token.
    pub fn payer(&self) -> &str {
        &self.payer
    }

    /// Reserves the possible cost of an attempt.
    ///
    /// # Errors
    /// A budget does not have enough left, or cannot be checked.
    pub async fn reserve(&self, cost: WorstCaseCost<'_>) -> Result<Charge, LimitExceeded> {
        let result = self.try_reserve(cost).await;
        if let (Err(exceeded), Some(callback)) = (&result, &self.on_rejection) {
            callback(exceeded);
        }
        result
    }

    async fn try_reserve(&self, cost: WorstCaseCost<'_>) -> Result<Charge, LimitExceeded> {
        let limits = (self.limits)();
        if cost.unpriced
            && limits.has_budget()
            && self.ledger.policy.unpriced == UnenforcedAction::Deny
        {
            return Err(unpriced(&limits, cost.operation));
        }
        let needs_slot = cost.starts_job && self.slot.is_some();
        if cost.microdollars == 0 && !cost.unpriced && !needs_slot {
            return Ok(Charge::Free);
        }
        if !limits.has_spending_limit() && !cost.starts_job {
            return Ok(self.charge_without_limit(cost));
        }
        let day = Day::from_timestamp(now());
        let (payer, user) = (&*self.payer, &*self.user);
        let body = ReservationBody::new(payer, user, day, cost.operation, cost.unpriced);
        let [per_day, per_month] = limits.budgets();
        let budgets = budget_counters(payer, day, per_day, per_month);
        let hold = self.ledger.reserve(body, cost.microdollars, budgets);
        match hold.await {
            Ok(hold) => {
                let slot = self.slot.clone().map(JobSlotHandle);
                Ok(Charge::Held(Box::new(hold), slot))
            }
            Err(ReserveError::Exceeded(states)) => {
                let exceeded = exceeded_limit(&limits, cost.microdollars, &states, day);
                // Otherwise the limit was raised meanwhile.
                let changed = || store_failed(&limits, cost.microdollars, &StoreError::Conflict);
                Err(exceeded.unwrap_or_else(changed))
            }
            Err(ReserveError::Store(error)) => {
                let allows = self.ledger.policy.on_store_failure == UnenforcedAction::Allow;
                if allows || !limits.has_budget() {
                    tracing::warn!(%error, "cannot reserve the cost of a call; making the call anyway");
                    return Ok(self.charge_without_limit(cost));
                }
                Err(store_failed(&limits, cost.microdollars, &error))
            }
        }
    }

    fn charge_without_limit(&self, cost: WorstCaseCost<'_>) -> Charge {
        match &self.usage {
            None => Charge::Free,
            Some(usage) => Charge::Counted(CountedCharge {
                meter: usage.meter(&self.payer, &self.user),
                estimate: cost.microdollars,
                unpriced: cost.unpriced,
                is_open: true,
            }),
        }
    }

    /// Charges a job that has ended, if this process follows it.
    pub async fn observe(&self, key: &str, cost: JobCost) {
        if let JobCost::Final(cost) = cost {
            self.ledger
                .charge_job(key, cost.map(MicroDollars::micro))
                .await;
        }
    }
}

impl fmt::Debug for BudgetAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BudgetAccount").field(&self.payer).finish()
    }
}

impl Charge {
    /// Releases the reservation without a cost.
    pub async fn release(self) {
        match self {
            Self::Free => {}
            Self::Counted(mut counted) => counted.is_open = false,
            Self::Held(hold, _) => hold.release().await,
        }
    }

    /// Settles the charge at this cost, or at the reserved amount if the cost is unknown.
    pub async fn settle(self, spent: Option<u64>) {
        match (self, spent) {
            (Self::Free, _) => {}
            (Self::Counted(counted), spent) => counted.settle(spent),
            (Self::Held(hold, _), Some(spent)) => hold.settle(spent).await,
            (Self::Held(hold, _), None) => hold.settle_in_full().await,
        }
    }

    /// Holds the reservation until the job has ended.
    pub async fn follow(self, job: JobRecord, cost: JobCost) {
        match self {
            Self::Free => {}
            Self::Counted(counted) => counted.settle(match cost {
                JobCost::Pending => None,
                JobCost::Final(cost) => cost.map(MicroDollars::micro),
            }),
            Self::Held(hold, slot) => {
                let slot = slot.map(|JobSlotHandle(slot)| slot);
                hold.follow(job, slot, cost).await;
            }
        }
    }
}

impl CountedCharge {
    /// Adds the cost to the meter, which is committed before the response is sent.
    fn settle(mut self, spent: Option<u64>) {
        self.count(spent.unwrap_or(self.estimate));
    }

    fn count(&mut self, spent: u64) {
        self.is_open = false;
        if spent > 0 {
            self.meter.add(MICRODOLLARS, spent);
        }
        if self.unpriced {
            self.meter.add(UNPRICED_CALLS, 1);
        }
    }
}

impl Drop for CountedCharge {
    fn drop(&mut self) {
        if self.is_open {
            self.count(self.estimate);
        }
    }
}

/// Returns an error for the budget that does not have this cost left; if there are several, for the one that renews
/// last.
pub(crate) fn exceeded_limit(
    limits: &TokenLimits,
    cost: u64,
    states: &[BudgetState],
    day: Day,
) -> Option<LimitExceeded> {
    let names = [
        ("dollarsPerDay", "day", day.end()),
        ("dollarsPerMonth", "month", day.month_end()),
    ];
    let budgets = limits.budgets().into_iter().zip(names).zip(states);
    let exceeded = budgets.filter_map(|((budget, name), state)| {
        let budget = budget?;
        let used = state.spent.saturating_add(state.reserved);
        (used.saturating_add(cost) > budget).then_some((budget, name, state))
    });
    let (budget, (limit, period, ends), state) = exceeded.max_by_key(|(_, name, _)| name.2)?;
    let left = budget.saturating_sub(state.spent.saturating_add(state.reserved));
    let wait = u64::try_from(ends.saturating_sub(now())).unwrap_or_default();
    let summary = match left {
        0 => "Budget used up",
        _ => "Budget too small for this call",
    };
    Some(LimitExceeded {
        limit,
        message: format!(
            "{summary}: the call can cost up to ${:.4}, and ${:.4} of ${} per {period} is left (${:.4} spent, ${:.4} \
             reserved for calls and runs in progress). The call was not made; the budget renews at {} (UTC).",
            dollars(cost),
            dollars(left),
            dollars(budget),
            dollars(state.spent),
            dollars(state.reserved),
            format_timestamp(ends),
        ),
        retry_after: Duration::from_millis(wait),
        budget: Some(BudgetShortfall {
            would_cost: cost,
            remaining: left,
            spent: state.spent,
            reserved: state.reserved,
        }),
    })
}

fn unpriced(limits: &TokenLimits, operation: &str) -> LimitExceeded {
    LimitExceeded {
        limit: "unpriced",
        message: format!(
            "`{operation}` has no known price in dollars, so the budget of {} cannot be enforced. The call was not \
             made. The operator can allow such calls with EXA_MCP_BUDGET_UNPRICED=allow.",
            describe_budgets(limits)
        ),
        retry_after: Duration::from_secs(24 * 60 * 60),
        budget: None,
    }
}

fn store_failed(limits: &TokenLimits, cost: u64, error: &StoreError) -> LimitExceeded {
    let limit = match limits.dollars_per_day {
        Some(_) => "dollarsPerDay",
        None => "dollarsPerMonth",
    };
    LimitExceeded {
        limit,
        message: format!(
            "The budget of {} cannot be checked, because the store of the server failed: {error} The call, which can \
             cost up to ${:.4}, was not made. Try again later.",
            describe_budgets(limits),
            dollars(cost),
        ),
        retry_after: RETRY_AFTER,
        budget: None,
    }
}

fn describe_budgets(limits: &TokenLimits) -> String {
    let budgets = [
        (limits.dollars_per_day, "day"),
        (limits.dollars_per_month, "month"),
    ];
    let budgets = budgets
        .iter()
        .filter_map(|(dollars, period)| Some(format!("${} per {period}", (*dollars)?)));
    budgets.collect::<Vec<_>>().join(" and ")
}
