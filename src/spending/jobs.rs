//! Polls open jobs until they finish, so that they are charged even if nobody waits for them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use crate::operations::price::{self, MicroDollars};
use crate::operations::{OperationError, OperationExecutor, RemoteJob};
use exa_mcp_accounts::budget::{BudgetLedger, JobRecord};
use exa_mcp_exa_client::ExaErrorKind;

/// The pause before the first poll, and the longest one between two. A caller that waits for the job polls more
/// often, and the ledger sees those responses too.
const INITIAL_PAUSE: Duration = Duration::from_secs(2);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Consecutive "not found" responses after which a job is charged at its reservation.
const MAX_MISSES: u32 = 5;

/// The longest time that a job is polled.
const MAX_DURATION: Duration = Duration::from_secs(48 * 60 * 60);

/// Jobs that are polled concurrently.
const MAX_CONCURRENT_POLLS: usize = 8;

/// Polls the open jobs of a ledger, forever. The executor must not charge for its requests: polling is free.
pub(crate) async fn follow_jobs(ledger: Arc<BudgetLedger>, executor: OperationExecutor) {
    let Some(mut jobs) = ledger.jobs_to_follow() else {
        return;
    };
    let permits = Arc::new(Semaphore::new(MAX_CONCURRENT_POLLS));
    while let Some(record) = jobs.recv().await {
        let (ledger, executor, permits) =
            (Arc::clone(&ledger), executor.clone(), Arc::clone(&permits));
        tokio::spawn(async move {
            let cost = poll_until_done(&ledger, &executor, &permits, &record).await;
            ledger.charge_job(&record.key, cost).await;
        });
    }
}

/// Polls each open job of a ledger once, and charges those that have finished.
pub(crate) async fn check_jobs(ledger: &BudgetLedger, executor: &OperationExecutor) {
    for record in ledger.open_jobs() {
        let Some(job) = RemoteJob::from_poll(&record.get_operation, record.arguments.clone())
        else {
            continue;
        };
        if let Ok(state) = job.poll(executor).await
            && state.is_final
        {
            let cost = price::actual(&state.response).map(MicroDollars::micro);
            ledger.charge_job(&record.key, cost).await;
        }
    }
}

/// Polls a job until it finishes and returns its cost; `None` if the cost is unknown.
async fn poll_until_done(
    ledger: &BudgetLedger,
    executor: &OperationExecutor,
    permits: &Semaphore,
    record: &JobRecord,
) -> Option<u64> {
    let job = RemoteJob::from_poll(&record.get_operation, record.arguments.clone())?;
    let started = Instant::now();
    let (mut pause, mut misses) = (INITIAL_PAUSE, 0);
    loop {
        sleep(pause).await;
        // Another request may have seen the final state and charged the job.
        if !ledger.follows(&record.key) {
            return None;
        }
        let polled = {
            let _permit = permits.acquire().await;
            job.poll(executor).await
        };
        match polled {
            Ok(state) if state.is_final || state.is_blocked => {
                let cost = price::actual(&state.response).map(MicroDollars::micro);
                if cost.is_none() {
                    tracing::info!(
                        run = record.key,
                        "the run finished without reporting its cost"
                    );
                }
                return cost;
            }
            Ok(_) => misses = 0,
            Err(error) if is_missing(&error) => {
                misses += 1;
                if misses >= MAX_MISSES {
                    tracing::warn!(
                        run = record.key,
                        "Exa does not know the run; charged at its reservation"
                    );
                    return None;
                }
            }
            Err(_) => {}
        }
        if started.elapsed() > MAX_DURATION {
            tracing::warn!(
                run = record.key,
                "the run does not finish; charged at its reservation"
            );
            return None;
        }
        pause = (pause * 3 / 2).min(MAX_PAUSE);
    }
}

fn is_missing(error: &OperationError) -> bool {
    let gone = [ExaErrorKind::Api(404), ExaErrorKind::Api(410)];
    matches!(error, OperationError::Exa(error) if gone.contains(&error.kind))
}
