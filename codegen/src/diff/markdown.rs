//! Escapes and shortens text from a spec for one line of Markdown.

use serde_json::Value;

/// Maximum number of characters shown of a text or value.
const MAX_LENGTH: usize = 120;
/// Number of common characters shown before the first difference.
const CONTEXT: usize = 40;

/// Formats a name or value as code. Text that would break a code span is escaped instead.
pub(super) fn code(text: &str) -> String {
    let line = one_line(text);
    if line.contains(['`', '|']) {
        escape(&line, "\\`|*_[]<>#~")
    } else if line.is_empty() {
        "(empty)".to_owned()
    } else {
        format!("`{line}`")
    }
}

/// Escapes Markdown syntax in prose.
pub(super) fn prose(text: &str) -> String {
    escape(&one_line(text), "\\`|*[]<>")
}

/// Formats a JSON value. Numbers, booleans and null are not formatted as code.
pub(super) fn value(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => code(&shorten(&one_line(text))),
        Value::Array(_) | Value::Object(_) => code(&shorten(&value.to_string())),
    }
}

/// Formats a JSON value that may be missing.
pub(super) fn optional(found: Option<&Value>) -> String {
    found.map_or_else(|| "none".to_owned(), value)
}

/// Formats values as a comma-separated list.
pub(super) fn list<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    let shown: Vec<String> = values.into_iter().map(value).collect();
    shown.join(", ")
}

/// Describes how a text changed, with excerpts of both versions around the first difference.
pub(super) fn text_change(label: &str, old: &str, new: &str) -> String {
    let (before, after) = (one_line(old), one_line(new));
    match (before.is_empty(), after.is_empty()) {
        (true, _) => format!("{label} added: “{}”", prose(&shorten(&after))),
        (_, true) => format!("{label} removed: “{}”", prose(&shorten(&before))),
        _ if before == after => format!("{label}: only whitespace changed"),
        _ => {
            let (before, after) = excerpts(&before, &after);
            format!("{label} “{}” → “{}”", prose(&before), prose(&after))
        }
    }
}

/// Escapes what would break a line in text that should already be escaped: line breaks, pipes and
/// unpaired backticks.
pub(super) fn escape_stray(text: &str) -> String {
    let line = one_line(text);
    let odd_backticks = count_unescaped(&line, '`') % 2 == 1;
    let mut escaped = false;
    let mut result = String::with_capacity(line.len());
    for char in line.chars() {
        if !escaped && (char == '|' || (char == '`' && odd_backticks)) {
            result.push('\\');
        }
        escaped = char == '\\' && !escaped;
        result.push(char);
    }
    result
}

/// Truncates a text after [`MAX_LENGTH`] characters.
fn shorten(text: &str) -> String {
    if text.chars().count() <= MAX_LENGTH {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(MAX_LENGTH - 1).collect();
    cut.push('…');
    cut
}

/// Truncates two texts so that the first difference stays visible even after a long common start.
fn excerpts(old: &str, new: &str) -> (String, String) {
    let common = old
        .chars()
        .zip(new.chars())
        .take_while(|(left, right)| left == right)
        .count();
    let fits = |text: &str| text.chars().count() <= MAX_LENGTH;
    if (fits(old) && fits(new)) || common <= CONTEXT {
        return (shorten(old), shorten(new));
    }
    let cut = |text: &str| {
        let tail: String = text.chars().skip(common - CONTEXT).collect();
        shorten(&format!("…{tail}"))
    };
    (cut(old), cut(new))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn escape(text: &str, special: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for char in text.chars() {
        if special.contains(char) {
            result.push('\\');
        }
        result.push(char);
    }
    result
}

/// Counts the occurrences of a character that are not escaped by a backslash.
fn count_unescaped(text: &str, wanted: char) -> usize {
    let mut escaped = false;
    let mut count = 0;
    for char in text.chars() {
        if char == wanted && !escaped {
            count += 1;
        }
        escaped = char == '\\' && !escaped;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::{MAX_LENGTH, code, escape_stray, prose, text_change, value};
    use serde_json::json;

    #[test]
    fn escapes_pipes_and_backticks() {
        assert_eq!(code("limit"), "`limit`");
        assert_eq!(code("^(a|b)*$"), "^(a\\|b)\\*$");
        assert_eq!(code(""), "(empty)");
        assert_eq!(prose("use `a` | b\nor <c>"), "use \\`a\\` \\| b or \\<c\\>");
        assert_eq!(value(&json!(3)), "3");
        assert_eq!(value(&json!({"a": [1]})), "`{\"a\":[1]}`");
    }

    #[test]
    fn escapes_stray_pipes_and_backticks() {
        assert_eq!(escape_stray("a | b `c`\nd"), "a \\| b `c` d");
        assert_eq!(escape_stray("a \\| b"), "a \\| b");
        assert_eq!(escape_stray("one ` only"), "one \\` only");
    }

    #[test]
    fn truncates_long_texts_around_the_difference() {
        let start = "word ".repeat(60);
        let shown = text_change(
            "description",
            &format!("{start}old"),
            &format!("{start}new"),
        );
        assert!(shown.contains("old”") && shown.contains("new”"), "{shown}");
        assert!(shown.chars().count() < 120, "{shown}");
        let long = text_change("description", &"a".repeat(500), &"b".repeat(500));
        assert!(long.chars().count() < 2 * MAX_LENGTH + 30, "{long}");
        assert!(long.contains("…” → “b"), "{long}");
    }

    #[test]
    fn reports_added_and_removed_texts() {
        assert_eq!(text_change("summary", "", "A"), "summary added: “A”");
        assert_eq!(text_change("summary", "A", " "), "summary removed: “A”");
        assert_eq!(
            text_change("summary", "A b", "A  b"),
            "summary: only whitespace changed"
        );
    }
}
