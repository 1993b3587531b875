//! The tools: what they are, and what a call of one does.
//!
//! A call is parsed once into a `ToolCall`, which says what it will do; `ToolExecutor::run` does it and
//! gives a typed [`ToolOutcome`]. Every tool is a view of operations; none has a way of its own to the
//! network.

mod address;
mod cache;
mod call;
pub(crate) mod claims;
mod context;
mod create_note;
mod discovery;
#[cfg(feature = "sdk")]
mod dispatchers;
mod elicitation;
mod error;
mod error_messages;
mod executor;
mod follow_up;
mod host;
mod name_limits;
mod named;
pub(crate) mod notes;
mod operation_run;
mod options;
mod outcome;
mod parse;
mod path;
mod plan;
mod polling;
mod presentation;
mod registry;
pub(crate) mod resources;
mod routing;
mod schema;
mod shared_cache;
mod suggest;
mod upstream;
pub(crate) mod watchers;
mod work;

pub(crate) use crate::render::Link;
pub(crate) use address::Address;
pub(crate) use cache::{CachedResult, Limits, ResultCache};
pub(crate) use call::ToolCall;
pub use context::ToolContext;
#[cfg(feature = "sdk")]
pub(crate) use dispatchers::dispatcher_of;
pub(crate) use elicitation::PromptPolicy;
pub use error::ToolError;
pub(crate) use executor::ToolExecutor;
pub(crate) use outcome::ToolContent;
pub use outcome::ToolOutcome;
pub use plan::Hints;
pub use registry::ToolDefinition;
pub(crate) use work::{Attempt, Keeper, TaskCall, TaskLimits, Work};
