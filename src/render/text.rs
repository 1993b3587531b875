//! Truncation of texts.

use std::borrow::Cow;

use serde_json::Value;

use exa_mcp_text::chars::{all_bytes, is_one_of};
use exa_mcp_text::sanitize;

/// Maximum characters of the line of a summary.
const MAX_LINE_CHARS: usize = 120;

/// Maximum length of a URL or identifier, which is never truncated.
const MAX_WORD_CHARS: usize = 2_000;

/// Marks where a text was truncated.
pub(super) const ELLIPSIS: &str = "…";

/// Returns at most `max` characters of a text, truncated at the end of a paragraph, sentence or word, and whether it
/// was truncated. URLs and identifiers are useless in part and stay whole.
pub(super) fn truncate_text(text: &str, max: usize) -> (String, bool) {
    match truncated_prefix(text, max) {
        Some(prefix) => (format!("{prefix}{ELLIPSIS}"), true),
        None => (text.to_owned(), false),
    }
}

/// Truncates a text in place in the same manner. Returns whether it did.
pub(super) fn truncate(text: &mut String, max: usize) -> bool {
    let Some(length) = truncated_prefix(text, max).map(str::len) else {
        return false;
    };
    text.truncate(length);
    text.push_str(ELLIPSIS);
    true
}

/// Returns the start of a text that is too long.
fn truncated_prefix(text: &str, max: usize) -> Option<&str> {
    let is_graphic = |byte: u8| byte.is_ascii_graphic();
    if text.len() <= MAX_WORD_CHARS && all_bytes(text, is_graphic) {
        return None;
    }
    let (prefix, is_truncated) = sanitize::truncate(text, max);
    is_truncated.then(|| prefix.trim_end())
}

/// Returns the first words of a value on one line.
pub(super) fn first_line(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => first_words(text),
        Value::Array(list) => return list.iter().find_map(first_line),
        Value::Object(map) => return map.values().find_map(first_line),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let (line, _) = truncate_text(&text, MAX_LINE_CHARS);
    Some(line).filter(|line| !line.is_empty())
}

/// Returns the start of a text on one line, without leading headings.
fn first_words(text: &str) -> String {
    let is_heading = |line: &&str| line.is_empty() || line.starts_with('#');
    let mut lines = text
        .lines()
        .map(str::trim)
        .skip_while(is_heading)
        .peekable();
    let text = match lines.peek() {
        Some(_) => lines.take(8).collect::<Vec<_>>().join(" "),
        None => text.chars().take(MAX_LINE_CHARS * 4).collect(),
    };
    one_line(&text).into_owned()
}

/// Collapses every run of white space to one space.
pub(super) fn one_line(text: &str) -> Cow<'_, str> {
    if is_one_line(text) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    Cow::Owned(line)
}

/// Returns whether a fast check finds only single spaces between words. May return `false` for a text that has
/// nothing to collapse.
fn is_one_line(text: &str) -> bool {
    // White space beyond ASCII starts with one of these bytes, as do other characters.
    let is_white = |byte: u8| (byte < b' ') | is_one_of(byte, [0xc2, 0xe1, 0xe2, 0xe3]);
    let (bytes, next) = (text.bytes(), text.bytes().skip(1));
    let two_spaces = |(one, next): (u8, u8)| u8::from((one == b' ') & (next == b' '));
    let doubled = || {
        bytes
            .zip(next)
            .map(two_spaces)
            .fold(0, |any, one| any | one)
    };
    !text.starts_with(' ')
        && !text.ends_with(' ')
        && all_bytes(text, |byte| !is_white(byte))
        && doubled() == 0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn truncates_at_the_end_of_a_sentence_or_word() {
        let cut = |text: &str, max| truncate_text(text, max).0;
        assert_eq!(cut("One. Two three four.", 14), "One. Two three…");
        assert_eq!(
            cut("First sentence. Second one here", 20),
            "First sentence.…"
        );
        assert_eq!(cut("short", 5), "short");
        assert_eq!(
            cut("https://example.com/a/very/long/address", 10),
            "https://example.com/a/very/long/address"
        );
        assert_eq!(cut("日本 語の文です。次の文", 9), "日本 語の文です。…");
        assert_eq!(
            cut("空白のない文です。次の文もある", 10),
            "空白のない文です。…"
        );
        assert_eq!(cut(&"x".repeat(5_000), 100).len(), 103);
    }

    #[test]
    fn takes_the_first_line_after_headings() {
        assert_eq!(
            first_line(&json!("# Title\n\nBody of\ntext")),
            Some("Body of text".to_owned())
        );
        assert_eq!(
            first_line(&json!(["", "second"])),
            Some("second".to_owned())
        );
        assert_eq!(first_line(&json!({"content": "x"})), Some("x".to_owned()));
        assert_eq!(first_line(&json!(null)), None);
    }
}
