//! The outcome of a tool call.

use serde_json::{Map, Value, json};

use super::error::ToolError;
use super::error_messages;
use super::failure::{ErrorForm, FailedCall};
use crate::operations::interaction::UrlRequest;
use crate::render::{self, OutputFormat, Rendered, ResourceLink};
use exa_mcp_model::{CallStats, JobEnd};

/// The outcome of a tool call, before it is converted for the client.
#[derive(Debug)]
pub enum ToolOutcome {
    /// The call succeeded.
    Success(Rendered),
    /// The call failed.
    Failure(FailedCall),
    /// The user must visit a page before the call can be made.
    InputRequired(UrlRequest),
}

/// The result of a step of a tool call.
pub(super) type ToolResult<T = Rendered> = Result<T, Box<ToolError>>;

/// The content that a client receives.
#[derive(Debug, Clone)]
pub struct ToolContent {
    /// The text.
    pub text: String,
    /// The structured content, with the same information.
    pub structured: Map<String, Value>,
    /// Links to resources with more.
    pub links: Vec<ResourceLink>,
    /// The call failed.
    pub is_error: bool,
}

impl ToolOutcome {
    /// Converts the result of a call whose errors have this form.
    pub(super) fn from_result(result: ToolResult, form: ErrorForm) -> Self {
        match result {
            Ok(rendered) => Self::Success(rendered),
            Err(error) => match *error {
                ToolError::KeyRequired(request) => Self::InputRequired(request),
                _ => Self::Failure(FailedCall::new(error, form)),
            },
        }
    }

    /// Returns the statistics of a successful call.
    pub fn stats(&self) -> Option<&CallStats> {
        match self {
            Self::Success(rendered) => rendered.stats.as_ref(),
            Self::Failure(_) | Self::InputRequired(_) => None,
        }
    }

    /// Returns the name of the format of the text.
    pub fn format(&self) -> Option<&'static str> {
        match self {
            Self::Success(rendered) => Some(rendered.format.name()),
            Self::Failure(failed) => Some(failed.format().name()),
            Self::InputRequired(_) => None,
        }
    }

    /// Returns how the job behind the call ended, if it did.
    pub fn job_end(&self) -> Option<&JobEnd> {
        match self {
            Self::Success(rendered) => rendered.job_end.as_ref(),
            Self::Failure(_) | Self::InputRequired(_) => None,
        }
    }

    /// Returns whether the call did not succeed.
    pub fn is_failure(&self) -> bool {
        !matches!(self, Self::Success(_))
    }

    /// Converts the outcome for the client and adds warnings.
    pub fn into_content(self, warnings: &[String]) -> ToolContent {
        let (mut content, format) = match self {
            Self::Success(rendered) => {
                let is_error = rendered.job_end.is_some_and(|end| end.is_failure);
                let content = ToolContent {
                    text: rendered.text,
                    structured: rendered.structured,
                    links: rendered.links,
                    is_error,
                };
                (content, rendered.format)
            }
            Self::Failure(failed) => (failed.content(), failed.format()),
            Self::InputRequired(request) => {
                let error = ToolError::KeyRequired(request);
                (error_messages::render(&error), OutputFormat::Markdown)
            }
        };
        if !warnings.is_empty() {
            content.warn(warnings, format);
        }
        // JSON text has them already; Markdown only shows the new name.
        render::add_deprecated_keys(&mut content.structured);
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
            ToolError::KeyRequired(request) => Self::InputRequired(request),
            _ => Self::Failure(error.into()),
        }
    }
}

impl ToolContent {
    fn warn(&mut self, warnings: &[String], format: OutputFormat) {
        add_warnings(&mut self.structured, warnings);
        match format {
            // JSON text must stay valid JSON.
            OutputFormat::Json => {
                self.text = serde_json::to_string(&self.structured).unwrap_or_default()
            }
            OutputFormat::Markdown | OutputFormat::Csv | OutputFormat::Table => {
                for warning in warnings {
                    self.text.push_str(&format!("\n\nWarning: {warning}"));
                }
            }
        }
    }
}

/// Adds warnings to the metadata of a result.
fn add_warnings(result: &mut Map<String, Value>, warnings: &[String]) {
    // Nothing is added to what the operator has switched off.
    if result.is_empty() {
        return;
    }
    let metadata = result.entry("metadata").or_insert_with(|| json!({}));
    if let Value::Object(metadata) = metadata {
        let present = metadata.entry("warnings").or_insert_with(|| json!([]));
        if let Value::Array(present) = present {
            present.extend(warnings.iter().map(|warning| json!(warning)));
        }
    }
}

/// Converts a value to an object, as structured content requires.
pub(super) fn as_object(value: Value) -> Map<String, Value> {
    match value {
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
