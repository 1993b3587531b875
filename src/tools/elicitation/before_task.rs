//! What a call cannot become a task without: a key to call Exa with, and what only the client knows of the
//! machine that it runs on. What a person has to decide or to give is asked by the task itself.

use std::future::ready;

use super::super::call::ToolCall;
use super::super::context::ToolContext;
use super::super::executor::ToolExecutor;
use super::super::outcome::ToolResult;
use super::require_key;
use crate::operations::client::{
    ClientCapabilities, ClientHandle, ClientInteraction, InputError, InputFuture, InputRequest,
    InputResponse,
};

/// The argument that names a file of the client's.
const FILE: &str = "filePath";

/// Asks for what a call needs before it becomes a task. Returns a client that knows what was answered.
pub(in super::super) async fn ask_before_task(
    tools: &ToolExecutor,
    call: &ToolCall,
    context: &ToolContext,
) -> ToolResult<ClientHandle> {
    let capabilities = context.client.capabilities();
    if capabilities == ClientCapabilities::default() {
        return Ok(ClientHandle::non_interactive());
    }
    require_key(tools, context).await?;
    Ok(match context.owner.local_user() {
        Some(user) if capabilities.roots && call.has_argument(FILE) => {
            ClientHandle::new(Settled(context.client.roots(user).await))
        }
        _ => ClientHandle::non_interactive(),
    })
}

/// A client that has been asked.
struct Settled(Result<Vec<String>, InputError>);

impl ClientInteraction for Settled {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities {
            roots: true,
            ..ClientCapabilities::default()
        }
    }

    fn request(&self, _request: InputRequest) -> InputFuture {
        Box::pin(ready(self.0.clone().map(InputResponse::Roots)))
    }
}
