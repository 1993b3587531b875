//! Failed calls, and the form in which their callers expect errors.

use serde_json::{Map, Value, json};

use super::error::ToolError;
use super::error_messages;
use super::outcome::{ToolContent, put};
use super::registry::Tool;
use crate::render::{OutputFormat, StructuredContent};
use exa_mcp_model::ToolPlan;

/// A failed call.
#[derive(Debug)]
pub struct FailedCall {
    pub(super) error: Box<ToolError>,
    form: ErrorForm,
}

/// The form in which a caller expects errors.
#[derive(Debug, Clone, Default)]
pub(super) struct ErrorForm {
    is_json: bool,
    structured: StructuredContent,
    /// The names of operations in the toolhost that was called.
    names: Option<Vec<(String, String)>>,
}

impl From<Box<ToolError>> for FailedCall {
    fn from(error: Box<ToolError>) -> Self {
        let form = ErrorForm::default();
        Self { error, form }
    }
}

impl FailedCall {
    pub(super) fn new(error: Box<ToolError>, form: ErrorForm) -> Self {
        Self { error, form }
    }

    /// Returns the format of the text.
    pub(super) fn format(&self) -> OutputFormat {
        if self.form.is_json {
            OutputFormat::Json
        } else {
            OutputFormat::Markdown
        }
    }

    /// Returns the content that a client receives.
    pub(super) fn content(&self) -> ToolContent {
        let mut content = error_messages::render(&self.error);
        if let Some(names) = &self.form.names {
            use_toolhost_names(&mut content, names);
            add_details(&mut content);
        }
        if self.form.is_json {
            content.text = serde_json::to_string(&content.structured).unwrap_or_default();
        }
        // JSON text is the structured content.
        let mode = match self.form.structured {
            StructuredContent::Compact if self.form.is_json => StructuredContent::Full,
            mode => mode,
        };
        let structured = std::mem::take(&mut content.structured);
        content.structured = mode.apply_to_error(structured, &content.text);
        content
    }
}

impl ErrorForm {
    /// Returns the form that a call of a tool expects.
    pub(super) fn new(tool: Option<&Tool>, arguments: &Map<String, Value>) -> Self {
        let entries = match tool.map(|tool| &tool.plan) {
            Some(ToolPlan::Toolhost { entries }) => Some(entries),
            _ => None,
        };
        let called = arguments.get("operation").and_then(Value::as_str);
        let names = entries.map(|entries| {
            // Several entries may call the same operation; the called one comes first.
            let (mut first, others): (Vec<_>, Vec<_>) = entries
                .iter()
                .filter_map(|entry| Some((entry.operation.clone()?, entry.name.clone())))
                .partition(|(_, name)| Some(name.as_str()) == called);
            first.extend(others);
            first
        });
        let default = if names.is_some() {
            OutputFormat::Json
        } else {
            OutputFormat::Markdown
        };
        let format = requested_format(arguments).unwrap_or(default);
        Self {
            is_json: format == OutputFormat::Json,
            structured: StructuredContent::default(),
            names,
        }
    }

    /// Sets how much structured content errors have.
    pub(super) fn with_mode(self, structured: StructuredContent) -> Self {
        Self { structured, ..self }
    }
}

/// Returns the format that a call asks for, beside or inside its arguments.
fn requested_format(arguments: &Map<String, Value>) -> Option<OutputFormat> {
    let own = |arguments: &Map<String, Value>| {
        let given = arguments.iter().find_map(|(name, value)| {
            super::discovery::is_same_name(name, "output_format")
                .then(|| value.as_str())
                .flatten()
        });
        OutputFormat::from_name(&given?.to_ascii_lowercase())
    };
    own(arguments).or_else(|| {
        let inner = ["params", "args", "arguments"].into_iter();
        inner
            .filter_map(|name| arguments.get(name)?.as_object())
            .find_map(own)
    })
}

/// Replaces names of operations with those of the toolhost.
fn use_toolhost_names(content: &mut ToolContent, names: &[(String, String)]) {
    for (operation, own) in names.iter().filter(|(operation, own)| operation != own) {
        let (old, new) = (format!("`{operation}`"), format!("`{own}`"));
        content.text = content.text.replace(&old, &new);
        for value in content.structured.values_mut() {
            rename(value, operation, own, (&old, &new));
        }
    }
}

fn rename(value: &mut Value, operation: &str, own: &str, quoted: (&str, &str)) {
    match value {
        Value::String(text) if text == operation => own.clone_into(text),
        Value::String(text) if text.contains(quoted.0) => *text = text.replace(quoted.0, quoted.1),
        Value::Array(list) => list
            .iter_mut()
            .for_each(|value| rename(value, operation, own, quoted)),
        Value::Object(map) => map
            .values_mut()
            .for_each(|value| rename(value, operation, own, quoted)),
        _ => {}
    }
}

/// Adds `details` and `hint`: what is wrong, and what to do.
fn add_details(content: &mut ToolContent) {
    let Some(error) = content.structured.get_mut("error") else {
        return;
    };
    let details = ["problems", "detail", "cause"]
        .iter()
        .find_map(|name| error.get(*name));
    let status = || {
        let fields = ["status", "tag", "requestId", "operation"].iter();
        let known = fields.filter_map(|name| Some(((*name).to_owned(), error.get(*name)?.clone())));
        json!(known.collect::<Map<_, _>>())
    };
    if let Some(details) = details.cloned().or_else(|| Some(status())) {
        put(error, "details", details);
    }
    let text = |name: &str| error.get(name).and_then(Value::as_str).map(str::to_owned);
    let example = || {
        let example = error.get("example")?;
        Some(format!("A minimal valid call: {example}"))
    };
    let hint = text("instruction")
        .or_else(|| text("whatToDo"))
        .or_else(example);
    if let Some(hint) = hint {
        if !content.text.contains(&hint) {
            content.text.push_str(&format!("\nHint: {hint}"));
        }
        put(error, "hint", json!(hint));
    }
}
