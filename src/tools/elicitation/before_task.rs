//! What a call needs before it becomes a task: an API key, and the roots of the client. The task itself asks for
//! arguments and confirmations.

use std::future::ready;

use super::super::call::ToolCall;
use super::super::context::ToolContext;
use super::super::executor::ToolExecutor;
use super::super::outcome::ToolResult;
use super::require_key;
use crate::operations::interaction::{
    ClientCapabilities, ClientHandle, ClientInteraction, InputError, InputFuture, InputRequest,
    InputResponse,
};

/// The argument that names a file of the client.
const FILE_ARGUMENT: &str = "filePath";

/// Requests what a call needs before it becomes a task. Returns a client that replays the replies.
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
        Some(user) if capabilities.roots && call.has_argument(FILE_ARGUMENT) => {
            ClientHandle::new(FixedRoots(context.client.roots(user).await))
        }
        _ => ClientHandle::non_interactive(),
    })
}

/// A client whose roots are already known.
struct FixedRoots(Result<Vec<String>, InputError>);

impl ClientInteraction for FixedRoots {
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
