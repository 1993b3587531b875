//! Who pays for requests, and what is left for them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Unenforced;
use super::entry::{Entry, RunRecord, RunSlot, budgets};
use super::ledger::{Hold, Ledger, NotReserved};
use super::permits::HeldSlot;
use crate::daily::{Day, MICRODOLLARS, UNPRICED_CALLS, dollars};
use crate::limits::TokenLimits;
use crate::now;
use crate::usage::{Meter, Usage};
use exa_mcp_model::time::format_timestamp;
use exa_mcp_model::{BudgetShortfall, LimitExceeded};
use exa_mcp_store::{BudgetState, StoreError};

/// When to come back while the store fails.
const SOON: Duration = Duration::from_secs(5);

/// Someone who pays for requests. Clones share everything.
#[derive(Clone)]
pub struct Account {
    pub(crate) ledger: Arc<Ledger>,
    payer: Arc<str>,
    user: Arc<str>,
    limits: Arc<dyn Fn() -> TokenLimits + Send + Sync>,
    /// Where money is counted that needs no reservation.
    usage: Option<Usage>,
    /// The call that the requests are made for, where calls are counted.
    slot: Option<RunSlot>,
    /// Told what was refused.
    refused: Option<Refused>,
}

/// Told what was refused.
type Refused = Arc<dyn Fn(&LimitExceeded) + Send + Sync>;

/// What becomes of one attempt of a request.
pub enum Charge {
    /// It costs nothing.
    Free,
    /// Its cost is counted, and not limited.
    Counted(CountedCharge),
    /// Money is set aside for it.
    Held(Box<Hold>, Option<RunSlotHandle>),
}

/// The slot that a run takes over from its call.
pub struct RunSlotHandle(RunSlot);

/// A cost that is counted and not limited. Dropped, the estimate counts.
pub struct CountedCharge {
    meter: Meter,
    estimate: u64,
    unpriced: bool,
    is_open: bool,
}

/// How a run stands.
pub enum RunOutcome {
    /// It goes on.
    Running,
    /// It has ended, at this cost if that is known.
    Ended(Option<u64>),
}

/// What an attempt can cost.
#[derive(Clone, Copy, Debug)]
pub struct Worst<'a> {
    /// The operation.
    pub operation: &'a str,
    /// The most that is known, in millionths of a dollar.
    pub microdollars: u64,
    /// Some or all of the cost is not known.
    pub unpriced: bool,
    /// It starts a run that is charged when it ends.
    pub starts_run: bool,
}

impl Account {
    /// The account of a payer, whose limits may change.
    pub fn new(
        ledger: &Arc<Ledger>,
        payer: &str,
        user: &str,
        limits: impl Fn() -> TokenLimits + Send + Sync + 'static,
        usage: Option<Usage>,
    ) -> Self {
        Self {
            ledger: Arc::clone(ledger),
            payer: Arc::from(payer),
            user: Arc::from(user),
            limits: Arc::new(limits),
            usage,
            slot: None,
            refused: None,
        }
    }

    /// The same account, which tells what it refuses.
    #[must_use]
    pub(crate) fn telling(self, refused: impl Fn(&LimitExceeded) + Send + Sync + 'static) -> Self {
        Self {
            refused: Some(Arc::new(refused)),
            ..self
        }
    }

    /// The same account for the requests of one call.
    #[must_use]
    pub fn of_call(&self, slot: Option<&HeldSlot>) -> Self {
        let slot = slot.map(|slot| RunSlot {
            key: slot.key.clone(),
            group: slot.id.clone(),
        });
        Self {
            slot,
            ..self.clone()
        }
    }

    /// The ledger of the account.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// Who pays.
    pub fn payer(&self) -> &str {
        &self.payer
    }

    /// Sets aside what an attempt can cost.
    ///
    /// # Errors
    /// A budget does not allow it.
    pub async fn reserve(&self, worst: Worst<'_>) -> Result<Charge, LimitExceeded> {
        let reserved = self.try_reserve(worst).await;
        if let (Err(over), Some(refused)) = (&reserved, &self.refused) {
            refused(over);
        }
        reserved
    }

    async fn try_reserve(&self, worst: Worst<'_>) -> Result<Charge, LimitExceeded> {
        let limits = (self.limits)();
        if worst.unpriced && limits.has_budget() && self.ledger.policy.unpriced == Unenforced::Deny
        {
            return Err(unpriced(&limits, worst.operation));
        }
        let occupies = worst.starts_run && self.slot.is_some();
        if worst.microdollars == 0 && !worst.unpriced && !occupies {
            return Ok(Charge::Free);
        }
        if !limits.count_dollars() && !worst.starts_run {
            return Ok(self.counted(worst));
        }
        let day = Day::of(now());
        let (payer, user) = (&*self.payer, &*self.user);
        let entry = Entry::new(payer, user, day, worst.operation, worst.unpriced);
        let [per_day, per_month] = limits.budgets();
        let budgets = budgets(payer, day, per_day, per_month);
        let held = self.ledger.reserve(entry, worst.microdollars, budgets);
        match held.await {
            Ok(hold) => {
                let slot = self.slot.clone().map(RunSlotHandle);
                Ok(Charge::Held(Box::new(hold), slot))
            }
            Err(NotReserved::Exceeded(states)) => {
                let over = exceeded(&limits, worst.microdollars, &states, day);
                // A limit that was raised meanwhile.
                let changed = || store_failed(&limits, worst.microdollars, &StoreError::Conflict);
                Err(over.unwrap_or_else(changed))
            }
            Err(NotReserved::Store(error)) => {
                let allows = self.ledger.policy.on_store_failure == Unenforced::Allow;
                if allows || !limits.has_budget() {
                    tracing::warn!(%error, "nothing could be reserved; the call is made");
                    return Ok(self.counted(worst));
                }
                Err(store_failed(&limits, worst.microdollars, &error))
            }
        }
    }

    fn counted(&self, worst: Worst<'_>) -> Charge {
        match &self.usage {
            None => Charge::Free,
            Some(usage) => Charge::Counted(CountedCharge {
                meter: usage.meter(&self.payer, &self.user),
                estimate: worst.microdollars,
                unpriced: worst.unpriced,
                is_open: true,
            }),
        }
    }

    /// Charges a run that was seen to have ended, if this process follows it.
    pub async fn observe(&self, key: &str, outcome: RunOutcome) {
        if let RunOutcome::Ended(cost) = outcome {
            self.ledger.charge_run(key, cost).await;
        }
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Account").field(&self.payer).finish()
    }
}

impl Charge {
    /// Ends it without a cost.
    pub async fn release(self) {
        match self {
            Self::Free => {}
            Self::Counted(mut counted) => counted.is_open = false,
            Self::Held(hold, _) => hold.release().await,
        }
    }

    /// Ends it with what was spent; without a figure, with all that was set aside.
    pub async fn settle(self, spent: Option<u64>) {
        match (self, spent) {
            (Self::Free, _) => {}
            (Self::Counted(counted), spent) => counted.settle(spent),
            (Self::Held(hold, _), Some(spent)) => hold.settle(spent).await,
            (Self::Held(hold, _), None) => hold.settle_in_full().await,
        }
    }

    /// Keeps it until a run has ended.
    pub async fn follow(self, run: RunRecord, outcome: RunOutcome) {
        let ended = match outcome {
            RunOutcome::Running => None,
            RunOutcome::Ended(cost) => Some(cost),
        };
        match self {
            Self::Free => {}
            Self::Counted(counted) => counted.settle(ended.flatten()),
            Self::Held(hold, slot) => {
                let slot = slot.map(|RunSlotHandle(slot)| slot);
                hold.follow(run, slot, ended).await;
            }
        }
    }
}

impl CountedCharge {
    /// Written with what else is counted of the call, which its answer waits for.
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

/// The budget that has not enough left for what costs so much; of several the one that renews last.
pub(crate) fn exceeded(
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
    let refusing = budgets.filter_map(|((most, name), state)| {
        let most = most?;
        let used = state.spent.saturating_add(state.reserved);
        (used.saturating_add(cost) > most).then_some((most, name, state))
    });
    let (most, (limit, period, ends), state) = refusing.max_by_key(|(_, name, _)| name.2)?;
    let left = most.saturating_sub(state.spent.saturating_add(state.reserved));
    let wait = u64::try_from(ends.saturating_sub(now())).unwrap_or_default();
    let begin = match left {
        0 => "Budget used up",
        _ => "Budget too small for this call",
    };
    Some(LimitExceeded {
        limit,
        message: format!(
            "{begin}: the call can cost up to ${:.4}, and ${:.4} of ${} a {period} is left (${:.4} spent, ${:.4} \
             reserved for calls and runs under way). The call was not made; the budget renews at {} (UTC).",
            dollars(cost),
            dollars(left),
            dollars(most),
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
            "`{operation}` has no known price in dollars, so the budget of {} cannot be kept with it. The call was \
             not made. The operator allows such calls with EXA_MCP_BUDGET_UNPRICED=allow.",
            in_words(limits)
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
            "The budget of {} cannot be checked, because the store of the server fails: {error} The call, which can \
             cost up to ${:.4}, was not made. Try again later.",
            in_words(limits),
            dollars(cost),
        ),
        retry_after: SOON,
        budget: None,
    }
}

fn in_words(limits: &TokenLimits) -> String {
    let sums = [
        (limits.dollars_per_day, "day"),
        (limits.dollars_per_month, "month"),
    ];
    let sums = sums
        .iter()
        .filter_map(|(sum, period)| Some(format!("${} a {period}", (*sum)?)));
    sums.collect::<Vec<_>>().join(" and ")
}
