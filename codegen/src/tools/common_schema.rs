//! Reduces the schemas of tools to what the converters of all clients know.

use serde_json::{Map, Value};

/// Removes `additionalProperties` without a schema of its own, on which several converters fail.
///
/// Unknown arguments are rejected by the schema of the operation, which stays complete.
pub(super) fn remove_boolean_schemas(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            let is_open =
                |value: &Value| value.is_boolean() || value.as_object().is_some_and(Map::is_empty);
            if map.get("additionalProperties").is_some_and(is_open) {
                map.shift_remove("additionalProperties");
            }
            map.values_mut().for_each(remove_boolean_schemas);
        }
        Value::Array(list) => list.iter_mut().for_each(remove_boolean_schemas),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keeps_only_schemas_of_additional_properties() {
        let mut schema = json!({"type": "object", "additionalProperties": false, "properties": {
            "open": {"type": "object", "additionalProperties": true},
            "any": {"oneOf": [{"type": "object", "additionalProperties": {}}]},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
        }});
        remove_boolean_schemas(&mut schema);
        let expected = json!({"type": "object", "properties": {
            "open": {"type": "object"},
            "any": {"oneOf": [{"type": "object"}]},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
        }});
        assert_eq!(schema, expected);
    }
}
