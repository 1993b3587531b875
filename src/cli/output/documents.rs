//! Entries one after another with their whole text, for people who read them.

use serde_json::Value;

use super::table::{plain, value_of};
use super::{Terminal, at, clean_line};
use exa_mcp_model::CommandPlan;
use exa_mcp_text::sanitize;

/// The longest line between two documents.
const MAX_LINE: u16 = 80;

/// Returns entries as documents: the first column is the title, the second the address, and the others are texts.
pub(super) fn render(entries: &[Value], plan: &CommandPlan, terminal: &Terminal) -> String {
    let line = "─".repeat(usize::from(terminal.width.min(MAX_LINE)));
    let separator = format!("\n\n{}\n\n", terminal.dim(&line));
    let documents: Vec<String> = entries
        .iter()
        .map(|entry| document(entry, plan, terminal))
        .collect();
    documents.join(&separator)
}

fn document(entry: &Value, plan: &CommandPlan, terminal: &Terminal) -> String {
    let mut columns = plan.columns.iter();
    let mut line = || {
        let column = columns.next()?;
        let text = clean_line(&plain(value_of(entry, column)?));
        Some((column, text))
    };
    let mut lines = Vec::new();
    if let Some((column, title)) = line() {
        let url = column.link.as_deref().and_then(|path| at(entry, path));
        let url = url.and_then(Value::as_str).unwrap_or_default();
        lines.push(terminal.link(&terminal.bold(&title), url));
    }
    if let Some((_, address)) = line() {
        lines.push(terminal.address(&address));
    }
    let texts = columns.filter_map(|column| Some((column, value_of(entry, column)?)));
    let texts: Vec<_> = texts.collect();
    let has_headings = texts.len() > 1;
    for (column, value) in texts {
        lines.push(String::new());
        if has_headings {
            lines.push(terminal.bold(&column.title));
        }
        lines.push(paragraphs(value));
    }
    lines.join("\n")
}

/// Returns a text, or a list of texts, without control characters.
fn paragraphs(value: &Value) -> String {
    let clean = |text: &str| sanitize::clean(text).trim().to_owned();
    match value {
        Value::String(text) => clean(text),
        Value::Array(list) => {
            let items = list.iter().map(|item| format!("- {}", clean(&plain(item))));
            let items: Vec<String> = items.collect();
            items.join("\n")
        }
        other => clean(&plain(other)),
    }
}

/// Returns the pages that could not be read, with the reasons.
pub(super) fn failures(response: &Value, terminal: &Terminal) -> String {
    let statuses = response.get("statuses").and_then(Value::as_array);
    let failed = statuses.into_iter().flatten().filter_map(|status| {
        let tag = at(status, "error.tag")?.as_str()?;
        let id = status.get("id")?.as_str()?;
        Some(format!(
            "{}: {}",
            terminal.address(&clean_line(id)),
            clean_line(tag)
        ))
    });
    let failed: Vec<String> = failed.collect();
    failed.join("\n")
}
