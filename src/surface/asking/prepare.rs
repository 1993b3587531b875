//! What a call cannot become a task without: a key to call Exa with, and what only the client knows of the
//! machine that it runs on. What a person has to decide or to give is asked by the task itself.

use std::future::ready;

use serde_json::{Map, Value};

use super::super::{Call, Catalogue, Outcome, Tool, name_limits, request};
use crate::operations::Caller;
use crate::operations::client::{
    Client, ClientHandle, NoReply, Powers, Question, Reply, ReplyFuture,
};

/// The argument that names a file of the client's.
const FILE: &str = "filePath";

/// A call that can become a task.
pub struct Prepared {
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// A client that knows what was answered.
    pub client: ClientHandle,
}

impl Catalogue {
    /// Asks for what a call needs before it becomes a task.
    pub async fn prepare(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        call: &Call,
    ) -> Result<Prepared, Box<Outcome>> {
        let powers = call.client.powers();
        let Some(tool) = self.find(tool).filter(|_| powers != Powers::default()) else {
            return Ok(Prepared {
                arguments,
                client: ClientHandle::mute(),
            });
        };
        self.demand_key(call).await?;
        let reads_file = fitting(tool, &arguments).is_some_and(|given| given.get(FILE).is_some());
        let client = match call.owner.local_user() {
            Some(user) if reads_file && powers.roots => {
                ClientHandle::new(Settled(call.client.roots(user).await))
            }
            _ => ClientHandle::mute(),
        };
        Ok(Prepared { arguments, client })
    }
}

/// The arguments of the operation that a call means, if they fit.
fn fitting(tool: &Tool, arguments: &Map<String, Value>) -> Option<Map<String, Value>> {
    name_limits::check(&tool.definition.name, arguments).ok()?;
    let asked = request(tool, arguments.clone()).ok()?;
    let checked = Caller::check(asked.operation, asked.arguments).ok()?;
    Some(checked.arguments)
}

/// A client that has been asked.
struct Settled(Result<Vec<String>, NoReply>);

impl Client for Settled {
    fn powers(&self) -> Powers {
        Powers {
            roots: true,
            ..Powers::default()
        }
    }

    fn ask(&self, _question: Question) -> ReplyFuture {
        Box::pin(ready(self.0.clone().map(Reply::Roots)))
    }
}
