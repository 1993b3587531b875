//! Interaction with the client before a call. All input is requested before anything is changed: since 2026-07-28, a
//! client replies by repeating the whole call, and the next server repeats the call of a task that waits for input.

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
use super::error::ToolError;
use super::executor::ToolExecutor;
use super::outcome::ToolResult;
use exa_mcp_model::{KeyKind, Operation};

/// When and how clients are asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PromptPolicy {
    /// Deletions need the consent of the user, if the client supports forms.
    pub confirm_deletes: bool,
    /// How long to wait for a reply, if not the default.
    pub timeout: Option<Duration>,
    /// How long a client is idle before it is pinged, if it is.
    pub ping_interval: Option<Duration>,
}

/// Requests the key and the confirmation that a call needs.
pub(super) async fn prepare(
    tools: &ToolExecutor,
    context: &ToolContext,
    operation: &'static Operation,
    arguments: &Map<String, Value>,
) -> ToolResult<()> {
    let allowed = tools.operation_executor().check_network();
    allowed.map_err(|error| ToolError::from_call_error(operation, error))?;
    if operation.api.key == KeyKind::Service {
        // A service key is never requested from the user: it manages the keys of a whole team.
        let key = tools.operation_executor().service_key();
        key.map_err(|error| ToolError::from_call_error(operation, error))?;
    } else {
        require_key(tools, context).await?;
    }
    if !tools.prompt_policy().confirm_deletes {
        return Ok(());
    }
    confirm::confirm_delete(&context.client, operation, arguments).await
}
