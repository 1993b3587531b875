//! Schemas that reject unknown fields at any depth. The spec allows them, but in a test an unknown field
//! is a mistake of the client.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::json::{items, list, text};

const UNEVALUATED: &str = "unevaluatedProperties";

/// Returns the schema with all objects closed for unknown fields.
pub(super) fn close_objects(schema: &Value) -> Value {
    let mut parts = HashSet::new();
    collect_all_of_definitions(schema, &mut parts);
    let mut closed = schema.clone();
    close(&mut closed, true);
    // A part of an `allOf` must accept the fields of the other parts.
    let definitions = closed.get_mut("$defs").and_then(Value::as_object_mut);
    for (name, definition) in definitions.into_iter().flatten() {
        if parts.contains(name)
            && let Value::Object(definition) = definition
        {
            definition.shift_remove(UNEVALUATED);
        }
    }
    closed
}

/// Collects the names of the definitions that an `allOf` refers to.
fn collect_all_of_definitions(schema: &Value, parts: &mut HashSet<String>) {
    match schema {
        Value::Object(map) => {
            let all_of = list(schema, "allOf").iter();
            let names = all_of.filter_map(|part| text(part, "$ref").strip_prefix("#/$defs/"));
            parts.extend(names.map(str::to_owned));
            for value in map.values() {
                collect_all_of_definitions(value, parts);
            }
        }
        _ => {
            for value in items(schema) {
                collect_all_of_definitions(value, parts);
            }
        }
    }
}

/// Closes a schema and its subschemas. A part of an `allOf` (`is_whole` is false) stays open itself.
fn close(schema: &mut Value, is_whole: bool) {
    let Value::Object(map) = schema else {
        return;
    };
    let has_fields = map.contains_key("properties");
    let is_open = map.contains_key("additionalProperties") || map.contains_key(UNEVALUATED);
    for keyword in ["properties", "$defs"] {
        let schemas = map.get_mut(keyword).and_then(Value::as_object_mut);
        let schemas = schemas.into_iter().flat_map(Map::values_mut);
        schemas.for_each(|schema| close(schema, true));
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(schema) = map.get_mut(keyword) {
            close(schema, true);
        }
    }
    for (keyword, are_whole) in [
        ("anyOf", !has_fields),
        ("oneOf", !has_fields),
        ("allOf", false),
    ] {
        let schemas = map.get_mut(keyword).and_then(Value::as_array_mut);
        let schemas = schemas.into_iter().flatten();
        schemas.for_each(|schema| close(schema, is_whole && are_whole));
    }
    if is_whole && !is_open && (has_fields || map.contains_key("allOf")) {
        map.insert(UNEVALUATED.to_owned(), json!(false));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn accepts(schema: &Value, value: Value) -> bool {
        let validator = jsonschema::validator_for(&close_objects(schema)).unwrap();
        validator.is_valid(&value)
    }

    #[test]
    fn rejects_unknown_fields_at_every_depth() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "integer"}}},
            "list": {"items": {"$ref": "#/$defs/entry"}},
            "free": {"type": "object"},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
        }, "$defs": {"entry": {"type": "object", "properties": {"c": {}}}}});
        assert!(accepts(
            &schema,
            json!({"a": {"b": 1}, "list": [{"c": 1}], "free": {"x": 1}, "map": {"y": "z"}})
        ));
        for invalid in [
            json!({"z": 1}),
            json!({"a": {"z": 1}}),
            json!({"list": [{"z": 1}]}),
        ] {
            assert!(!accepts(&schema, invalid.clone()), "{invalid}");
        }
    }

    #[test]
    fn closes_combined_schemas_as_a_whole() {
        let schema = json!({"type": "object", "properties": {
            "both": {"allOf": [{"$ref": "#/$defs/one"}, {"properties": {"two": {}}}]},
            "either": {"anyOf": [{"type": "object", "properties": {"x": {}}}, {"type": "string"}]},
            "mixed": {"properties": {"base": {}}, "oneOf": [{"properties": {"left": {}}, "required": ["left"]},
                                                        {"properties": {"right": {}}, "required": ["right"]}]},
        }, "$defs": {"one": {"type": "object", "properties": {"one": {}}}}});
        for valid in [
            json!({"both": {"one": 1, "two": 2}}),
            json!({"either": {"x": 1}}),
            json!({"either": "text"}),
            json!({"mixed": {"base": 1, "left": 1}}),
        ] {
            assert!(accepts(&schema, valid.clone()), "{valid}");
        }
        for invalid in [
            json!({"both": {"one": 1, "three": 3}}),
            json!({"either": {"z": 1}}),
            json!({"mixed": {"left": 1, "z": 1}}),
        ] {
            assert!(!accepts(&schema, invalid.clone()), "{invalid}");
        }
    }
}
