//! The stored input requests and responses of a task. They are stored so that a response may reach any server.

use std::collections::{BTreeMap, BTreeSet};

use rmcp::model::InputRequests;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::client;
use crate::operations::interaction::{ClientCapabilities, InputError, InputRequest};

/// The unparsed response to an input request, or why there is none.
pub(super) type RawResponse = Result<Value, InputError>;

/// The input requests of one task and the responses to them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct TaskInput {
    /// The requests that the client supports.
    #[serde(rename = "powers")]
    pub(super) capabilities: ClientCapabilities,
    /// Requests without a response, by key.
    open: BTreeMap<String, InputRequest>,
    /// Requests of a process that has ended. A response may still arrive.
    #[serde(rename = "left")]
    orphaned: BTreeSet<String>,
    #[serde(rename = "answers")]
    responses: BTreeMap<String, RawResponse>,
    /// Nothing was sent to Exa before the open requests. Stays set when responses arrive: the process that runs the task
    /// clears it before it continues, and that process may have ended.
    untouched: bool,
}

impl TaskInput {
    /// Creates the input of a task whose client supports these requests.
    pub(super) fn new(capabilities: ClientCapabilities) -> Self {
        Self {
            capabilities,
            ..Self::default()
        }
    }

    /// Returns whether there is nothing to store.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether a response is pending.
    pub(super) fn is_pending(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns the requests without a response.
    pub(super) fn open(&self) -> impl Iterator<Item = (&String, &InputRequest)> {
        self.open.iter()
    }

    /// Returns whether a response to a request is useful: the request is open, or its process has ended and the next one
    /// has not made a request yet.
    pub(super) fn is_awaited(&self, key: &str) -> bool {
        self.open.contains_key(key) || (self.orphaned.contains(key) && !self.is_pending())
    }

    /// Returns the response to a request, once no other response is pending.
    pub(super) fn response(&self, key: &str) -> Option<&RawResponse> {
        self.responses.get(key).filter(|_| !self.is_pending())
    }

    /// Adds a request, unless it has a response.
    pub(super) fn request(&mut self, key: &str, request: &InputRequest, untouched: bool) -> bool {
        if self.responses.contains_key(key) {
            return false;
        }
        self.orphaned.remove(key);
        self.open.insert(key.to_owned(), request.clone());
        self.untouched = untouched;
        true
    }

    /// Adds the response to a request; ignores others.
    pub(super) fn respond(&mut self, key: &str, response: &RawResponse) -> bool {
        let is_requested = self.open.remove(key).is_some() | self.orphaned.remove(key);
        if is_requested {
            let response = response
                .clone()
                .and_then(|value| client::check_length(&value).map(|()| value));
            self.responses.insert(key.to_owned(), response);
        }
        is_requested
    }

    /// Records that the task continues and may send something to Exa from now on. Returns whether that is new.
    pub(super) fn resume(&mut self) -> bool {
        std::mem::take(&mut self.untouched)
    }

    /// Withdraws the requests of a process that has ended. Returns whether that process had sent nothing to Exa.
    pub(super) fn orphan(&mut self) -> bool {
        let open = std::mem::take(&mut self.open);
        self.orphaned.extend(open.into_keys());
        self.resume()
    }

    /// Returns the open requests in the form of 2026-07-28.
    pub(super) fn requests(&self) -> InputRequests {
        let requests = self.open.iter();
        let requests =
            requests.filter_map(|(key, it)| Some((key.clone(), client::to_input_request(it)?)));
        requests.collect()
    }

    /// Describes the pending input.
    pub(super) fn description(&self) -> String {
        let describe = |request: &InputRequest| match request {
            InputRequest::Sampling(_) => "a response of the client's model".to_owned(),
            InputRequest::Form(form) => form.message.clone(),
            InputRequest::Url(page) => page.message.clone(),
            InputRequest::Roots => "the client's roots".to_owned(),
        };
        let descriptions: Vec<String> = self.open.values().map(describe).collect();
        format!("waiting for the client: {}", descriptions.join(" "))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operations::interaction::FormRequest;

    fn form(message: &str) -> InputRequest {
        InputRequest::Form(FormRequest {
            message: message.to_owned(),
            schema: Default::default(),
        })
    }

    fn requesting(keys: &[&str]) -> TaskInput {
        let mut input = TaskInput::default();
        for key in keys {
            assert!(input.request(key, &form(key), true));
        }
        input
    }

    #[test]
    fn returns_responses_only_when_none_is_pending() {
        let mut input = requesting(&["a", "b"]);
        let yes = Ok(json!({"action": "accept"}));
        assert!(input.respond("a", &yes));
        assert!(!input.respond("a", &yes), "only one response counts");
        assert!(!input.respond("c", &yes), "not requested");
        assert_eq!((input.response("a"), input.is_awaited("b")), (None, true));
        assert!(input.respond("b", &Err(InputError::Declined)));
        assert_eq!(input.response("a"), Some(&yes));
        assert_eq!(input.response("b"), Some(&Err(InputError::Declined)));
    }

    #[test]
    fn the_next_process_finds_earlier_responses() {
        let mut input = requesting(&["a", "b"]);
        assert!(input.respond("a", &Ok(json!(1))));
        assert!(input.orphan(), "nothing was sent");
        assert!(!input.is_pending());
        assert!(input.respond("b", &Ok(json!(2))), "it was requested");
        let stored = serde_json::to_string(&input).unwrap();
        let mut input: TaskInput = serde_json::from_str(&stored).unwrap();
        assert!(!input.request("a", &form("a"), true));
        assert_eq!(input.response("b"), Some(&Ok(json!(2))));
        assert!(!input.orphan(), "it is no longer known");
    }

    #[test]
    fn awaits_a_response_until_the_next_process_makes_another_request() {
        let mut input = requesting(&["a"]);
        input.orphan();
        assert!(input.is_awaited("a"), "the next process may repeat it");
        assert!(input.request("a", &form("a"), true));
        assert!(input.is_awaited("a"));
        input.orphan();
        assert!(input.request("b", &form("b"), true));
        assert!(!input.is_awaited("a"), "another request is open now");
        input.orphan();
        assert!(input.respond("a", &Ok(json!(1))));
        assert!(!input.is_awaited("a"), "it has a response");
    }

    #[test]
    fn a_response_that_no_process_has_read_sends_nothing() {
        let mut input = requesting(&["a"]);
        // The process that made the request has ended, and another one stores the response before it resumes the task.
        assert!(input.respond("a", &Ok(json!(1))));
        assert!(input.orphan(), "nothing was sent");

        let mut input = requesting(&["a"]);
        assert!(input.respond("a", &Ok(json!(1))));
        assert!(input.resume() && !input.resume());
        assert!(!input.orphan(), "the process continued");
    }

    #[test]
    fn does_not_store_long_responses() {
        let mut input = requesting(&["a"]);
        assert!(input.respond("a", &Ok(json!("x".repeat(1 << 20)))));
        assert!(matches!(
            input.response("a"),
            Some(Err(InputError::Failed(_)))
        ));
    }
}
