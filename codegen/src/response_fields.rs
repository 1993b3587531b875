//! The fields of responses that the server itself reads, as `response_fields.rs`.

use std::collections::BTreeMap;
use std::fmt::Write;

use heck::ToShoutySnakeCase;
use serde_json::Value;

use crate::error::Notice;
use crate::model::Operation;

/// The fields that the server reads. Each has a constant in the generated module, even if its places are gone.
const FIELDS: &[(&str, &str)] = &[
    ("analyzed", "How many candidates a job has examined."),
    ("completion", "How far a job is, in percent."),
    ("entries", "The entries of a list."),
    ("found", "How many results a job has found."),
    ("hasMore", "Whether a list has further pages."),
    ("id", "The id of the object that a response describes."),
    ("nextCursor", "The cursor of the next page of a list."),
    (
        "parts",
        "The parts of a job that report progress of their own.",
    ),
    ("progress", "The progress of a job."),
    ("requested", "How many results a job is to find."),
    ("status", "The status of a job."),
    ("uploadUrl", "The address to which a file is uploaded."),
    (
        "uploadValidUntil",
        "When the address for an upload expires.",
    ),
];

/// The places of a field in `surface.yaml`, by field.
pub type ResponseFields = BTreeMap<String, Vec<String>>;

/// Removes places that no response has, and reports them.
pub fn check(
    fields: &ResponseFields,
    operations: &[Operation],
    notices: &mut Vec<Notice>,
) -> ResponseFields {
    let mut notice = |field: &str, message: String| {
        notices.push(Notice {
            file: "surface.yaml".to_owned(),
            location: format!("responseFields {field}"),
            message,
        });
    };
    for name in fields.keys() {
        if FIELDS.iter().all(|(known, _)| known != name) {
            notice(
                name,
                "the server does not read this field; entry ignored".to_owned(),
            );
        }
    }
    let checked = FIELDS.iter().map(|(name, _)| {
        let mut paths = fields.get(*name).cloned().unwrap_or_default();
        paths.retain(|path| {
            let mut operations = operations.iter();
            let is_known = operations.any(|operation| has_path(&operation.output_schema, path));
            if !is_known {
                notice(name, format!("no response has `{path}`; ignored"));
            }
            is_known
        });
        if paths.is_empty() {
            notice(
                name,
                "the field has no place left; the server will not find it".to_owned(),
            );
        }
        ((*name).to_owned(), paths)
    });
    checked.collect()
}

/// Returns the source of the module.
pub fn source(fields: &ResponseFields) -> String {
    let mut text = String::from(
        "//! The fields of responses that the server itself reads.\n\nuse exa_mcp_model::ResponseField;\n\n",
    );
    for (name, doc) in FIELDS {
        let paths = fields.get(*name).map(Vec::as_slice).unwrap_or_default();
        let constant = name.to_shouty_snake_case();
        let _ = writeln!(
            text,
            "/// {doc}\npub const {constant}: ResponseField = ResponseField::new(&{paths:?});"
        );
    }
    text
}

/// Returns whether a published schema has the property at this dotted path.
fn has_path(schema: &Value, path: &str) -> bool {
    let names: Vec<&str> = path.split('.').collect();
    has_names(schema, schema, &names, 0)
}

fn has_names(root: &Value, schema: &Value, names: &[&str], depth: usize) -> bool {
    /// Deeper nesting of references and unions is a cycle.
    const MAX_DEPTH: usize = 32;
    let [first, rest @ ..] = names else {
        return true;
    };
    if depth > MAX_DEPTH {
        return false;
    }
    let target = schema.get("$ref").and_then(Value::as_str);
    let target = target.and_then(|target| root.pointer(target.strip_prefix('#')?));
    let property = schema.get("properties").and_then(|it| it.get(*first));
    let branches = ["allOf", "anyOf", "oneOf"].into_iter();
    let mut branches = branches
        .filter_map(|keyword| schema.get(keyword)?.as_array())
        .flatten();
    property.is_some_and(|property| has_names(root, property, rest, depth + 1))
        || target.is_some_and(|target| has_names(root, target, names, depth + 1))
        || branches.any(|branch| has_names(root, branch, names, depth + 1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_properties_behind_references_and_unions() {
        let schema = json!({
            "anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}],
            "$defs": {
                "A": {"properties": {"b": {"allOf": [{"properties": {"c": {}}}]}, "self": {"$ref": "#/$defs/A"}}},
                "L": {"$ref": "#/$defs/L"},
            },
        });
        for (path, expected) in [
            ("b", true),
            ("b.c", true),
            ("self.self.b.c", true),
            ("c", false),
            ("b.c.d", false),
        ] {
            assert_eq!(has_path(&schema, path), expected, "{path}");
        }
        assert!(!has_path(
            &json!({"$ref": "#/$defs/L", "$defs": {"L": {"$ref": "#/$defs/L"}}}),
            "a"
        ));
    }

    #[test]
    fn a_field_without_places_is_still_written() {
        let mut notices = Vec::new();
        let fields = ResponseFields::from([
            ("status".to_owned(), vec!["state".to_owned()]),
            ("unknown".to_owned(), vec!["x".to_owned()]),
        ]);
        let checked = check(&fields, &[], &mut notices);
        let text = source(&checked);
        assert!(
            text.contains("pub const STATUS: ResponseField = ResponseField::new(&[]);"),
            "{text}"
        );
        let notices: Vec<String> = notices.iter().map(ToString::to_string).collect();
        for expected in [
            "responseFields unknown: the server does not read this field",
            "responseFields status: no response has `state`",
            "responseFields status: the field has no place left",
            "responseFields entries: the field has no place left",
        ] {
            assert!(
                notices.iter().any(|it| it.contains(expected)),
                "{expected}: {notices:?}"
            );
        }
    }
}
