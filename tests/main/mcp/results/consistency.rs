//! Checks that text and structured content agree.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

use super::parsed_markdown::{ParsedMarkdown, normalize_spaces, parse};

static ENVELOPE: LazyLock<Validator> = LazyLock::new(|| {
    let schema = include_str!("envelope.schema.json");
    let schema: Value = serde_json::from_str(schema).expect("a schema");
    jsonschema::validator_for(&schema).expect("a usable schema")
});

/// Returns the violations of the envelope schema.
pub(super) fn envelope_problems(envelope: &Value) -> Vec<String> {
    let errors = ENVELOPE.iter_errors(envelope);
    let mut problems: Vec<String> = errors
        .map(|error| format!("{error} at {}", error.instance_path()))
        .collect();
    let metadata = &envelope["metadata"];
    let returned = envelope["results"].as_array().map_or(0, Vec::len);
    if metadata["returned"] != returned {
        problems.push(format!(
            "{} returned, but {returned} results",
            metadata["returned"]
        ));
    }
    let shortened = metadata["leftOut"]["shortened"].as_array();
    if shortened.is_some_and(|list| list.len() > returned) {
        problems.push("more results are shortened than shown".to_owned());
    }
    problems
}

/// Returns the values of the structured content that are missing in the text. The metadata is in the header.
pub(super) fn missing_from_text(text: &str, envelope: &Value) -> Vec<String> {
    let parsed = parse(text);
    let visible = normalize_spaces(&parsed.text);
    let mut missing = Vec::new();
    for (name, part) in envelope.as_object().expect("an object") {
        if name != "metadata" {
            walk(part, name, &mut |path, value| {
                if !is_in_text(text, &visible, &parsed, value) {
                    missing.push(format!("{path}: {value}"));
                }
            });
        }
    }
    missing
}

fn walk(value: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Array(list) => {
            for (index, entry) in list.iter().enumerate() {
                walk(entry, &format!("{path}[{index}]"), visit);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                walk(field, &format!("{path}.{name}"), visit);
            }
        }
        leaf => visit(path, leaf),
    }
}

fn is_in_text(text: &str, visible: &str, parsed: &ParsedMarkdown, value: &Value) -> bool {
    match value {
        Value::Null => text.contains('–'),
        Value::String(words) => {
            let plain = normalize_spaces(words);
            let quoted = || words.lines().all(|line| text.contains(line.trim_end()));
            let linked = || parsed.links.iter().any(|(_, target)| target == words);
            visible.contains(&plain) || quoted() || linked()
        }
        other => visible.contains(&other.to_string()),
    }
}
