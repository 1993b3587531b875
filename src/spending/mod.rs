//! Connects the ledger of accounts with the guard that requests to Exa pass, and follows runs to their end.

mod guard;
mod runs;

use std::sync::Arc;

pub(crate) use guard::{AccountGuard, NobodyPays};
pub(crate) use runs::{check_runs, follow_runs};

use exa_mcp_accounts::TokenLimits;
use exa_mcp_accounts::budget::{BudgetAccount, BudgetLedger, BudgetPolicy};
use exa_mcp_store::Store;

/// Who pays for what the user of this computer asks for.
const LOCAL: &str = "local";

/// The account of the user of this computer; `None` if nothing limits them. Must be called inside a runtime.
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
            "what is spent is forgotten when this process ends; set EXA_MCP_STORE to sqlite:PATH to keep it"
        );
    }
    let ledger = BudgetLedger::new(store, policy);
    let limits = limits.clone();
    let limits = move || limits.clone();
    Some(BudgetAccount::new(&ledger, LOCAL, LOCAL, limits, None))
}
