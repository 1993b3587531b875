//! Refusals and their two forms: the search and websets APIs answer flat, the agent APIs with an
//! envelope.

use exa_mcp_model::ArgumentLocation;
use serde_json::{Map, Value, json};

use crate::time::iso;

/// Why a request was refused.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    /// `tag` of the flat form, `code` of the envelope.
    pub(crate) tag: String,
    pub(crate) message: String,
    pub(crate) issues: Vec<Issue>,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Set where the request never reached the API behind the path: such answers are flat.
    pub(crate) always_flat: bool,
}

/// One thing wrong with a request.
#[derive(Clone, Debug)]
pub(crate) struct Issue {
    pub(crate) place: ArgumentLocation,
    /// Wire name, then the way inside it, such as `contents.text.maxCharacters`.
    pub(crate) path: String,
    pub(crate) message: String,
}

/// Shape of an error body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Flat,
    Envelope,
}

impl Form {
    /// The agent APIs are told apart by their path alone.
    pub(crate) fn of(path: &str) -> Form {
        if path == "/agent" || path.starts_with("/agent/") {
            Form::Envelope
        } else {
            Form::Flat
        }
    }
}

/// What an error body says besides the failure itself.
pub(crate) struct Circumstances<'a> {
    pub(crate) request_id: &'a str,
    pub(crate) path: &'a str,
    pub(crate) now: u64,
}

impl Failure {
    pub(crate) fn new(status: u16, tag: &str, message: impl Into<String>) -> Self {
        Failure {
            status,
            tag: tag.to_owned(),
            message: message.into(),
            issues: Vec::new(),
            headers: Vec::new(),
            always_flat: false,
        }
    }

    pub(crate) fn flat(mut self) -> Self {
        self.always_flat = true;
        self
    }

    /// A 400 that is not about a single field's form.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Failure::new(400, "INVALID_REQUEST", message)
    }

    /// A 404 for an object, such as `not_found("webset", "webset_…")`.
    pub(crate) fn not_found(kind: &str, id: &str) -> Self {
        Failure::new(404, "NOT_FOUND", format!("{kind} {id} not found"))
    }

    /// A 400 that lists what is wrong; the tag tells which part of the request to look at first.
    pub(crate) fn of_issues(issues: Vec<Issue>) -> Self {
        let in_place = |place| issues.iter().any(|issue| issue.place == place);
        let tag = if in_place(ArgumentLocation::Body) {
            "INVALID_REQUEST_BODY"
        } else if in_place(ArgumentLocation::Query) {
            "INVALID_REQUEST_QUERY"
        } else {
            "INVALID_REQUEST"
        };
        let list: Vec<String> = issues.iter().map(Issue::sentence).collect();
        let mut failure = Failure::new(400, tag, format!("Invalid request: {}", list.join("; ")));
        failure.issues = issues;
        failure
    }

    /// The flat or enveloped JSON body.
    pub(crate) fn body(&self, form: Form, at: &Circumstances<'_>) -> Value {
        let issues: Vec<Value> = self.issues.iter().map(Issue::to_json).collect();
        match form {
            Form::Flat => {
                let mut body = Map::new();
                body.insert("requestId".into(), at.request_id.into());
                body.insert("error".into(), self.message.as_str().into());
                body.insert("tag".into(), self.tag.as_str().into());
                body.insert("statusCode".into(), self.status.into());
                body.insert("path".into(), at.path.into());
                body.insert("timestamp".into(), iso(at.now).into());
                if !issues.is_empty() {
                    body.insert("issues".into(), issues.into());
                }
                Value::Object(body)
            }
            Form::Envelope => {
                let detail = if issues.is_empty() {
                    Value::Null
                } else {
                    json!({ "issues": issues })
                };
                json!({
                    "error": {
                        "type": self.kind(),
                        "code": self.tag,
                        "message": self.message,
                        "detail": detail,
                    },
                    "requestId": at.request_id,
                })
            }
        }
    }

    /// `error.type` of the envelope.
    fn kind(&self) -> &'static str {
        match self.status {
            401..=403 => "AUTHENTICATION_ERROR",
            404 => "NOT_FOUND",
            429 => "RATE_LIMIT_ERROR",
            500.. => "SERVER_ERROR",
            _ => "INVALID_REQUEST",
        }
    }
}

impl Issue {
    pub(crate) fn new(
        place: ArgumentLocation,
        path: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Issue {
            place,
            path: path.into(),
            message: message.into(),
        }
    }

    fn sentence(&self) -> String {
        if self.path.is_empty() {
            format!("{}: {}", self.place.as_str(), self.message)
        } else {
            format!("{} {}: {}", self.place.as_str(), self.path, self.message)
        }
    }

    fn to_json(&self) -> Value {
        json!({ "in": self.place.as_str(), "path": self.path, "message": self.message })
    }
}
