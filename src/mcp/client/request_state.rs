//! The request state of a multi-round-trip call, which the client sends back with the next round.
//!
//! It is sealed with a key of this process, or of all servers that share a store. It is valid for one owner, one tool
//! and one set of arguments, for a limited time, and contains only the client's own input.

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

/// The lifetime of a request state.
const TTL: Duration = Duration::from_secs(15 * 60);

/// The longest state that is parsed, in bytes.
const MAX_LENGTH: usize = 2 * 1024 * 1024;

/// The call that a state belongs to, as associated data of the seal.
pub(super) struct Binding(Vec<u8>);

/// Binds a state to one call of one owner.
pub(super) fn binding(owner: &Identity, tool: &str, arguments: &JsonObject) -> Binding {
    let arguments = sort_keys(&Value::Object(arguments.clone()));
    Binding(json!([owner.as_str(), tool, arguments]).to_string().into())
}

/// Sorts the keys of all objects, because some clients do not preserve their order.
fn sort_keys(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let map: BTreeMap<&String, Value> =
                map.iter().map(|(name, it)| (name, sort_keys(it))).collect();
            json!(map)
        }
        Value::Array(list) => list.iter().map(sort_keys).collect(),
        other => other.clone(),
    }
}

/// The input requests and responses so far.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RequestState {
    /// The open request.
    #[serde(rename = "asked")]
    requested: Option<String>,
    /// The responses of earlier rounds.
    #[serde(rename = "answers")]
    responses: BTreeMap<String, Value>,
    /// The number of rounds.
    pub(super) rounds: u8,
}

impl RequestState {
    /// Adds the response to the open request.
    pub(super) fn take(&mut self, mut responses: InputResponses) {
        if let Some(key) = self.requested.take()
            && let Some(response) = responses
                .remove(&key)
                .filter(|response| !response.is_null())
        {
            self.responses.insert(key, response);
        }
    }

    /// Returns the response to a request, if there is one.
    pub(super) fn response(&self, key: &str) -> Option<&Value> {
        self.responses.get(key)
    }

    /// Returns the state of a call that makes this request next.
    pub(super) fn with_request(&self, key: &str) -> Self {
        Self {
            requested: Some(key.to_owned()),
            responses: self.responses.clone(),
            rounds: self.rounds.saturating_add(1),
        }
    }

    /// Encrypts the state for the client.
    pub(super) fn seal(&self, binding: &Binding) -> Result<String, ErrorData> {
        let options = SealOptions::new().associated_data(&binding.0).ttl(TTL);
        let sealed = codec()?.seal_json_with(self, &options);
        sealed.map_err(|_| ErrorData::internal_error("The request state could not be sealed", None))
    }

    /// Decrypts the state that a client sent back.
    pub(super) fn open(sealed: &str, binding: &Binding) -> Result<Self, ErrorData> {
        if sealed.len() > MAX_LENGTH {
            return Err(invalid("is longer than any that this server issued"));
        }
        let opened = codec()?.open_json_with(sealed, &binding.0);
        opened.map_err(|error| match error {
            RequestStateError::Expired => invalid("has expired"),
            _ => invalid("was not issued by this server for this call, or was modified"),
        })
    }
}

fn invalid(why: &str) -> ErrorData {
    ErrorData::invalid_params(
        format!("requestState {why}; make the call again without requestState and inputResponses"),
        None,
    )
}

static CODEC: OnceLock<RequestStateCodec> = OnceLock::new();

/// Sets the key that all servers on a store share: the rounds of a call may reach different servers.
pub(crate) fn set_shared_state_key(secret: &Secret) {
    let parts = ["first", "second"].map(|part| secret.digest("request state", part).short_hex());
    CODEC.get_or_init(|| RequestStateCodec::new_unchecked(parts.concat().into_bytes()));
}

/// Returns the codec. Without a shared key, a random key is created at the first use.
fn codec() -> Result<&'static RequestStateCodec, ErrorData> {
    if let Some(codec) = CODEC.get() {
        return Ok(codec);
    }
    let mut key = vec![0; RequestStateCodec::MIN_KEY_LENGTH];
    let no_randomness =
        |_| ErrorData::internal_error("The operating system provided no random numbers", None);
    getrandom::fill(&mut key).map_err(no_randomness)?;
    // Concurrent first uses may both create a key; only one is used.
    Ok(CODEC.get_or_init(|| RequestStateCodec::new_unchecked(key)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn arguments(value: Value) -> JsonObject {
        value.as_object().unwrap().clone()
    }

    fn state() -> RequestState {
        let mut state = RequestState::default().with_request("a");
        state.take(InputResponses::from_iter([(
            "a".to_owned(),
            json!({"x": 1}),
        )]));
        state.with_request("b")
    }

    #[test]
    fn round_trips_a_state() {
        let given = arguments(json!({"a": {"x": 1, "y": 2}, "b": 3}));
        let other_order = arguments(json!({"b": 3, "a": {"y": 2, "x": 1}}));
        let sealed = state()
            .seal(&binding(&Identity::local(), "t", &given))
            .unwrap();
        let opened = RequestState::open(&sealed, &binding(&Identity::local(), "t", &other_order));
        assert_eq!(opened.unwrap(), state());
    }

    #[test]
    fn binds_a_state_to_owner_tool_and_arguments() {
        let given = arguments(json!({"a": 1}));
        let own = binding(&Identity::local(), "t", &given);
        let sealed = state().seal(&own).unwrap();
        let others = [
            binding(&Identity::user("ann"), "t", &given),
            binding(&Identity::local(), "u", &given),
            binding(&Identity::local(), "t", &arguments(json!({"a": 2}))),
        ];
        for other in others {
            let error = RequestState::open(&sealed, &other).unwrap_err();
            assert_eq!(error.code.0, -32602);
        }
    }

    #[test]
    fn rejects_a_modified_state() {
        let own = binding(&Identity::local(), "t", &JsonObject::new());
        let sealed = state().seal(&own).unwrap();
        for index in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            if let Some(byte) = bytes.get_mut(index) {
                *byte = if *byte == b'A' { b'B' } else { b'A' };
            }
            let changed = String::from_utf8(bytes).unwrap();
            assert!(RequestState::open(&changed, &own).is_err(), "{index}");
        }
        let long = "x".repeat(MAX_LENGTH + 1);
        for odd in ["", "rs1", "rs1..", long.as_str()] {
            assert!(RequestState::open(odd, &own).is_err());
        }
    }

    #[test]
    fn rejects_an_expired_state() {
        let own = binding(&Identity::local(), "t", &JsonObject::new());
        let options = SealOptions::new()
            .associated_data(&own.0)
            .ttl(Duration::from_millis(1));
        let sealed = codec().unwrap().seal_json_with(&state(), &options).unwrap();
        std::thread::sleep(Duration::from_millis(5));
        let error = RequestState::open(&sealed, &own).unwrap_err();
        assert!(error.message.contains("expired"), "{error:?}");
    }
}
