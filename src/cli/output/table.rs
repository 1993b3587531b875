//! Tables that fit the terminal, and texts with their sources.

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;

use super::{OutputView, Terminal, at, clean_line, documents};
use crate::operations::price;
use exa_mcp_generated::response_fields::ENTRIES;
use exa_mcp_model::{CommandColumn, CommandPlan};
use exa_mcp_text::sanitize;

/// Invisible marks around text that becomes a link. Sanitized text has neither.
const LINK_START: char = '\u{2063}';
const LINK_END: char = '\u{2064}';

/// What stands for the rest of a cell.
const ELLIPSIS: &str = "…";

/// The most columns that are chosen for a list without a plan.
const MAX_COLUMNS: usize = 6;

/// The most lines of one cell.
const MAX_CELL_LINES: u16 = 4;

/// The most characters of one cell, before it is fitted.
const MAX_CELL: usize = 600;

/// Returns a response as a table, or as the text that a person wants to read.
pub(super) fn render(response: &Value, view: &OutputView<'_>, terminal: &Terminal) -> String {
    let documents = view
        .plan
        .filter(|it| it.documents && view.fields.is_empty());
    let body = match (text_of(response, view), ENTRIES.list(response), documents) {
        (Some(text), _, _) => with_sources(&text, response, view, terminal),
        (None, Some(entries), Some(plan)) => documents::render(entries, plan, terminal),
        (None, Some(entries), None) => list(entries, view, terminal),
        (None, None, _) => record(response, view, terminal),
    };
    let failures = documents::failures(response, terminal);
    let footer = footer(response, terminal);
    [body, failures, footer]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// Returns what follows the text of a response that was streamed.
pub(super) fn rest_of_stream(
    response: &Value,
    streamed: &str,
    view: &OutputView<'_>,
    terminal: &Terminal,
) -> String {
    let text = text_of(response, view).unwrap_or_default();
    // Only the end of what arrived at once is shown.
    let rest = match text.strip_prefix(streamed) {
        Some(rest) => rest.to_owned(),
        None => format!("\n\n{text}"),
    };
    let sources = sources(response, view, terminal);
    let footer = footer(response, terminal);
    let mut whole = rest;
    for part in [sources, footer]
        .into_iter()
        .filter(|part| !part.is_empty())
    {
        whole.push_str("\n\n");
        whole.push_str(&part);
    }
    whole
}

/// Returns the text that a person wants to read.
fn text_of(response: &Value, view: &OutputView<'_>) -> Option<String> {
    let mut paths = view.plan.filter(|_| view.fields.is_empty())?.text.iter();
    let text = paths.find_map(|path| match at(response, path)? {
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        other => serde_json::to_string_pretty(other).ok(),
    })?;
    Some(sanitize::clean(&text).into_owned())
}

fn with_sources(
    text: &str,
    response: &Value,
    view: &OutputView<'_>,
    terminal: &Terminal,
) -> String {
    let sources = sources(response, view, terminal);
    if sources.is_empty() {
        text.to_owned()
    } else {
        format!("{text}\n\n{sources}")
    }
}

/// Returns the numbered sources of a text.
fn sources(response: &Value, view: &OutputView<'_>, terminal: &Terminal) -> String {
    let path = view.plan.and_then(|plan| plan.sources.as_deref());
    let list = path.and_then(|path| at(response, path)?.as_array());
    let lines = list.into_iter().flatten().zip(1..).map(|(source, number)| {
        let field = |name: &str| {
            let text = source.get(name).and_then(Value::as_str);
            clean_line(text.unwrap_or_default())
        };
        let (title, url) = (field("title"), field("url"));
        let title = terminal.link(&title, &url);
        format!("{number}. {title} {}", terminal.address(&url))
    });
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("{}\n{}", terminal.bold("Sources"), lines.join("\n"))
}

/// Returns the number of results, the cost, and how to get more.
fn footer(response: &Value, terminal: &Terminal) -> String {
    let mut parts = Vec::new();
    if let Some(entries) = ENTRIES.list(response) {
        let unit = if entries.len() == 1 {
            "result"
        } else {
            "results"
        };
        parts.push(format!("{} {unit}", entries.len()));
    }
    if let Some(cost) = price::actual(response) {
        parts.push(cost.to_string());
    }
    let more = exa_mcp_generated::response_fields::NEXT_CURSOR.get(response);
    if more.is_some() {
        parts.push("more with --all".to_owned());
    }
    terminal.dim(&parts.join(" · "))
}

/// Returns a list as a table.
fn list(entries: &[Value], view: &OutputView<'_>, terminal: &Terminal) -> String {
    let columns = columns(entries, view);
    if entries.is_empty() || columns.is_empty() {
        return String::new();
    }
    let mut table = new_table(terminal);
    table.set_header(columns.iter().map(|column| column.title.clone()));
    for entry in entries {
        table.add_row(columns.iter().map(|column| cell(entry, column)));
    }
    for row in table.row_iter_mut() {
        row.max_height(usize::from(MAX_CELL_LINES));
    }
    let links = columns.iter().position(|column| column.link.is_some());
    let urls = links.and_then(|index| columns.get(index)?.link.clone());
    let urls = entries.iter().map(|entry| {
        let url = urls.as_deref().and_then(|path| at(entry, path)?.as_str());
        url.unwrap_or_default().to_owned()
    });
    decorate(&table.to_string(), urls, terminal)
}

/// Returns an object with one line for each field, or for each column of the plan.
fn record(response: &Value, view: &OutputView<'_>, terminal: &Terminal) -> String {
    let Value::Object(fields) = response else {
        return clean_line(&plain(response));
    };
    let plan = view.plan.filter(|_| view.fields.is_empty());
    let columns = plan.map(|plan| plan.columns.as_slice()).unwrap_or_default();
    let planned = columns.iter().filter_map(|column| {
        let value = value_of(response, column)?;
        Some((column.title.as_str(), value))
    });
    let mut rows: Vec<(&str, &Value)> = planned.collect();
    if rows.is_empty() {
        let is_shown =
            |value: &Value| !value.is_null() && value.as_array().is_none_or(|it| !it.is_empty());
        let fields = fields.iter().filter(|(_, value)| is_shown(value));
        rows = fields.map(|(name, value)| (name.as_str(), value)).collect();
    }
    let mut table = new_table(terminal);
    for (name, value) in rows {
        let text: String = clean_line(&plain(value)).chars().take(MAX_CELL).collect();
        table.add_row([clean_line(name), text]);
    }
    trim_lines(&table.to_string())
}

fn new_table(terminal: &Terminal) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(terminal.width)
        .set_truncation_indicator(ELLIPSIS);
    table
}

/// Returns the columns: of the requested fields, of the plan, or of the fields that all entries share.
fn columns(entries: &[Value], view: &OutputView<'_>) -> Vec<CommandColumn> {
    let named = |name: &String| CommandColumn {
        title: name.clone(),
        paths: vec![name.clone()],
        link: None,
    };
    if !view.fields.is_empty() {
        return view.fields.iter().map(named).collect();
    }
    let planned = view.plan.map(|plan: &CommandPlan| plan.columns.clone());
    let planned = planned.unwrap_or_default();
    if !planned.is_empty() {
        let is_used = |column: &CommandColumn| {
            let has = |entry: &Value| value_of(entry, column).is_some();
            entries.iter().any(has)
        };
        return planned.into_iter().filter(is_used).collect();
    }
    let mut names: Vec<String> = Vec::new();
    for entry in entries {
        for (name, value) in entry.as_object().into_iter().flatten() {
            let is_plain = !value.is_object() && !value.is_array() && !value.is_null();
            let is_marker = name == "object" || name == "sandbox";
            if is_plain && !is_marker && !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    names.truncate(MAX_COLUMNS);
    names.iter().map(named).collect()
}

pub(super) fn value_of<'v>(entry: &'v Value, column: &CommandColumn) -> Option<&'v Value> {
    let mut found = column.paths.iter().filter_map(|path| at(entry, path));
    found.find(|value| !value.is_null() && value.as_str() != Some(""))
}

fn cell(entry: &Value, column: &CommandColumn) -> String {
    let text = value_of(entry, column).map(plain).unwrap_or_default();
    let text: String = clean_line(&text).chars().take(MAX_CELL).collect();
    match &column.link {
        Some(_) if !text.is_empty() => format!("{LINK_START}{text}{LINK_END}"),
        _ => text,
    }
}

/// Returns a value as text; times lose what nobody reads.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => match text.get(10..11) {
            Some("T") if text.ends_with('Z') && text.len() <= 24 => {
                let text = text.replace("T00:00:00.000Z", "").replace('T', " ");
                text.split('.').next().unwrap_or_default().to_owned()
            }
            _ => text.clone(),
        },
        Value::Array(list) if list.iter().all(|entry| !entry.is_object()) => {
            let texts: Vec<String> = list.iter().map(plain).collect();
            texts.join("; ")
        }
        other => other.to_string(),
    }
}

fn trim_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

/// Adds colors and links to a table whose layout is done. The linked column is the first one.
fn decorate(text: &str, mut urls: impl Iterator<Item = String>, terminal: &Terminal) -> String {
    let header = text.lines().next().unwrap_or_default();
    let width = first_column_width(header);
    let mut url = String::new();
    let mut is_open = false;
    let lines = text.lines().enumerate().map(|(index, line)| {
        let line = line.trim_end();
        if index == 0 {
            return terminal.bold(line);
        }
        if line.contains(LINK_START) {
            url = urls.next().unwrap_or_default();
            is_open = true;
        }
        if !is_open {
            return line.to_owned();
        }
        let (start, end) = (line.find(LINK_START), line.find(LINK_END));
        is_open = end.is_none();
        let plain = line.replace([LINK_START, LINK_END], "");
        let split = match (start, end) {
            // The text ends at its mark; the marks themselves are gone.
            (Some(_), Some(end)) => end - LINK_START.len_utf8(),
            _ => byte_index(&plain, width),
        };
        let (cell, rest) = plain.split_at_checked(split).unwrap_or((&plain, ""));
        let words = cell.trim();
        let indent = cell.len() - cell.trim_start().len();
        let padding = cell.get(indent + words.len()..).unwrap_or_default();
        let indent = cell.get(..indent).unwrap_or_default();
        format!("{indent}{}{padding}{rest}", terminal.link(words, &url))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the width of the first column: where the second heading starts.
fn first_column_width(header: &str) -> usize {
    let mut was_heading = false;
    let mut blanks = 0;
    for (index, c) in header.chars().enumerate() {
        if c == ' ' {
            blanks += 1;
            continue;
        }
        if was_heading && blanks > 1 {
            return index;
        }
        was_heading = true;
        blanks = 0;
    }
    usize::MAX
}

/// Returns the index of the byte at which a character starts, or the length of the text.
fn byte_index(text: &str, character: usize) -> usize {
    let found = text.char_indices().nth(character);
    found.map_or(text.len(), |(index, _)| index)
}
