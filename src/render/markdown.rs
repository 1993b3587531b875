//! Results as Markdown.
//!
//! Whatever comes from the web is either on one line with its marks escaped, or in a block quote,
//! which holds together even what is itself broken Markdown.

use serde_json::{Map, Value};

use super::date;
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
    let others = map
        .iter()
        .filter(|(name, _)| !IN_HEADING.contains(&name.as_str()));
    for (name, value) in others {
        let told = match name.as_str() {
            "line" => format!(": {}", scalar(value)),
            name if is_date(name) => format!(" ({})", day(value)),
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
                Some(value) if is_date(column) => day(value),
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
    let fields = map
        .iter()
        .filter(|(name, _)| !IN_HEADING.contains(&name.as_str()));
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
            for (index, entry) in list.iter().enumerate() {
                text.push_str(&format!(
                    "\n{}{index}. {}",
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
    let mut quoted = String::with_capacity(text.len() + 16);
    for line in text.trim().lines() {
        quoted.push_str(&format!("\n{indent}> {line}"));
    }
    quoted
}

/// Short enough to stand in a row with others.
fn is_word(value: &Value) -> bool {
    is_short(value) && value.as_str().is_none_or(|text| text.len() <= 40)
}

fn is_short(value: &Value) -> bool {
    match value {
        Value::String(text) => text.chars().count() <= LONG && !text.contains('\n'),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => true,
    }
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

/// A link; an address that no browser should follow is only shown.
pub(super) fn link(title: &str, url: &str) -> String {
    let is_web = ["http://", "https://"].iter().any(|scheme| {
        url.get(..scheme.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(scheme))
    });
    if !is_web {
        return format!("{} ({})", inline(title), inline(url));
    }
    let mut target = String::with_capacity(url.len());
    for letter in url.chars() {
        match letter {
            '(' => target.push_str("%28"),
            ')' => target.push_str("%29"),
            '<' => target.push_str("%3C"),
            '>' => target.push_str("%3E"),
            '|' => target.push_str("%7C"),
            '\\' => target.push_str("%5C"),
            '`' => target.push_str("%60"),
            letter if letter.is_whitespace() => target.push_str("%20"),
            letter => target.push(letter),
        }
    }
    format!("[{}]({target})", inline(title))
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

/// A text on one line, with everything escaped that Markdown would take for a mark.
pub(super) fn inline(text: &str) -> String {
    let text = one_line(text);
    // Addresses and identifiers are shown as they are, so that they can be copied.
    let plain =
        |letter: char| letter.is_ascii_alphanumeric() || ":/.?=&%-_+,;@~#!$'".contains(letter);
    if text.chars().all(plain)
        && !text.starts_with(['#', '_', '-', '+', '~'])
        && !text.ends_with('_')
    {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    let letters: Vec<char> = text.chars().collect();
    let is_word = |at: Option<&char>| at.is_some_and(|letter| letter.is_alphanumeric());
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| letters.get(before));
        let after = letters.get(at + 1);
        let is_mark = match letter {
            '\\' | '`' | '*' | '[' | ']' | '<' | '|' => true,
            // An underline between letters is part of a name.
            '_' => !(is_word(before) && is_word(after)),
            '~' => before == Some(&'~') || after == Some(&'~'),
            '#' | '>' | '+' | '-' | '=' => before.is_none(),
            '!' => after == Some(&'['),
            _ => false,
        };
        if is_mark {
            escaped.push('\\');
        }
        escaped.push(*letter);
    }
    escaped
}

fn is_date(name: &str) -> bool {
    name.ends_with("Date") || name.ends_with("At")
}

/// The day of a moment.
fn day(value: &Value) -> String {
    inline(&date::day(value))
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
    fn marks_in_titles_are_escaped() {
        for (title, escaped) in [
            ("a | b", "a \\| b"),
            ("`code` and [link](x)", "\\`code\\` and \\[link\\](x)"),
            ("two\nlines", "two lines"),
            (
                "snake_case _em_ *strong*",
                "snake_case \\_em\\_ \\*strong\\*",
            ),
            ("# heading", "\\# heading"),
            ("<b>tag</b>", "\\<b>tag\\</b>"),
            ("C# and a-b", "C# and a-b"),
            ("https://a.example/x_y?z=1", "https://a.example/x_y?z=1"),
        ] {
            assert_eq!(inline(title), escaped);
        }
    }

    #[test]
    fn addresses_stay_inside_their_link() {
        assert_eq!(
            link("t", "https://a.example/a(b) c"),
            "[t](https://a.example/a%28b%29%20c)"
        );
        assert_eq!(link("t", "javascript:alert(1)"), "t (javascript:alert(1))");
    }

    #[test]
    fn a_summary_has_one_line_a_result() {
        let page = json!({"title": "T", "url": "https://a.example/", "publishedDate": "2024-01-02T00:00:00.000Z", "line": "Says\nthis"});
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
            "### 0. w\nid: w\n- **searches**:\n  0. id: s\n    - **progress**:\n      found: 1\n- **tags**: a, b"
        );
    }
}
