//! Schemas that take no unknown fields, however deep: the spec leaves its objects open, but a field that it
//! does not know is a mistake of whoever sends it.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

const CLOSED: &str = "unevaluatedProperties";

/// The same schema with its objects closed.
pub(super) fn closed(schema: &Value) -> Value {
    let mut parts = HashSet::new();
    collect_parts(schema, &mut parts);
    let mut closed = schema.clone();
    close(&mut closed, true);
    // A definition that is one part of several must leave the fields of the others alone.
    let definitions = closed.get_mut("$defs").and_then(Value::as_object_mut);
    for (name, definition) in definitions.into_iter().flatten() {
        if let (true, Value::Object(definition)) = (parts.contains(name), definition) {
            definition.shift_remove(CLOSED);
        }
    }
    closed
}

/// The names of the definitions that stand in an `allOf`.
fn collect_parts(schema: &Value, parts: &mut HashSet<String>) {
    match schema {
        Value::Object(map) => {
            let several = map.get("allOf").and_then(Value::as_array);
            let references = several
                .into_iter()
                .flatten()
                .filter_map(|part| part.get("$ref"));
            let names = references.filter_map(|it| it.as_str()?.strip_prefix("#/$defs/"));
            parts.extend(names.map(str::to_owned));
            map.values().for_each(|value| collect_parts(value, parts));
        }
        Value::Array(list) => list.iter().for_each(|value| collect_parts(value, parts)),
        _ => {}
    }
}

/// Closes `schema` and what is in it; one that is only a part of another stays open itself.
fn close(schema: &mut Value, is_whole: bool) {
    let Value::Object(map) = schema else {
        return;
    };
    let has_fields = map.contains_key("properties");
    let is_open = map.contains_key("additionalProperties") || map.contains_key(CLOSED);
    for word in ["properties", "$defs"] {
        each(map.get_mut(word), |value| close(value, true));
    }
    for word in ["items", "additionalProperties"] {
        if let Some(value) = map.get_mut(word) {
            close(value, true);
        }
    }
    for (word, are_whole) in [
        ("anyOf", !has_fields),
        ("oneOf", !has_fields),
        ("allOf", false),
    ] {
        let forms = map.get_mut(word).and_then(Value::as_array_mut);
        let forms = forms.into_iter().flatten();
        forms.for_each(|form| close(form, is_whole && are_whole));
    }
    if is_whole && !is_open && (has_fields || map.contains_key("allOf")) {
        map.insert(CLOSED.to_owned(), json!(false));
    }
}

fn each(map: Option<&mut Value>, change: impl FnMut(&mut Value)) {
    let map = map.and_then(Value::as_object_mut);
    map.into_iter().flat_map(Map::values_mut).for_each(change);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn takes(schema: &Value, value: Value) -> bool {
        let validator = jsonschema::validator_for(&closed(schema)).unwrap();
        validator.is_valid(&value)
    }

    #[test]
    fn unknown_fields_are_found_at_every_depth() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "integer"}}},
            "list": {"items": {"$ref": "#/$defs/entry"}},
            "free": {"type": "object"},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
        }, "$defs": {"entry": {"type": "object", "properties": {"c": {}}}}});
        assert!(takes(
            &schema,
            json!({"a": {"b": 1}, "list": [{"c": 1}], "free": {"x": 1}, "map": {"y": "z"}})
        ));
        for wrong in [
            json!({"z": 1}),
            json!({"a": {"z": 1}}),
            json!({"list": [{"z": 1}]}),
        ] {
            assert!(!takes(&schema, wrong.clone()), "{wrong}");
        }
    }

    #[test]
    fn what_is_put_together_is_closed_as_a_whole() {
        let schema = json!({"type": "object", "properties": {
            "both": {"allOf": [{"$ref": "#/$defs/one"}, {"properties": {"two": {}}}]},
            "either": {"anyOf": [{"type": "object", "properties": {"x": {}}}, {"type": "string"}]},
            "mixed": {"properties": {"base": {}}, "oneOf": [{"properties": {"left": {}}, "required": ["left"]},
                                                        {"properties": {"right": {}}, "required": ["right"]}]},
        }, "$defs": {"one": {"type": "object", "properties": {"one": {}}}}});
        for right in [
            json!({"both": {"one": 1, "two": 2}}),
            json!({"either": {"x": 1}}),
            json!({"either": "text"}),
            json!({"mixed": {"base": 1, "left": 1}}),
        ] {
            assert!(takes(&schema, right.clone()), "{right}");
        }
        for wrong in [
            json!({"both": {"one": 1, "three": 3}}),
            json!({"either": {"z": 1}}),
            json!({"mixed": {"left": 1, "z": 1}}),
        ] {
            assert!(!takes(&schema, wrong.clone()), "{wrong}");
        }
    }
}
