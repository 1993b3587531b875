//! Plain data and small helpers that the layers share, defined once.
//!
//! Nothing here sends, stores or shows anything.

mod behavior;
mod call_stats;
mod embedded;
pub mod envelope;
mod hex;
mod identity;
pub mod ids;
mod limit;
mod money;
mod operation;
mod owner;
pub mod price;
mod prompt;
mod resources;
mod sync;
pub mod time;
mod tool;

pub use behavior::{
    ArgumentCheck, ExampleCall, JobLookup, LongRunning, OperationBehavior, StreamForm, Streaming,
    UploadOperations,
};
pub use call_stats::CallStats;
pub use embedded::EmbeddedJson;
pub use hex::to_hex;
pub use identity::Identity;
pub use limit::{BudgetShortfall, LimitExceeded};
pub use money::MicroDollars;
pub use operation::{Api, Argument, ArgumentLocation, Operation, RequestBody};
pub use owner::{LocalUser, Owner};
pub use prompt::{
    Prompt, PromptArgument, PromptArgumentKind, PromptFile, PromptRequirement, PromptStep,
    PromptValue,
};
pub use resources::{Resources, WebsetResources};
pub use sync::lock;
pub use tool::{
    AlternativeOperation, ArgumentMapping, HostEntry, HostRole, NamedToolPlan, ToolDefinition,
    ToolFile, ToolHints, ToolPlan,
};
