//! An answer as JSON: what is said about it, then what it says.

use std::fmt::Write;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::budget::Fitted;
use super::chars::{all_bytes, is_any};

/// Bytes for which there is room from the beginning: most answers are not much longer.
const ROOM: usize = 8 * 1024;

/// The fields of the server's own, which nothing that is told can replace.
const OWN: [&str; 2] = ["metadata", "results"];

/// The whole answer as a text.
pub(super) fn text(
    metadata: &Map<String, Value>,
    told: &Map<String, Value>,
    fitted: &Fitted,
) -> String {
    let whole = Whole {
        metadata,
        told,
        fitted,
    };
    serde_json::to_string(&whole).unwrap_or_default()
}

/// The whole answer as data.
pub(super) fn structured(
    metadata: Map<String, Value>,
    told: &Map<String, Value>,
    fitted: Fitted,
) -> Map<String, Value> {
    let mut whole = Map::new();
    whole.insert("metadata".to_owned(), Value::Object(metadata));
    let told_fields = told.iter().filter(|(name, _)| is_free(name, None));
    whole.extend(told_fields.map(|(name, value)| (name.clone(), value.clone())));
    let results = fitted.shown.into_iter().map(|result| result.value);
    whole.insert("results".to_owned(), results.collect());
    let rest = fitted.rest.into_iter();
    whole.extend(rest.filter(|(name, _)| is_free(name, Some(told))));
    whole
}

/// Whether a field may have a name: it is not one of ours, and not told already.
fn is_free(name: &str, told: Option<&Map<String, Value>>) -> bool {
    !OWN.contains(&name) && told.is_none_or(|told| !told.contains_key(name))
}

struct Whole<'a> {
    metadata: &'a Map<String, Value>,
    told: &'a Map<String, Value>,
    fitted: &'a Fitted,
}

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut whole = serializer.serialize_map(None)?;
        whole.serialize_entry("metadata", self.metadata)?;
        for (name, value) in self.told.iter().filter(|(name, _)| is_free(name, None)) {
            whole.serialize_entry(name, value)?;
        }
        let results: Vec<&Value> = self.fitted.shown.iter().map(|shown| &shown.value).collect();
        whole.serialize_entry("results", &results)?;
        let rest = self.fitted.rest.iter();
        for (name, value) in rest.filter(|(name, _)| is_free(name, Some(self.told))) {
            whole.serialize_entry(name, value)?;
        }
        whole.end()
    }
}

/// An answer of Exa as a text, without white space.
#[must_use]
pub fn compact(answer: &Value) -> String {
    let mut text = String::with_capacity(ROOM);
    push(&mut text, answer);
    text
}

fn push(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => push_text(out, text),
        Value::Array(list) => {
            out.push('[');
            for (place, entry) in list.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                push(out, entry);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (place, (name, field)) in map.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                push_text(out, name);
                out.push(':');
                push(out, field);
            }
            out.push('}');
        }
        // Writing into a text cannot fail.
        Value::Null | Value::Bool(_) | Value::Number(_) => drop(write!(out, "{value}")),
    }
}

/// Most texts have nothing to escape, which is seen faster than letter by letter.
fn push_text(out: &mut String, text: &str) {
    if all_bytes(text, |byte| (byte >= b' ') & !is_any(byte, *b"\"\\")) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&serde_json::to_string(text).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_compact_text_is_what_the_library_writes() {
        let value = json!({
            "a\"b": [null, true, false, 0, -1, u64::MAX, i64::MIN, 0.1, 1e300, -0.0, 1.0, 5e-324],
            "": {"x": [], "y": {}, "z": ["\n\t\u{0}\u{7f}é\\ \u{2028}", "plain text, long enough for a look"]},
        });
        assert_eq!(compact(&value), value.to_string());
        for value in [
            json!("x"),
            json!([]),
            json!({}),
            json!(null),
            json!([[[1]]]),
        ] {
            assert_eq!(compact(&value), value.to_string());
        }
    }
}
