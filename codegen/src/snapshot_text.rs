//! The text form of snapshots: JSON with few lines, so that reviewers read short diffs.

use serde_json::{Map, Value};

use crate::snapshots::sort_keys;

/// The widest line with a whole object, in characters.
const MAX_WIDTH: usize = 160;

/// Formats a value with sorted keys, two-space indentation and a final line break. Small objects without lists and
/// objects inside take one line.
pub fn to_text(value: &Value) -> String {
    let mut text = String::new();
    push_value(&mut text, &sort_keys(value), 0, 0);
    text.push('\n');
    text
}

/// Appends a value, which begins at a column of the current line.
fn push_value(text: &mut String, value: &Value, indentation: usize, column: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => match line(map, column) {
            Some(line) => text.push_str(&line),
            None => push_object(text, map, indentation),
        },
        Value::Array(list) if !list.is_empty() => {
            let inner = indentation + 2;
            for (position, value) in list.iter().enumerate() {
                text.push_str(if position == 0 { "[\n" } else { ",\n" });
                push_spaces(text, inner);
                push_value(text, value, inner, inner);
            }
            text.push('\n');
            push_spaces(text, indentation);
            text.push(']');
        }
        other => text.push_str(&other.to_string()),
    }
}

fn push_object(text: &mut String, map: &Map<String, Value>, indentation: usize) {
    let inner = indentation + 2;
    for (position, (key, value)) in map.iter().enumerate() {
        text.push_str(if position == 0 { "{\n" } else { ",\n" });
        push_spaces(text, inner);
        let key = format!("{}: ", Value::from(key.as_str()));
        text.push_str(&key);
        push_value(text, value, inner, inner + key.chars().count());
    }
    text.push('\n');
    push_spaces(text, indentation);
    text.push('}');
}

/// Returns an object in one line, if it is small enough.
fn line(map: &Map<String, Value>, column: usize) -> Option<String> {
    if map
        .values()
        .any(|value| value.is_object() || value.is_array())
    {
        return None;
    }
    let entries = map
        .iter()
        .map(|(key, value)| format!("{}: {value}", Value::from(key.as_str())));
    let line = format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "));
    (column + line.chars().count() < MAX_WIDTH).then_some(line)
}

fn push_spaces(text: &mut String, count: usize) {
    text.extend(std::iter::repeat_n(' ', count));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn small_objects_take_one_line() {
        let value = json!({"b": {"type": "string", "description": "A \"text\"."}, "a": [{"x": 1}, [2], {}, []]});
        let expected = r#"{
  "a": [
    { "x": 1 },
    [
      2
    ],
    {},
    []
  ],
  "b": { "description": "A \"text\".", "type": "string" }
}
"#;
        assert_eq!(to_text(&value), expected);
        assert_eq!(serde_json::from_str::<Value>(expected).unwrap(), value);
    }

    #[test]
    fn wide_and_nested_objects_take_several_lines() {
        let wide = json!({"text": "x".repeat(MAX_WIDTH)});
        assert_eq!(to_text(&wide).lines().count(), 3);
        let nested = json!({"a": {"enum": ["b"]}});
        assert_eq!(to_text(&nested).lines().count(), 7);
    }
}
