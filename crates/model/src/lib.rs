//! Plain data types and small helpers that the generator and all layers of the server share.
//!
//! - Generated data: [`Operation`] with its [`OperationBehavior`] and [`KeyKind`], [`ToolFile`], [`CommandFile`],
//!   [`PromptFile`], [`Resources`], [`ResponseField`] and [`price::PriceList`].
//! - Calls: [`CallStats`], [`LimitExceeded`], [`MicroDollars`], [`Owner`] and [`Identity`].
//! - Helpers: [`ids`], [`time`], [`envelope`], [`to_hex`] and [`lock`].
//!
//! Nothing here does I/O, apart from reading random numbers and the clock.
//!
//! # Example
//!
//! ```
//! use exa_mcp_model::{Identity, MicroDollars, time};
//!
//! assert_eq!(MicroDollars::from_dollars(0.007).to_string(), "$0.0070");
//! assert_ne!(Identity::user("local"), Identity::local());
//! let end = time::parse_period_end("2024-05").unwrap();
//! assert_eq!(time::format_timestamp(end), "2024-05-31T23:59:59.999Z");
//! ```

mod behavior;
mod call_stats;
mod command;
mod embedded;
pub mod envelope;
mod hex;
mod identity;
pub mod ids;
mod job_end;
mod key_kind;
mod limit;
mod money;
mod operation;
mod owner;
pub mod price;
mod price_words;
mod prompt;
mod resources;
mod response_field;
mod sync;
pub mod time;
mod tool;

pub use behavior::{
    ArgumentCheck, DefaultContents, ExampleCall, JobLookup, LongRunning, OperationBehavior,
    StreamKind, StreamResumption, Streaming, UploadOperations,
};
pub use call_stats::CallStats;
pub use command::{
    BatchPlan, CommandArgument, CommandColumn, CommandDefault, CommandFile, CommandPlan,
    CommandValue, RemoteBatch,
};
pub use embedded::EmbeddedJson;
pub use hex::to_hex;
pub use identity::Identity;
pub use job_end::JobEnd;
pub use key_kind::KeyKind;
pub use limit::{BudgetShortfall, LimitExceeded};
pub use money::{JobCost, MicroDollars};
pub use operation::{Api, Argument, ArgumentLocation, Operation, RequestBody};
pub use owner::{LocalUser, Owner};
pub use prompt::{
    Prompt, PromptArgument, PromptArgumentKind, PromptFile, PromptRequirement, PromptStep,
    PromptValue,
};
pub use resources::{Resources, WebsetResources};
pub use response_field::ResponseField;
pub use sync::lock;
pub use tool::{
    AlternativeOperation, ArgumentMapping, NamedToolPlan, ToolDefinition, ToolFile, ToolHints,
    ToolPlan, ToolhostEntry, ToolhostRole,
};
