//! Errors of the API and their two JSON formats: the search and websets APIs use a flat object, the
//! agent APIs an envelope.

use exa_mcp_model::ArgumentLocation;
use serde_json::{Value, json};

use crate::json::set;
use crate::time::iso;

/// An error response.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) status: u16,
    /// `tag` of the flat format, `code` of the envelope.
    pub(crate) tag: String,
    pub(crate) message: String,
    pub(crate) issues: Vec<ValidationIssue>,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Set if the request never reached the API behind the path; such errors are always flat.
    pub(crate) always_flat: bool,
}

/// One invalid argument of a request.
#[derive(Clone, Debug)]
pub(crate) struct ValidationIssue {
    pub(crate) location: ArgumentLocation,
    /// Wire name and the path inside it, such as `contents.text.maxCharacters`.
    pub(crate) path: String,
    pub(crate) message: String,
}

/// The JSON format of an error body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorFormat {
    Flat,
    Envelope,
}

impl ErrorFormat {
    /// Returns the format of the API that serves `path`.
    pub(crate) fn for_path(path: &str) -> ErrorFormat {
        if path == "/agent" || path.starts_with("/agent/") {
            ErrorFormat::Envelope
        } else {
            ErrorFormat::Flat
        }
    }
}

/// The details of the request that an error body repeats.
pub(crate) struct ErrorContext<'a> {
    pub(crate) request_id: &'a str,
    pub(crate) path: &'a str,
    pub(crate) now: u64,
}

impl ApiError {
    pub(crate) fn new(status: u16, tag: &str, message: impl Into<String>) -> Self {
        ApiError {
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

    /// A 400 for a request that matches the schema but is still invalid.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        ApiError::new(400, "INVALID_REQUEST", message)
    }

    /// A 405 that names the allowed methods.
    pub(crate) fn method_not_allowed(allowed: &str, message: String) -> Self {
        let mut error = ApiError::new(405, "METHOD_NOT_ALLOWED", message);
        error.headers.push(("allow", allowed.to_owned()));
        error
    }

    /// A 400 that lists the invalid arguments; the tag names the part of the request to fix first.
    pub(crate) fn from_issues(issues: Vec<ValidationIssue>) -> Self {
        let any_in = |location| issues.iter().any(|issue| issue.location == location);
        let tag = if any_in(ArgumentLocation::Body) {
            "INVALID_REQUEST_BODY"
        } else if any_in(ArgumentLocation::Query) {
            "INVALID_REQUEST_QUERY"
        } else {
            "INVALID_REQUEST"
        };
        let list: Vec<String> = issues.iter().map(ValidationIssue::sentence).collect();
        let mut error = ApiError::new(400, tag, format!("Invalid request: {}", list.join("; ")));
        error.issues = issues;
        error
    }

    /// Returns the JSON body.
    pub(crate) fn body(&self, format: ErrorFormat, context: &ErrorContext<'_>) -> Value {
        let issues: Vec<Value> = self.issues.iter().map(ValidationIssue::to_json).collect();
        match format {
            ErrorFormat::Flat => {
                let mut body = json!({
                    "requestId": context.request_id,
                    "error": self.message,
                    "tag": self.tag,
                    "statusCode": self.status,
                    "path": context.path,
                    "timestamp": iso(context.now),
                });
                if !issues.is_empty() {
                    set(&mut body, "issues", issues);
                }
                body
            }
            ErrorFormat::Envelope => {
                let detail = if issues.is_empty() {
                    Value::Null
                } else {
                    json!({ "issues": issues })
                };
                json!({
                    "error": {
                        "type": self.error_type(),
                        "code": self.tag,
                        "message": self.message,
                        "detail": detail,
                    },
                    "requestId": context.request_id,
                })
            }
        }
    }

    /// `error.type` of the envelope.
    fn error_type(&self) -> &'static str {
        match self.status {
            401..=403 => "AUTHENTICATION_ERROR",
            404 => "NOT_FOUND",
            429 => "RATE_LIMIT_ERROR",
            500.. => "SERVER_ERROR",
            _ => "INVALID_REQUEST",
        }
    }
}

impl ValidationIssue {
    pub(crate) fn new(
        location: ArgumentLocation,
        path: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        ValidationIssue {
            location,
            path: path.into(),
            message: message.into(),
        }
    }

    fn sentence(&self) -> String {
        if self.path.is_empty() {
            format!("{}: {}", self.location.as_str(), self.message)
        } else {
            format!("{} {}: {}", self.location.as_str(), self.path, self.message)
        }
    }

    fn to_json(&self) -> Value {
        json!({ "in": self.location.as_str(), "path": self.path, "message": self.message })
    }
}
