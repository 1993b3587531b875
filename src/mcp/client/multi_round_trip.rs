//! Multi-round-trip requests of 2026-07-28: a result requests input, and the client repeats the call with the input.
//!
//! The repeated call runs from its beginning and finds the input in its request state, so the server stores nothing
//! between rounds. Calls request input before they change anything.

use std::future::{Future, pending, ready};
use std::pin::pin;
use std::sync::Arc;

use rmcp::model::{ErrorData, InputRequests, InputRequiredResult, InputResponses};
use tokio::sync::mpsc;

use super::request_state::{Binding, RequestState};
use super::wire;
use crate::operations::interaction::{
    ClientCapabilities, ClientInteraction, InputError, InputFuture, InputRequest,
};

/// The most rounds of one call. Most clients stop after ten rounds; with fewer, a client that never sends the input
/// still gets a result.
const MAX_ROUNDS: u8 = 8;

/// The client of a call with the input of earlier rounds.
pub(super) struct MultiRoundClient {
    capabilities: ClientCapabilities,
    state: Arc<RequestState>,
    requests: mpsc::UnboundedSender<InputRequest>,
}

/// Turns the first input request without a response into the result of the call.
pub(in super::super) struct MultiRoundTrip {
    state: Arc<RequestState>,
    binding: Binding,
    requests: mpsc::UnboundedReceiver<InputRequest>,
}

/// The outcome of a round.
pub(in super::super) enum RoundOutcome<T> {
    /// The call is done.
    Done(T),
    /// The call needs input.
    InputRequired(Box<InputRequiredResult>),
}

/// Creates the client and the round-trip of one call, and checks its request state.
pub(super) fn open(
    capabilities: ClientCapabilities,
    binding: Binding,
    state: Option<&str>,
    responses: Option<InputResponses>,
) -> Result<(MultiRoundClient, MultiRoundTrip), ErrorData> {
    let mut state = match state {
        Some(sealed) => RequestState::open(sealed, &binding)?,
        None => RequestState::default(),
    };
    // A response counts only if the request state proves that it was requested.
    state.take(responses.unwrap_or_default());
    let state = Arc::new(state);
    let (sender, requests) = mpsc::unbounded_channel();
    let client = MultiRoundClient {
        capabilities,
        state: Arc::clone(&state),
        requests: sender,
    };
    let round = MultiRoundTrip {
        state,
        binding,
        requests,
    };
    Ok((client, round))
}

impl ClientInteraction for MultiRoundClient {
    fn capabilities(&self) -> ClientCapabilities {
        self.capabilities
    }

    fn request(&self, request: InputRequest) -> InputFuture {
        if let Some(response) = self.state.response(&wire::request_key(&request)) {
            return Box::pin(ready(wire::parse_response(&request, response)));
        }
        if self.state.rounds >= MAX_ROUNDS {
            return Box::pin(ready(Err(InputError::Cancelled)));
        }
        match self.requests.send(request) {
            // The round ends with this request; the call is dropped while it waits here.
            Ok(()) => Box::pin(pending()),
            Err(_) => Box::pin(ready(Err(InputError::Cancelled))),
        }
    }
}

impl MultiRoundTrip {
    /// Runs the call until it is done or requests input.
    pub(super) async fn run<T>(
        mut self,
        call: impl Future<Output = T>,
    ) -> Result<RoundOutcome<T>, ErrorData> {
        let mut call = pin!(call);
        tokio::select! {
            biased;
            Some(request) = self.requests.recv() => {
                self.input_required(&request).map(RoundOutcome::InputRequired)
            }
            outcome = &mut call => Ok(RoundOutcome::Done(outcome)),
        }
    }

    fn input_required(
        &self,
        request: &InputRequest,
    ) -> Result<Box<InputRequiredResult>, ErrorData> {
        let invalid = || ErrorData::internal_error("An input request could not be encoded", None);
        let input = wire::to_input_request(request).ok_or_else(invalid)?;
        let key = wire::request_key(request);
        let state = self.state.with_request(&key).seal(&self.binding)?;
        let requests = InputRequests::from_iter([(key, input)]);
        Ok(Box::new(InputRequiredResult::new(
            Some(requests),
            Some(state),
        )))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::super::request_state::binding;
    use super::*;
    use crate::operations::interaction::{ClientHandle, FormRequest};
    use exa_mcp_model::{Identity, LocalUser};

    const ALL: ClientCapabilities = ClientCapabilities {
        sampling: true,
        sampling_with_tools: true,
        forms: true,
        urls: true,
        roots: true,
    };

    fn bound() -> Binding {
        binding(&Identity::local(), "tool", &Map::new())
    }

    /// Requests the roots, then a form.
    async fn call(client: ClientHandle) -> String {
        let roots = client.roots(&LocalUser::of_this_process()).await;
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let form = FormRequest {
            message: "?".to_owned(),
            schema: schema.as_object().unwrap().clone(),
        };
        format!("{roots:?} {:?}", client.fill_form(form).await)
    }

    async fn round(
        state: Option<&str>,
        responses: Option<InputResponses>,
    ) -> Result<String, (String, String)> {
        let (client, round) = open(ALL, bound(), state, responses).unwrap();
        match round.run(call(ClientHandle::new(client))).await.unwrap() {
            RoundOutcome::Done(text) => Ok(text),
            RoundOutcome::InputRequired(result) => {
                let requests = result.input_requests.unwrap();
                let (key, _) = requests.into_iter().next().unwrap();
                Err((key, result.request_state.unwrap()))
            }
        }
    }

    fn responses(key: &str, response: Value) -> Option<InputResponses> {
        Some(InputResponses::from_iter([(key.to_owned(), response)]))
    }

    #[tokio::test]
    async fn remembers_the_input_of_all_rounds() {
        let (key, state) = round(None, None).await.unwrap_err();
        assert!(key.starts_with("roots_"));
        let given = responses(&key, json!({"roots": [{"uri": "file:///a"}]}));
        let (key, state) = round(Some(&state), given).await.unwrap_err();
        assert!(key.starts_with("form_"));
        let given = responses(&key, json!({"action": "accept", "content": {"a": "b"}}));
        let done = round(Some(&state), given).await.unwrap();
        assert!(
            done.contains("file:///a") && done.contains("\"b\""),
            "{done}"
        );
    }

    #[tokio::test]
    async fn repeats_a_request_without_response_until_the_limit() {
        let (first, mut state) = round(None, None).await.unwrap_err();
        let mut rounds = 1;
        loop {
            match round(Some(&state), None).await {
                Err((key, next)) if rounds < MAX_ROUNDS => {
                    assert_eq!(key, first);
                    state = next;
                    rounds += 1;
                }
                Err(_) => panic!("too many rounds"),
                Ok(done) => {
                    assert_eq!(done, "Err(Cancelled) Err(Cancelled)");
                    break;
                }
            }
        }
    }

    #[tokio::test]
    async fn ignores_responses_that_were_not_requested() {
        let (key, _) = round(None, None).await.unwrap_err();
        let given = responses(&key, json!({"roots": [{"uri": "file:///a"}]}));
        assert!(round(None, given).await.is_err());
    }
}
