//! What a call asks its client for before it goes on. Everything is asked before anything is changed:
//! a client of the newer era answers by making the whole call again, and the call of a task that waits for
//! an answer is made again by the next server.

mod before_task;
mod confirm;
mod key;
mod missing_arguments;

use std::time::Duration;

use serde_json::{Map, Value};

pub(super) use before_task::ask_before_task;
pub(super) use key::require_key;
pub(super) use missing_arguments::complete;

use super::context::ToolContext;
use super::executor::ToolExecutor;
use super::outcome::ToolResult;
use exa_mcp_model::Operation;

/// How an operator wants clients to be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PromptPolicy {
    /// Nothing is deleted before the user has agreed, where the client can ask.
    pub confirm_deletes: bool,
    /// How long to wait for an answer, if not as long as usual.
    pub patience: Option<Duration>,
}

/// Asks for what a call needs before it is sent.
pub(super) async fn prepare(
    tools: &ToolExecutor,
    context: &ToolContext,
    operation: &'static Operation,
    arguments: &Map<String, Value>,
) -> ToolResult<()> {
    require_key(tools, context).await?;
    if !tools.prompt_policy().confirm_deletes {
        return Ok(());
    }
    confirm::confirm_delete(&context.client, operation, arguments).await
}
