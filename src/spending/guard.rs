//! The guard of an account.

use std::future::ready;
use std::time::Duration;

use crate::operations::price::{CostSource, MicroDollars};
use crate::operations::spend::{
    OpenReservation, RunState, Settlement, SpendGuard, SpendRequest, StartedRun,
};
use exa_mcp_accounts::budget::{BudgetAccount, Charge, RunOutcome, RunRecord, WorstCaseCost};
use exa_mcp_exa_client::BoxFuture;
use exa_mcp_model::LimitExceeded;

/// When to come back where nobody pays any more.
const NEVER: Duration = Duration::from_secs(24 * 60 * 60);

/// Lets requests pass that an account can pay for.
#[derive(Clone, Debug)]
pub(crate) struct AccountGuard(BudgetAccount);

impl AccountGuard {
    /// The guard of an account.
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
                starts_run: estimate.charged == CostSource::AtEndOfRun,
            });
            let open: Box<dyn OpenReservation> = Box::new(Open(charge.await?));
            Ok(open)
        })
    }

    fn observe(&self, run: &StartedRun, state: RunState) -> BoxFuture<'_, ()> {
        let key = run.key.clone();
        Box::pin(async move { self.0.observe(&key, outcome(state)).await })
    }
}

struct Open(Charge);

impl OpenReservation for Open {
    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(self.0.release())
    }

    fn settle(self: Box<Self>, settlement: Settlement) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            match settlement {
                Settlement::Cost(cost) => self.0.settle(Some(cost.micro())).await,
                Settlement::Unknown => self.0.settle(None).await,
                Settlement::Run(run, state) => self.0.follow(record(run), outcome(state)).await,
            }
        })
    }
}

fn record(run: StartedRun) -> RunRecord {
    RunRecord {
        key: run.key,
        get_operation: run.get.to_owned(),
        arguments: run.arguments,
    }
}

fn outcome(state: RunState) -> RunOutcome {
    match state {
        RunState::Running => RunOutcome::Running,
        RunState::Ended(cost) => RunOutcome::Ended(cost.map(MicroDollars::micro)),
    }
}

/// Refuses what costs something: whoever began the work cannot pay for it any more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NobodyPays;

impl SpendGuard for NobodyPays {
    fn reserve<'a>(
        &'a self,
        request: &'a SpendRequest,
    ) -> BoxFuture<'a, Result<Box<dyn OpenReservation>, LimitExceeded>> {
        let is_free = request.estimate.charged == CostSource::Nothing && !request.estimate.unpriced;
        let free = || Box::new(Open(Charge::Free)) as Box<dyn OpenReservation>;
        let gone = LimitExceeded {
            limit: "token",
            message: "The token for which this was begun does not exist any more, so nobody pays for it. The call \
                      was not made."
                .to_owned(),
            retry_after: NEVER,
            budget: None,
        };
        Box::pin(ready(is_free.then(free).ok_or(gone)))
    }
}
