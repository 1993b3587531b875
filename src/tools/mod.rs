//! The tools.
//!
//! A call is parsed once into a `ToolCall`; `ToolExecutor::run` runs it and returns a typed [`ToolOutcome`]. Every
//! tool is a view of operations; no tool accesses the network itself.

mod adjustments;
mod cache;
mod call;
pub(crate) mod claims;
mod context;
mod create_note;
mod describe;
mod discovery;
#[cfg(feature = "sdk")]
mod dispatchers;
mod elicitation;
mod enrichment_titles;
mod error;
mod error_messages;
mod executor;
mod expansion;
mod extra_contents;
mod failure;
mod follow_up;
mod keyed_locks;
mod name_limits;
mod named;
pub(crate) mod notes;
mod operation_runner;
mod options;
mod outcome;
mod parse;
mod path;
mod polling;
mod presentation;
mod registry;
mod resource_uri;
pub(crate) mod resources;
mod routing;
mod schema;
mod shared_cache;
mod signature;
mod suggest;
mod task_call;
mod toolhost;
mod upstream_filters;
pub(crate) mod watchers;

pub(crate) use crate::render::ResourceLink;
pub use crate::render::StructuredContent;
pub(crate) use cache::{CacheLimits, CachedResult, ResultCache};
pub(crate) use call::ToolCall;
pub use context::ToolContext;
#[cfg(feature = "sdk")]
pub(crate) use dispatchers::dispatcher_of;
pub(crate) use elicitation::PromptPolicy;
pub use error::ToolError;
pub(crate) use error_messages::ERROR_CODES;
pub use exa_mcp_model::ToolHints;
pub(crate) use executor::ToolExecutor;
pub(crate) use outcome::ToolContent;
pub use outcome::ToolOutcome;
pub use registry::ToolDefinition;
pub(crate) use registry::ToolRegistry;
pub(crate) use resource_uri::ResourceUri;
pub(crate) use task_call::{JobHandle, JobTracker, TaskAttempt, TaskCall, TaskLimits};
