//! Writes a document as YAML: block style, upstream's order, the same bytes for the same document.

use serde_json::Value;

/// Words that some YAML readers take for a boolean or null.
const RESERVED: &[&str] = &["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// Returns the document as YAML.
pub fn to_yaml(document: &Value) -> String {
    let mut text = String::new();
    write_node(&mut text, document, 0);
    text
}

/// Writes a node that starts a line.
fn write_node(text: &mut String, node: &Value, indent: usize) {
    match node {
        Value::Object(map) if !map.is_empty() => {
            for (index, (key, value)) in map.iter().enumerate() {
                // The first key follows the dash of a list entry, or starts the document.
                if index > 0 {
                    push_indent(text, indent);
                }
                text.push_str(&scalar(key));
                text.push(':');
                write_value(text, value, indent);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for (index, entry) in list.iter().enumerate() {
                if index > 0 {
                    push_indent(text, indent);
                }
                text.push_str("- ");
                write_node(text, entry, indent + 2);
            }
        }
        _ => {
            text.push_str(&leaf(node));
            text.push('\n');
        }
    }
}

/// Writes the value of a key after its colon.
fn write_value(text: &mut String, value: &Value, indent: usize) {
    let child = match value {
        Value::Object(map) if !map.is_empty() => indent + 2,
        // The dashes of a list are below its key.
        Value::Array(list) if !list.is_empty() => indent,
        _ => {
            text.push(' ');
            text.push_str(&leaf(value));
            text.push('\n');
            return;
        }
    };
    text.push('\n');
    push_indent(text, child);
    write_node(text, value, child);
}

fn push_indent(text: &mut String, indent: usize) {
    text.extend(std::iter::repeat_n(' ', indent));
}

fn leaf(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        // Null, booleans, numbers, `{}` and `[]` have the same form in JSON.
        other => other.to_string(),
    }
}

/// Returns a string without quotes where every reader takes it for a string.
fn scalar(text: &str) -> String {
    if is_plain(text) {
        text.to_owned()
    } else if text.chars().any(needs_escape) {
        double_quoted(text)
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

fn is_plain(text: &str) -> bool {
    let starts_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || "/_$".contains(c));
    let has_plain_chars = text
        .chars()
        .all(|char| char.is_ascii_alphanumeric() || " /_$.-{}:()+=".contains(char));
    starts_plain
        && has_plain_chars
        && !text.contains(": ")
        && !text.ends_with([' ', ':'])
        && !RESERVED.contains(&text.to_ascii_lowercase().as_str())
}

/// Returns whether a YAML reader would refuse the character or take it for a line break.
fn needs_escape(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}

/// Returns a JSON string, which is also a double-quoted YAML string once such characters are escaped.
fn double_quoted(text: &str) -> String {
    let json = Value::String(text.to_owned()).to_string();
    let escape = |char: char| {
        if needs_escape(char) {
            format!("\\u{:04x}", u32::from(char))
        } else {
            char.to_string()
        }
    };
    json.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn writes_block_style_in_the_order_of_the_document() {
        let document = json!({
            "paths": {"/v0/a/{id}": {"get": {"tags": [], "responses": {"200": {}}}}},
            "list": ["a", {"b": 1, "c": [true, null]}, ["x", ["z"]]],
            "$ref": "#/a", "url": "https://x.y/z", "version": "1.0", "no": "No", "date": "2026-01-01"
        });
        assert_eq!(
            to_yaml(&document),
            "\
paths:
  /v0/a/{id}:
    get:
      tags: []
      responses:
        '200': {}
list:
- a
- b: 1
  c:
  - true
  - null
- - x
  - - z
$ref: '#/a'
url: https://x.y/z
version: '1.0'
'no': 'No'
date: '2026-01-01'
"
        );
    }

    #[test]
    fn every_value_survives_a_round_trip() {
        let strings = [
            "",
            " ",
            "a ",
            "a: b",
            "a:",
            "- a",
            "? a",
            "a #b",
            "#a",
            "'",
            "\"",
            "it's",
            "~",
            "null",
            "True",
            "1e3",
            "0x1f",
            ".5",
            "-1",
            "+1",
            "1_000",
            "12:30:45",
            "a\nb",
            "a\n",
            "\ta",
            "\u{7f}",
            "\u{85}",
            "\u{2028}",
            "\u{feff}x",
            "é",
            "日本",
            "{a}",
            "[a]",
            "a, b",
            "&a",
            "*a",
            "!a",
            "|",
            ">",
            "%a",
            "@a",
            "`a`",
            "=",
            "<<",
            "---",
            "...",
            "a\\b",
            "=a",
            "NaN",
            ".inf",
            "a{b",
            "x: y: z",
            "/^a|b$/",
        ];
        let numbers = json!([0, -1, 1.5, 1e-7, 1e300, u64::MAX, i64::MIN, 0.1, 100.0]);
        let mut map = serde_json::Map::new();
        for text in strings {
            map.insert(text.to_owned(), json!([text, {text: text}]));
        }
        let document =
            json!({"strings": map, "numbers": numbers, "empty": [{}, [], [[]], [{"a": {}}]]});
        let parsed = crate::load::parse("x.yaml", &to_yaml(&document)).unwrap();
        assert_eq!(parsed.root, document);
    }
}
