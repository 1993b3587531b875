//! Spend guards backed by the ledger of accounts.

use std::future::ready;
use std::time::Duration;

use crate::operations::RemoteJob;
use crate::operations::price::CostSource;
use crate::operations::spend::{OpenReservation, Settlement, SpendGuard, SpendRequest};
use exa_mcp_accounts::budget::{BudgetAccount, Charge, JobRecord, WorstCaseCost};
use exa_mcp_exa_client::BoxFuture;
use exa_mcp_model::{JobCost, LimitExceeded};

/// The `Retry-After` of a rejection that will not go away.
const ONE_DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Admits the requests that an account can pay for.
#[derive(Clone, Debug)]
pub(crate) struct AccountGuard(BudgetAccount);

impl AccountGuard {
    /// Creates the guard of an account.
    pub(crate) fn new(account: BudgetAccount) -> Self {
        Self(account)
    }
}

impl SpendGuard for AccountGuard {
    fn reserve<'a>(
        &'a self,
        request: &'a SpendRequest,
    ) -> BoxFuture<'a, Result<Box<dyn OpenReservation>, LimitExceeded>> {
        Box::pin(async move {
            let estimate = &request.estimate;
            let charge = self.0.reserve(WorstCaseCost {
                operation: request.operation.name,
                microdollars: estimate.worst.micro(),
                unpriced: estimate.unpriced,
                starts_job: estimate.charged == CostSource::AtEndOfJob,
            });
            let reservation: Box<dyn OpenReservation> = Box::new(AccountReservation(charge.await?));
            Ok(reservation)
        })
    }

    fn observe(&self, job: &RemoteJob, cost: JobCost) -> BoxFuture<'_, ()> {
        let key = job.key();
        Box::pin(async move { self.0.observe(&key, cost).await })
    }
}

/// A reservation in the ledger.
struct AccountReservation(Charge);

impl OpenReservation for AccountReservation {
    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(self.0.release())
    }

    fn settle(self: Box<Self>, settlement: Settlement) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            match settlement {
                Settlement::Cost(cost) => self.0.settle(Some(cost.micro())).await,
                Settlement::Unknown => self.0.settle(None).await,
                Settlement::Job(job, cost) => self.0.follow(record(&job), cost).await,
            }
        })
    }
}

fn record(job: &RemoteJob) -> JobRecord {
    let (get, arguments) = job.poll_call();
    JobRecord {
        key: job.key(),
        get_operation: get.to_owned(),
        arguments,
    }
}

/// Rejects every request that costs money, because the token that would pay for it no longer exists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoPayer;

impl SpendGuard for NoPayer {
    fn reserve<'a>(
        &'a self,
        request: &'a SpendRequest,
    ) -> BoxFuture<'a, Result<Box<dyn OpenReservation>, LimitExceeded>> {
        let is_free = request.estimate.charged == CostSource::Nothing && !request.estimate.unpriced;
        let free = || Box::new(AccountReservation(Charge::Free)) as Box<dyn OpenReservation>;
        let rejection = LimitExceeded {
            limit: "token",
            message: "The token that started this no longer exists, so no budget can pay for it. The call was not \
                      made."
                .to_owned(),
            retry_after: ONE_DAY,
            budget: None,
        };
        Box::pin(ready(is_free.then(free).ok_or(rejection)))
    }
}
