//! Why a tool call failed, as a value. [`super::error_messages`] puts it into words.

use serde_json::{Map, Value};

use super::cache::Limits;
use crate::operations::OperationError;
use crate::operations::client::UrlRequest;
use crate::operations::validation::ValidationError;
use crate::render::ViewError;
use exa_mcp_exa_client::{ExaError, KeyOwner, KeyPoolError};
use exa_mcp_model::LimitExceeded;
use exa_mcp_model::Operation;

/// Why a tool call failed.
#[derive(Debug)]
pub enum ToolError {
    /// The arguments do not fit; nothing was sent.
    Validation(InvalidCall),
    /// The call cannot be made, for a reason that is told in words.
    Impossible {
        /// The reason.
        message: String,
        /// More fields for code.
        details: Map<String, Value>,
    },
    /// The call was answered, but the answer has no such part.
    NotInResult {
        /// The operation that was called.
        operation: &'static str,
        /// What is wrong.
        error: ViewError,
        /// Where the answer is cached, if it is.
        cache_id: Option<String>,
    },
    /// The cached result does not exist, or belongs to someone else.
    NotCached {
        /// The id that was asked for.
        id: String,
        /// How long results are cached.
        limits: Limits,
    },
    /// There is no key to call Exa with; it would have to come from these.
    NoKey(KeyOwner),
    /// There is no key, and asking for one gave none.
    KeyNotProvided(String),
    /// The user must enter a key on a page first.
    KeyRequired(UrlRequest),
    /// Exa turned every key away.
    NoKeyReady(KeyPoolError),
    /// A limit of the caller is reached; the call was not made.
    LimitExceeded(Box<LimitExceeded>),
    /// The caller may change nothing.
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
    /// It is not known whether a call arrived.
    Unconfirmed(Unconfirmed),
    /// Work was started whose end did not come in time, or cannot be seen.
    Unfinished(Unfinished),
    /// Exa refused the call, or could not be reached.
    Exa {
        /// The operation that was called.
        operation: &'static str,
        /// What went wrong.
        error: Box<ExaError>,
        /// What often goes wrong with this operation.
        hints: &'static [String],
    },
    /// The server could not do its own part.
    Internal(String),
}

/// A call whose arguments do not fit.
#[derive(Debug)]
pub struct InvalidCall {
    /// The operation or tool that was meant.
    pub(super) operation: String,
    /// What is wrong.
    pub(super) error: ValidationError,
    /// How to make the call, where only some arguments are missing.
    pub(super) retry: Option<RetryHint>,
}

/// How to make a call whose arguments are incomplete.
#[derive(Debug)]
pub(super) struct RetryHint {
    /// What to do.
    pub(super) instruction: String,
    /// The call, with what is missing marked.
    pub(super) retry_with: Value,
}

/// A call that may have arrived. Making it again might do twice what was wanted once.
#[derive(Debug)]
pub struct Unconfirmed {
    pub(super) operation: &'static str,
    /// What happened.
    pub(super) event: &'static str,
    /// Why it cannot be decided.
    pub(super) reason: String,
    /// When the call was made at the earliest, in milliseconds since 1970.
    pub(super) since: u64,
    /// The call that lists what there is.
    pub(super) list: Option<Value>,
}

/// Work that was started and whose end is not known.
#[derive(Debug)]
pub struct Unfinished {
    pub(super) operation: &'static str,
    /// The last known state.
    pub(super) status: Option<String>,
    /// Why it cannot be read any more, if it cannot.
    pub(super) cause: Option<Box<ToolError>>,
    /// The calls to go on with.
    pub(super) next: Map<String, Value>,
}

impl ToolError {
    /// A call whose arguments do not fit.
    pub(super) fn invalid(operation: &str, error: ValidationError) -> Box<Self> {
        Box::new(Self::Validation(InvalidCall {
            operation: operation.to_owned(),
            error,
            retry: None,
        }))
    }

    /// A call that cannot be made, with more fields for code.
    pub(super) fn impossible(message: impl Into<String>, details: Value) -> Box<Self> {
        Box::new(Self::Impossible {
            message: message.into(),
            details: super::outcome::as_object(details),
        })
    }

    /// A call of an operation that gave no answer.
    pub(super) fn refused(operation: &'static Operation, refusal: OperationError) -> Box<Self> {
        Box::new(match refusal {
            OperationError::NoKey(holder) => Self::NoKey(holder),
            OperationError::KeysUnavailable(out) => Self::NoKeyReady(out),
            OperationError::Limit(over) => Self::LimitExceeded(over),
            OperationError::Arguments(refused) => return Self::invalid(operation.name, *refused),
            OperationError::Exa(error) => Self::Exa {
                operation: operation.name,
                error,
                hints: &operation.behavior.hints,
            },
        })
    }
}
