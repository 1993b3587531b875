//! The way to the client in the two eras of the protocol. Everything that asks the client is written
//! once, against [`crate::operations::client::Client`]; this is what carries the questions.

mod capabilities;
mod multi_round_trip;
mod roots;
mod session;
mod state;
mod wire;

use std::future::Future;
use std::time::Duration;

use rmcp::{
    RoleServer,
    model::{ErrorData, InputResponses, JsonObject},
    service::RequestContext,
};

pub(super) use capabilities::Detected;
pub(super) use multi_round_trip::Ended;
pub(super) use roots::KnownRoots;
pub(super) use session::{Carried, carry, tell_visited};
pub(crate) use state::share_key;
pub(super) use wire::{input, key, reply, short};

use super::version::Era;
use crate::operations::client::ClientHandle;
use exa_mcp_model::Owner;

/// How long a question may stay without an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Of a model.
    model: Duration,
    /// Of a person.
    person: Duration,
    /// Of the client itself.
    client: Duration,
}

impl Patience {
    /// The usual patience, or one that the operator chose.
    pub(super) fn of(chosen: Option<Duration>) -> Self {
        let or = |seconds| chosen.unwrap_or(Duration::from_secs(seconds));
        Self {
            model: or(120),
            person: or(300),
            client: or(20),
        }
    }
}

/// One call and what comes with it.
pub(super) struct Asked<'a> {
    /// To whom the call belongs.
    pub(super) owner: &'a Owner,
    /// The tool.
    pub(super) tool: &'a str,
    /// Its arguments.
    pub(super) arguments: &'a JsonObject,
    /// What the client carried back.
    pub(super) state: Option<String>,
    /// What the client answers.
    pub(super) responses: Option<InputResponses>,
}

/// What carries the questions of one call.
pub(super) enum Conversation {
    /// There are none.
    Silent,
    /// Requests of our own.
    Session(session::Messenger),
    /// The answer of the call.
    Rounds(multi_round_trip::Round),
}

/// The client of a call, and what carries its questions.
pub(super) fn converse(
    context: &RequestContext<RoleServer>,
    era: &Era,
    roots: &KnownRoots,
    patience: Patience,
    asked: Asked<'_>,
) -> Result<(ClientHandle, Conversation), ErrorData> {
    let detected = Detected::of(context, era);
    let capabilities = detected.capabilities().allowed_for(asked.owner);
    if era.is_stateless() {
        let binding = state::binding(asked.owner.identity(), asked.tool, asked.arguments);
        let (client, round) = multi_round_trip::open(
            capabilities,
            binding,
            asked.state.as_deref(),
            asked.responses,
        )?;
        return Ok((ClientHandle::new(client), Conversation::Rounds(round)));
    }
    if capabilities == Default::default() {
        return Ok((ClientHandle::mute(), Conversation::Silent));
    }
    let roots = roots.telling(detected.roots_changes);
    let (client, messenger) = session::open(capabilities, roots, context.peer.clone(), patience);
    Ok((ClientHandle::new(client), Conversation::Session(messenger)))
}

impl Conversation {
    /// Runs a call until it is done or, where only its answer can ask, asks.
    pub(super) async fn until<T>(
        self,
        call: impl Future<Output = T>,
    ) -> Result<Ended<T>, ErrorData> {
        match self {
            Self::Silent => Ok(Ended::Done(call.await)),
            Self::Session(messenger) => Ok(Ended::Done(messenger.until(call).await)),
            Self::Rounds(round) => round.until(call).await,
        }
    }
}
