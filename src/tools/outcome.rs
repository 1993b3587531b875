//! What a tool call comes to.

use serde_json::{Map, Value, json};

use super::error::ToolError;
use super::error_messages;
use crate::operations::client::UrlRequest;
use crate::render::{Format, Link, Rendered};
use exa_mcp_model::CallStats;

/// The outcome of a tool call, before it is put into the form that clients see.
#[derive(Debug)]
pub enum ToolOutcome {
    /// The call was answered.
    Success(Rendered),
    /// The call failed.
    Failure(Box<ToolError>),
    /// The user must visit a page before the call can be made.
    InputRequired(UrlRequest),
}

/// What a step of a tool call comes to.
pub(super) type ToolResult<T = Rendered> = Result<T, Box<ToolError>>;

/// What a client sees of an outcome.
#[derive(Debug, Clone)]
pub struct ToolContent {
    /// For clients that read text.
    pub text: String,
    /// For clients that read data; the same information.
    pub structured: Map<String, Value>,
    /// Resources that hold more.
    pub links: Vec<Link>,
    /// The call failed.
    pub is_error: bool,
}

impl ToolOutcome {
    /// Returns the facts about the answer, if there is one.
    pub fn stats(&self) -> Option<&CallStats> {
        match self {
            Self::Success(rendered) => rendered.stats.as_ref(),
            Self::Failure(_) | Self::InputRequired(_) => None,
        }
    }

    /// Returns whether the call gave no answer.
    pub fn is_failure(&self) -> bool {
        !matches!(self, Self::Success(_))
    }

    /// Turns the outcome into what a client sees, with these warnings beside it.
    pub fn into_content(self, warnings: &[String]) -> ToolContent {
        let (mut content, format) = match self {
            Self::Success(rendered) => {
                let content = ToolContent {
                    text: rendered.text,
                    structured: rendered.structured,
                    links: rendered.links,
                    is_error: false,
                };
                (content, rendered.format)
            }
            Self::Failure(error) => (error_messages::render(&error), Format::Markdown),
            Self::InputRequired(visit) => {
                let error = ToolError::KeyRequired(visit);
                (error_messages::render(&error), Format::Markdown)
            }
        };
        if !warnings.is_empty() {
            content.warn(warnings, format);
        }
        content
    }
}

impl From<ToolResult> for ToolOutcome {
    fn from(result: ToolResult) -> Self {
        match result {
            Ok(rendered) => Self::Success(rendered),
            Err(error) => error.into(),
        }
    }
}

impl From<Box<ToolError>> for ToolOutcome {
    fn from(error: Box<ToolError>) -> Self {
        match *error {
            ToolError::KeyRequired(visit) => Self::InputRequired(visit),
            _ => Self::Failure(error),
        }
    }
}

impl ToolContent {
    fn warn(&mut self, warnings: &[String], format: Format) {
        add_warnings(&mut self.structured, warnings);
        match format {
            // A text that is JSON must stay JSON.
            Format::Json => self.text = serde_json::to_string(&self.structured).unwrap_or_default(),
            Format::Markdown => {
                for warning in warnings {
                    self.text.push_str(&format!("\n\nWarning: {warning}"));
                }
            }
        }
    }
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
