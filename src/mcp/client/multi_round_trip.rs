//! From 2026-07-28 on a server asks by its answer: the client sends the same call again, with what was
//! asked for. The call then runs from its beginning and finds the answer there, so nothing is kept here
//! between two rounds. Calls ask before they change anything.

use std::future::{Future, pending, ready};
use std::pin::pin;
use std::sync::Arc;

use rmcp::model::{ErrorData, InputRequests, InputRequiredResult, InputResponses};
use tokio::sync::mpsc;

use super::state::{Binding, State};
use super::wire;
use crate::operations::client::{
    ClientCapabilities, ClientInteraction, NoReply, Question, ReplyFuture,
};

/// How often one call may come back with a question: less often than clients bear (ten times, mostly), so
/// that one that answers nothing still gets a result. It would go on
/// for ever.
const MOST_ROUNDS: u8 = 8;

/// The client of a call that has been asked some questions already.
pub(super) struct Rounds {
    capabilities: ClientCapabilities,
    state: Arc<State>,
    questions: mpsc::UnboundedSender<Question>,
}

/// Turns the first question without an answer into the answer of the call.
pub(in super::super) struct Round {
    state: Arc<State>,
    binding: Binding,
    questions: mpsc::UnboundedReceiver<Question>,
}

/// How a round ended.
pub(in super::super) enum Ended<T> {
    /// The call is done.
    Done(T),
    /// The call waits for an answer.
    Asks(Box<InputRequiredResult>),
}

/// The two ends for one call. What came back with it is checked here.
pub(super) fn open(
    capabilities: ClientCapabilities,
    binding: Binding,
    state: Option<&str>,
    responses: Option<InputResponses>,
) -> Result<(Rounds, Round), ErrorData> {
    let mut state = match state {
        Some(sealed) => State::open(sealed, &binding)?,
        None => State::default(),
    };
    // An answer counts only where the state says that it was asked for.
    state.take(responses.unwrap_or_default());
    let state = Arc::new(state);
    let (sender, questions) = mpsc::unbounded_channel();
    let rounds = Rounds {
        capabilities,
        state: Arc::clone(&state),
        questions: sender,
    };
    let round = Round {
        state,
        binding,
        questions,
    };
    Ok((rounds, round))
}

impl ClientInteraction for Rounds {
    fn capabilities(&self) -> ClientCapabilities {
        self.capabilities
    }

    fn ask(&self, question: Question) -> ReplyFuture {
        if let Some(answer) = self.state.answer(&wire::key(&question)) {
            return Box::pin(ready(wire::reply(&question, answer)));
        }
        if self.state.rounds >= MOST_ROUNDS {
            return Box::pin(ready(Err(NoReply::Cancelled)));
        }
        match self.questions.send(question) {
            // The round ends with this question; the call is dropped while it waits here.
            Ok(()) => Box::pin(pending()),
            Err(_) => Box::pin(ready(Err(NoReply::Cancelled))),
        }
    }
}

impl Round {
    /// Runs the call until it is done or asks.
    pub(super) async fn until<T>(
        mut self,
        call: impl Future<Output = T>,
    ) -> Result<Ended<T>, ErrorData> {
        let mut call = pin!(call);
        tokio::select! {
            biased;
            Some(question) = self.questions.recv() => self.ask(&question).map(Ended::Asks),
            outcome = &mut call => Ok(Ended::Done(outcome)),
        }
    }

    fn ask(&self, question: &Question) -> Result<Box<InputRequiredResult>, ErrorData> {
        let unasked = || ErrorData::internal_error("A question could not be put into words", None);
        let request = wire::input(question).ok_or_else(unasked)?;
        let key = wire::key(question);
        let state = self.state.asking(&key).seal(&self.binding)?;
        let requests = InputRequests::from_iter([(key, request)]);
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

    use super::super::state::binding;
    use super::*;
    use crate::operations::client::{ClientHandle, Form};
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

    /// Asks for the roots, then by a form.
    async fn call(client: ClientHandle) -> String {
        let roots = client.roots(&LocalUser::of_this_process()).await;
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let form = Form {
            message: "?".to_owned(),
            schema: schema.as_object().unwrap().clone(),
        };
        format!("{roots:?} {:?}", client.fill(form).await)
    }

    async fn round(
        state: Option<&str>,
        responses: Option<InputResponses>,
    ) -> Result<String, (String, String)> {
        let (client, round) = open(ALL, bound(), state, responses).unwrap();
        match round.until(call(ClientHandle::new(client))).await.unwrap() {
            Ended::Done(text) => Ok(text),
            Ended::Asks(result) => {
                let requests = result.input_requests.unwrap();
                let (key, _) = requests.into_iter().next().unwrap();
                Err((key, result.request_state.unwrap()))
            }
        }
    }

    fn answers(key: &str, answer: Value) -> Option<InputResponses> {
        Some(InputResponses::from_iter([(key.to_owned(), answer)]))
    }

    #[tokio::test]
    async fn answers_of_all_rounds_are_found() {
        let (key, state) = round(None, None).await.unwrap_err();
        assert!(key.starts_with("roots_"));
        let given = answers(&key, json!({"roots": [{"uri": "file:///a"}]}));
        let (key, state) = round(Some(&state), given).await.unwrap_err();
        assert!(key.starts_with("form_"));
        let given = answers(&key, json!({"action": "accept", "content": {"a": "b"}}));
        let done = round(Some(&state), given).await.unwrap();
        assert!(
            done.contains("file:///a") && done.contains("\"b\""),
            "{done}"
        );
    }

    #[tokio::test]
    async fn a_question_without_an_answer_is_asked_again_but_not_for_ever() {
        let (first, mut state) = round(None, None).await.unwrap_err();
        let mut rounds = 1;
        loop {
            match round(Some(&state), None).await {
                Err((key, next)) if rounds < MOST_ROUNDS => {
                    assert_eq!(key, first);
                    state = next;
                    rounds += 1;
                }
                Err(_) => panic!("asked too often"),
                Ok(done) => {
                    assert_eq!(done, "Err(Cancelled) Err(Cancelled)");
                    break;
                }
            }
        }
    }

    #[tokio::test]
    async fn answers_that_nobody_asked_for_do_not_count() {
        let (key, _) = round(None, None).await.unwrap_err();
        let given = answers(&key, json!({"roots": [{"uri": "file:///a"}]}));
        assert!(round(None, given).await.is_err());
    }
}
