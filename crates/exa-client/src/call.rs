//! What a call of a generated client comes to.

use std::future::{Future, ready};
use std::pin::Pin;

use exa_mcp_model::LimitExceeded;

use super::{ArgumentsError, ExaError, ExaResponse};

/// The response to a call of a generated client, on its way.
pub type CallFuture = Pin<Box<dyn Future<Output = Result<ExaResponse, CallError>> + Send>>;

/// Why a call gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The arguments do not fit; nothing was sent.
    #[error(transparent)]
    Arguments(#[from] ArgumentsError),
    /// The API or the way to it failed.
    #[error(transparent)]
    Exa(#[from] ExaError),
    /// A limit of whoever pays does not allow it; nothing was sent.
    #[error("{0}")]
    Limit(Box<LimitExceeded>),
}

impl<E> From<progenitor_client::Error<E>> for CallError {
    fn from(error: progenitor_client::Error<E>) -> Self {
        Self::Exa(error.into())
    }
}

/// Fails because no generated client calls an operation of this name.
pub fn unknown_operation(operation: &'static str) -> CallFuture {
    let error = ArgumentsError::new(operation, "this build has no client for it".to_owned());
    Box::pin(ready(Err(error.into())))
}

impl CallError {
    /// The HTTP status with which Exa refused the call, if it did.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Exa(error) => error.status,
            Self::Arguments(_) | Self::Limit(_) => None,
        }
    }
}
