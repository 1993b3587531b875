//! Errors of the API and their JSON formats, which differ by API.

use exa_mcp_model::ArgumentLocation;
use serde_json::{Value, json};

use crate::error_tags::{PAYMENT_REQUIRED, add_payment_challenge};
use crate::json::set;
use crate::time::iso;

/// An error response.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) status: u16,
    /// `tag` of the flat formats, `code` of the envelope; empty if the API sends none.
    pub(crate) tag: String,
    pub(crate) message: String,
    pub(crate) issues: Vec<ValidationIssue>,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Set if the request never reached the API behind the path; such errors have the standard format.
    pub(crate) from_gateway: bool,
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
    /// `{requestId, error, tag}`.
    Standard,
    /// `{error: {type, code, message}, requestId}`.
    Agent,
    /// The standard fields and `{message, statusCode, timestamp, path}`.
    Websets,
    /// `{error}`.
    Team,
}

impl ErrorFormat {
    /// Returns the format of the API that serves `path`.
    pub(crate) fn for_path(path: &str) -> ErrorFormat {
        match path.split('/').nth(1) {
            Some("agent") => ErrorFormat::Agent,
            Some("websets") => ErrorFormat::Websets,
            Some("team-management") => ErrorFormat::Team,
            _ => ErrorFormat::Standard,
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
            from_gateway: false,
        }
    }

    pub(crate) fn at_gateway(mut self) -> Self {
        self.from_gateway = true;
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
        match format {
            ErrorFormat::Standard => self.flat_body(&self.message, context),
            ErrorFormat::Websets => {
                let mut body = self.flat_body(self.reason(), context);
                set(&mut body, "message", self.message.as_str());
                set(&mut body, "statusCode", self.status);
                set(&mut body, "timestamp", iso(context.now));
                set(&mut body, "path", context.path);
                body
            }
            ErrorFormat::Agent => self.envelope(context),
            ErrorFormat::Team => json!({ "error": self.message }),
        }
    }

    fn flat_body(&self, error: &str, context: &ErrorContext<'_>) -> Value {
        let mut body = json!({ "requestId": context.request_id, "error": error });
        if !self.tag.is_empty() {
            set(&mut body, "tag", self.tag.as_str());
        }
        if self.tag == PAYMENT_REQUIRED {
            add_payment_challenge(&mut body, context.path);
        }
        body
    }

    fn envelope(&self, context: &ErrorContext<'_>) -> Value {
        let mut error = json!({
            "type": self.error_type(),
            "code": self.code(),
            "message": self.message,
        });
        if !self.issues.is_empty() {
            let issues: Value = self.issues.iter().map(ValidationIssue::to_json).collect();
            set(&mut error, "detail", json!({ "issues": issues }));
        }
        json!({ "error": error, "requestId": context.request_id })
    }

    /// `error.type` of the envelope.
    fn error_type(&self) -> &'static str {
        match self.status {
            401..=403 => "AUTHENTICATION_ERROR",
            404 => "NOT_FOUND",
            409 => "CONFLICT",
            429 => "RATE_LIMIT_ERROR",
            500.. => "SERVER_ERROR",
            _ => "INVALID_REQUEST",
        }
    }

    /// `error.code` of the envelope, which is more specific about some arguments.
    fn code(&self) -> &str {
        let is_about = |name: &str| self.issues.iter().any(|issue| issue.is_about(name));
        match self.tag.as_str() {
            "INVALID_REQUEST_BODY" if is_about("outputSchema") => "INVALID_OUTPUT_SCHEMA",
            "INVALID_REQUEST_BODY" if is_about("dataSources") => "INVALID_DATA_SOURCE",
            "INVALID_REQUEST_BODY" | "INVALID_REQUEST_QUERY" => "INVALID_REQUEST",
            "INVALID_JSON_SCHEMA" => "INVALID_OUTPUT_SCHEMA",
            "" => self.error_type(),
            tag => tag,
        }
    }

    /// Returns the reason phrase of the status.
    fn reason(&self) -> &'static str {
        let status = axum::http::StatusCode::from_u16(self.status).ok();
        let reason = status.and_then(|status| status.canonical_reason());
        reason.unwrap_or("Error")
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

    /// Whether the issue concerns the argument or a part of it.
    fn is_about(&self, name: &str) -> bool {
        self.path.split('.').next() == Some(name)
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
