//! Shorter forms of schemas that mean the same.

use serde_json::{Map, Value, json};

const TYPES: &[&str] = &["string", "number", "boolean", "object", "array", "null"];

/// Keywords that restrict values of every type, so that a null beside them would be rejected. Null is added to an
/// `enum`.
const ANY_TYPE: &[&str] = &["$ref", "allOf", "anyOf", "const", "if", "not", "oneOf"];

/// Simplifies a published schema, whose parts are already simple.
pub fn simplify(schema: &mut Map<String, Value>) {
    if schema.get("propertyNames") == Some(&json!({"type": "string"})) {
        schema.shift_remove("propertyNames");
    }
    drop_union_of_all_types(schema);
    nullable_type(schema);
    describe_constants(schema);
}

/// Describes properties that have only one value, which need no wording of their own.
fn describe_constants(schema: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    for property in properties.values_mut().filter_map(Value::as_object_mut) {
        let value = match (property.get("const"), property.get("enum")) {
            (Some(value), _) => value,
            (None, Some(Value::Array(values))) if values.len() == 1 => &values[0],
            _ => continue,
        };
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        if !property.contains_key("description") {
            let text = format!("Always `{value}`.");
            property.insert("description".to_owned(), text.into());
        }
    }
}

/// Removes a union of all types, which accepts any value.
fn drop_union_of_all_types(schema: &mut Map<String, Value>) {
    for keyword in ["anyOf", "oneOf"] {
        let Some(Value::Array(branches)) = schema.get(keyword) else {
            continue;
        };
        let accepts = |name: &str| branches.iter().any(|branch| accepts_all(branch, name));
        if branches.len() >= TYPES.len() && TYPES.iter().all(|name| accepts(name)) {
            schema.shift_remove(keyword);
        }
    }
}

/// Returns whether a branch accepts every value of a type.
///
/// Lists and maps of a recursive definition are branches of a union of all types, so what they contain does not
/// matter.
fn accepts_all(branch: &Value, name: &str) -> bool {
    let Value::Object(map) = branch else {
        return *branch == Value::Bool(true);
    };
    let is_type = map.get("type") == Some(&json!(name));
    let contents: &[&str] = match name {
        "array" => &["type", "items"],
        "object" => &["type", "additionalProperties"],
        _ => &["type"],
    };
    let is_recursive = |key: &String| match key.as_str() {
        "type" => true,
        _ => map
            .get(key)
            .is_some_and(|it| it.get("$ref").is_some() || *it == json!({})),
    };
    is_type
        && map
            .keys()
            .all(|key| contents.contains(&key.as_str()) && is_recursive(key))
}

/// Replaces `anyOf: [T, null]` by `type: [T, null]`.
fn nullable_type(schema: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = schema.get("anyOf") else {
        return;
    };
    let null = json!({"type": "null"});
    let [first, second] = branches.as_slice() else {
        return;
    };
    let branch = match (first, second) {
        (branch, other) | (other, branch) if *other == null => branch,
        _ => return,
    };
    let Value::Object(branch) = branch else {
        return;
    };
    let is_restricted = branch.keys().any(|key| ANY_TYPE.contains(&key.as_str()));
    let clashes = branch
        .keys()
        .any(|key| schema.contains_key(key) && key != "description");
    let Some(Value::String(name)) = branch.get("type") else {
        return;
    };
    if is_restricted || clashes {
        return;
    }
    let types = json!([name, "null"]);
    let mut branch = branch.clone();
    if let Some(Value::Array(values)) = branch.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    let outer = std::mem::take(schema);
    for (key, value) in outer {
        if key == "anyOf" {
            schema.extend(
                branch
                    .iter()
                    .map(|(key, value)| (key.clone(), value.clone())),
            );
            schema.insert("type".to_owned(), types.clone());
        } else {
            schema.insert(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simplified(schema: Value) -> Value {
        let mut map = schema.as_object().unwrap().clone();
        simplify(&mut map);
        Value::Object(map)
    }

    #[test]
    fn a_union_with_null_becomes_a_list_of_types() {
        let cases = [
            (
                json!({"anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}], "title": "t"}),
                json!({"type": ["string", "null"], "maxLength": 3, "title": "t"}),
            ),
            (
                json!({"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
                json!({"type": ["string", "null"], "enum": ["a", null]}),
            ),
            (
                json!({"anyOf": [{"type": "null"}, {"type": "array", "items": {}}]}),
                json!({"type": ["array", "null"], "items": {}}),
            ),
        ];
        for (schema, expected) in cases {
            assert_eq!(simplified(schema), expected);
        }
        for unchanged in [
            json!({"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}),
            json!({"anyOf": [{"type": "string", "const": "a"}, {"type": "null"}]}),
            json!({"anyOf": [{"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"type": "null"}]}),
            json!({"anyOf": [{"type": "object", "not": {"required": ["a"]}}, {"type": "null"}]}),
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}),
            json!({"anyOf": [{"type": "object", "required": ["a"]}, {"type": "null"}], "required": ["b"]}),
        ] {
            assert_eq!(simplified(unchanged.clone()), unchanged);
        }
    }

    #[test]
    fn a_union_of_all_types_accepts_anything() {
        let all = json!([{"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "null"},
            {"type": "array", "items": {"$ref": "#/$defs/JsonValue"}},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/JsonValue"}}]);
        assert_eq!(
            simplified(json!({"anyOf": all, "description": "d"})),
            json!({"description": "d"})
        );
        let mut some = all;
        some[0]["maxLength"] = json!(3);
        let schema = json!({ "anyOf": some });
        assert_eq!(simplified(schema.clone()), schema);
    }

    #[test]
    fn constants_describe_themselves() {
        let schema = json!({"properties": {"a": {"const": "x"}, "b": {"enum": [true]},
            "c": {"const": "y", "description": "d"}, "d": {"enum": ["x", "y"]}}});
        let properties = &simplified(schema)["properties"];
        assert_eq!(properties["a"]["description"], "Always `x`.");
        assert_eq!(properties["b"]["description"], "Always `true`.");
        assert_eq!(properties["c"]["description"], "d");
        assert_eq!(properties["d"].get("description"), None);
    }

    #[test]
    fn names_of_properties_are_strings_anyway() {
        assert_eq!(
            simplified(json!({"propertyNames": {"type": "string"}})),
            json!({})
        );
    }
}
