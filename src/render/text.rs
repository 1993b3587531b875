//! Short forms of texts.

use std::borrow::Cow;

use serde_json::Value;

use exa_mcp_text::chars::{all_bytes, is_one_of};
use exa_mcp_text::sanitize;

/// Characters of the one line that says most.
const LINE: usize = 120;

/// Longer than this, no address or identifier is.
const LONGEST_WORD: usize = 2_000;

/// What stands where a text was cut.
pub(super) const CUT: &str = "…";

/// A text of at most `most` characters, cut where a paragraph, sentence or word ends; whether it was
/// cut. Addresses and identifiers are no use in part, so they stay whole.
pub(super) fn bounded(text: &str, most: usize) -> (String, bool) {
    match short(text, most) {
        Some(short) => (format!("{short}{CUT}"), true),
        None => (text.to_owned(), false),
    }
}

/// Cuts a text in the same way; says whether it did.
pub(super) fn shorten(text: &mut String, most: usize) -> bool {
    let Some(length) = short(text, most).map(str::len) else {
        return false;
    };
    text.truncate(length);
    text.push_str(CUT);
    true
}

/// What stays of a text that is too long.
fn short(text: &str, most: usize) -> Option<&str> {
    let is_letter = |byte: u8| byte.is_ascii_graphic();
    if text.len() <= LONGEST_WORD && all_bytes(text, is_letter) {
        return None;
    }
    let (kept, is_cut) = sanitize::truncate(text, most);
    is_cut.then(|| kept.trim_end())
}

/// The first words of a value on one line.
pub(super) fn line(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => first_words(text),
        Value::Array(list) => return list.iter().find_map(line),
        Value::Object(map) => return map.values().find_map(line),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let (line, _) = bounded(&text, LINE);
    Some(line).filter(|line| !line.is_empty())
}

/// A text on one line without the headings it begins with.
fn first_words(text: &str) -> String {
    let is_heading = |line: &&str| line.is_empty() || line.starts_with('#');
    let mut lines = text
        .lines()
        .map(str::trim)
        .skip_while(is_heading)
        .peekable();
    let text = match lines.peek() {
        Some(_) => lines.take(8).collect::<Vec<_>>().join(" "),
        None => text.chars().take(LINE * 4).collect(),
    };
    one_line(&text).into_owned()
}

/// A text with every run of white space as one space.
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

/// Whether there is nothing to do, as far as that is seen at once: no white space but single spaces between
/// words.
fn is_one_line(text: &str) -> bool {
    // What white space beyond ASCII begins with, and much else.
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
    fn texts_are_cut_at_good_places() {
        let cut = |text: &str, most| bounded(text, most).0;
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
    fn one_line_says_most() {
        assert_eq!(
            line(&json!("# Title\n\nBody of\ntext")),
            Some("Body of text".to_owned())
        );
        assert_eq!(line(&json!(["", "second"])), Some("second".to_owned()));
        assert_eq!(line(&json!({"content": "x"})), Some("x".to_owned()));
        assert_eq!(line(&json!(null)), None);
    }
}
