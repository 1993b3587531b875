//! The operations of the Exa API: their registry, the validation of their arguments, and their execution.
//!
//! The table of operations is generated; nothing here names a single operation.

mod call_arguments;
mod call_log;
mod download;
mod executor;
mod import;
pub mod interaction;
mod operation_error;
mod pagination;
mod preview;
pub mod price;
mod progress;
mod registry;
mod remote_job;
pub(crate) mod roots;
mod service_key;
pub(crate) mod spend;
mod stream;
mod stream_resumption;
pub mod validation;

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::unwrap_used)]
mod key_pool_tests;

use exa_mcp_model::Operation;
use serde_json::Value;

pub(crate) use call_log::CALL_LOG;
pub(crate) use executor::{CompletedCall, OperationExecutor};
pub(crate) use import::{Folders, IMPORT_DIR_VARIABLE};
pub(crate) use operation_error::OperationError;
pub use pagination::is_paged;
pub(crate) use pagination::{PagedCall, PagingStop};
pub use progress::{ProgressReporter, ProgressUpdate};
pub use registry::{all, find};
pub(crate) use registry::{closest, input_schema, nearest};
pub(crate) use remote_job::{JobMatches, JobSearchError, JobState, PollOutcome, RemoteJob};

/// Returns minimal valid arguments for an operation.
pub(crate) fn example(operation: &'static Operation) -> Value {
    validation::example(&operation.behavior.example, input_schema(operation))
}
