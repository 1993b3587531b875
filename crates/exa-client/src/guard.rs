//! The guard that every attempt to send a request passes.

use std::{
    future::{Future, ready},
    pin::Pin,
};

use serde_json::Value;

use super::ExaError;

/// A future on the heap.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Asked before each attempt to send a request. No request can be made without one.
pub trait AttemptGuard: Send + Sync {
    /// Lets an attempt begin.
    ///
    /// # Errors
    /// The attempt is not allowed; nothing may be sent.
    fn start(&self) -> BoxFuture<'_, Result<Box<dyn Attempt>, ExaError>>;
}

/// An attempt under way. If it is dropped instead of ended, its response is lost: the API may have acted.
pub trait Attempt: Send {
    /// Ends it after the API refused the request or never received it.
    fn rejected(self: Box<Self>) -> BoxFuture<'static, ()>;

    /// Ends it after something between here and the API answered in its place. The API may have acted.
    fn failed_at_gateway(self: Box<Self>) -> BoxFuture<'static, ()> {
        self.rejected()
    }

    /// Learns what a response says that is not complete yet. What it has started goes on even if the rest of the
    /// response is lost.
    fn started<'a>(&'a mut self, _response: &'a Value) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// Ends it after a complete response. Lists in `response` may be empty: of a large response only
    /// the values outside of lists are read.
    fn completed<'a>(self: Box<Self>, response: &'a Value) -> BoxFuture<'a, ()>;
}

/// A guard that lets everything pass, for requests that nobody pays for here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unguarded;

impl AttemptGuard for Unguarded {
    fn start(&self) -> BoxFuture<'_, Result<Box<dyn Attempt>, ExaError>> {
        Box::pin(ready(Ok(Box::new(Self) as Box<dyn Attempt>)))
    }
}

impl Attempt for Unguarded {
    fn rejected(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(ready(()))
    }

    fn completed<'a>(self: Box<Self>, _response: &'a Value) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }
}
