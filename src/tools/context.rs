//! The context of a tool call.

use super::task_call::TaskCall;
use crate::operations::interaction::ClientHandle;
use crate::operations::{Folders, ProgressReporter};
use exa_mcp_model::Owner;

/// Who calls a tool, and what the call may use.
#[derive(Clone)]
pub struct ToolContext {
    /// The owner of the result.
    pub owner: Owner,
    /// Receives the progress of the call.
    pub progress: ProgressReporter,
    /// The task for which the call is made, if any.
    pub task: Option<TaskCall>,
    /// Folders of the client from which files may be read, besides those of the operator.
    pub folders: Option<Folders>,
    /// The client, for elicitation, sampling and roots.
    pub client: ClientHandle,
}

impl ToolContext {
    /// Creates the context of a call without a task and without client interaction.
    pub fn new(owner: Owner, progress: ProgressReporter) -> Self {
        let folders = match owner {
            Owner::Local(_) => None,
            Owner::Remote(_) => Some(Folders::for_remote_client()),
        };
        Self {
            owner,
            progress,
            task: None,
            folders,
            client: ClientHandle::non_interactive(),
        }
    }

    /// Adds a client to interact with. Its roots may be read if the owner is the local user.
    #[must_use]
    pub fn with_client(self, client: ClientHandle) -> Self {
        let folders = match &self.owner {
            Owner::Local(user) if client.capabilities().roots => {
                Some(Folders::for_client(user, client.clone()))
            }
            _ => self.folders,
        };
        Self {
            folders,
            client,
            ..self
        }
    }
}
