//! Who calls a tool, and what the call may use.

use super::work::TaskCall;
use crate::operations::client::ClientHandle;
use crate::operations::{Folders, ProgressReporter};
use exa_mcp_model::Owner;

/// Who calls a tool, and who is told how far the call is.
#[derive(Clone)]
pub struct ToolContext {
    /// To whom the answer belongs, and where they are.
    pub owner: Owner,
    /// Told how far the call is.
    pub progress: ProgressReporter,
    /// The task that the call is made for.
    pub task: Option<TaskCall>,
    /// Folders of the client out of which files may be read, beside those of the operator.
    pub folders: Option<Folders>,
    /// Who may be asked.
    pub client: ClientHandle,
}

impl ToolContext {
    /// The context of a call that is answered when it is done.
    pub fn new(owner: Owner, progress: ProgressReporter) -> Self {
        let folders = match owner {
            Owner::Local(_) => None,
            Owner::Remote(_) => Some(Folders::of_remote_client()),
        };
        Self {
            owner,
            progress,
            task: None,
            folders,
            client: ClientHandle::non_interactive(),
        }
    }

    /// The same for a client that may be asked. The folders that it has open may be read if its user is
    /// the local one.
    #[must_use]
    pub fn of_client(self, client: ClientHandle) -> Self {
        let folders = match &self.owner {
            Owner::Local(user) if client.capabilities().roots => {
                Some(Folders::of_client(user, client.clone()))
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
