//! Text taken from a spec, made safe and short enough for one line of Markdown.

use serde_json::Value;

/// The most characters shown of a text or a value.
const LONGEST: usize = 120;
/// How much of the common beginning is kept in front of the first difference.
const LEAD: usize = 40;

/// Shows a name or value as code. One that would break a code span is escaped instead.
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

/// Shows prose with whatever Markdown would act on escaped.
pub(super) fn prose(text: &str) -> String {
    escape(&one_line(text), "\\`|*[]<>")
}

/// Shows a JSON value; numbers and words stay bare, so that lines read like sentences.
pub(super) fn value(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => code(&shorten(&one_line(text))),
        Value::Array(_) | Value::Object(_) => code(&shorten(&value.to_string())),
    }
}

/// Shows a JSON value that may be missing.
pub(super) fn optional(found: Option<&Value>) -> String {
    found.map_or_else(|| "none".to_owned(), value)
}

/// Shows values as a list.
pub(super) fn list<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    let shown: Vec<String> = values.into_iter().map(value).collect();
    shown.join(", ")
}

/// Tells how a text changed: both versions, cut to where they differ.
pub(super) fn text_change(label: &str, old: &str, new: &str) -> String {
    let (before, after) = (one_line(old), one_line(new));
    match (before.is_empty(), after.is_empty()) {
        (true, _) => format!("{label} added: “{}”", prose(&shorten(&after))),
        (_, true) => format!("{label} removed: “{}”", prose(&shorten(&before))),
        _ if before == after => format!("{label} changed in white space only"),
        _ => {
            let (before, after) = excerpts(&before, &after);
            format!("{label} “{}” → “{}”", prose(&before), prose(&after))
        }
    }
}

/// Escapes what would break a line in a text that should have been escaped by its author: line
/// breaks, bare pipes and a backtick without its partner.
pub(super) fn intact(text: &str) -> String {
    let line = one_line(text);
    let odd_backticks = bare(&line, '`') % 2 == 1;
    let mut escaped = false;
    let mut result = String::with_capacity(line.len());
    for letter in line.chars() {
        if !escaped && (letter == '|' || (letter == '`' && odd_backticks)) {
            result.push('\\');
        }
        escaped = letter == '\\' && !escaped;
        result.push(letter);
    }
    result
}

/// Cuts a text after [`LONGEST`] characters.
fn shorten(text: &str) -> String {
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(LONGEST - 1).collect();
    cut.push('…');
    cut
}

/// Two long texts often share their beginning; cutting both at the end would show no difference.
fn excerpts(old: &str, new: &str) -> (String, String) {
    let common = old
        .chars()
        .zip(new.chars())
        .take_while(|(left, right)| left == right)
        .count();
    let fits = |text: &str| text.chars().count() <= LONGEST;
    if (fits(old) && fits(new)) || common <= LEAD {
        return (shorten(old), shorten(new));
    }
    let cut = |text: &str| {
        let rest: String = text.chars().skip(common - LEAD).collect();
        shorten(&format!("…{rest}"))
    };
    (cut(old), cut(new))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn escape(text: &str, special: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for letter in text.chars() {
        if special.contains(letter) {
            result.push('\\');
        }
        result.push(letter);
    }
    result
}

/// Counts the letters that no backslash escapes.
fn bare(text: &str, wanted: char) -> usize {
    let mut escaped = false;
    let mut count = 0;
    for letter in text.chars() {
        if letter == wanted && !escaped {
            count += 1;
        }
        escaped = letter == '\\' && !escaped;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, code, intact, prose, text_change, value};
    use serde_json::json;

    #[test]
    fn pipes_and_backticks_are_escaped() {
        assert_eq!(code("limit"), "`limit`");
        assert_eq!(code("^(a|b)*$"), "^(a\\|b)\\*$");
        assert_eq!(code(""), "(empty)");
        assert_eq!(prose("use `a` | b\nor <c>"), "use \\`a\\` \\| b or \\<c\\>");
        assert_eq!(value(&json!(3)), "3");
        assert_eq!(value(&json!({"a": [1]})), "`{\"a\":[1]}`");
    }

    #[test]
    fn careless_texts_are_mended() {
        assert_eq!(intact("a | b `c`\nd"), "a \\| b `c` d");
        assert_eq!(intact("a \\| b"), "a \\| b");
        assert_eq!(intact("one ` only"), "one \\` only");
    }

    #[test]
    fn long_texts_are_cut_around_the_difference() {
        let start = "word ".repeat(60);
        let shown = text_change(
            "description",
            &format!("{start}old"),
            &format!("{start}new"),
        );
        assert!(shown.contains("old”") && shown.contains("new”"), "{shown}");
        assert!(shown.chars().count() < 120, "{shown}");
        let long = text_change("description", &"a".repeat(500), &"b".repeat(500));
        assert!(long.chars().count() < 2 * LONGEST + 30, "{long}");
        assert!(long.contains("…” → “b"), "{long}");
    }

    #[test]
    fn texts_come_and_go() {
        assert_eq!(text_change("summary", "", "A"), "summary added: “A”");
        assert_eq!(text_change("summary", "A", " "), "summary removed: “A”");
        assert_eq!(
            text_change("summary", "A b", "A  b"),
            "summary changed in white space only"
        );
    }
}
