//! The operations of the Exa API: what they are called, what they take, how they are called.
//!
//! The table itself is generated; nothing here names a single operation.

mod call_arguments;
mod call_log;
mod caller;
pub mod client;
mod follow;
mod import;
mod pages;
pub mod price;
mod progress;
mod registry;
pub(crate) mod roots;
pub(crate) mod spend;
mod stream;
pub mod validation;

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::unwrap_used)]
mod several_keys_tests;

use exa_mcp_model::Operation;
use serde_json::Value;

pub(crate) use caller::{Called, Caller, Exchanged, Refusal};
pub(crate) use follow::{Followed, Following, Found, Undecided};
pub(crate) use import::{Folders, IMPORT_DIR_VARIABLE};
pub use pages::is_paged;
pub(crate) use pages::{Paged, Stopped};
pub use progress::{Progress, Step};
pub use registry::{all, find};
pub(crate) use registry::{closest, input_schema, nearest};

/// A minimal call of an operation that would be accepted.
pub(crate) fn example(operation: &'static Operation) -> Value {
    validation::example(&operation.behavior.example, input_schema(operation))
}
