//! The guard that every request to Exa passes: it sets money aside before the request is sent, and settles
//! what was spent after it.

use std::fmt;
use std::future::ready;
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value};

use super::Following;
use super::price::{self, CostSource, Estimate, MicroDollars};
use exa_mcp_exa_client::{Attempt, AttemptGuard, BoxFuture, ExaError, ExaErrorKind};
use exa_mcp_model::Operation;
use exa_mcp_model::{LimitExceeded, lock};

/// Decides whether a request may be sent, and keeps account of what it costs.
pub(crate) trait SpendGuard: Send + Sync {
    /// Sets aside the most that one attempt of a request can cost.
    fn reserve<'a>(
        &'a self,
        request: &'a SpendRequest,
    ) -> BoxFuture<'a, Result<Box<dyn OpenReservation>, LimitExceeded>>;

    /// Learns the state of a run that passes by, so that a run that has ended is charged at once.
    fn observe(&self, _run: &StartedRun, _state: RunState) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }
}

/// A request that is about to be sent.
#[derive(Clone, Debug)]
pub(crate) struct SpendRequest {
    /// The operation.
    pub operation: &'static Operation,
    /// What it can cost.
    pub estimate: Estimate,
}

/// Money that is set aside for one attempt. If it is dropped instead of ended, the response is lost and all of
/// it is spent.
pub(crate) trait OpenReservation: Send {
    /// Ends it without a cost.
    fn release(self: Box<Self>) -> BoxFuture<'static, ()>;

    /// Ends it with what was spent, or hands it over to a run that goes on.
    fn settle(self: Box<Self>, settlement: Settlement) -> BoxFuture<'static, ()>;
}

/// How an answered request is charged.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Settlement {
    /// The response says so.
    Cost(MicroDollars),
    /// All that was set aside, because the response does not say.
    Unknown,
    /// The request started a run, which is charged once, when it has ended.
    Run(StartedRun, RunState),
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunState {
    /// It goes on.
    Running,
    /// It has ended; its state says what it cost, or does not.
    Ended(Option<MicroDollars>),
}

/// A run at Exa.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StartedRun {
    /// Names the run among all runs.
    pub key: String,
    /// The operation that reads it.
    pub get: &'static str,
    /// The arguments of that operation.
    pub arguments: Map<String, Value>,
}

impl StartedRun {
    /// The run that is followed like this.
    pub(crate) fn of(following: &Following) -> Self {
        let (get, arguments) = following.check_with();
        Self {
            key: following.key(),
            get,
            arguments,
        }
    }
}

/// A guard that lets every request pass and counts nothing: for a user who pays for themself.
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

/// The reservation of a request that may have started a run although its response is lost. Dropped, all of it is
/// spent; if the run is found, it is handed over to the run.
#[derive(Clone, Default)]
pub(crate) struct LostReservation(Arc<Mutex<Option<Box<dyn OpenReservation>>>>);

impl LostReservation {
    fn put(&self, reservation: Box<dyn OpenReservation>) {
        // Of several, only the last one can be found.
        *lock(&self.0) = Some(reservation);
    }

    /// Hands it over to the run that was found; says whether there was one.
    pub(crate) async fn hand_over(&self, following: &Following) -> bool {
        let Some(reservation) = lock(&self.0).take() else {
            return false;
        };
        let run = StartedRun::of(following);
        let running = Settlement::Run(run, RunState::Running);
        reservation.settle(running).await;
        true
    }
}

/// The guard of one request, which each of its attempts passes.
pub(super) struct RequestGuard {
    guard: Arc<dyn SpendGuard>,
    request: SpendRequest,
    arguments: Arc<Map<String, Value>>,
    refusal: Mutex<Option<LimitExceeded>>,
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
            refusal: Mutex::default(),
            lost: None,
        }
    }

    /// Keeps the reservation of a start here if its response is lost, instead of spending it.
    pub(super) fn keeping(self, lost: Option<LostReservation>) -> Self {
        Self { lost, ..self }
    }

    /// Why the request was not sent, if the guard is the reason.
    pub(super) fn refusal(&self) -> Option<LimitExceeded> {
        lock(&self.refusal).take()
    }
}

impl fmt::Debug for RequestGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RequestGuard").field(&self.request).finish()
    }
}

impl AttemptGuard for RequestGuard {
    fn start(&self) -> BoxFuture<'_, Result<Box<dyn Attempt>, ExaError>> {
        Box::pin(async move {
            match self.guard.reserve(&self.request).await {
                Ok(reservation) => {
                    let attempt: Box<dyn Attempt> = Box::new(GuardedAttempt {
                        guard: Arc::clone(&self.guard),
                        reservation: Some(reservation),
                        request: self.request.clone(),
                        arguments: Arc::clone(&self.arguments),
                        lost: self.lost.clone(),
                    });
                    Ok(attempt)
                }
                Err(over) => {
                    let error = ExaError::new(ExaErrorKind::NotAllowed, over.message.clone());
                    *lock(&self.refusal) = Some(over);
                    Err(error)
                }
            }
        })
    }
}

struct GuardedAttempt {
    guard: Arc<dyn SpendGuard>,
    /// There until it is handed over to a run.
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
        if self.charged() == CostSource::AtEndOfRun
            && let (Some(lost), Some(reservation)) = (&self.lost, self.reservation.take())
        {
            lost.put(reservation);
        }
    }
}

impl Attempt for GuardedAttempt {
    fn rejected(mut self: Box<Self>) -> BoxFuture<'static, ()> {
        match self.reservation.take() {
            Some(reservation) => reservation.release(),
            None => Box::pin(ready(())),
        }
    }

    fn failed_at_gateway(self: Box<Self>) -> BoxFuture<'static, ()> {
        if self.charged() == CostSource::AtEndOfRun {
            // The run may exist, so the response is lost.
            drop(self);
            return Box::pin(ready(()));
        }
        // Exa does not charge for what it does not answer.
        self.rejected()
    }

    fn started<'a>(&'a mut self, response: &'a Value) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if self.charged() != CostSource::AtEndOfRun {
                return;
            }
            let operation = self.request.operation;
            let Some(following) = Following::of(operation, &self.arguments, response) else {
                return;
            };
            if let Some(reservation) = self.reservation.take() {
                let run = StartedRun::of(&following);
                let state = run_state(&following, response);
                reservation.settle(Settlement::Run(run, state)).await;
            }
        })
    }

    fn completed<'a>(mut self: Box<Self>, response: &'a Value) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let reservation = self.reservation.take();
            let SpendRequest {
                operation,
                estimate,
            } = &self.request;
            // Somebody else follows the run: it was read, or it has the reservation already.
            let is_followed = estimate.charged == CostSource::Nothing || reservation.is_none();
            if let Some(reservation) = reservation {
                let started = settlement(operation, estimate, &self.arguments, response);
                reservation.settle(started).await;
            }
            if is_followed
                && let Some(following) = Following::of(operation, &self.arguments, response)
            {
                let state = run_state(&following, response);
                self.guard.observe(&StartedRun::of(&following), state).await;
            }
        })
    }
}

/// How a request is charged that was answered with this.
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
        CostSource::AtEndOfRun => match Following::of(operation, arguments, response) {
            Some(following) => {
                let state = run_state(&following, response);
                Settlement::Run(StartedRun::of(&following), state)
            }
            None => reported(),
        },
    }
}

/// How a run stands whose state this is.
pub(crate) fn run_state(following: &Following, response: &Value) -> RunState {
    if following.is_final(response) {
        RunState::Ended(price::actual(response))
    } else {
        RunState::Running
    }
}
