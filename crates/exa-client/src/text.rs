//! Sanitizes, redacts and truncates untrusted texts.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ApiKey;
use exa_mcp_text::{sanitize, surrogates};

/// The maximum length of an error message, in characters.
pub(super) const MAX_MESSAGE: usize = 2_000;

/// The maximum length of a quoted excerpt in a message.
pub(super) const MAX_EXCERPT: usize = 300;

/// The maximum length of a tag or request id.
pub(super) const MAX_NAME: usize = 200;

/// The maximum part of an HTML page that is searched.
const MAX_HTML: usize = 16_000;

/// The maximum length of the JSON of an error detail.
const MAX_DETAIL: usize = 8_000;

/// Sanitizes a text, redacts the key and truncates the text to `max` characters.
pub(super) fn tidy(key: Option<&ApiKey>, text: &str, max: usize) -> String {
    let redact = |text: &str| key.map_or_else(|| text.to_owned(), |key| key.redact(text));
    // Cleaning may change white space inside the key or join its parts, so the key is redacted before and
    // after. Truncation comes last, so that no part of a key remains.
    cut(&redact(&clean(&redact(text))), max)
}

/// Parses JSON like [`parse_json_repaired`].
pub(super) fn parse_json(bytes: &[u8]) -> serde_json::Result<Value> {
    parse_json_repaired(bytes).map(|(value, _)| value)
}

/// Parses JSON, and returns the parsed text if it differs from the given one: lone surrogates are replaced,
/// and an empty text becomes `null`.
///
/// A writer that truncates text by UTF-16 units may leave a lone `\ud83d`, which must not make the whole
/// response unusable.
pub(super) fn parse_json_repaired<T: DeserializeOwned>(
    bytes: &[u8],
) -> serde_json::Result<(T, Option<Vec<u8>>)> {
    let replaced = |text: Vec<u8>| Ok((serde_json::from_slice(&text)?, Some(text)));
    if bytes.trim_ascii().is_empty() {
        return replaced(b"null".to_vec());
    }
    match serde_json::from_slice(bytes) {
        Ok(value) => Ok((value, None)),
        Err(error) => replaced(surrogates::repair(bytes).ok_or(error)?),
    }
}

/// Collapses white space and removes invisible characters and terminal escapes.
pub(super) fn clean(text: &str) -> String {
    let text = sanitize::clean(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// Removes invisible characters and terminal escapes, except for line breaks and tabs.
pub(super) fn printable(text: &str) -> String {
    sanitize::clean(text).into_owned()
}

/// Truncates to at most `max` characters, including an ellipsis.
pub(super) fn cut(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(max.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// Sanitizes and redacts all strings of a JSON value, and truncates a long value to a string.
pub(super) fn tidy_value(key: Option<&ApiKey>, mut value: Value) -> Value {
    sanitize::clean_json(&mut value, usize::MAX);
    let value = match key {
        Some(key) => redact_value(key, value),
        None => value,
    };
    let json = value.to_string();
    if json.chars().count() > MAX_DETAIL {
        return Value::String(cut(&json, MAX_DETAIL));
    }
    value
}

fn redact_value(key: &ApiKey, value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(key.redact(&text)),
        Value::Array(items) => items
            .into_iter()
            .map(|item| redact_value(key, item))
            .collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, field)| (key.redact(&name), redact_value(key, field)))
            .collect(),
        other => {
            // A number may contain a key that consists of digits.
            let text = other.to_string();
            let redacted = key.redact(&text);
            if redacted == text {
                other
            } else {
                Value::String(redacted)
            }
        }
    }
}

/// Returns the title of an HTML page, or else its text without tags, scripts and styles.
pub(super) fn html_text(html: &str) -> String {
    // The start is sufficient, and limits the work on malformed pages.
    let html = cut(html, MAX_HTML);
    let html = html.as_str();
    let title = between(html, "<title", "</title").and_then(|inner| inner.split_once('>'));
    let title = title.map(|(_, title)| clean(&decode_entities(title)));
    if let Some(title) = title.filter(|title| !title.is_empty()) {
        return title;
    }
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        text.push(' ');
        rest = after_tag(tag);
    }
    text.push_str(rest);
    clean(&decode_entities(&text))
}

/// Returns the text after a tag whose `<` is already read, or after a whole script or style.
fn after_tag(tag: &str) -> &str {
    let end = ["script", "style"].into_iter().find_map(|name| {
        let start = tag.get(..name.len())?;
        start.eq_ignore_ascii_case(name).then_some(name)
    });
    let tag = match end {
        Some(name) => find(tag, &format!("</{name}")).map_or("", |(_, rest)| rest),
        None => tag,
    };
    tag.split_once('>').map_or("", |(_, rest)| rest)
}

/// Returns the text between two markers, ignoring ASCII case.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = find(text, start)?;
    find(rest, end).map(|(inner, _)| inner)
}

/// Returns the text before and after a lower-case marker, ignoring ASCII case.
fn find<'a>(text: &'a str, marker: &str) -> Option<(&'a str, &'a str)> {
    // Lower-casing ASCII letters preserves byte positions.
    let at = text.to_ascii_lowercase().find(marker)?;
    Some((text.get(..at)?, text.get(at + marker.len()..)?))
}

/// Decodes common HTML entities.
fn decode_entities(text: &str) -> String {
    text.replace("&nbsp;", " ")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

/// Formats a duration as whole seconds, rounded up, or as milliseconds below one second.
pub(super) fn duration(time: Duration) -> String {
    if time.is_zero() || time >= Duration::from_secs(1) {
        let up = u64::from(time.subsec_nanos() > 0);
        return format!("{} s", time.as_secs().saturating_add(up));
    }
    format!("{} ms", time.as_millis())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn replaces_lone_surrogates() {
        let cases = [
            (r#""cut \ud83d""#, r#""cut \ufffd""#),
            (r#""\ude00 x""#, r#""\ufffd x""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\uD83D\u0041""#, r#""\ufffd\u0041""#),
            (r#""\u00e9""#, r#""\u00e9""#),
        ];
        for (given, expected) in cases {
            let read = parse_json(given.as_bytes()).unwrap();
            assert_eq!(read, serde_json::from_str::<Value>(expected).unwrap());
        }
        assert!(parse_json(b"{").is_err());
        assert!(parse_json(br#"{"a": "\ud83d"#).is_err());
        assert_eq!(parse_json(b" ").unwrap(), Value::Null);
    }

    #[test]
    fn removes_hidden_characters_and_collapses_white_space() {
        assert_eq!(clean(" a\r\n\tb\u{1b}[31m \u{7} c\u{0}"), "a b c");
        let link = "bad \u{1b}[31mred\u{1b}[0m \u{1b}]8;;http://e\u{7}l\u{1b}]8;;\u{7} end";
        assert_eq!(clean(link), "bad red l end");
        assert_eq!(clean("a\u{202e}b\u{200b}c &#8203; d"), "abc d");
        assert_eq!(clean("\u{1}\n\u{2}"), "");
    }

    #[test]
    fn truncates_between_characters() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äö…");
        let long = tidy(None, &"é".repeat(5_000), MAX_MESSAGE);
        assert_eq!(long.chars().count(), MAX_MESSAGE);
    }

    #[test]
    fn redacts_the_key_before_truncating() {
        let key = ApiKey::new("secret-key-1").unwrap();
        assert_eq!(tidy(Some(&key), "abc secret-key-1", 10), "abc [reda…");
        assert_eq!(tidy(Some(&key), "secret\u{0}-key-1", 99), "[redacted]");
    }

    #[test]
    fn redacts_the_key_in_all_parts_of_json() {
        let key = ApiKey::new("4711").unwrap();
        let value = json!({"a4711": ["x4711", 4711, null, true], "b": {"c": 15}});
        let tidied = tidy_value(Some(&key), value);
        assert_eq!(
            tidied,
            json!({"a[redacted]": ["x[redacted]", "[redacted]", null, true], "b": {"c": 15}})
        );
        let hidden = tidy_value(Some(&key), json!(["a\u{1b}[31m 47\u{200b}11"]));
        assert_eq!(hidden, json!(["a [redacted]"]));
        let long = tidy_value(Some(&key), json!(["x".repeat(9_000)]));
        assert_eq!(long.as_str().unwrap().chars().count(), MAX_DETAIL);
    }

    #[test]
    fn html_is_reduced_to_its_title_or_text() {
        let page = "<html><head><TITLE lang=en>502 Bad\n Gateway</TITLE></head><body>x</body>";
        assert_eq!(html_text(page), "502 Bad Gateway");
        let page = "<html><title></title><style>p{}</style><SCRIPT>if(a<b){}</SCRIPT>\
                    <p>No &amp; <b>no</b></p><p>unclosed <";
        assert_eq!(html_text(page), "No & no unclosed");
        assert_eq!(html_text("<script>never closed"), "");
        assert_eq!(html_text("<é>ok<scr"), "ok");
    }

    #[test]
    fn formats_durations() {
        assert_eq!(duration(Duration::from_millis(250)), "250 ms");
        assert_eq!(duration(Duration::from_millis(1_200)), "2 s");
        assert_eq!(duration(Duration::from_secs(30)), "30 s");
        assert_eq!(duration(Duration::ZERO), "0 s");
    }
}
