//! What a call knew before it asked, sealed and carried by the client.
//!
//! It is sealed with a key of this process, or of all servers that share a store, for one owner, one tool and one set of arguments, and for a
//! while only. It holds nothing that the client did not say itself.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use rmcp::model::{
    ErrorData, InputResponses, JsonObject, RequestStateCodec, RequestStateError, SealOptions,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use exa_mcp_accounts::Secret;
use exa_mcp_model::Identity;

/// How long an answer to a question is waited for.
const LIFE: Duration = Duration::from_secs(15 * 60);

/// The longest state that is looked at, in bytes.
const LONGEST: usize = 2 * 1024 * 1024;

/// To what a state belongs.
pub(super) struct Binding(Vec<u8>);

/// A state belongs to one call of one owner.
pub(super) fn binding(owner: &Identity, tool: &str, arguments: &JsonObject) -> Binding {
    let arguments = sorted(&Value::Object(arguments.clone()));
    Binding(json!([owner.as_str(), tool, arguments]).to_string().into())
}

/// The same value with its names in order: some clients do not keep them as they were.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let map: BTreeMap<&String, Value> =
                map.iter().map(|(name, it)| (name, sorted(it))).collect();
            json!(map)
        }
        Value::Array(list) => list.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// What was asked and answered so far.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    /// The question that is open.
    #[serde(rename = "asked")]
    asked: Option<String>,
    /// The answers of earlier rounds.
    #[serde(rename = "answers")]
    answers: BTreeMap<String, Value>,
    /// How many rounds there were.
    #[serde(rename = "rounds")]
    pub(super) rounds: u8,
}

impl State {
    /// Takes the answer to the open question.
    pub(super) fn take(&mut self, mut responses: InputResponses) {
        if let Some(asked) = self.asked.take()
            && let Some(answer) = responses.remove(&asked).filter(|answer| !answer.is_null())
        {
            self.answers.insert(asked, answer);
        }
    }

    /// The answer to a question, if there is one.
    pub(super) fn answer(&self, key: &str) -> Option<&Value> {
        self.answers.get(key)
    }

    /// The state of a call that asks this.
    pub(super) fn asking(&self, key: &str) -> Self {
        Self {
            asked: Some(key.to_owned()),
            answers: self.answers.clone(),
            rounds: self.rounds.saturating_add(1),
        }
    }

    /// The form in which a client carries it.
    pub(super) fn seal(&self, binding: &Binding) -> Result<String, ErrorData> {
        let options = SealOptions::new().associated_data(&binding.0).ttl(LIFE);
        let sealed = codec()?.seal_json_with(self, &options);
        sealed.map_err(|_| ErrorData::internal_error("The state could not be sealed", None))
    }

    /// What a client carried back.
    pub(super) fn open(sealed: &str, binding: &Binding) -> Result<Self, ErrorData> {
        if sealed.len() > LONGEST {
            return Err(unusable("is longer than any that this server made"));
        }
        let opened = codec()?.open_json_with(sealed, &binding.0);
        opened.map_err(|error| match error {
            RequestStateError::Expired => unusable("has expired"),
            _ => unusable("was not made by this server for this call, or was changed on its way"),
        })
    }
}

fn unusable(why: &str) -> ErrorData {
    ErrorData::invalid_params(
        format!("requestState {why}; make the call again without requestState and inputResponses"),
        None,
    )
}

static CODEC: OnceLock<RequestStateCodec> = OnceLock::new();

/// Seals with a key that other servers have, too: a call may be answered by one and go on at another.
pub(crate) fn share_key(secret: &Secret) {
    let parts = ["first", "second"].map(|part| secret.digest("request state", part).short_hex());
    CODEC.get_or_init(|| RequestStateCodec::new_unchecked(parts.concat().into_bytes()));
}

/// Seals and opens with a key that lives as long as the process and is made at its first use.
fn codec() -> Result<&'static RequestStateCodec, ErrorData> {
    if let Some(codec) = CODEC.get() {
        return Ok(codec);
    }
    let mut key = vec![0; RequestStateCodec::MIN_KEY_LENGTH];
    let unkeyed =
        |_| ErrorData::internal_error("The operating system gave no random numbers", None);
    getrandom::fill(&mut key).map_err(unkeyed)?;
    // Two first calls at once may both make a key; one of the two is kept.
    Ok(CODEC.get_or_init(|| RequestStateCodec::new_unchecked(key)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn arguments(value: Value) -> JsonObject {
        value.as_object().unwrap().clone()
    }

    fn state() -> State {
        let mut state = State::default().asking("a");
        state.take(InputResponses::from_iter([(
            "a".to_owned(),
            json!({"x": 1}),
        )]));
        state.asking("b")
    }

    #[test]
    fn a_state_comes_back_as_it_was() {
        let given = arguments(json!({"a": {"x": 1, "y": 2}, "b": 3}));
        let other_order = arguments(json!({"b": 3, "a": {"y": 2, "x": 1}}));
        let sealed = state()
            .seal(&binding(&Identity::local(), "t", &given))
            .unwrap();
        let opened = State::open(&sealed, &binding(&Identity::local(), "t", &other_order));
        assert_eq!(opened.unwrap(), state());
    }

    #[test]
    fn a_state_belongs_to_one_owner_tool_and_set_of_arguments() {
        let given = arguments(json!({"a": 1}));
        let own = binding(&Identity::local(), "t", &given);
        let sealed = state().seal(&own).unwrap();
        let others = [
            binding(&Identity::user("ann"), "t", &given),
            binding(&Identity::local(), "u", &given),
            binding(&Identity::local(), "t", &arguments(json!({"a": 2}))),
        ];
        for other in others {
            let error = State::open(&sealed, &other).unwrap_err();
            assert_eq!(error.code.0, -32602);
        }
    }

    #[test]
    fn a_changed_state_is_refused() {
        let own = binding(&Identity::local(), "t", &JsonObject::new());
        let sealed = state().seal(&own).unwrap();
        for place in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            if let Some(byte) = bytes.get_mut(place) {
                *byte = if *byte == b'A' { b'B' } else { b'A' };
            }
            let changed = String::from_utf8(bytes).unwrap();
            assert!(State::open(&changed, &own).is_err(), "{place}");
        }
        let long = "x".repeat(LONGEST + 1);
        for odd in ["", "rs1", "rs1..", long.as_str()] {
            assert!(State::open(odd, &own).is_err());
        }
    }

    #[test]
    fn an_old_state_is_said_to_be_old() {
        let own = binding(&Identity::local(), "t", &JsonObject::new());
        let options = SealOptions::new()
            .associated_data(&own.0)
            .ttl(Duration::from_millis(1));
        let sealed = codec().unwrap().seal_json_with(&state(), &options).unwrap();
        std::thread::sleep(Duration::from_millis(5));
        let error = State::open(&sealed, &own).unwrap_err();
        assert!(error.message.contains("expired"), "{error:?}");
    }
}
