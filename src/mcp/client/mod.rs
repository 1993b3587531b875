//! Requests to the client in both protocol generations. Tools use [`ClientInteraction`], which is implemented here.
//!
//! [`ClientInteraction`]: crate::operations::interaction::ClientInteraction

mod capabilities;
mod multi_round_trip;
mod peer;
mod request_state;
mod roots;
mod session;
mod wire;

use std::future::Future;
use std::time::Duration;

use rmcp::{
    RoleServer,
    model::{ErrorData, InputResponses, JsonObject},
    service::RequestContext,
};

pub(super) use capabilities::ClientFeatures;
pub(super) use multi_round_trip::RoundOutcome;
pub(super) use peer::{ClientPeer, Readiness};
pub(crate) use request_state::set_shared_state_key;
pub(super) use roots::KnownRoots;
pub(super) use session::{TaskInputOutcome, notify_url_completed, request_for_task};
pub(super) use wire::{check_length, parse_response, request_key, to_input_request};

use super::version::McpVersion;
use crate::operations::interaction::{ClientHandle, InputRequest};
use exa_mcp_model::Owner;

/// Timeouts of requests to the client.
#[derive(Clone, Copy, Debug)]
pub(super) struct InputTimeouts {
    /// For the client's model.
    model: Duration,
    /// For the user.
    person: Duration,
    /// For the client itself.
    client: Duration,
}

impl InputTimeouts {
    /// Returns the configured timeout for all requests, or the defaults.
    pub(super) fn new(configured: Option<Duration>) -> Self {
        let or = |seconds| configured.unwrap_or(Duration::from_secs(seconds));
        Self {
            model: or(120),
            person: or(300),
            client: or(20),
        }
    }

    /// Returns the timeout of a ping.
    pub(super) fn for_ping(&self) -> Duration {
        self.client
    }

    /// Returns the timeout of a request.
    fn for_request(&self, request: &InputRequest) -> Duration {
        match request {
            InputRequest::Sampling(_) => self.model,
            InputRequest::Form(_) | InputRequest::Url(_) => self.person,
            InputRequest::Roots => self.client,
        }
    }
}

/// A call that may request input, and the input that came with it.
pub(super) struct InteractiveCall<'a> {
    /// The owner of the call.
    pub(super) owner: &'a Owner,
    /// The tool.
    pub(super) tool: &'a str,
    /// Its arguments.
    pub(super) arguments: &'a JsonObject,
    /// The request state that the client sent back.
    pub(super) state: Option<String>,
    /// The client's responses to input requests.
    pub(super) responses: Option<InputResponses>,
}

/// The channel for the input requests of one call.
pub(super) enum InputChannel {
    /// The client supports no requests.
    None,
    /// Requests to the client within the session.
    Session(session::SessionMessenger),
    /// Input requests in the result of the call.
    MultiRoundTrip(multi_round_trip::MultiRoundTrip),
}

/// Returns the client of a call, and the channel for its input requests.
pub(super) fn open_channel(
    (context, peer): (&RequestContext<RoleServer>, ClientPeer),
    protocol: &McpVersion,
    roots: &KnownRoots,
    timeouts: InputTimeouts,
    call: InteractiveCall<'_>,
) -> Result<(ClientHandle, InputChannel), ErrorData> {
    let features = ClientFeatures::from_request(context, protocol);
    let capabilities = features.capabilities().allowed_for(call.owner);
    if protocol.is_stateless() {
        let binding = request_state::binding(call.owner.identity(), call.tool, call.arguments);
        let (client, round) =
            multi_round_trip::open(capabilities, binding, call.state.as_deref(), call.responses)?;
        return Ok((
            ClientHandle::new(client),
            InputChannel::MultiRoundTrip(round),
        ));
    }
    if capabilities == Default::default() {
        return Ok((ClientHandle::non_interactive(), InputChannel::None));
    }
    let roots = roots.with_change_notifications(features.roots_changes);
    let (client, messenger) = session::open(capabilities, roots, peer, timeouts);
    Ok((ClientHandle::new(client), InputChannel::Session(messenger)))
}

impl InputChannel {
    /// Runs a call until it is done or, in a multi-round-trip, requests input.
    pub(super) async fn run<T>(
        self,
        call: impl Future<Output = T>,
    ) -> Result<RoundOutcome<T>, ErrorData> {
        match self {
            Self::None => Ok(RoundOutcome::Done(call.await)),
            Self::Session(messenger) => Ok(RoundOutcome::Done(messenger.run(call).await)),
            Self::MultiRoundTrip(round) => round.run(call).await,
        }
    }
}
