//! Errors of tool calls. [`super::error_messages`] renders them.

use serde_json::{Map, Value};

use super::cache::CacheLimits;
use crate::operations::OperationError;
use crate::operations::interaction::UrlRequest;
use crate::operations::validation::ValidationError;
use crate::render::ViewError;
use exa_mcp_exa_client::{ExaError, KeyOwner, KeyPoolError};
use exa_mcp_model::{LimitExceeded, Operation};

/// Why a tool call failed.
#[derive(Debug)]
pub enum ToolError {
    /// The arguments are invalid; nothing was sent.
    Validation(InvalidCall),
    /// The call cannot be made for another reason.
    InvalidRequest {
        /// The reason.
        message: String,
        /// More fields for programs.
        details: Map<String, Value>,
    },
    /// The call succeeded, but its result has no such part.
    NotInResult {
        /// The operation that was called.
        operation: &'static str,
        /// What is wrong.
        error: ViewError,
        /// The id in the cache, if the result is cached.
        cache_id: Option<String>,
    },
    /// The cached result does not exist, or belongs to someone else.
    NotCached {
        /// The requested id.
        id: String,
        /// The limits of the cache.
        limits: CacheLimits,
    },
    /// There is no API key; the owner would have to supply it.
    NoKey(KeyOwner),
    /// There is no service key.
    NoServiceKey,
    /// There is no API key, and the user did not provide one.
    KeyNotProvided(String),
    /// The user must enter a key on a page first.
    KeyRequired(UrlRequest),
    /// Exa rejected every key.
    NoKeyReady(KeyPoolError),
    /// A limit of the caller is reached; the call was not made.
    LimitExceeded(Box<LimitExceeded>),
    /// The token is read-only.
    ReadOnly(&'static str),
    /// The user did not agree to a deletion.
    NotConfirmed {
        /// The operation that was not called.
        operation: &'static str,
        /// Why not.
        reason: String,
    },
    /// The task of the call was cancelled.
    Cancelled,
    /// It is unknown whether a call arrived.
    Unconfirmed(UnconfirmedCall),
    /// A job was started, but did not end in time or can no longer be read.
    Unfinished(UnfinishedJob),
    /// Exa rejected the call, or could not be reached.
    Exa {
        /// The operation that was called.
        operation: &'static str,
        /// What went wrong.
        error: Box<ExaError>,
        /// Common mistakes with this operation.
        hints: &'static [String],
    },
    /// The server itself failed.
    Internal(String),
}

/// A call with invalid arguments.
#[derive(Debug)]
pub struct InvalidCall {
    /// The operation or tool.
    pub(super) operation: String,
    /// What is wrong.
    pub(super) error: ValidationError,
    /// How to retry, if only some arguments are missing.
    pub(super) retry: Option<RetryHint>,
}

/// How to retry a call with missing arguments.
#[derive(Debug)]
pub(super) struct RetryHint {
    /// What to do.
    pub(super) instruction: String,
    /// The call, with placeholders for missing values.
    pub(super) retry_with: Value,
}

/// A call that may have arrived. Repeating it might start the job twice.
#[derive(Debug)]
pub struct UnconfirmedCall {
    pub(super) operation: &'static str,
    /// What happened.
    pub(super) event: &'static str,
    /// Why it cannot be determined.
    pub(super) reason: String,
    /// The earliest time of the call, in milliseconds since 1970.
    pub(super) since: u64,
    /// The call that lists existing jobs.
    pub(super) list: Option<Value>,
}

/// A job that was started and whose end is unknown.
#[derive(Debug)]
pub struct UnfinishedJob {
    pub(super) operation: &'static str,
    /// The last known status.
    pub(super) status: Option<String>,
    /// Why it can no longer be read, if that is the cause.
    pub(super) cause: Option<Box<ToolError>>,
    /// The calls to continue with.
    pub(super) next: Map<String, Value>,
}

impl ToolError {
    /// Creates the error of a call with invalid arguments.
    pub(super) fn invalid(operation: &str, error: ValidationError) -> Box<Self> {
        Box::new(Self::Validation(InvalidCall {
            operation: operation.to_owned(),
            error,
            retry: None,
        }))
    }

    /// Creates the error of a call that cannot be made, with more fields for programs.
    pub(super) fn invalid_request(message: impl Into<String>, details: Value) -> Box<Self> {
        Box::new(Self::InvalidRequest {
            message: message.into(),
            details: super::outcome::as_object(details),
        })
    }

    /// Converts the error of an operation.
    pub(super) fn from_call_error(
        operation: &'static Operation,
        error: OperationError,
    ) -> Box<Self> {
        Box::new(match error {
            OperationError::NoKey(owner) => Self::NoKey(owner),
            OperationError::NoServiceKey => Self::NoServiceKey,
            OperationError::KeysUnavailable(no_key) => Self::NoKeyReady(no_key),
            OperationError::Limit(limit) => Self::LimitExceeded(limit),
            OperationError::Arguments(error) => return Self::invalid(operation.name, *error),
            OperationError::Exa(error) => Self::Exa {
                operation: operation.name,
                error,
                hints: &operation.behavior.hints,
            },
        })
    }
}
