//! Results as Markdown.
//!
//! Whatever comes from the web is either on one line with its marks escaped, or in a block quote,
//! which holds together even what is itself broken Markdown.

use serde_json::{Map, Value};

use super::inline::{inline, link};
use super::shape::Shaped;
use super::text::one_line;

/// A text longer than this gets a block of its own.
const LONG: usize = 160;

/// Fields that stand in the heading.
const IN_HEADING: [&str; 2] = ["title", "url"];

/// The results of a summary, one line each.
pub(super) fn rows(results: &[Shaped]) -> String {
    let has = |shaped: &Shaped, name: &str| shaped.value.get(name).is_some();
    let is_table = results.len() > 1
        && results
            .iter()
            .all(|result| has(result, "id") && !has(result, "url"));
    if is_table {
        return table(results);
    }
    let lines: Vec<String> = results.iter().map(row).collect();
    lines.join("\n")
}

/// One line: number, title, address, date, state, identifier, and what says most.
pub(super) fn row(result: &Shaped) -> String {
    let Value::Object(map) = &result.value else {
        return format!("{}. {}", result.index, scalar(&result.value));
    };
    let mut line = format!("{}. {}", result.index, heading(map));
    for (name, value) in map.iter().filter(|field| !is_in_heading(field)) {
        let told = match name.as_str() {
            "line" => format!(": {}", scalar(value)),
            name if is_date(name) => format!(" ({})", scalar(value)),
            "id" if !has_name(map) => continue,
            "id" => format!(" `{}`", code(value)),
            _ => format!(" · {}", scalar(value)),
        };
        line.push_str(&told);
    }
    line
}

/// Records as a table.
fn table(results: &[Shaped]) -> String {
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
    let mut lines = vec![
        format!("| # | {} |", columns.join(" | ")),
        format!("|---|{}", "---|".repeat(columns.len())),
    ];
    for result in results {
        let cells = columns
            .iter()
            .map(|column| match result.value.get(*column) {
                None => String::new(),
                Some(value) => scalar(value),
            });
        let cells: Vec<String> = cells.collect();
        lines.push(format!("| {} | {} |", result.index, cells.join(" | ")));
    }
    lines.join("\n")
}

/// A result with its fields.
pub(super) fn section(result: &Shaped) -> String {
    let Value::Object(map) = &result.value else {
        return format!("### {}\n{}", result.index, field_value(&result.value, 0));
    };
    let mut text = format!("### {}. {}", result.index, heading(map));
    let fields = map.iter().filter(|field| !is_in_heading(field));
    // An identifier that is the address says nothing more.
    let fields = fields.filter(|(name, value)| *name != "id" || map.get("url") != Some(value));
    push_fields(&mut text, fields, 0);
    text
}

/// Fields one below the other.
pub(super) fn fields(map: &Map<String, Value>) -> String {
    let mut text = String::new();
    push_fields(&mut text, map.iter(), 0);
    text.trim_start_matches('\n').to_owned()
}

/// Short fields share a line; long ones and nested ones follow.
fn push_fields<'a>(
    text: &mut String,
    fields: impl Iterator<Item = (&'a String, &'a Value)>,
    depth: usize,
) {
    let (short, long): (Vec<_>, Vec<_>) = fields.partition(|(_, value)| is_short(value));
    let indent = "  ".repeat(depth);
    if !short.is_empty() {
        let told: Vec<String> = short
            .iter()
            .map(|(name, value)| format!("{}: {}", inline(name), scalar(value)))
            .collect();
        text.push_str(&format!("\n{indent}{}", told.join(" · ")));
    }
    for (name, value) in long {
        text.push_str(&format!(
            "\n{indent}- **{}**:{}",
            inline(name),
            field_value(value, depth + 1)
        ));
    }
}

fn field_value(value: &Value, depth: usize) -> String {
    match value {
        Value::String(text) => quote(text, depth),
        Value::Array(list) if list.iter().all(is_word) => {
            let entries: Vec<String> = list.iter().map(scalar).collect();
            format!(" {}", entries.join(", "))
        }
        Value::Array(list) => {
            let mut text = String::new();
            for entry in list {
                text.push_str(&format!(
                    "\n{}- {}",
                    "  ".repeat(depth),
                    entry_text(entry, depth + 1)
                ));
            }
            text
        }
        Value::Object(map) => {
            let mut text = String::new();
            push_fields(&mut text, map.iter(), depth);
            text
        }
        short => format!(" {}", scalar(short)),
    }
}

fn entry_text(entry: &Value, depth: usize) -> String {
    match entry {
        Value::Object(map) => {
            let mut text = String::new();
            push_fields(&mut text, map.iter(), depth);
            text.trim_start().to_owned()
        }
        other if is_short(other) => scalar(other),
        other => field_value(other, depth).trim_start().to_owned(),
    }
}

/// A text as a block quote.
fn quote(text: &str, depth: usize) -> String {
    let indent = "  ".repeat(depth);
    // A carriage return ends a line as well, and with it the quote.
    let text = text.replace("\r\n", "\n");
    let lines = text.trim_end().split(['\n', '\r']);
    let mut quoted = String::with_capacity(text.len() + 16);
    for line in lines.skip_while(|line| line.trim().is_empty()) {
        quoted.push_str(&format!("\n{indent}> {line}"));
    }
    quoted
}

/// Short enough to stand in a row with others, and no sentence.
fn is_word(value: &Value) -> bool {
    let is_word = |text: &str| text.len() <= 40 && !text.contains(',') && !text.ends_with('.');
    is_short(value) && value.as_str().is_none_or(is_word)
}

fn is_short(value: &Value) -> bool {
    match value {
        Value::String(text) => text.chars().count() <= LONG && !text.contains(['\n', '\r']),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => true,
    }
}

/// Whether the heading shows a field whole.
fn is_in_heading((name, value): &(&String, &Value)) -> bool {
    IN_HEADING.contains(&name.as_str()) && value.is_string()
}

/// Whether there is a better name than the identifier.
fn has_name(map: &Map<String, Value>) -> bool {
    let is_told = |name: &&str| {
        map.get(*name)
            .and_then(Value::as_str)
            .is_some_and(|text| !text.is_empty())
    };
    IN_HEADING.iter().any(is_told)
}

/// Title and address as a link.
fn heading(map: &Map<String, Value>) -> String {
    let text = |name: &str| {
        map.get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    match (text("title"), text("url")) {
        (Some(title), Some(url)) => link(title, url),
        (None, Some(url)) => link(url, url),
        (Some(title), None) => inline(title),
        (None, None) => text("id").map_or_else(String::new, inline),
    }
}

/// A value on one line.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => inline(text),
        Value::Null => "–".to_owned(),
        other => inline(&other.to_string()),
    }
}

fn code(value: &Value) -> String {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    one_line(&text).replace('`', "'")
}

fn is_date(name: &str) -> bool {
    name.ends_with("Date") || name.ends_with("At")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shaped(index: usize, value: Value) -> Shaped {
        Shaped {
            index,
            value,
            cut: false,
        }
    }

    #[test]
    fn a_summary_has_one_line_a_result() {
        let page = json!({"title": "T", "url": "https://a.example/", "publishedDate": "2024-01-02", "line": "Says\nthis"});
        assert_eq!(
            row(&shaped(3, page)),
            "3. [T](https://a.example/) (2024-01-02): Says this"
        );
        let records = [
            shaped(0, json!({"id": "w1", "title": "a|b", "status": "idle"})),
            shaped(1, json!({"id": "w2", "status": "running"})),
        ];
        assert_eq!(
            rows(&records),
            "| # | id | title | status |\n|---|---|---|---|\n| 0 | w1 | a\\|b | idle |\n| 1 | w2 |  | running |"
        );
    }

    #[test]
    fn a_broken_text_stays_in_its_quote() {
        let page = json!({"title": "T", "url": "https://a.example/", "score": 0.5, "text": "```\nopen\n\n# not a heading"});
        assert_eq!(
            section(&shaped(0, page)),
            "### 0. [T](https://a.example/)\nscore: 0.5\n- **text**:\n  > ```\n  > open\n  > \n  > # not a heading"
        );
    }

    #[test]
    fn nested_fields_are_indented() {
        let record = json!({"id": "w", "searches": [{"id": "s", "progress": {"found": 1}}], "tags": ["a", "b"]});
        assert_eq!(
            section(&shaped(0, record)),
            "### 0. w\nid: w\n- **searches**:\n  - id: s\n    - **progress**:\n      found: 1\n- **tags**: a, b"
        );
    }
}
