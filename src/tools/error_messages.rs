//! Renders a [`ToolError`] as text and structured content.

use serde_json::{Map, Value, json};

use super::cache::CacheLimits;
use super::error::{InvalidCall, ToolError, UnconfirmedCall, UnfinishedJob};
use super::outcome::{ToolContent, as_object, put};
use crate::operations;
use crate::operations::interaction::UrlRequest;
use crate::render::ViewError;
use exa_mcp_exa_client::{ExaError, ExaErrorKind, KeyFault, KeyOwner, KeyPoolError};
use exa_mcp_model::LimitExceeded;
use exa_mcp_model::time::format_seconds;
use exa_mcp_text::is_identifier;
use exa_mcp_text::sanitize::{Fence, clean, clean_json, neutralize, neutralize_json};

/// Maximum characters of a single text in an error.
const MAX_ERROR_CHARS: usize = 100_000;

/// Error codes in the ranges of JSON-RPC.
mod code {
    pub(super) const INVALID_PARAMS: i64 = -32602;
    pub(super) const API_ERROR: i64 = -32000;
    pub(super) const RATE_LIMITED: i64 = -32001;
    pub(super) const AUTHENTICATION: i64 = -32002;
    pub(super) const NOT_FOUND: i64 = -32003;
    pub(super) const CANCELLED: i64 = -32004;
    pub(super) const INTERNAL: i64 = -32603;
    pub(super) const URL_ELICITATION_REQUIRED: i64 = -32042;
}

/// All error codes with the names that results carry.
pub(crate) const ERROR_CODES: [(i64, &str); 13] = [
    (code::INVALID_PARAMS, "INVALID_PARAMS"),
    (code::API_ERROR, "API_ERROR"),
    (code::API_ERROR, "UNCONFIRMED"),
    (code::API_ERROR, "UNFINISHED"),
    (code::API_ERROR, "LOST"),
    (code::RATE_LIMITED, "RATE_LIMITED"),
    (code::RATE_LIMITED, "LIMIT_REACHED"),
    (code::AUTHENTICATION, "AUTHENTICATION_ERROR"),
    (code::AUTHENTICATION, "READ_ONLY"),
    (code::NOT_FOUND, "RESOURCE_NOT_FOUND"),
    (code::CANCELLED, "OPERATION_CANCELLED"),
    (code::INTERNAL, "INTERNAL_ERROR"),
    (code::URL_ELICITATION_REQUIRED, "URL_ELICITATION_REQUIRED"),
];

/// The sanitized text and data of an error.
struct Message {
    text: String,
    data: Value,
}

/// Returns the content that a client receives for an error.
pub(super) fn render(error: &ToolError) -> ToolContent {
    let Message { text, data } = message(error);
    ToolContent {
        text,
        structured: Map::from_iter([("error".to_owned(), data)]),
        links: Vec::new(),
        is_error: true,
    }
}

/// Returns the whole text of an error.
pub(super) fn text(error: &ToolError) -> String {
    message(error).text
}

/// Returns the first line of an error.
pub(super) fn headline(error: &ToolError) -> String {
    let text = text(error);
    text.lines().next().unwrap_or_default().to_owned()
}

fn message(error: &ToolError) -> Message {
    match error {
        ToolError::Validation(invalid) => validation(invalid),
        ToolError::InvalidRequest { message, details } => invalid_request(message, details),
        ToolError::NotInResult {
            operation,
            error,
            cache_id,
        } => not_in_result(operation, error, cache_id.as_deref()),
        ToolError::NotCached { id, limits } => not_cached(id, *limits),
        ToolError::NoKey(owner) => no_key(owner.advice()),
        ToolError::NoServiceKey => no_key(KeyOwner::NO_SERVICE_KEY),
        ToolError::KeyNotProvided(why) => key_not_provided(why),
        ToolError::KeyRequired(request) => key_required(request),
        ToolError::NoKeyReady(no_key) => no_key_ready(no_key),
        ToolError::LimitExceeded(limit) => limit_exceeded(limit),
        ToolError::ReadOnly(operation) => read_only(operation),
        ToolError::NotConfirmed { operation, reason } => not_confirmed(operation, reason),
        ToolError::Cancelled => internal("The call was aborted because its task was cancelled."),
        ToolError::Unconfirmed(unconfirmed) => self::unconfirmed(unconfirmed),
        ToolError::Unfinished(unfinished) => self::unfinished(unfinished),
        ToolError::Exa {
            operation,
            error,
            hints,
        } => exa(operation, error, hints),
        ToolError::Internal(message) => internal(message),
    }
}

impl Message {
    fn new(text: String, mut data: Value) -> Self {
        // The text of an API error is untrusted.
        clean_json(&mut data, MAX_ERROR_CHARS);
        neutralize_json(&mut data);
        let text = neutralize(&clean(&text)).into_owned();
        Self { text, data }
    }

    /// Creates a message whose data has only the common fields.
    fn plain(code: i64, name: &str, message: &str) -> Self {
        Self::new(message.to_owned(), fields(code, name, message))
    }

    /// Appends untrusted quotes inside a fence.
    fn with_quotes(mut self, quotes: &[(&str, String)]) -> Self {
        if quotes.is_empty() {
            return self;
        }
        let fence = Fence::new();
        let lines: Vec<String> = quotes
            .iter()
            .map(|(name, text)| format!("{name}: {text}"))
            .collect();
        let quoted = clean(&lines.join("\n")).into_owned();
        let parts = ["\nQuoted from others:\n\n", &fence.opening_tag(), "\n\n"];
        parts.iter().for_each(|part| self.text.push_str(part));
        self.text.push_str(&fence.neutralize(&quoted));
        self.text.push_str("\n\n");
        self.text.push_str(&fence.closing_tag());
        self
    }
}

/// Returns the fields that every error has.
fn fields(code: i64, name: &str, message: &str) -> Value {
    json!({"code": code, "name": name, "message": message})
}

fn validation(invalid: &InvalidCall) -> Message {
    let InvalidCall {
        operation,
        error,
        retry,
    } = invalid;
    let summary = format!("`{operation}` was not called; its arguments are invalid");
    let mut lines = vec![format!("{summary}:")];
    for problem in &error.problems {
        lines.push(format!("- {}: {}", problem.path, problem.message));
    }
    lines.push(format!("A minimal valid call: {}", error.example));
    lines.extend(common_issues(&error.hints));
    let problems: Vec<Value> = error
        .problems
        .iter()
        .map(|problem| json!({"field": problem.path, "problem": problem.message}))
        .collect();
    let mut data = fields(code::INVALID_PARAMS, "INVALID_PARAMS", &summary);
    put(&mut data, "operation", json!(operation));
    put(&mut data, "problems", json!(problems));
    put(&mut data, "example", Value::clone(&error.example));
    if !error.hints.is_empty() {
        put(&mut data, "hints", json!(error.hints));
    }
    if !error.missing.is_empty() {
        lines.push(format!("input_required: {}", error.missing.join(", ")));
        put(&mut data, "reason", json!("input_required"));
        put(&mut data, "missing", json!(error.missing));
    }
    let mut message = Message::new(lines.join("\n"), data);
    if let Some(retry) = retry {
        let more = format!("\n{}\nretryWith: {}", retry.instruction, retry.retry_with);
        message.text.push_str(&more);
        put(&mut message.data, "instruction", json!(retry.instruction));
        put(&mut message.data, "retryWith", retry.retry_with.clone());
    }
    message
}

fn invalid_request(message: &str, details: &Map<String, Value>) -> Message {
    let mut data = fields(code::INVALID_PARAMS, "INVALID_PARAMS", message);
    for (key, value) in details {
        put(&mut data, key, value.clone());
    }
    Message::new(message.to_owned(), data)
}

fn not_in_result(operation: &str, error: &ViewError, cache_id: Option<&str>) -> Message {
    let message = format!("`{operation}` was called, but {error}");
    let advice = match cache_id {
        Some(id) => format!(
            "call with cache_id {id} and a valid index, or without index, which costs nothing"
        ),
        None => "the result was not cached; call again without index".to_owned(),
    };
    let data = json!({
        "code": code::INVALID_PARAMS,
        "name": "INVALID_PARAMS",
        "message": message,
        "operation": operation,
        "problems": [{"field": "index", "problem": error.to_string()}],
        "cacheId": cache_id,
        "whatToDo": advice,
    });
    Message::new(format!("{message}.\nindex: {advice}."), data)
}

fn not_cached(id: &str, limits: CacheLimits) -> Message {
    let shown: String = id.chars().take(64).collect();
    let reason = if limits.is_disabled() {
        "This server caches no results".to_owned()
    } else {
        let seconds = limits.ttl.as_secs();
        let unit = if seconds == 1 { "second" } else { "seconds" };
        format!("Results are cached for {seconds} {unit} per caller")
    };
    let message = format!(
        "There is no cached result `{shown}`. {reason}. Repeat the original call without cache_id."
    );
    let mut data = fields(code::NOT_FOUND, "RESOURCE_NOT_FOUND", &message);
    put(&mut data, "cacheId", json!(shown));
    Message::new(message, data)
}

fn internal(message: &str) -> Message {
    Message::plain(code::INTERNAL, "INTERNAL_ERROR", message)
}

fn no_key(advice: &str) -> Message {
    Message::plain(code::AUTHENTICATION, "AUTHENTICATION_ERROR", advice)
}

fn key_not_provided(why: &str) -> Message {
    let mut message = no_key(KeyOwner::User.advice());
    message.text.push_str(&format!(" {why}"));
    put(&mut message.data, "message", json!(message.text));
    message
}

fn key_required(request: &UrlRequest) -> Message {
    let message = format!(
        "The call needs the Exa API key. The user enters it at {} (elicitation {}; on this computer, open for \
         five minutes); then call again.",
        request.url, request.id
    );
    let code = code::URL_ELICITATION_REQUIRED;
    let mut data = fields(code, "URL_ELICITATION_REQUIRED", &message);
    put(&mut data, "url", json!(request.url));
    put(&mut data, "elicitationId", json!(request.id));
    Message::new(message, data)
}

fn no_key_ready(no_key: &KeyPoolError) -> Message {
    let (code, name) = match no_key {
        KeyPoolError::CoolingDown {
            fault: Some(KeyFault::Rejected),
            ..
        }
        | KeyPoolError::Empty(_) => (code::AUTHENTICATION, "AUTHENTICATION_ERROR"),
        KeyPoolError::CoolingDown { .. } => (code::RATE_LIMITED, "RATE_LIMITED"),
    };
    let message = format!("The call was not made: {no_key}.");
    let mut data = fields(code, name, &message);
    if let Some(wait) = no_key.retry_after_seconds() {
        put(&mut data, "retryAfter", json!(wait));
    }
    Message::new(message, data)
}

fn limit_exceeded(limit: &LimitExceeded) -> Message {
    let mut data = fields(code::RATE_LIMITED, "LIMIT_REACHED", &limit.message);
    for (name, value) in limit.detail() {
        put(&mut data, name, value);
    }
    Message::new(limit.message.clone(), data)
}

fn read_only(operation: &str) -> Message {
    let message =
        format!("`{operation}` was not called: it changes data, and this token is read-only.");
    let mut data = fields(code::AUTHENTICATION, "READ_ONLY", &message);
    put(&mut data, "operation", json!(operation));
    Message::new(message, data)
}

fn not_confirmed(operation: &str, why: &str) -> Message {
    let message = format!(
        "Nothing was deleted: `{operation}` needs the consent of the user, and {why}. Do not retry unless the user \
         wants it."
    );
    let mut data = fields(code::CANCELLED, "OPERATION_CANCELLED", &message);
    put(&mut data, "operation", json!(operation));
    Message::new(message, data)
}

fn unconfirmed(unconfirmed: &UnconfirmedCall) -> Message {
    let UnconfirmedCall {
        operation,
        event,
        reason,
        since,
        list,
    } = unconfirmed;
    let moment = format_seconds(*since).unwrap_or_default();
    let how = match list {
        Some(_) => "with checkWith",
        None => "at Exa",
    };
    let mut text = format!(
        "{event} `{operation}`, and it is unknown whether it arrived: {reason}. \
         Its work may exist at Exa and may have been charged, so it is not called again. Look {how} for \
         work created since {moment}, and call `{operation}` again only if there is none."
    );
    let mut data = fields(code::API_ERROR, "UNCONFIRMED", &text);
    put(&mut data, "operation", json!(operation));
    put(&mut data, "since", json!(moment));
    if let Some(list) = list {
        text.push_str(&format!("\ncheckWith: {list}"));
        put(&mut data, "checkWith", list.clone());
    }
    Message::new(text, data)
}

fn unfinished(unfinished: &UnfinishedJob) -> Message {
    let operation = unfinished.operation;
    let status = unfinished.status.as_deref();
    let status = status
        .filter(|status| is_identifier(status))
        .unwrap_or("unknown");
    let (name, reason) = match unfinished.cause {
        None => (
            "UNFINISHED",
            "the time limit passed before the work ended; it continues at Exa",
        ),
        Some(_) => ("LOST", "the work can no longer be read"),
    };
    let mut text = format!("`{operation}` was started, but {reason}. Last known status: {status}.");
    let mut data = fields(code::API_ERROR, name, &text);
    put(&mut data, "operation", json!(operation));
    put(&mut data, "lastStatus", json!(status));
    let cause = unfinished.cause.as_deref().map(message);
    let cause = cause.map(|cause| {
        for (key, value) in as_object(cause.data) {
            match key.as_str() {
                "name" | "operation" => {}
                "message" => put(&mut data, "cause", value),
                "untrusted" => put(&mut data, &key, rename_key(value, "message", "cause")),
                _ => put(&mut data, &key, value),
            }
        }
        cause.text
    });
    for (key, value) in &unfinished.next {
        text.push_str(&format!("\n{key}: {value}"));
        put(&mut data, key, value.clone());
    }
    let mut message = Message::new(text, data);
    // The cause is sanitized already, and its fence must stay intact.
    if let Some(cause) = cause {
        message.text.push_str(&format!("\nCause: {cause}"));
    }
    message
}

fn exa(operation: &str, error: &ExaError, hints: &[String]) -> Message {
    let (code, name) = classify(error);
    let mut text = format!("`{operation}` failed. {}", error.trusted_text());
    for line in error.trusted_lines() {
        text.push_str(&format!("\n{line}"));
    }
    let is_api = matches!(error.kind, ExaErrorKind::Api(_));
    let message = if is_api {
        error.message.clone()
    } else {
        error.trusted_message()
    };
    let mut data = fields(code, name, &message);
    put(&mut data, "operation", json!(operation));
    put(&mut data, "whatToDo", json!(error.advice()));
    put(&mut data, "retryable", json!(error.is_retryable()));
    let seconds = |wait: std::time::Duration| json!(wait.as_secs_f64().ceil() as u64);
    let optional = [
        ("status", error.status.map(|status| json!(status))),
        ("tag", error.tag.as_ref().map(|tag| json!(tag))),
        ("requestId", error.request_id.as_ref().map(|id| json!(id))),
        ("retryAfter", error.retry_after.map(seconds)),
        ("detail", error.detail.as_deref().cloned()),
        (
            "said",
            error
                .untrusted_text()
                .filter(|_| !is_api)
                .map(|quote| json!(quote)),
        ),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            put(&mut data, key, value);
        }
    }
    let quotes = error.untrusted_fields();
    if !quotes.is_empty() {
        let names: Vec<&str> = quotes.iter().map(|(name, _)| *name).collect();
        put(&mut data, "untrusted", json!(names));
    }
    if let Some(replacement) = replacement(operation) {
        let line = format!("Exa has retired `{operation}`. Call {replacement} instead.");
        text.push_str(&format!("\n{line}"));
        put(&mut data, "replaceWith", replacement);
    }
    if code == code::INVALID_PARAMS && !hints.is_empty() {
        put(&mut data, "hints", json!(hints));
        common_issues(hints).for_each(|line| text.push_str(&format!("\n{line}")));
    }
    Message::new(text, data).with_quotes(&quotes)
}

/// Returns a call of the operation that replaces a retired one.
fn replacement(operation: &str) -> Option<Value> {
    let behavior = &operations::find(operation)?.behavior;
    let instead = operations::find(behavior.replaced_by.as_deref()?)?;
    Some(json!({"operation": instead.name, "args": operations::example(instead)}))
}

/// Replaces a name in a list of names.
fn rename_key(names: Value, from: &str, to: &str) -> Value {
    let renamed = |name: Value| if name == from { json!(to) } else { name };
    match names {
        Value::Array(names) => names.into_iter().map(renamed).collect(),
        other => other,
    }
}

/// Returns hints as lines of an error.
fn common_issues<T: std::fmt::Display>(hints: &[T]) -> impl Iterator<Item = String> {
    let heading = (!hints.is_empty()).then(|| "Common issues:".to_owned());
    let lines = hints.iter().map(|hint| format!("- {hint}"));
    heading.into_iter().chain(lines)
}

fn classify(error: &ExaError) -> (i64, &'static str) {
    let kind = match (error.kind, error.status) {
        // An error inside a stream is classified like a response with its status.
        (ExaErrorKind::Stream, Some(status)) => ExaErrorKind::Api(status),
        (kind, _) => kind,
    };
    match kind {
        ExaErrorKind::InvalidRequest => (code::INVALID_PARAMS, "INVALID_PARAMS"),
        ExaErrorKind::Config => (code::AUTHENTICATION, "AUTHENTICATION_ERROR"),
        ExaErrorKind::Api(400 | 422) => (code::INVALID_PARAMS, "INVALID_PARAMS"),
        ExaErrorKind::Api(401 | 403) => (code::AUTHENTICATION, "AUTHENTICATION_ERROR"),
        ExaErrorKind::Api(404) => (code::NOT_FOUND, "RESOURCE_NOT_FOUND"),
        ExaErrorKind::Api(429) => (code::RATE_LIMITED, "RATE_LIMITED"),
        _ => (code::API_ERROR, "API_ERROR"),
    }
}
