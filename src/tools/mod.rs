//! The tools: what they are, and what a call of one does.
//!
//! A call is parsed once into a [`ToolCall`], which says what it will do; [`ToolExecutor::run`] does it and
//! gives a typed [`ToolOutcome`]. Every tool is a view of operations; none has a way of its own to the
//! network.

mod address;
mod cache;
mod call;
pub(crate) mod claims;
mod context;
mod create_note;
mod discovery;
mod dispatchers;
mod elicitation;
mod error;
mod error_messages;
mod executor;
mod follow_up;
mod host;
mod name_limits;
mod named;
pub mod notes;
mod operation_run;
mod options;
mod outcome;
mod parse;
mod path;
mod plan;
mod polling;
mod presentation;
mod registry;
pub mod resources;
mod routing;
mod schema;
mod shared_cache;
mod suggest;
mod upstream;
pub(crate) mod watchers;
mod work;

pub use crate::render::Link;
pub use address::Address;
pub use cache::{CachedResult, Change, Limits, ResultCache};
pub use call::ToolCall;
pub use context::ToolContext;
pub use dispatchers::dispatcher_of;
pub use elicitation::PromptPolicy;
pub use error::ToolError;
pub use executor::ToolExecutor;
pub use outcome::{ToolContent, ToolOutcome};
pub use plan::Hints;
pub use registry::{SelectError, ToolDefinition, ToolRegistry, select};
pub use schema::Schema;
pub use work::{Attempt, Keeper, TaskCall, TaskLimits, Work};
