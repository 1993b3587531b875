//! The outcome of a call through a generated client.

use std::future::{Future, ready};
use std::pin::Pin;

use exa_mcp_model::LimitExceeded;

use super::{ArgumentsError, ExaError, ExaResponse};

/// The pending response of a generated client.
pub type CallFuture = Pin<Box<dyn Future<Output = Result<ExaResponse, CallError>> + Send>>;

/// An error of a call through a generated client.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The arguments are invalid; nothing was sent.
    #[error(transparent)]
    Arguments(#[from] ArgumentsError),
    /// The API returned an error or could not be reached.
    #[error(transparent)]
    Exa(#[from] ExaError),
    /// A limit of the caller is exceeded; nothing was sent.
    #[error("{0}")]
    Limit(Box<LimitExceeded>),
}

impl<E> From<progenitor_client::Error<E>> for CallError {
    fn from(error: progenitor_client::Error<E>) -> Self {
        Self::Exa(error.into())
    }
}

/// Returns a future that fails because this build has no client for the operation.
pub fn unknown_operation(operation: &'static str) -> CallFuture {
    let error = ArgumentsError::new(operation, "this build has no client for it".to_owned());
    Box::pin(ready(Err(error.into())))
}

impl CallError {
    /// Returns the HTTP status of an error response.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Exa(error) => error.status,
            Self::Arguments(_) | Self::Limit(_) => None,
        }
    }
}
