//! A validated API call as handlers see it, and the response they return.

use serde_json::{Map, Value};

use crate::api_error::ApiError;
use crate::{json, time};

/// The response of a handler, or the error that the client receives.
pub(crate) type ApiResult = Result<ApiResponse, ApiError>;

/// Returns the arguments in the body of a `POST` to a path, or the error that the operation would return.
pub(crate) type BodyParser<'a> =
    dyn Fn(&str, &Map<String, Value>) -> Result<Map<String, Value>, ApiError> + 'a;

/// A request whose arguments match the operation's input schema.
#[derive(Debug)]
pub(crate) struct Call {
    /// Flat arguments under their registry names.
    pub(crate) args: Map<String, Value>,
    /// `Host` header, for links that lead back to the sandbox.
    pub(crate) host: String,
    /// Whether the client accepts `text/event-stream`.
    pub(crate) wants_events: bool,
    /// The tokens of the `Exa-Beta` header.
    pub(crate) betas: Vec<String>,
    /// The `Last-Event-ID` header.
    pub(crate) last_event_id: Option<String>,
    pub(crate) request_id: String,
    /// What the ids that it issues depend on, if the state is stored.
    pub(crate) salt: Option<String>,
}

/// A response before it is serialized.
#[derive(Debug)]
pub(crate) enum ApiResponse {
    Json {
        status: u16,
        value: Value,
    },
    /// Server-sent events that are known in advance.
    Events(Vec<String>),
    /// Server-sent events that are sent while the work proceeds.
    Live(LiveStream),
}

/// The work whose events a stream reports.
#[derive(Clone, Debug)]
pub(crate) enum LiveStream {
    AgentRun(String),
    Research(String),
}

impl ApiResponse {
    pub(crate) fn ok(value: Value) -> ApiResult {
        Ok(ApiResponse::Json { status: 200, value })
    }

    pub(crate) fn created(value: Value) -> ApiResult {
        Ok(ApiResponse::Json { status: 201, value })
    }
}

/// Returns a page of a list, with the `object` field that the newer APIs add.
pub(crate) fn list_response(mut page: Value) -> ApiResult {
    json::set(&mut page, "object", "list");
    ApiResponse::ok(page)
}

impl Call {
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.args.get(name)
    }

    /// Returns a text argument, or an empty text if it is missing. The schema check rules that out
    /// for required arguments.
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
        self.get(name).map(json::items).unwrap_or_default()
    }

    /// Returns the texts in a list argument.
    pub(crate) fn texts(&self, name: &str) -> Vec<&str> {
        self.list(name).iter().filter_map(Value::as_str).collect()
    }

    /// Parses a time argument into milliseconds.
    pub(crate) fn time(&self, name: &str) -> Result<Option<u64>, ApiError> {
        self.opt_text(name)
            .map(|text| {
                time::parse(text).ok_or_else(|| {
                    ApiError::invalid(format!("{name}: '{text}' is not an ISO 8601 time"))
                })
            })
            .transpose()
    }

    /// Returns the argument, or null if it is missing.
    pub(crate) fn or_null(&self, name: &str) -> Value {
        self.get(name).cloned().unwrap_or(Value::Null)
    }

    /// Returns the metadata, or an empty object if it is missing or null.
    pub(crate) fn metadata(&self) -> Value {
        match self.get("metadata") {
            Some(Value::Object(map)) => Value::Object(map.clone()),
            _ => Value::Object(Map::new()),
        }
    }

    /// Replaces `target` by the metadata of an update, if the update has any.
    pub(crate) fn update_metadata(&self, target: &mut Value) {
        if self.get("metadata").is_some() {
            *target = self.metadata();
        }
    }

    /// Rejects the request unless it carries the beta token.
    pub(crate) fn require_beta(&self, token: &str, feature: &str) -> Result<(), ApiError> {
        if self.betas.iter().any(|sent| sent == token) {
            return Ok(());
        }
        Err(ApiError::invalid(format!(
            "{feature} needs the beta token {token} in the Exa-Beta header"
        )))
    }
}
