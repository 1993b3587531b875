//! Everything that a call could ask for, asked before it becomes a task: a task runs on when its client
//! is not there any more.

use std::future::ready;

use serde_json::{Map, Value};

use super::super::{Asked, Call, Catalogue, Outcome, Tool, failed, request};
use crate::operations::Caller;
use crate::operations::client::{
    Client, ClientHandle, NoReply, Powers, Question, Reply, ReplyFuture,
};

/// The argument that names a file of the client's.
const FILE: &str = "filePath";

/// A call that asks nothing more.
pub struct Prepared {
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// A client that knows the answers.
    pub client: ClientHandle,
}

impl Catalogue {
    /// Asks for everything that a call needs.
    pub async fn prepare(
        &self,
        tool: &str,
        mut arguments: Map<String, Value>,
        call: &Call,
    ) -> Result<Prepared, Box<Outcome>> {
        let powers = call.client.powers();
        let Some(tool) = self.find(tool).filter(|_| powers != Powers::default()) else {
            return Ok(Prepared {
                arguments,
                client: ClientHandle::mute(),
            });
        };
        if let Err(refused) = fits(tool, &arguments) {
            arguments = self.completed(tool, arguments, call, *refused).await?;
        }
        self.demand_key(call).await?;
        let reads_file = fits(tool, &arguments).is_ok_and(|given| given.get(FILE).is_some());
        let client = match reads_file && powers.roots {
            true => ClientHandle::new(Settled(call.client.roots().await)),
            false => ClientHandle::mute(),
        };
        Ok(Prepared { arguments, client })
    }
}

/// The arguments of the operation that a call means, if they fit.
fn fits(tool: &Tool, arguments: &Map<String, Value>) -> Result<Map<String, Value>, Box<Outcome>> {
    let Asked {
        operation,
        arguments,
        ..
    } = request(tool, arguments.clone())?;
    let checked = Caller::check(operation, arguments);
    let checked = checked.map_err(|refusal| Box::new(failed(operation, &refusal)))?;
    Ok(checked.arguments)
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
