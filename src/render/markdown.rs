//! Results as Markdown.
//!
//! Text from the web is shown as it is: on one line, in a code span if it contains Markdown, or in a block quote or
//! code block, which contain even broken Markdown.

use std::borrow::Cow;
use std::fmt::Write;

use serde_json::{Map, Value};

use super::inline::{is_literal, longest_run, push_cell, push_code, push_inline, push_link};
use super::path;
use super::shape::ShapedResult;
use super::text::one_line;

/// Maximum characters of a text on the line of its field; longer ones become block quotes.
const MAX_INLINE_CHARS: usize = 160;

/// Maximum words of a text with Markdown syntax on the line of its field.
const MAX_INLINE_WORDS: usize = 8;

/// From so many marks on, a code block is shorter than a block quote, which marks every line.
const MAX_QUOTE_MARKS: usize = 12;

/// Fields that the heading shows.
const HEADING_FIELDS: [&str; 2] = ["title", "url"];

/// Fields of a page that need no name if only one of them is shown.
const PASSAGE_FIELDS: [&str; 2] = ["highlights", "text"];

/// Appends the results of a summary, one line each.
pub(super) fn push_rows(out: &mut String, results: &[ShapedResult]) {
    let has = |shaped: &ShapedResult, name: &str| shaped.value.get(name).is_some();
    let is_table = results.len() > 1
        && results
            .iter()
            .all(|result| has(result, "id") && !has(result, "url"));
    if is_table {
        return push_table(out, results);
    }
    push_lines(out, results, push_row);
}

/// Appends the results with their fields.
pub(super) fn push_sections(out: &mut String, results: &[ShapedResult]) {
    push_lines(out, results, push_section);
}

fn push_lines(out: &mut String, results: &[ShapedResult], push: fn(&mut String, &ShapedResult)) {
    for (position, result) in results.iter().enumerate() {
        if position > 0 {
            out.push('\n');
        }
        push(out, result);
    }
}

/// Appends one line: number, title, URL, date, status, identifier and the summary line.
pub(super) fn push_row(out: &mut String, result: &ShapedResult) {
    push_number(out, "", result.index, ". ");
    let Value::Object(map) = &result.value else {
        return push_scalar(out, &result.value);
    };
    push_heading(out, map);
    for (name, value) in map.iter().filter(|field| !is_in_heading(field)) {
        match name.as_str() {
            "line" => push_between(out, ": ", value, ""),
            name if is_date(name) => push_between(out, " (", value, ")"),
            "id" if !has_name(map) => {}
            "id" => {
                out.push(' ');
                push_code(out, &id_text(value));
            }
            _ => push_between(out, " · ", value, ""),
        }
    }
}

/// Appends the number of a result; the first one is 1.
pub(super) fn push_number(out: &mut String, before: &str, index: usize, after: &str) {
    // Writing into a string cannot fail.
    let _ = write!(out, "{before}{}{after}", index + 1);
}

fn push_between(out: &mut String, before: &str, value: &Value, after: &str) {
    out.push_str(before);
    push_scalar(out, value);
    out.push_str(after);
}

/// Appends records as a table.
fn push_table(out: &mut String, results: &[ShapedResult]) {
    let mut columns: Vec<&str> = Vec::new();
    for name in results
        .iter()
        .filter_map(|result| result.value.as_object())
        .flat_map(Map::keys)
    {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    out.push_str(&format!("| # | {} |\n", columns.join(" | ")));
    out.push_str(&format!("|---|{}", "---|".repeat(columns.len())));
    for result in results {
        push_number(out, "\n| ", result.index, " |");
        for column in &columns {
            out.push(' ');
            match result.value.get(*column) {
                Some(Value::String(text)) => push_cell(out, text),
                Some(value) => push_scalar(out, value),
                None => {}
            }
            out.push_str(" |");
        }
    }
}

/// Appends a result with its fields.
pub(super) fn push_section(out: &mut String, result: &ShapedResult) {
    push_number(out, "### ", result.index, "");
    let Value::Object(map) = &result.value else {
        out.push('\n');
        return push_field_value(out, &result.value, 0);
    };
    let mut heading = String::from(". ");
    push_heading(&mut heading, map);
    out.push_str(if heading == ". " { "" } else { &heading });
    push_body(out, map, push_text_block);
}

/// Appends the fields of a result below its heading.
pub(super) fn push_body(
    out: &mut String,
    map: &Map<String, Value>,
    push_text: impl Fn(&mut String, &str),
) {
    let fields = map.iter().filter(|field| !is_in_heading(field));
    // An identifier that equals the URL is redundant.
    let fields = fields.filter(|(name, value)| *name != "id" || map.get("url") != Some(value));
    let passage = only_passage(map);
    let is_passage = |name: &str| passage.as_ref().is_some_and(|(own, _)| *own == name);
    push_fields(out, fields.filter(|(name, _)| !is_passage(name)), 0);
    if let Some((_, text)) = &passage {
        push_text(out, text);
    }
}

/// Returns the name and the text of the passages of a page, if there is only one such field.
fn only_passage(map: &Map<String, Value>) -> Option<(&'static str, Cow<'_, str>)> {
    path::field(map, "url").filter(|url| url.is_string())?;
    let mut present = PASSAGE_FIELDS
        .into_iter()
        .filter_map(|name| Some((name, path::field(map, name)?)));
    let (name, value) = present.next()?;
    if present.next().is_some() {
        return None;
    }
    let text = match value {
        Value::String(text) => Cow::Borrowed(text.as_str()),
        Value::Array(list) => {
            let parts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
            Cow::Owned(join_passages(&parts?))
        }
        _ => return None,
    };
    (!text.trim().is_empty()).then_some((name, text))
}

/// Joins passages: in one line, as search pages show them, or each on its own if one of them has several lines.
fn join_passages(passages: &[&str]) -> String {
    let has_lines = |text: &&str| text.trim().contains(['\n', '\r']);
    if passages.iter().any(has_lines) {
        return passages.join("\n");
    }
    let trimmed: Vec<&str> = passages.iter().map(|text| text.trim()).collect();
    trimmed.join(" … ")
}

/// Appends the pages that could not be read.
pub(super) fn push_statuses(out: &mut String, statuses: &[Value]) {
    for status in statuses {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str("Failed: ");
        let id = path::get(status, "id").and_then(Value::as_str);
        push_inline(out, id.unwrap_or("?"));
        let fields = status.as_object().into_iter().flatten();
        for (name, value) in fields.filter(|(name, _)| *name != "id") {
            out.push_str(" · ");
            if name != "error" && name != "status" {
                push_inline(out, name);
                out.push_str(": ");
            }
            push_scalar(out, value);
        }
    }
}

/// Appends fields one below the other.
pub(super) fn push_all(out: &mut String, map: &Map<String, Value>) {
    push_trimmed(out, |out| push_fields(out, map.iter(), 0));
}

/// Appends a text without its leading white space.
fn push_trimmed(out: &mut String, push: impl FnOnce(&mut String)) {
    let start = out.len();
    push(out);
    let added = out.get(start..).unwrap_or_default();
    let blank = added.len() - added.trim_start().len();
    out.drain(start..start + blank);
}

/// Appends fields: short ones share a line, long and nested ones follow.
fn push_fields<'a>(
    out: &mut String,
    fields: impl Iterator<Item = (&'a String, &'a Value)> + Clone,
    depth: usize,
) {
    let is_short_field = |(_, value): &(&String, &Value)| is_short(value);
    let mut has_fields = false;
    for (name, value) in fields.clone().filter(is_short_field) {
        if has_fields {
            out.push_str(" · ");
        } else {
            push_line(out, depth);
        }
        has_fields = true;
        if !is_self_explaining(name, value) {
            push_inline(out, name);
            out.push_str(if name == "score" { " " } else { ": " });
        }
        push_scalar(out, value);
    }
    for (name, value) in fields.filter(|field| !is_short_field(field)) {
        push_line(out, depth);
        out.push_str("- **");
        push_inline(out, name);
        out.push_str("**:");
        push_field_value(out, value, depth + 1);
    }
}

/// Starts an indented line.
fn push_line(out: &mut String, depth: usize) {
    out.push('\n');
    (0..depth).for_each(|_| out.push_str("  "));
}

fn push_field_value(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::String(text) => push_quote(out, text, depth),
        Value::Array(list) if list.iter().all(is_word) => {
            out.push(' ');
            for (position, entry) in list.iter().enumerate() {
                push_between(out, if position > 0 { ", " } else { "" }, entry, "");
            }
        }
        Value::Array(list) => {
            for entry in list {
                push_line(out, depth);
                out.push_str("- ");
                push_entry(out, entry, depth + 1);
            }
        }
        Value::Object(map) => push_fields(out, map.iter(), depth),
        short => push_between(out, " ", short, ""),
    }
}

fn push_entry(out: &mut String, entry: &Value, depth: usize) {
    match entry {
        Value::Object(map) => push_trimmed(out, |out| push_fields(out, map.iter(), depth)),
        other if is_short(other) => push_scalar(out, other),
        other => push_trimmed(out, |out| push_field_value(out, other, depth)),
    }
}

fn push_text_block(out: &mut String, text: &str) {
    push_block(out, text, MAX_QUOTE_MARKS);
}

/// Appends a text as a block quote or, if it would have more than `max_marks` marks, as a code block.
pub(super) fn push_block(out: &mut String, text: &str, max_marks: usize) {
    let text = with_line_feeds(text);
    let marks: usize = text
        .lines()
        .map(|line| if line.trim().is_empty() { 2 } else { 1 })
        .sum();
    if marks <= max_marks {
        return push_quote(out, &text, 0);
    }
    let delimiter = "`".repeat(longest_run(&text, '`').max(2) + 1);
    for part in [&delimiter, text.trim_matches('\n').trim_end(), &delimiter] {
        out.push('\n');
        out.push_str(part);
    }
}

/// Returns a text without carriage returns, which end a line as well.
pub(super) fn with_line_feeds(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Appends a text as a block quote.
fn push_quote(out: &mut String, text: &str, depth: usize) {
    let text = with_line_feeds(text);
    let lines = text.trim_end().split('\n');
    for line in lines.skip_while(|line| line.trim().is_empty()) {
        push_line(out, depth);
        out.push_str("> ");
        out.push_str(line);
    }
}

/// Returns whether a value is short enough for a comma-separated list, and not a sentence.
fn is_word(value: &Value) -> bool {
    let is_word = |text: &str| text.len() <= 40 && !text.contains(',') && !text.ends_with('.');
    is_short(value) && value.as_str().is_none_or(is_word)
}

fn is_short(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            // A character has at most four bytes, so most texts need no counting.
            let fits = text.len() <= MAX_INLINE_CHARS
                || text.len() <= 4 * MAX_INLINE_CHARS && text.chars().count() <= MAX_INLINE_CHARS;
            fits && !text.bytes().any(|byte| matches!(byte, b'\n' | b'\r'))
                && (is_literal(text) || text.split_whitespace().count() <= MAX_INLINE_WORDS)
        }
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => true,
    }
}

/// Returns whether the heading shows a field.
fn is_in_heading((name, value): &(&String, &Value)) -> bool {
    HEADING_FIELDS.contains(&name.as_str()) && value.is_string()
}

/// Returns whether the heading has a better name than the identifier.
fn has_name(map: &Map<String, Value>) -> bool {
    let is_present = |name: &&str| {
        map.get(*name)
            .and_then(Value::as_str)
            .is_some_and(|text| !text.is_empty())
    };
    HEADING_FIELDS.iter().any(is_present)
}

/// Appends title and URL as a link.
fn push_heading(out: &mut String, map: &Map<String, Value>) {
    let text = |name: &str| {
        path::field(map, name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    match (text("title"), text("url")) {
        (Some(title), Some(url)) => push_link(out, title, url),
        (None, Some(url)) => push_link(out, url, url),
        (Some(title), None) => push_inline(out, title),
        (None, None) => push_inline(out, text("id").unwrap_or_default()),
    }
}

/// Appends a value on one line.
fn push_scalar(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => push_inline(out, text),
        Value::Null => out.push('–'),
        other => push_inline(out, &other.to_string()),
    }
}

fn id_text(value: &Value) -> String {
    match value {
        Value::String(text) => one_line(text).into_owned(),
        other => other.to_string(),
    }
}

/// Returns whether a value needs no name: the author, or a day.
fn is_self_explaining(name: &str, value: &Value) -> bool {
    let Value::String(text) = value else {
        return false;
    };
    name == "author" || is_date(name) && text.len() == "2024-05-31".len()
}

fn is_date(name: &str) -> bool {
    name.ends_with("Date") || name.ends_with("At")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shaped(index: usize, value: Value) -> ShapedResult {
        ShapedResult {
            index,
            value,
            ..ShapedResult::default()
        }
    }

    fn row(result: &ShapedResult) -> String {
        let mut row = String::new();
        push_row(&mut row, result);
        row
    }

    fn section(result: &ShapedResult) -> String {
        let mut section = String::new();
        push_section(&mut section, result);
        section
    }

    #[test]
    fn results_without_a_name_have_a_number_as_heading() {
        let unnamed = section(&shaped(0, json!({"triggered": true})));
        assert_eq!(unnamed, "### 1\ntriggered: true");
        let named = section(&shaped(1, json!({"id": "w2", "done": true})));
        assert!(named.starts_with("### 2. w2\n"), "{named}");
    }

    #[test]
    fn writes_one_line_per_result_in_a_summary() {
        let page = json!({"title": "T", "url": "https://a.example/", "publishedDate": "2024-01-02", "line": "Says\nthis"});
        assert_eq!(
            row(&shaped(3, page)),
            "4. [T](https://a.example/) (2024-01-02): Says this"
        );
        let records = [
            shaped(0, json!({"id": "w1", "title": "a|b", "status": "idle"})),
            shaped(1, json!({"id": "w2", "status": "running"})),
        ];
        let mut rows = String::new();
        push_rows(&mut rows, &records);
        assert_eq!(
            rows,
            "| # | id | title | status |\n|---|---|---|---|\n| 1 | w1 | `a\\|b` | idle |\n| 2 | w2 |  | running |"
        );
    }

    #[test]
    fn contains_broken_markdown_in_a_quote() {
        let page = json!({"title": "T", "url": "https://a.example/", "score": 0.5, "text": "```\nopen\n\n# not a heading"});
        assert_eq!(
            section(&shaped(0, page)),
            "### 1. [T](https://a.example/)\nscore 0.5\n> ```\n> open\n> \n> # not a heading"
        );
    }

    #[test]
    fn writes_long_texts_as_code() {
        let text = "one\n\n```\ntwo\n```\n".repeat(5);
        let page =
            json!({"title": "T", "url": "https://a.example/", "author": "Ann", "text": text});
        let written = section(&shaped(0, page));
        let expected = format!("### 1. [T](https://a.example/)\nAnn\n````\n{text}````");
        assert_eq!(written, expected);
    }

    #[test]
    fn writes_passages_without_a_name() {
        let page = json!({"title": "T", "url": "https://a.example/", "publishedDate": "2024-05-31",
            "author": "Ann", "score": 0.93, "highlights": ["*One*.", "Two."]});
        assert_eq!(
            section(&shaped(0, page.clone())),
            "### 1. [T](https://a.example/)\n2024-05-31 · Ann · score 0.93\n> *One*. … Two."
        );
        let code = json!({"title": "T", "url": "https://a.example/", "highlights": ["a\nb", "c"]});
        assert!(section(&shaped(0, code)).ends_with("\n> a\n> b\n> c"));
        let both = json!({"title": "T", "url": "https://a.example/", "highlights": ["One."], "text": "Two."});
        assert_eq!(
            section(&shaped(0, both)),
            "### 1. [T](https://a.example/)\ntext: Two.\n- **highlights**:\n  - One."
        );
    }

    #[test]
    fn indents_nested_fields() {
        let record = json!({"id": "w", "searches": [{"id": "s", "progress": {"found": 1}}], "tags": ["a", "b"]});
        assert_eq!(
            section(&shaped(0, record)),
            "### 1. w\nid: w\n- **searches**:\n  - id: s\n    - **progress**:\n      found: 1\n- **tags**: a, b"
        );
    }
}
