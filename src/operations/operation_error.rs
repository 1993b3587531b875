//! Why a call has no response.

use super::validation;
use exa_mcp_exa_client::{ExaError, ExaErrorKind, KeyOwner, KeyPoolError};
use exa_mcp_model::LimitExceeded;

/// Why a call has no response.
#[derive(Debug)]
pub(crate) enum OperationError {
    /// There is no API key; the owner would have to provide one.
    NoKey(KeyOwner),
    /// There is no service key, and the operation needs one.
    NoServiceKey,
    /// Exa rejected every key, or they are all rate-limited.
    KeysUnavailable(KeyPoolError),
    /// The arguments are invalid; nothing was sent.
    Arguments(Box<validation::ValidationError>),
    /// The API or the connection to it failed.
    Exa(Box<ExaError>),
    /// A limit of the paying account is reached; nothing was sent.
    Limit(Box<LimitExceeded>),
}

impl OperationError {
    /// Returns whether the call may have taken effect at Exa, although it failed.
    pub(crate) fn may_have_arrived(&self) -> bool {
        let Self::Exa(error) = self else {
            return false;
        };
        match error.kind {
            ExaErrorKind::Timeout | ExaErrorKind::ConnectionLost | ExaErrorKind::NotJson => true,
            // An overloaded server has done nothing.
            ExaErrorKind::Api(status) => status >= 500 && status != 503 || error.is_from_gateway(),
            _ => error.is_from_gateway(),
        }
    }
}

impl From<KeyPoolError> for OperationError {
    fn from(error: KeyPoolError) -> Self {
        match error {
            KeyPoolError::Empty(owner) => Self::NoKey(owner),
            unavailable => Self::KeysUnavailable(unavailable),
        }
    }
}
