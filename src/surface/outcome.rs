//! What a tool call comes to: text and structured content that say the same.

use chrono::{DateTime, SecondsFormat};
use serde_json::{Map, Value, json};

use super::cache::Limits;
use crate::accounts::{Holder, KeyFault, NoKey, OverLimit};
use crate::exa::{ExaError, ExaErrorKind};
use crate::operations::client::Visit;
use crate::operations::validation::ValidationError;
use crate::render::{Link, Rendered, ViewError};
use exa_mcp_text::is_name;
use exa_mcp_text::sanitize::{Fence, clean, clean_json, neutral, neutral_json};

/// The result of a tool call.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// For clients that read text.
    pub text: String,
    /// For clients that read data; the same information.
    pub structured: Map<String, Value>,
    /// Resources that hold more.
    pub links: Vec<Link>,
    /// The call failed.
    pub is_error: bool,
}

impl From<Rendered> for Outcome {
    fn from(rendered: Rendered) -> Self {
        Self {
            text: rendered.text,
            structured: rendered.structured,
            links: rendered.links,
            is_error: false,
        }
    }
}

/// Characters of a single text of an error.
const LONGEST_ERROR: usize = 100_000;

/// Codes of failed calls, as JSON-RPC errors would carry them.
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

/// An answer as an object; structured content must be one.
pub(super) fn as_object(answer: Value) -> Map<String, Value> {
    match answer {
        Value::Object(map) => map,
        other => Map::from_iter([("result".to_owned(), other)]),
    }
}

/// Adds a field to an object.
pub(super) fn put(object: &mut Value, name: &str, value: Value) {
    if let Value::Object(map) = object {
        map.insert(name.to_owned(), value);
    }
}

impl Outcome {
    /// A successful call; mends stand beside the answer.
    pub(super) fn success(mut structured: Map<String, Value>, mended: Vec<String>) -> Self {
        if !mended.is_empty() {
            structured.insert("mended".to_owned(), json!(mended));
        }
        Self {
            text: serde_json::to_string(&structured).unwrap_or_default(),
            structured,
            links: Vec::new(),
            is_error: false,
        }
    }

    /// The same, with one line for each entry of a list.
    pub(super) fn in_lines(mut self) -> Self {
        self.text = serde_json::to_string_pretty(&self.structured).unwrap_or_default();
        self
    }

    /// A call that was not made because of its arguments.
    pub(super) fn refused(operation: &str, refused: &ValidationError) -> Self {
        let mut lines = vec![format!(
            "`{operation}` was not called; its arguments do not fit:"
        )];
        for problem in &refused.problems {
            lines.push(format!("- {}: {}", problem.place, problem.text));
        }
        lines.push(format!("A minimal valid call: {}", refused.example));
        lines.extend(common_issues(&refused.hints));
        let problems: Vec<Value> = refused
            .problems
            .iter()
            .map(|problem| json!({"field": problem.place, "problem": problem.text}))
            .collect();
        let mut error = json!({
            "code": code::INVALID_PARAMS,
            "name": "INVALID_PARAMS",
            "message": format!("`{operation}` was not called; its arguments do not fit"),
            "operation": operation,
            "problems": problems,
            "example": refused.example,
        });
        if !refused.hints.is_empty() {
            put(&mut error, "hints", json!(refused.hints));
        }
        if !refused.missing.is_empty() {
            lines.push(format!("input_required: {}", refused.missing.join(", ")));
            put(&mut error, "reason", json!("input_required"));
            put(&mut error, "missing", json!(refused.missing));
        }
        Self::failure(lines.join("\n"), error)
    }

    /// A call that was made, but whose answer has no such part.
    pub(super) fn not_in_answer(
        operation: &str,
        error: &ViewError,
        cache_id: Option<&str>,
    ) -> Self {
        let message = format!("`{operation}` was called and answered, but {error}");
        let advice = match cache_id {
            Some(id) => format!(
                "call with cache_id {id} and an index that there is, or without index, which costs nothing"
            ),
            None => "the answer was not kept; call again without index".to_owned(),
        };
        let error = json!({
            "code": code::INVALID_PARAMS,
            "name": "INVALID_PARAMS",
            "message": message,
            "operation": operation,
            "problems": [{"field": "index", "problem": error.to_string()}],
            "cacheId": cache_id,
            "whatToDo": advice,
        });
        Self::failure(format!("{message}.\nindex: {advice}."), error)
    }

    /// A call that cannot be made for a reason that is told in words.
    pub(super) fn impossible(message: &str, more: Value) -> Self {
        let mut error = json!({
            "code": code::INVALID_PARAMS, "name": "INVALID_PARAMS", "message": message,
        });
        for (key, value) in as_object(more) {
            put(&mut error, &key, value);
        }
        Self::failure(message.to_owned(), error)
    }

    /// A kept answer that is not there, or not the caller's.
    pub(super) fn not_kept(id: &str, limits: Limits) -> Self {
        let shown: String = id.chars().take(64).collect();
        let why = match limits.keeps_nothing() {
            true => "This server keeps no answers".to_owned(),
            false => {
                let seconds = limits.ttl.as_secs();
                let unit = if seconds == 1 { "second" } else { "seconds" };
                format!("Answers are kept for {seconds} {unit} and belong to whoever asked")
            }
        };
        let message = format!(
            "There is no kept answer `{shown}`. {why}. Make the original call again without cache_id."
        );
        let error = json!({
            "code": code::NOT_FOUND, "name": "RESOURCE_NOT_FOUND", "message": message, "cacheId": shown,
        });
        Self::failure(message, error)
    }

    /// This server could not do its own part.
    pub(super) fn internal(message: &str) -> Self {
        let error = json!({
            "code": code::INTERNAL, "name": "INTERNAL_ERROR", "message": message,
        });
        Self::failure(message.to_owned(), error)
    }

    /// Nobody wants to know any more.
    pub(super) fn unwanted() -> Self {
        Self::internal("The call was given up, because its task was cancelled.")
    }

    /// It is not known whether a call arrived, and making it again might do twice what was wanted once.
    /// `since` is when it was made at the earliest, in milliseconds since 1970; `list` is the call that shows
    /// what there is.
    pub(super) fn unconfirmed(
        operation: &str,
        (what, why): (&str, &str),
        since: u64,
        list: Option<Value>,
    ) -> Self {
        let moment = i64::try_from(since).ok();
        let moment = moment.and_then(DateTime::from_timestamp_millis);
        let moment = moment.unwrap_or_default();
        let moment = moment.to_rfc3339_opts(SecondsFormat::Secs, true);
        let how = match list {
            Some(_) => "with checkWith",
            None => "at Exa",
        };
        let message = format!(
            "{what} `{operation}`, and it cannot be decided whether it arrived: {why}. \
             What it starts may exist at Exa and may have been paid for, so it is not called again. Look {how} for \
             what was made since {moment}, and call `{operation}` again only if it is not there."
        );
        let mut error = json!({
            "code": code::API_ERROR, "name": "UNCONFIRMED", "message": message, "operation": operation,
            "since": moment,
        });
        let mut text = message;
        if let Some(list) = list {
            text.push_str(&format!("\ncheckWith: {list}"));
            put(&mut error, "checkWith", list);
        }
        Self::failure(text, error)
    }

    /// Work was started whose end did not come in time, or cannot be seen; `next` are the calls to go on
    /// with.
    pub(super) fn unfinished(
        operation: &str,
        status: Option<&str>,
        cause: Option<Self>,
        next: Map<String, Value>,
    ) -> Self {
        let status = status.filter(|status| is_name(status)).unwrap_or("unknown");
        let (name, why) = match cause {
            None => (
                "UNFINISHED",
                "its time was over before the work ended; it goes on at Exa",
            ),
            Some(_) => ("LOST", "the work cannot be looked at any more"),
        };
        let message = format!("`{operation}` was started, but {why}. Last known state: {status}.");
        let mut error = json!({
            "code": code::API_ERROR,
            "name": name,
            "message": message,
            "operation": operation,
            "lastStatus": status,
        });
        let mut text = message;
        let mut below = None;
        if let Some(mut cause) = cause {
            below = Some(cause.text);
            let why = cause.structured.shift_remove("error").unwrap_or_default();
            for (key, value) in as_object(why) {
                match key.as_str() {
                    "name" | "operation" => {}
                    "message" => put(&mut error, "cause", value),
                    "untrusted" => put(&mut error, &key, renamed(value, "message", "cause")),
                    _ => put(&mut error, &key, value),
                }
            }
        }
        for (key, value) in next {
            text.push_str(&format!("\n{key}: {value}"));
            put(&mut error, &key, value);
        }
        let mut outcome = Self::failure(text, error);
        // It is safe already, and its marks must stay marks.
        if let Some(below) = below {
            outcome.text.push_str(&format!("\nCause: {below}"));
        }
        outcome
    }

    /// No key is set.
    pub(super) fn no_key(holder: Holder) -> Self {
        let message = holder.advice();
        Self::failure(
            message.to_owned(),
            json!({"code": code::AUTHENTICATION, "name": "AUTHENTICATION_ERROR", "message": message}),
        )
    }

    /// No key is set, and asking for one gave none.
    pub(super) fn key_not_given(why: &str) -> Self {
        let mut outcome = Self::no_key(Holder::Own);
        outcome.text.push_str(&format!(" {why}"));
        if let Some(error) = outcome.structured.get_mut("error") {
            put(error, "message", json!(outcome.text));
        }
        outcome
    }

    /// The user must visit a page before the call can be made.
    pub(super) fn visit_first(visit: &Visit) -> Self {
        let message = format!(
            "The call waits for the Exa API key. The user enters it at {} (elicitation {}; on this computer, open for \
             five minutes); then make the call again.",
            visit.url, visit.id
        );
        let error = json!({
            "code": code::URL_ELICITATION_REQUIRED,
            "name": "URL_ELICITATION_REQUIRED",
            "message": message,
            "url": visit.url,
            "elicitationId": visit.id,
        });
        Self::failure(message, error)
    }

    /// The user did not agree.
    pub(super) fn not_confirmed(operation: &str, why: &str) -> Self {
        let message = format!(
            "Nothing was deleted: `{operation}` needs the consent of the user, and {why}. Do not try again unless the \
             user wants it."
        );
        let error = json!({
            "code": code::CANCELLED, "name": "OPERATION_CANCELLED", "message": message, "operation": operation,
        });
        Self::failure(message, error)
    }

    /// A limit of the caller is reached; the call was not made.
    pub(crate) fn over_limit(over: &OverLimit) -> Self {
        let mut error = json!({
            "code": code::RATE_LIMITED,
            "name": "LIMIT_REACHED",
            "message": over.message,
        });
        for (name, value) in over.detail() {
            put(&mut error, name, value);
        }
        Self::failure(over.message.clone(), error)
    }

    /// The caller may change nothing.
    pub(super) fn read_only(operation: &str) -> Self {
        let message = format!(
            "`{operation}` was not called: it changes something, and this token may only read."
        );
        let error = json!({
            "code": code::AUTHENTICATION, "name": "READ_ONLY", "message": message, "operation": operation,
        });
        Self::failure(message, error)
    }

    /// Adds warnings, in the text as well as for code.
    pub(crate) fn warn(&mut self, warnings: &[String]) {
        if warnings.is_empty() {
            return;
        }
        add_warnings(&mut self.structured, warnings);
        // A text that is JSON must stay JSON.
        match serde_json::from_str(&self.text) {
            Ok(Value::Object(mut told)) => {
                add_warnings(&mut told, warnings);
                self.text = serde_json::to_string(&told).unwrap_or_default();
            }
            _ => {
                for warning in warnings {
                    self.text.push_str(&format!("\n\nWarning: {warning}"));
                }
            }
        }
    }

    /// Exa turned every key away.
    pub(super) fn keys_out(out: &NoKey) -> Self {
        let (code, name) = match out {
            NoKey::CoolingDown {
                fault: Some(KeyFault::Rejected),
                ..
            }
            | NoKey::Empty(_) => (code::AUTHENTICATION, "AUTHENTICATION_ERROR"),
            NoKey::CoolingDown { .. } => (code::RATE_LIMITED, "RATE_LIMITED"),
        };
        let message = format!("The call was not made: {out}.");
        let mut error = json!({"code": code, "name": name, "message": message});
        if let Some(wait) = out.seconds() {
            put(&mut error, "retryAfter", json!(wait));
        }
        Self::failure(message, error)
    }

    /// The API refused the call, or could not be reached.
    pub(super) fn exa(operation: &str, error: &ExaError, hints: &[String]) -> Self {
        let (code, name) = class(error);
        let mut text = format!("`{operation}` failed. {}", error.in_own_words());
        for line in error.known_lines() {
            text.push_str(&format!("\n{line}"));
        }
        let is_api = matches!(error.kind, ExaErrorKind::Api(_));
        let message = if is_api {
            error.message.clone()
        } else {
            error.own_message()
        };
        let mut data = json!({
            "code": code,
            "name": name,
            "message": message,
            "operation": operation,
            "whatToDo": error.advice(),
            "retryable": error.is_retryable(),
        });
        let optional = [
            ("status", error.status.map(|status| json!(status))),
            ("tag", error.tag.as_ref().map(|tag| json!(tag))),
            ("requestId", error.request_id.as_ref().map(|id| json!(id))),
            (
                "retryAfter",
                error
                    .retry_after
                    .map(|wait| json!(wait.as_secs_f64().ceil() as u64)),
            ),
            (
                "detail",
                error.detail.as_ref().map(|detail| (**detail).clone()),
            ),
        ];
        for (key, value) in optional {
            if let Some(value) = value {
                put(&mut data, key, value);
            }
        }
        let said = error.quoted().filter(|_| !is_api);
        if let Some(said) = said {
            put(&mut data, "said", json!(said));
        }
        let quotes = error.quotes();
        if !quotes.is_empty() {
            let names: Vec<&str> = quotes.iter().map(|(name, _)| *name).collect();
            put(&mut data, "untrusted", json!(names));
        }
        if code == code::INVALID_PARAMS && !hints.is_empty() {
            put(&mut data, "hints", json!(hints));
            common_issues(hints).for_each(|line| text.push_str(&format!("\n{line}")));
        }
        Self::failure(text, data).quoting(&quotes)
    }

    /// The same with words of others below ours, between marks.
    fn quoting(mut self, quotes: &[(&str, String)]) -> Self {
        if quotes.is_empty() {
            return self;
        }
        let fence = Fence::new();
        let lines: Vec<String> = quotes
            .iter()
            .map(|(name, text)| format!("{name}: {text}"))
            .collect();
        let quoted = clean(&lines.join("\n")).into_owned();
        let parts = ["\nWhat others said of it:\n\n", &fence.begin(), "\n\n"];
        parts.iter().for_each(|part| self.text.push_str(part));
        self.text.push_str(&fence.neutral(&quoted));
        self.text.push_str("\n\n");
        self.text.push_str(&fence.end());
        self
    }

    fn failure(text: String, mut error: Value) -> Self {
        // What an API says of a failure may come from anywhere.
        clean_json(&mut error, LONGEST_ERROR);
        neutral_json(&mut error);
        Self {
            text: neutral(&clean(&text)).into_owned(),
            structured: Map::from_iter([("error".to_owned(), error)]),
            links: Vec::new(),
            is_error: true,
        }
    }
}

/// A list of names in which one has become another.
fn renamed(names: Value, from: &str, to: &str) -> Value {
    let renamed = |name: Value| if name == from { json!(to) } else { name };
    match names {
        Value::Array(names) => names.into_iter().map(renamed).collect(),
        other => other,
    }
}

/// What often goes wrong, as lines of an error.
fn common_issues<T: std::fmt::Display>(hints: &[T]) -> impl Iterator<Item = String> {
    let heading = (!hints.is_empty()).then(|| "Common issues:".to_owned());
    let lines = hints.iter().map(|hint| format!("- {hint}"));
    heading.into_iter().chain(lines)
}

/// Adds warnings to those that an answer has.
fn add_warnings(answer: &mut Map<String, Value>, warnings: &[String]) {
    let metadata = answer.entry("metadata").or_insert_with(|| json!({}));
    if let Value::Object(metadata) = metadata {
        let known = metadata.entry("warnings").or_insert_with(|| json!([]));
        if let Value::Array(known) = known {
            known.extend(warnings.iter().map(|warning| json!(warning)));
        }
    }
}

fn class(error: &ExaError) -> (i64, &'static str) {
    let kind = match (error.kind, error.status) {
        // A failure that a stream tells is classed as an answer with that failure would be.
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
