//! The tool that keeps a note.

use serde_json::{Map, Value, json};

use super::context::ToolContext;
use super::error::ToolError;
use super::executor::ToolExecutor;
use super::notes::{Draft, LARGEST_NOTE, Note, NoteError};
use super::outcome::{ToolResult, as_object, put};
use super::registry::Tool;
use crate::operations::validation;
use crate::render::{Format, Level, Link, Rendered};
use exa_mcp_model::{CallStats, MicroDollars};
use exa_mcp_text::tokens;

/// A valid call of the tool.
pub(super) struct NoteCall {
    tool: String,
    draft: Draft,
    corrections: Vec<String>,
}

/// Validates the arguments of the tool.
pub(super) fn parse(tool: &Tool, arguments: Map<String, Value>) -> ToolResult<NoteCall> {
    let subject = validation::ArgumentSpec::new(tool.schema());
    let checked = validation::validate(&subject, arguments.into());
    let checked = checked.map_err(|refused| ToolError::invalid(tool.name(), refused))?;
    // What a model writes down may come from a web page, with what pages hide in their text.
    let mut arguments = Value::Object(checked.arguments);
    exa_mcp_text::sanitize::clean_json(&mut arguments, LARGEST_NOTE);
    let draft = serde_json::from_value(arguments)
        .map_err(|error| ToolError::impossible(error.to_string(), json!({})))?;
    Ok(NoteCall {
        tool: tool.name().to_owned(),
        draft,
        corrections: checked.corrections,
    })
}

/// Keeps a note.
pub(super) async fn run(tools: &ToolExecutor, context: &ToolContext, call: NoteCall) -> ToolResult {
    let resources = tools.resources();
    let off = || ToolError::Internal("Notes are not enabled on this server.".to_owned());
    let notes = resources.notes().ok_or_else(off)?;
    let note = resources.add_note(context.owner.identity(), notes, call.draft);
    let note = note.await.map_err(|error| failed(&error))?;
    Ok(shown(&call.tool, &note, &call.corrections))
}

/// What the caller is told; the same in words, as data and as a link.
fn shown(operation: &str, note: &Note, mended: &[String]) -> Rendered {
    let (title, uri) = (&note.draft.title, note.address().to_string());
    let mut text = format!(
        "CachedResult the note `{}`: {title}\nRead it at {uri}",
        note.id
    );
    for mend in mended {
        text.push_str(&format!("\nMended: {mend}"));
    }
    let stats = stats(operation, &text);
    let mut metadata = json!({
        "operation": operation,
        "totalResults": 1,
        "returned": 1,
        "tokenEstimate": stats.tokens,
        "contentLevel": Level::Full.name(),
    });
    if !mended.is_empty() {
        put(&mut metadata, "mended", json!(mended));
    }
    let result = json!({"id": note.id, "uri": uri, "title": title});
    Rendered {
        text,
        structured: as_object(json!({"metadata": metadata, "results": [result]})),
        links: vec![Link {
            uri,
            name: title.clone(),
            description: "The note".to_owned(),
            mime_type: super::resources::PLAIN,
            size: Some(note.text().len()),
        }],
        format: Format::Markdown,
        stats: Some(stats),
    }
}

/// Facts about the answer of a tool that calls no operation.
pub(super) fn stats(tool: &str, text: &str) -> CallStats {
    CallStats {
        operation: tool.to_owned(),
        tokens: u64::try_from(tokens::estimate(text)).unwrap_or(u64::MAX),
        cost: MicroDollars::ZERO,
        cached: false,
    }
}

fn failed(error: &NoteError) -> Box<ToolError> {
    let message = format!("The note was not kept: {error}.");
    if error.is_callers() {
        ToolError::impossible(message, json!({}))
    } else {
        Box::new(ToolError::Internal(message))
    }
}
