//! Prints responses: as JSON, JSON lines, CSV, Markdown, or a table for people.

mod cells;
mod documents;
mod table;
mod terminal;

use serde_json::{Map, Value};

use super::Failure;
use crate::render::{self, ContentLevel, Envelope, OutputFormat, RenderInput};
use exa_mcp_generated::response_fields::ENTRIES;
use exa_mcp_model::{CommandPlan, Operation};
use exa_mcp_text::sanitize;

pub(super) use terminal::{ColorChoice, Terminal};

/// A token budget that no response exceeds.
const NO_BUDGET: usize = 100_000_000;

/// The format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// A table for people
    Table,
    /// One JSON object
    Json,
    /// One JSON object per line and result
    Jsonl,
    /// Comma-separated values with a header row
    Csv,
    /// Markdown
    Markdown,
}

/// How a response is printed.
pub(super) struct OutputView<'a> {
    /// The requested format.
    pub(super) format: Option<Format>,
    /// The requested fields; empty for all.
    pub(super) fields: &'a [String],
    /// The command that was used, if it is a view of the operation.
    pub(super) plan: Option<&'static CommandPlan>,
    /// The operation.
    pub(super) operation: &'static Operation,
}

impl OutputView<'_> {
    /// Returns the format: what was requested, else JSON in a pipe and for `call`, else what people read.
    fn format(&self, terminal: &Terminal) -> Format {
        let by_default = || match self.plan {
            Some(plan) if plan.lines && self.fields.is_empty() => Format::Jsonl,
            Some(_) if terminal.is_terminal => Format::Table,
            _ => Format::Json,
        };
        self.format.unwrap_or_else(by_default)
    }
}

/// Returns the text of a response.
pub(super) fn render(
    response: &Value,
    view: &OutputView<'_>,
    terminal: &Terminal,
) -> Result<String, Failure> {
    let picked = pick(response, view.fields);
    let response = picked.as_ref().unwrap_or(response);
    Ok(match view.format(terminal) {
        Format::Json => pretty(response),
        Format::Jsonl => lines(response),
        Format::Csv => cells::csv(&rows(response), view.fields),
        Format::Markdown => markdown(response, view)?,
        Format::Table => table::render(response, view, terminal),
    })
}

/// Returns what follows the text of a response that was streamed.
pub(super) fn rest_of_stream(
    response: &Value,
    streamed: &str,
    view: &OutputView<'_>,
    terminal: &Terminal,
) -> String {
    table::rest_of_stream(response, streamed, view, terminal)
}

/// Returns JSON for people and programs.
pub(super) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Returns one line of JSON for each result.
fn lines(response: &Value) -> String {
    let rows = rows(response).into_iter();
    let lines: Vec<String> = rows.map(ToString::to_string).collect();
    lines.join("\n")
}

/// Returns the entries of a list, or the response itself.
fn rows(response: &Value) -> Vec<&Value> {
    match (ENTRIES.list(response), response) {
        (Some(entries), _) => entries.iter().collect(),
        (None, Value::Array(entries)) => entries.iter().collect(),
        (None, other) => vec![other],
    }
}

fn markdown(response: &Value, view: &OutputView<'_>) -> Result<String, Failure> {
    let mut response = response.clone();
    sanitize::clean_json(&mut response, usize::MAX);
    let input = RenderInput {
        operation: view.operation.name,
        envelope: Envelope::from(response),
        named: Vec::new(),
        tool_fields: Map::new(),
        cache_id: None,
        repeatable: false,
        cached: false,
        requested_level: None,
        is_expandable: false,
        titles: render::ColumnTitles::default(),
        corrections: Vec::new(),
        warnings: Vec::new(),
        sent_filters: Vec::new(),
        paging_stop: None,
    };
    let view = render::View {
        level: ContentLevel::Full,
        format: OutputFormat::Markdown,
        max_tokens: NO_BUDGET,
        ..render::View::default()
    };
    let rendered = render::render(input, &view).map_err(Failure::usage)?;
    Ok(rendered.text)
}

/// Returns the response with only these fields of each result; `None` if all are wanted.
fn pick(response: &Value, fields: &[String]) -> Option<Value> {
    if fields.is_empty() {
        return None;
    }
    let one = |entry: &Value| {
        let field = |name: &String| Some((name.clone(), at(entry, name)?.clone()));
        Value::Object(fields.iter().filter_map(field).collect())
    };
    let Some(entries) = ENTRIES.list(response) else {
        return Some(one(response));
    };
    let picked: Vec<Value> = entries.iter().map(one).collect();
    let is_entries = |value: &Value| value.as_array() == Some(entries);
    let Value::Object(map) = response else {
        return Some(picked.into());
    };
    let mut map = map.clone();
    if let Some(list) = map.values_mut().find(|value| is_entries(value)) {
        *list = picked.into();
    }
    Some(Value::Object(map))
}

/// Says which requested fields no result has, and which there are.
pub(super) fn unknown_fields(response: &Value, fields: &[String]) -> Option<String> {
    let rows = rows(response);
    let is_missing = |field: &&String| rows.iter().all(|row| at(row, field).is_none());
    let missing: Vec<&str> = fields
        .iter()
        .filter(is_missing)
        .map(String::as_str)
        .collect();
    if rows.is_empty() || missing.is_empty() {
        return None;
    }
    let mut known: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().filter_map(|row| row.as_object()).flatten() {
        if !known.contains(&name.as_str()) {
            known.push(name);
        }
    }
    Some(format!(
        "note: no result has the field `{}`; fields are {}",
        missing.join("`, `"),
        clean_line(&known.join(", "))
    ))
}

/// Returns the value at a dotted path; a number is the index of an entry. A name with dots is tried first.
pub(super) fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    if let Some(found) = value.get(path) {
        return Some(found);
    }
    path.split('.').try_fold(value, |value, name| match value {
        Value::Array(list) => list.get(name.parse::<usize>().ok()?),
        _ => value.get(name),
    })
}

/// Returns text of the web or of a person as one line without control characters.
pub(super) fn clean_line(text: &str) -> String {
    let clean = sanitize::clean(text);
    let words: Vec<&str> = clean.split_whitespace().collect();
    words.join(" ")
}

/// Returns a text as one word of a shell, in quotes where it needs them.
pub(super) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.,:/@%+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn quotes_words_for_a_shell() {
        assert_eq!(shell_word("ws_1"), "ws_1");
        assert_eq!(shell_word("a b"), "'a b'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
