//! Connects the account ledger to the [`SpendGuard`](crate::operations::spend::SpendGuard) of requests to Exa, and
//! settles the cost of long-running jobs.

mod guard;
mod jobs;

use std::sync::Arc;

pub(crate) use guard::{AccountGuard, NoPayer};
pub(crate) use jobs::{check_jobs, follow_jobs};

use exa_mcp_accounts::TokenLimits;
use exa_mcp_accounts::budget::{BudgetAccount, BudgetLedger, BudgetPolicy};
use exa_mcp_accounts::daily::Day;
use exa_mcp_model::MicroDollars;
use exa_mcp_store::Store;

/// The account of the local user.
const LOCAL: &str = "local";

/// Returns the account of the local user; `None` without a budget. Must be called inside a runtime.
pub(crate) fn local_account(
    limits: &TokenLimits,
    policy: BudgetPolicy,
    store: Arc<dyn Store>,
) -> Option<BudgetAccount> {
    if !limits.has_budget() {
        return None;
    }
    if !store.is_shared() {
        tracing::warn!(
            "the spent budget is lost when this process ends; set EXA_MCP_STORE to sqlite:PATH to persist it"
        );
    }
    let ledger = BudgetLedger::new(store, policy);
    let limits = limits.clone();
    let limits = move || limits.clone();
    Some(BudgetAccount::new(&ledger, LOCAL, LOCAL, limits, None))
}

/// Returns what the local user has spent today and this month; `None` if the store fails.
pub(crate) async fn spent_locally(store: &dyn Store) -> Option<(MicroDollars, MicroDollars)> {
    let day = Day::from_timestamp(exa_mcp_accounts::now());
    let [today, month] = day.spending_counters().map(|(spent, _)| spent);
    let counters = store
        .counters(Some(day.spending_subject(LOCAL)))
        .await
        .ok()?;
    let value = |name: &str| {
        let found = counters.iter().find(|counter| counter.name == name);
        MicroDollars::new(found.map_or(0, |counter| counter.value))
    };
    Some((value(&today), value(&month)))
}
