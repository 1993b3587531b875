//! Text and data that say the same.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

use super::reading::{Reading, read, spaced};

static ENVELOPE: LazyLock<Validator> = LazyLock::new(|| {
    let schema = include_str!("envelope.schema.json");
    let schema: Value = serde_json::from_str(schema).expect("a schema");
    jsonschema::validator_for(&schema).expect("a usable schema")
});

/// What is wrong with the form of an envelope.
pub(super) fn misshapen(envelope: &Value) -> Vec<String> {
    let errors = ENVELOPE.iter_errors(envelope);
    let mut problems: Vec<String> = errors
        .map(|error| format!("{error} at {}", error.instance_path()))
        .collect();
    let metadata = &envelope["metadata"];
    let shown = envelope["results"].as_array().map_or(0, Vec::len);
    if metadata["returned"] != shown {
        problems.push(format!(
            "{} returned, but {shown} results",
            metadata["returned"]
        ));
    }
    let shortened = metadata["leftOut"]["shortened"].as_array();
    if shortened.is_some_and(|list| list.len() > shown) {
        problems.push("more results are shortened than shown".to_owned());
    }
    problems
}

/// Values of the data that the text does not say. What is said about the answer stands in its head.
pub(super) fn unsaid(text: &str, envelope: &Value) -> Vec<String> {
    let reading = read(text);
    let seen = spaced(&reading.text);
    let mut missing = Vec::new();
    for (name, part) in envelope.as_object().expect("an object") {
        if name != "metadata" {
            walk(part, name, &mut |place, value| {
                if !says(text, &seen, &reading, value) {
                    missing.push(format!("{place}: {value}"));
                }
            });
        }
    }
    missing
}

fn walk(value: &Value, place: &str, visit: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Array(list) => {
            for (index, entry) in list.iter().enumerate() {
                walk(entry, &format!("{place}[{index}]"), visit);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                walk(field, &format!("{place}.{name}"), visit);
            }
        }
        leaf => visit(place, leaf),
    }
}

fn says(text: &str, seen: &str, reading: &Reading, value: &Value) -> bool {
    match value {
        Value::Null => text.contains('–'),
        Value::String(words) => {
            let plain = spaced(words);
            let quoted = || words.lines().all(|line| text.contains(line.trim_end()));
            let linked = || reading.links.iter().any(|(_, target)| target == words);
            seen.contains(&plain) || quoted() || linked()
        }
        other => seen.contains(&other.to_string()),
    }
}
