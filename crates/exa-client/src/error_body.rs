//! Parses the bodies of error responses. Exa's endpoints use several formats, and gateways and proxies use
//! others.

use http::StatusCode;
use serde_json::{Map, Value};

use super::{ApiKey, ExaError, ExaErrorKind, text};

/// The relevant parts of an error body.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ErrorBody {
    message: Option<String>,
    tag: Option<String>,
    request_id: Option<String>,
    detail: Option<Value>,
    /// The status in an event of a stream; a response has its own.
    status: Option<u16>,
}

impl ErrorBody {
    /// Parses a body of any format.
    pub(super) fn parse(content_type: &str, bytes: &[u8]) -> Self {
        if let Ok(value) = serde_json::from_slice(bytes) {
            return Self::from_json(value);
        }
        let body = String::from_utf8_lossy(bytes);
        let is_html = content_type.contains("html") || body.trim_start().starts_with('<');
        let message = if is_html {
            text::html_text(&body)
        } else {
            body.into_owned()
        };
        Self {
            message: Some(message),
            ..Self::default()
        }
    }

    /// Parses the error in an event of a stream.
    pub(super) fn from_event(value: Value) -> Self {
        let pointers = ["/statusCode", "/error/statusCode", "/status"];
        let mut codes = pointers
            .iter()
            .filter_map(|pointer| value.pointer(pointer)?.as_u64());
        let status = codes.find(|code| (400..600).contains(code));
        let status = status.and_then(|code| u16::try_from(code).ok());
        Self {
            status,
            ..Self::from_json(value)
        }
    }

    /// Returns the error of a response with this body, sanitized and without the key.
    pub(super) fn into_error(self, status: StatusCode, key: Option<&ApiKey>) -> ExaError {
        let kind = ExaErrorKind::Api(status.as_u16());
        let reason = status.canonical_reason().unwrap_or_default();
        let mut error = self.build_error(kind, reason, key);
        error.status = Some(status.as_u16());
        error
    }

    /// Returns the error that a stream reported.
    pub(super) fn into_stream_error(self, key: &ApiKey) -> ExaError {
        let status = self.status;
        let mut error = self.build_error(ExaErrorKind::Stream, "no reason was given", Some(key));
        error.status = status;
        let quote = std::mem::take(&mut error.message);
        error.message = format!("The Exa API reported a failure during the stream: {quote}");
        error.with_quote(quote)
    }

    fn build_error(self, kind: ExaErrorKind, reason: &str, key: Option<&ApiKey>) -> ExaError {
        let tidy = |text: Option<String>, max| {
            let text = text.map(|text| text::tidy(key, &text, max));
            text.filter(|text| !text.is_empty())
        };
        let message = tidy(self.message, text::MAX_MESSAGE).unwrap_or_else(|| reason.to_owned());
        let mut error = ExaError::new(kind, message);
        error.tag = tidy(self.tag, text::MAX_NAME);
        error.request_id = tidy(self.request_id, text::MAX_NAME);
        let detail = self.detail.filter(|detail| !detail.is_null());
        error.detail = detail.map(|detail| Box::new(text::tidy_value(key, detail)));
        error
    }

    fn from_json(value: Value) -> Self {
        match value {
            Value::Null => Self::default(),
            Value::String(message) => Self {
                message: Some(message),
                ..Self::default()
            },
            Value::Object(fields) => Self::from_object(&fields),
            other => Self {
                message: describe(&other),
                ..Self::default()
            },
        }
    }

    fn from_object(fields: &Map<String, Value>) -> Self {
        let mut body = match fields.get("error") {
            Some(Value::Object(error)) => Self::from_envelope(error),
            _ => Self::from_flat(fields),
        };
        let id = ["requestId", "request_id"];
        body.request_id = id.into_iter().find_map(|name| identifier(fields.get(name)));
        body.tag = body.tag.or_else(|| identifier(fields.get("tag")));
        // JSON of an unknown shape is shown as it is.
        if body.message.as_deref().is_none_or(str::is_empty) {
            body.message = Some(Value::Object(fields.clone()).to_string());
        }
        body
    }

    /// `{error: {type, code, message, detail}}`
    fn from_envelope(error: &Map<String, Value>) -> Self {
        let detail = first(error, &["detail", "details", "errors", "issues"]);
        Self {
            message: first(error, &["message"]).or(detail).and_then(describe),
            tag: identifier(error.get("code")).or_else(|| identifier(error.get("type"))),
            request_id: None,
            status: None,
            detail: detail.or_else(|| list(error.get("message"))).cloned(),
        }
    }

    /// `{error: "text", message: "text" or list, detail, …}`
    fn from_flat(fields: &Map<String, Value>) -> Self {
        let detail = first(fields, &["detail", "details", "errors", "issues"]);
        let error = fields.get("error").and_then(describe);
        let message = fields.get("message").and_then(describe);
        let message = match (error, message) {
            (Some(error), Some(message)) => Some(more_specific(error, message)),
            (error, message) => error.or(message),
        };
        let is_generic = message.as_deref().is_none_or(is_reason);
        let described = detail.filter(|_| is_generic).and_then(describe);
        // A detail that is a plain string becomes the message and is not repeated.
        let is_message = detail.is_some_and(Value::is_string) && described.is_some();
        let detail = detail.filter(|_| !is_message);
        Self {
            message: described.or(message),
            tag: None,
            request_id: None,
            status: None,
            detail: detail.or_else(|| list(fields.get("message"))).cloned(),
        }
    }
}

/// Returns the first of these fields that is present and not empty.
fn first<'a>(fields: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    let is_filled = |value: &&Value| match value {
        Value::Null => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    };
    names
        .iter()
        .find_map(|name| fields.get(*name).filter(is_filled))
}

/// Returns the value if it is a list of validation errors.
fn list(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| value.as_array().is_some_and(|items| !items.is_empty()))
}

/// Returns a tag or an id, which some endpoints send as a number.
fn identifier(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Describes a value: strings as they are, lists joined, validation errors as `path: message`.
fn describe(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.trim().to_owned(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().filter_map(describe).collect();
            items.join("; ")
        }
        Value::Object(fields) => match first(fields, &["message", "msg", "error"]) {
            Some(Value::String(message)) => match error_path(fields) {
                Some(path) => format!("{path}: {message}"),
                None => message.clone(),
            },
            _ => value.to_string(),
        },
        other => other.to_string(),
    };
    (!text.is_empty()).then_some(text)
}

/// Returns the path of a validation error, such as `body.query`.
fn error_path(fields: &Map<String, Value>) -> Option<String> {
    let step = |step: &Value| match step {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match first(fields, &["path", "loc", "field", "property"])? {
        Value::Array(steps) => Some(steps.iter().map(step).collect::<Vec<_>>().join(".")),
        Value::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// Chooses the more specific of `error` and `message`, or joins them if they differ.
fn more_specific(error: String, message: String) -> String {
    if is_reason(&error) || message.contains(&error) {
        message
    } else if is_reason(&message) || error.contains(&message) {
        error
    } else {
        format!("{error}: {message}")
    }
}

/// Returns whether a text is only a reason phrase, such as `Bad Request`.
fn is_reason(text: &str) -> bool {
    let text = text.trim();
    let text = text.strip_suffix(" Exception").unwrap_or(text);
    (400..600)
        .filter_map(|status| StatusCode::from_u16(status).ok()?.canonical_reason())
        .any(|reason| reason.eq_ignore_ascii_case(text))
}

#[cfg(test)]
#[path = "tests/error_body.rs"]
mod tests;
