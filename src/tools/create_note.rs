//! The tool that creates a note.

use serde_json::{Map, Value, json};

use super::context::ToolContext;
use super::error::ToolError;
use super::executor::ToolExecutor;
use super::notes::{MAX_NOTE_BYTES, Note, NoteDraft, NoteError};
use super::options::Options;
use super::outcome::{ToolResult, as_object, put};
use super::registry::Tool;
use crate::operations::validation;
use crate::render::{ContentLevel, OutputFormat, Rendered, ResourceLink};
use exa_mcp_model::{CallStats, MicroDollars};
use exa_mcp_text::tokens;

/// A valid call of the tool.
pub(super) struct NoteCall {
    tool: String,
    draft: NoteDraft,
    wants_json: bool,
    corrections: Vec<String>,
}

/// Validates the arguments of the tool.
pub(super) fn parse(tool: &Tool, mut arguments: Map<String, Value>) -> ToolResult<NoteCall> {
    let mut corrections = Vec::new();
    let own = ["title", "content", "sourceUrls"];
    let options = Options::take(&mut arguments, |name| own.contains(&name), &mut corrections);
    let options = options
        .check(&mut corrections)
        .map_err(|error| ToolError::invalid(tool.name(), *error))?;
    let subject = validation::ArgumentSpec::new(tool.schema());
    let checked = validation::validate(&subject, arguments.into());
    let checked = checked.map_err(|error| ToolError::invalid(tool.name(), error))?;
    // The model may copy from a web page, with hidden characters.
    let mut arguments = Value::Object(checked.arguments);
    exa_mcp_text::sanitize::clean_json(&mut arguments, MAX_NOTE_BYTES);
    let draft = serde_json::from_value(arguments)
        .map_err(|error| ToolError::invalid_request(error.to_string(), json!({})))?;
    Ok(NoteCall {
        tool: tool.name().to_owned(),
        draft,
        wants_json: options.wants_json(),
        corrections: corrections.into_iter().chain(checked.corrections).collect(),
    })
}

/// Creates a note.
pub(super) async fn run(tools: &ToolExecutor, context: &ToolContext, call: NoteCall) -> ToolResult {
    let resources = tools.resources();
    let off = || ToolError::Internal("Notes are not enabled on this server.".to_owned());
    let notes = resources.notes().ok_or_else(off)?;
    let note = resources.add_note(context.owner.identity(), notes, call.draft);
    let note = note.await.map_err(|error| failed(&error))?;
    let mut rendered = render_note(&call.tool, &note, &call.corrections);
    if call.wants_json {
        rendered.format = OutputFormat::Json;
        rendered.text = serde_json::to_string(&rendered.structured).unwrap_or_default();
    }
    Ok(rendered)
}

/// Renders the new note as text, structured content and link.
fn render_note(operation: &str, note: &Note, corrections: &[String]) -> Rendered {
    let (title, uri) = (&note.draft.title, note.uri().to_string());
    let mut text = format!("Created note {}: {title}\nRead it at {uri}", note.id);
    for correction in corrections {
        text.push_str(&format!("\nCorrected: {correction}"));
    }
    let stats = stats(operation, &text);
    let mut metadata = json!({
        "operation": operation,
        "totalResults": 1,
        "returned": 1,
        "tokenEstimate": stats.tokens,
        "contentLevel": ContentLevel::Full.name(),
    });
    if !corrections.is_empty() {
        put(&mut metadata, "corrections", json!(corrections));
    }
    let result = json!({"id": note.id, "uri": uri, "title": title});
    Rendered {
        text,
        structured: as_object(json!({"metadata": metadata, "results": [result]})),
        links: vec![ResourceLink {
            uri,
            name: title.clone(),
            description: "The note".to_owned(),
            mime_type: super::resources::PLAIN,
            size: Some(note.draft.content.len()),
        }],
        format: OutputFormat::Markdown,
        stats: Some(stats),
        job_end: None,
    }
}

/// Returns the statistics of a tool that calls no operation.
pub(super) fn stats(tool: &str, text: &str) -> CallStats {
    CallStats {
        operation: tool.to_owned(),
        tokens: u64::try_from(tokens::estimate(text)).unwrap_or(u64::MAX),
        cost: MicroDollars::ZERO,
        cached: false,
    }
}

fn failed(error: &NoteError) -> Box<ToolError> {
    let message = format!("The note was not saved: {error}.");
    if error.is_caller_error() {
        ToolError::invalid_request(message, json!({}))
    } else {
        Box::new(ToolError::Internal(message))
    }
}
