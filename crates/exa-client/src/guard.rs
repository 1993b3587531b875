//! The guard of every attempt to send a request.

use std::{
    future::{Future, ready},
    pin::Pin,
};

use serde_json::Value;

use super::ExaError;

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Decides whether an attempt to send a request may start. Every attempt passes a guard.
pub trait AttemptGuard: Send + Sync {
    /// Starts an attempt.
    ///
    /// # Errors
    /// The attempt is not allowed; nothing may be sent.
    fn start(&self) -> BoxFuture<'_, Result<Box<dyn RequestAttempt>, ExaError>>;
}

/// An attempt in progress. Dropping it means that its response is lost and the API may have acted.
pub trait RequestAttempt: Send {
    /// Ends the attempt after the API rejected the request or never received it.
    fn on_rejected(self: Box<Self>) -> BoxFuture<'static, ()>;

    /// Ends the attempt after a gateway responded in place of the API, which may have acted.
    fn on_gateway_failure(self: Box<Self>) -> BoxFuture<'static, ()> {
        self.on_rejected()
    }

    /// Reports the start of a response that is not complete yet. The job that it has started continues even
    /// if the remaining response is lost.
    fn on_started<'a>(&'a mut self, _response: &'a Value) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// Ends the attempt after a complete response. Lists in `response` may be empty, because only values
    /// outside of lists are parsed for a large response.
    fn on_completed<'a>(self: Box<Self>, response: &'a Value) -> BoxFuture<'a, ()>;
}

/// A guard that allows everything, for requests that are not subject to a budget.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unguarded;

impl AttemptGuard for Unguarded {
    fn start(&self) -> BoxFuture<'_, Result<Box<dyn RequestAttempt>, ExaError>> {
        Box::pin(ready(Ok(Box::new(Self) as Box<dyn RequestAttempt>)))
    }
}

impl RequestAttempt for Unguarded {
    fn on_rejected(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(ready(()))
    }

    fn on_completed<'a>(self: Box<Self>, _response: &'a Value) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }
}
