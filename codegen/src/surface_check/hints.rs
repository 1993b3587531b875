//! Checks that hints name only arguments and values that exist.

use std::collections::BTreeSet;

use serde_json::Value;

/// Words in backticks that are values or types of JSON.
const JSON_WORDS: &[&str] = &["true", "false", "null"];

/// The names of fields and the values that schemas have anywhere.
#[derive(Default)]
pub(super) struct Vocabulary<'a> {
    names: BTreeSet<&'a str>,
    values: BTreeSet<&'a str>,
}

impl<'a> Vocabulary<'a> {
    pub(super) fn new(schemas: &[&'a Value]) -> Self {
        let mut vocabulary = Self::default();
        let mut pending = schemas.to_vec();
        while let Some(value) = pending.pop() {
            match value {
                Value::Object(map) => {
                    for (key, part) in map {
                        match (key.as_str(), part) {
                            ("properties", Value::Object(properties)) => {
                                vocabulary
                                    .names
                                    .extend(properties.keys().map(String::as_str));
                                pending.extend(properties.values());
                            }
                            ("enum", Value::Array(values)) => {
                                vocabulary
                                    .values
                                    .extend(values.iter().filter_map(Value::as_str));
                            }
                            ("const" | "default", Value::String(value)) => {
                                vocabulary.values.insert(value);
                            }
                            ("examples" | "example" | "description", _) => {}
                            _ => pending.push(part),
                        }
                    }
                }
                Value::Array(list) => pending.extend(list),
                _ => {}
            }
        }
        vocabulary
    }

    /// Returns a word of the hint that names nothing.
    pub(super) fn unknown_word(&self, hint: &str) -> Option<String> {
        let coded = hint.split('`').skip(1).step_by(2);
        let unknown = coded.filter(|word| is_path(word)).find(|word| {
            let known = |name: &str| self.names.contains(name.trim_end_matches("[]"));
            !self.values.contains(*word)
                && !JSON_WORDS.contains(word)
                && !word.split('.').all(known)
        });
        unknown.map(str::to_owned).or_else(|| {
            json_parts(hint)
                .iter()
                .find_map(|part| self.unknown_key(part))
        })
    }

    fn unknown_key(&self, value: &Value) -> Option<String> {
        match value {
            Value::Object(map) => map.iter().find_map(|(key, value)| {
                if self.names.contains(key.as_str()) {
                    self.unknown_key(value)
                } else {
                    Some(key.clone())
                }
            }),
            Value::Array(list) => list.iter().find_map(|value| self.unknown_key(value)),
            _ => None,
        }
    }
}

/// Returns whether a text is a name, or several joined by dots.
fn is_path(text: &str) -> bool {
    let is_name = |name: &str| {
        let name = name.trim_end_matches("[]");
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    !text.is_empty() && text.split('.').all(is_name)
}

/// Returns the objects and lists that a text contains as JSON.
fn json_parts(text: &str) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(['{', '[']) {
        let (_, tail) = rest.split_at(start);
        let mut stream = serde_json::Deserializer::from_str(tail).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value)) => {
                rest = tail.get(stream.byte_offset()..).unwrap_or_default();
                parts.push(value);
            }
            _ => rest = tail.get(1..).unwrap_or_default(),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn finds_names_that_the_schema_lacks() {
        let schema = json!({"properties": {
            "search": {"properties": {"query": {}, "count": {}}},
            "mode": {"enum": ["append", "override"]},
            "list": {"items": {"properties": {"id": {}}}},
        }});
        let words = Vocabulary::new(&[&schema]);
        for (hint, unknown) in [
            (
                "`search` holds the query: {\"search\": {\"query\": \"x\"}}",
                None,
            ),
            ("`mode` is `append` or `override`, never `null`", None),
            ("`search.query`, `list[].id` and 5 `*` or `12h`", None),
            ("`serch` holds the query", Some("serch")),
            ("`search.question` is text", Some("search.question")),
            ("like [{\"search\": {\"questions\": 1}}]", Some("questions")),
            ("`mode` is `appended`", Some("appended")),
        ] {
            assert_eq!(words.unknown_word(hint).as_deref(), unknown, "{hint}");
        }
    }
}
