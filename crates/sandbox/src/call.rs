//! A checked request as behaviour sees it, and what behaviour gives back.

use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::time;

/// What hand-written behaviour answers with, or why it refuses.
pub(crate) type Outcome = Result<Reply, Failure>;

/// A request whose arguments fit the operation's input schema.
#[derive(Debug)]
pub(crate) struct Call {
    /// Flat arguments under their registry names.
    pub(crate) args: Map<String, Value>,
    /// `Host` header, for links that lead back to the sandbox.
    pub(crate) host: String,
    /// Whether the client asked for `text/event-stream`.
    pub(crate) wants_events: bool,
    pub(crate) request_id: String,
}

/// An answer before it is put on the wire.
#[derive(Debug)]
pub(crate) enum Reply {
    Json {
        status: u16,
        value: Value,
    },
    /// Server-sent events that are known in advance.
    Events(Vec<String>),
    /// Server-sent events that come as the work proceeds.
    Follow(Follow),
}

/// Work that can be followed live.
#[derive(Clone, Debug)]
pub(crate) enum Follow {
    AgentRun(String),
    Research(String),
}

impl Reply {
    pub(crate) fn ok(value: Value) -> Outcome {
        Ok(Reply::Json { status: 200, value })
    }

    pub(crate) fn created(value: Value) -> Outcome {
        Ok(Reply::Json { status: 201, value })
    }
}

impl Call {
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.args.get(name)
    }

    /// A text argument; empty when it is missing, which the schema check rules out for required
    /// ones.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.opt_text(name).unwrap_or_default()
    }

    pub(crate) fn opt_text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(crate) fn list(&self, name: &str) -> &[Value] {
        self.get(name)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// A time argument in milliseconds.
    pub(crate) fn time(&self, name: &str) -> Result<Option<u64>, Failure> {
        self.opt_text(name)
            .map(|text| {
                time::parse(text).ok_or_else(|| {
                    Failure::invalid(format!("{name}: '{text}' is not an ISO 8601 time"))
                })
            })
            .transpose()
    }

    /// The argument itself or null.
    pub(crate) fn or_null(&self, name: &str) -> Value {
        self.get(name).cloned().unwrap_or(Value::Null)
    }

    /// Metadata as given, an empty object when left out or cleared by null.
    pub(crate) fn metadata(&self) -> Value {
        match self.get("metadata") {
            Some(Value::Object(map)) => Value::Object(map.clone()),
            _ => Value::Object(Map::new()),
        }
    }

    pub(crate) fn has_beta(&self, token: &str) -> bool {
        self.list("betas")
            .iter()
            .any(|beta| beta.as_str() == Some(token))
    }

    /// Refuses the request unless it carries the beta token.
    pub(crate) fn need_beta(&self, token: &str, what: &str) -> Result<(), Failure> {
        if self.has_beta(token) {
            return Ok(());
        }
        Err(Failure::new(
            400,
            "BETA_HEADER_REQUIRED",
            format!("{what} needs the beta token {token} in the Exa-Beta header"),
        ))
    }
}

/// A count from a JSON number, fractions cut off.
pub(crate) fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        // A float-to-int cast saturates, which is just what a count needs.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        (number >= 0.0).then_some(number as u64)
    })
}

/// The list in a field of an object; empty when there is none.
pub(crate) fn list_of<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    let list = value.get(name).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

/// The texts in a field of an object.
pub(crate) fn texts_of(value: &Value, name: &str) -> Vec<String> {
    let texts = list_of(value, name).iter().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}
