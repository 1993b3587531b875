//! The guard that every request to Exa passes: it sets money aside before the request is sent, and settles
//! what was spent after it.

use std::fmt;
use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

use super::price::{self, Charged, Estimate, MicroDollars};
use super::{Following, Operation};
use exa_mcp_exa_client::{Attempt, AttemptGuard, BoxFuture, ExaError, ExaErrorKind};
use exa_mcp_model::LimitExceeded;

/// Decides whether a request may be sent, and keeps account of what it costs.
pub trait SpendGuard: Send + Sync {
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
pub struct SpendRequest {
    /// The operation.
    pub operation: &'static Operation,
    /// What it can cost.
    pub estimate: Estimate,
}

/// Money that is set aside for one attempt. If it is dropped instead of ended, the response is lost and all of
/// it is spent.
pub trait OpenReservation: Send {
    /// Ends it without a cost.
    fn release(self: Box<Self>) -> BoxFuture<'static, ()>;

    /// Ends it with what was spent, or hands it over to a run that goes on.
    fn settle(self: Box<Self>, settlement: Settlement) -> BoxFuture<'static, ()>;
}

/// How an answered request is charged.
#[derive(Clone, Debug, PartialEq)]
pub enum Settlement {
    /// The response says so.
    Cost(MicroDollars),
    /// All that was set aside, because the response does not say.
    Unknown,
    /// The request started a run, which is charged once, when it has ended.
    Run(StartedRun, RunState),
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It goes on.
    Running,
    /// It has ended; its state says what it cost, or does not.
    Ended(Option<MicroDollars>),
}

/// A run at Exa.
#[derive(Clone, Debug, PartialEq)]
pub struct StartedRun {
    /// Names the run among all runs.
    pub key: String,
    /// The operation that reads it.
    pub get: &'static str,
    /// The arguments of that operation.
    pub arguments: Map<String, Value>,
}

impl StartedRun {
    /// The run that is followed like this.
    pub fn of(following: &Following) -> Self {
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
pub struct Unlimited;

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

/// The guard of one request, which each of its attempts passes.
pub(super) struct RequestGuard {
    guard: Arc<dyn SpendGuard>,
    request: SpendRequest,
    arguments: Arc<Map<String, Value>>,
    refusal: Mutex<Option<LimitExceeded>>,
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
        }
    }

    /// Why the request was not sent, if the guard is the reason.
    pub(super) fn refusal(&self) -> Option<LimitExceeded> {
        let mut refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
        refusal.take()
    }
}

impl fmt::Debug for RequestGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RequestGuard").field(&self.request).finish()
    }
}

impl AttemptGuard for RequestGuard {
    fn begin(&self) -> BoxFuture<'_, Result<Box<dyn Attempt>, ExaError>> {
        Box::pin(async move {
            match self.guard.reserve(&self.request).await {
                Ok(reservation) => {
                    let attempt: Box<dyn Attempt> = Box::new(GuardedAttempt {
                        guard: Arc::clone(&self.guard),
                        reservation,
                        request: self.request.clone(),
                        arguments: Arc::clone(&self.arguments),
                    });
                    Ok(attempt)
                }
                Err(over) => {
                    let error = ExaError::new(ExaErrorKind::NotAllowed, over.message.clone());
                    let mut refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
                    *refusal = Some(over);
                    Err(error)
                }
            }
        })
    }
}

struct GuardedAttempt {
    guard: Arc<dyn SpendGuard>,
    reservation: Box<dyn OpenReservation>,
    request: SpendRequest,
    arguments: Arc<Map<String, Value>>,
}

impl Attempt for GuardedAttempt {
    fn refused(self: Box<Self>) -> BoxFuture<'static, ()> {
        self.reservation.release()
    }

    fn answered<'a>(self: Box<Self>, response: &'a Value) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Self {
                guard,
                reservation,
                request,
                arguments,
            } = *self;
            let SpendRequest {
                operation,
                estimate,
            } = &request;
            let started = settlement(operation, estimate, &arguments, response);
            reservation.settle(started).await;
            if estimate.charged == Charged::Nothing
                && let Some(following) = Following::of(operation, &arguments, response)
            {
                let state = run_state(&following, response);
                guard.observe(&StartedRun::of(&following), state).await;
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
        Charged::Nothing => Settlement::Cost(MicroDollars::ZERO),
        Charged::InResponse => reported(),
        Charged::AtEndOfRun => match Following::of(operation, arguments, response) {
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
