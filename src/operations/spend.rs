//! The spend guard that every request to Exa passes: it reserves the highest cost before the request is sent, and
//! settles the actual cost afterwards.

use std::fmt;
use std::future::ready;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value};

use super::RemoteJob;
use super::price::{self, CostSource, Estimate, MicroDollars};
use exa_mcp_exa_client::{AttemptGuard, BoxFuture, ExaError, ExaErrorKind, RequestAttempt};
use exa_mcp_model::{JobCost, LimitExceeded, Operation, lock};

/// Decides whether a request may be sent, and accounts for its cost.
pub(crate) trait SpendGuard: Send + Sync {
    /// Reserves the highest cost of one attempt of a request.
    fn reserve<'a>(
        &'a self,
        request: &'a SpendRequest,
    ) -> BoxFuture<'a, Result<Box<dyn OpenReservation>, LimitExceeded>>;

    /// Observes the cost of a job in a response, so that a finished job is charged at once.
    fn observe(&self, _job: &RemoteJob, _cost: JobCost) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }
}

/// A request that is about to be sent.
#[derive(Clone, Debug)]
pub(crate) struct SpendRequest {
    /// The operation.
    pub operation: &'static Operation,
    /// The estimated cost.
    pub estimate: Estimate,
}

/// The reserved cost of one attempt. Dropping it without releasing or settling it means that the response is lost,
/// and charges all of it.
pub(crate) trait OpenReservation: Send {
    /// Releases the reservation without a charge.
    fn release(self: Box<Self>) -> BoxFuture<'static, ()>;

    /// Charges the actual cost, or transfers the reservation to a job.
    fn settle(self: Box<Self>, settlement: Settlement) -> BoxFuture<'static, ()>;
}

/// How a request with a response is charged.
#[derive(Clone, Debug)]
pub(crate) enum Settlement {
    /// The response reports the cost.
    Cost(MicroDollars),
    /// The response does not report the cost, so the whole reservation is charged.
    Unknown,
    /// The request started a job, which is charged once, when it finishes.
    Job(RemoteJob, JobCost),
}

/// A guard that admits every request without accounting, for a user with their own key.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unlimited;

impl SpendGuard for Unlimited {
    fn reserve<'a>(
        &'a self,
        _request: &'a SpendRequest,
    ) -> BoxFuture<'a, Result<Box<dyn OpenReservation>, LimitExceeded>> {
        Box::pin(ready(Ok(Box::new(Self) as Box<dyn OpenReservation>)))
    }
}

impl OpenReservation for Unlimited {
    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(ready(()))
    }

    fn settle(self: Box<Self>, _settlement: Settlement) -> BoxFuture<'static, ()> {
        Box::pin(ready(()))
    }
}

/// The reservation of a request that may have started a job although its response is lost. It is transferred to the
/// job if the job is found, and charged in full when dropped.
#[derive(Clone, Default)]
pub(crate) struct LostReservation(Arc<Mutex<Option<Box<dyn OpenReservation>>>>);

impl LostReservation {
    fn put(&self, reservation: Box<dyn OpenReservation>) {
        // Only the last of several attempts can be found.
        *lock(&self.0) = Some(reservation);
    }

    /// Transfers the reservation to the job that was found; returns whether there was one.
    pub(crate) async fn transfer_to(&self, job: &RemoteJob) -> bool {
        let Some(reservation) = lock(&self.0).take() else {
            return false;
        };
        let settlement = Settlement::Job(job.clone(), JobCost::Pending);
        reservation.settle(settlement).await;
        true
    }
}

/// The guard of one request, which each of its attempts passes.
pub(super) struct RequestGuard {
    guard: Arc<dyn SpendGuard>,
    request: SpendRequest,
    arguments: Arc<Map<String, Value>>,
    rejection: Mutex<Option<LimitExceeded>>,
    lost: Option<LostReservation>,
}

impl RequestGuard {
    pub(super) fn new(
        guard: &Arc<dyn SpendGuard>,
        operation: &'static Operation,
        arguments: &Map<String, Value>,
    ) -> Self {
        Self {
            guard: Arc::clone(guard),
            request: SpendRequest {
                operation,
                estimate: price::estimate(operation, arguments),
            },
            arguments: Arc::new(arguments.clone()),
            rejection: Mutex::default(),
            lost: None,
        }
    }

    /// Holds the reservation in `lost` if the response is lost, instead of charging it.
    pub(super) fn holding_lost(self, lost: Option<LostReservation>) -> Self {
        Self { lost, ..self }
    }

    /// Returns why the guard rejected the request, if it did.
    pub(super) fn rejection(&self) -> Option<LimitExceeded> {
        lock(&self.rejection).take()
    }
}

impl fmt::Debug for RequestGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RequestGuard").field(&self.request).finish()
    }
}

impl AttemptGuard for RequestGuard {
    fn start(&self) -> BoxFuture<'_, Result<Box<dyn RequestAttempt>, ExaError>> {
        Box::pin(async move {
            match self.guard.reserve(&self.request).await {
                Ok(reservation) => {
                    let attempt: Box<dyn RequestAttempt> = Box::new(GuardedAttempt {
                        guard: Arc::clone(&self.guard),
                        reservation: Some(reservation),
                        request: self.request.clone(),
                        arguments: Arc::clone(&self.arguments),
                        lost: self.lost.clone(),
                    });
                    Ok(attempt)
                }
                Err(exceeded) => {
                    let error = ExaError::new(ExaErrorKind::NotAllowed, exceeded.message.clone());
                    *lock(&self.rejection) = Some(exceeded);
                    Err(error)
                }
            }
        })
    }
}

struct GuardedAttempt {
    guard: Arc<dyn SpendGuard>,
    /// Set until it is released, settled or transferred to a job.
    reservation: Option<Box<dyn OpenReservation>>,
    request: SpendRequest,
    arguments: Arc<Map<String, Value>>,
    lost: Option<LostReservation>,
}

impl GuardedAttempt {
    fn charged(&self) -> CostSource {
        self.request.estimate.charged
    }
}

impl Drop for GuardedAttempt {
    fn drop(&mut self) {
        if self.charged() == CostSource::AtEndOfJob
            && let (Some(lost), Some(reservation)) = (&self.lost, self.reservation.take())
        {
            lost.put(reservation);
        }
    }
}

impl RequestAttempt for GuardedAttempt {
    fn on_rejected(mut self: Box<Self>) -> BoxFuture<'static, ()> {
        match self.reservation.take() {
            Some(reservation) => reservation.release(),
            None => Box::pin(ready(())),
        }
    }

    fn on_gateway_failure(self: Box<Self>) -> BoxFuture<'static, ()> {
        if self.charged() == CostSource::AtEndOfJob {
            // The job may exist, so this counts as a lost response.
            drop(self);
            return Box::pin(ready(()));
        }
        // Exa does not charge for a request that a gateway answered.
        self.on_rejected()
    }

    fn on_started<'a>(&'a mut self, response: &'a Value) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if self.charged() != CostSource::AtEndOfJob {
                return;
            }
            let operation = self.request.operation;
            let Some(job) = RemoteJob::from_call(operation, &self.arguments, response) else {
                return;
            };
            if let Some(reservation) = self.reservation.take() {
                let cost = job_cost(&job, response);
                reservation.settle(Settlement::Job(job, cost)).await;
            }
        })
    }

    fn on_completed<'a>(mut self: Box<Self>, response: &'a Value) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let reservation = self.reservation.take();
            let SpendRequest {
                operation,
                estimate,
            } = &self.request;
            // The job is accounted for elsewhere: this request only read it, or the job holds the reservation.
            let is_accounted = estimate.charged == CostSource::Nothing || reservation.is_none();
            if let Some(reservation) = reservation {
                let settlement = settlement(operation, estimate, &self.arguments, response);
                reservation.settle(settlement).await;
            }
            if is_accounted
                && let Some(job) = RemoteJob::from_call(operation, &self.arguments, response)
            {
                self.guard.observe(&job, job_cost(&job, response)).await;
            }
        })
    }
}

/// Returns how a request with this response is charged.
fn settlement(
    operation: &'static Operation,
    estimate: &Estimate,
    arguments: &Map<String, Value>,
    response: &Value,
) -> Settlement {
    let reported = || match price::actual(response) {
        Some(cost) => Settlement::Cost(cost),
        None => Settlement::Unknown,
    };
    match estimate.charged {
        CostSource::Nothing => Settlement::Cost(MicroDollars::ZERO),
        CostSource::InResponse => reported(),
        CostSource::AtEndOfJob => match RemoteJob::from_call(operation, arguments, response) {
            Some(job) => {
                let cost = job_cost(&job, response);
                Settlement::Job(job, cost)
            }
            None => reported(),
        },
    }
}

/// Observes the cost of the job that a call has started, in the response that another request completed.
pub(super) async fn observe_job(
    guard: &Arc<dyn SpendGuard>,
    operation: &'static Operation,
    arguments: &Map<String, Value>,
    response: &Value,
) {
    if let Some(job) = RemoteJob::from_call(operation, arguments, response) {
        guard.observe(&job, job_cost(&job, response)).await;
    }
}

/// Returns the cost of a job from a response.
fn job_cost(job: &RemoteJob, response: &Value) -> JobCost {
    if job.is_final(response) {
        JobCost::Final(price::actual(response))
    } else {
        JobCost::Pending
    }
}
