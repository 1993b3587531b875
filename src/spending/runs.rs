//! Follows started runs to their end, so that they are charged even if nobody waits for them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use crate::operations::price::{self, MicroDollars};
use crate::operations::{Caller, Following, Refusal};
use exa_mcp_accounts::budget::{BudgetLedger, RunRecord};
use exa_mcp_exa_client::ExaErrorKind;

/// The pause before the first look, and the longest one between two. Whoever waits for the run looks more often,
/// and the ledger learns from that.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How often in a row Exa may not know a run before it is charged at its reservation.
const MOST_MISSES: u32 = 5;

/// How long a run is followed at most.
const LONGEST_RUN: Duration = Duration::from_secs(48 * 60 * 60);

/// Runs that are looked at at once.
const AT_ONCE: usize = 8;

/// Follows the runs of a ledger to their end, for ever. The caller must be one whose requests nobody pays for:
/// to look at a run costs nothing.
pub(crate) async fn follow_runs(ledger: Arc<BudgetLedger>, caller: Caller) {
    let Some(mut runs) = ledger.runs_to_follow() else {
        return;
    };
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(open) = runs.recv().await {
        let (ledger, caller, turns) = (Arc::clone(&ledger), caller.clone(), Arc::clone(&turns));
        tokio::spawn(async move {
            let cost = until_end(&ledger, &caller, &turns, &open.run).await;
            ledger.charge_run(&open.run.key, cost).await;
        });
    }
}

/// Looks once at each run of a ledger, and charges those that have ended.
pub(crate) async fn check_runs(ledger: &BudgetLedger, caller: &Caller) {
    for run in ledger.open_runs() {
        let Some(following) = Following::again(&run.get_operation, run.arguments.clone()) else {
            continue;
        };
        if let Ok(state) = following.look(caller).await
            && state.is_final
        {
            let cost = price::actual(&state.answer).map(MicroDollars::micro);
            ledger.charge_run(&run.key, cost).await;
        }
    }
}

/// What a run cost; `None` where that cannot be known.
async fn until_end(
    ledger: &BudgetLedger,
    caller: &Caller,
    turns: &Semaphore,
    run: &RunRecord,
) -> Option<u64> {
    let following = Following::again(&run.get_operation, run.arguments.clone())?;
    let began = Instant::now();
    let (mut pause, mut misses) = (FIRST_PAUSE, 0);
    loop {
        sleep(pause).await;
        // Somebody else may have seen its end.
        if !ledger.follows(&run.key) {
            return None;
        }
        let looked = {
            let _turn = turns.acquire().await;
            following.look(caller).await
        };
        match looked {
            Ok(state) if state.is_final || state.is_blocked => {
                let cost = price::actual(&state.answer).map(MicroDollars::micro);
                if cost.is_none() {
                    tracing::info!(run = run.key, "has ended without saying what it cost");
                }
                return cost;
            }
            Ok(_) => misses = 0,
            Err(refusal) if is_missing(&refusal) => {
                misses += 1;
                if misses >= MOST_MISSES {
                    tracing::warn!(
                        run = run.key,
                        "is not known to Exa; charged at its reservation"
                    );
                    return None;
                }
            }
            Err(_) => {}
        }
        if began.elapsed() > LONGEST_RUN {
            tracing::warn!(run = run.key, "does not end; charged at its reservation");
            return None;
        }
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
    }
}

fn is_missing(refusal: &Refusal) -> bool {
    let gone = [ExaErrorKind::Api(404), ExaErrorKind::Api(410)];
    matches!(refusal, Refusal::Exa(error) if gone.contains(&error.kind))
}
