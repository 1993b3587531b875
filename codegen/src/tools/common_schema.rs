//! Reduces the schemas of tools to what the converters of all clients know.

use serde_json::{Map, Value, json};

/// Keywords on which a converter fails, or which it drops without a word.
///
/// The schema of the operation keeps them, and the server checks arguments against it.
const UNCOMMON: [&str; 11] = [
    "additionalProperties",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "not",
    "patternProperties",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Reduces a schema to the subset that converters of function declarations share.
///
/// Some fail on boolean schemas or on a `$ref` with constraints beside it, others ignore `oneOf`, `const` or the second
/// `$ref` to a definition.
pub(super) fn reduce(schema: &mut Value) {
    reduce_keywords(schema);
    let definitions = schema.get("$defs").and_then(Value::as_object).cloned();
    inline(schema, &definitions.unwrap_or_default(), &mut Vec::new());
}

/// Replaces references by what they refer to, except in definitions that refer to themselves.
fn inline(schema: &mut Value, definitions: &Map<String, Value>, within: &mut Vec<String>) {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let name = reference.and_then(|it| it.strip_prefix("#/$defs/"));
    let Some(name) = name.map(str::to_owned) else {
        for_each_part(schema, &mut |part| inline(part, definitions, within));
        return;
    };
    let Some(definition) = definitions.get(&name).and_then(Value::as_object) else {
        return;
    };
    if within.contains(&name) {
        return;
    }
    let mut inlined = definition.clone();
    if let Some(description) = schema.get("description") {
        inlined.insert("description".to_owned(), description.clone());
    }
    *schema = Value::Object(inlined);
    within.push(name);
    inline(schema, definitions, within);
    within.pop();
}

/// Applies a function to the schemas directly in a schema, without its definitions.
fn for_each_part(schema: &mut Value, apply: &mut impl FnMut(&mut Value)) {
    let keywords = schema.as_object_mut().into_iter().flatten();
    for (key, value) in keywords {
        match key.as_str() {
            "properties" => {
                let properties = value.as_object_mut().into_iter().flatten();
                properties.for_each(|(_, schema)| apply(schema));
            }
            "items" | "contains" => apply(value),
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                let list = value.as_array_mut().into_iter().flatten();
                list.for_each(&mut *apply);
            }
            _ => {}
        }
    }
}

fn reduce_keywords(schema: &mut Value) {
    if schema.is_boolean() {
        *schema = json!({});
    }
    let Value::Object(map) = schema else { return };
    map.retain(|key, _| !UNCOMMON.contains(&key.as_str()));
    if map.contains_key("$ref") {
        map.retain(|key, _| {
            ["$ref", "description", "$defs", "definitions"].contains(&key.as_str())
        });
    }
    if !map.contains_key("anyOf") {
        rename(map, "oneOf", "anyOf");
    }
    if !map.contains_key("enum")
        && let Some(value) = map.get("const").cloned()
    {
        rename(map, "const", "enum");
        map.insert("enum".to_owned(), json!([value]));
    }
    let definitions = map.get_mut("$defs").and_then(Value::as_object_mut);
    let definitions = definitions.into_iter().flatten();
    definitions.for_each(|(_, schema)| reduce_keywords(schema));
    for_each_part(schema, &mut reduce_keywords);
}

/// Renames a key in its place.
fn rename(map: &mut Map<String, Value>, from: &str, to: &str) {
    if map.contains_key(from) {
        let renamed = std::mem::take(map).into_iter();
        *map = renamed
            .map(|(key, value)| {
                if key == from {
                    (to.to_owned(), value)
                } else {
                    (key, value)
                }
            })
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_what_converters_do_not_know() {
        let mut schema = json!({"type": "object", "additionalProperties": false, "properties": {
            "open": {"type": "object", "additionalProperties": true},
            "any": {"oneOf": [{"type": "object", "additionalProperties": {}}, {"const": "x"}]},
            "map": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Pairs"},
            "list": {"type": "array", "items": true},
            "anything": true,
        }});
        reduce(&mut schema);
        let expected = json!({"type": "object", "properties": {
            "open": {"type": "object"},
            "any": {"anyOf": [{"type": "object"}, {"enum": ["x"]}]},
            "map": {"type": "object", "description": "Pairs"},
            "list": {"type": "array", "items": {}},
            "anything": {},
        }});
        assert_eq!(schema, expected);
    }

    #[test]
    fn keeps_arguments_that_are_called_like_keywords() {
        let mut schema = json!({"properties": {
            "additionalProperties": {"type": "boolean"},
            "const": {"type": "string", "default": {"oneOf": 1}},
        }});
        let before = schema.clone();
        reduce(&mut schema);
        assert_eq!(schema, before);
    }

    #[test]
    fn inlines_references_with_their_own_descriptions() {
        let mut schema = json!({"properties": {
            "cadence": {"$ref": "#/$defs/Cadence", "type": "object", "description": "When"},
            "tree": {"$ref": "#/$defs/Tree"},
        }, "$defs": {
            "Cadence": {"type": "object", "additionalProperties": false, "description": "A cadence"},
            "Tree": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
        }});
        reduce(&mut schema);
        let tree = json!({"type": "array", "items": {"$ref": "#/$defs/Tree"}});
        let expected = json!({"cadence": {"type": "object", "description": "When"}, "tree": tree});
        assert_eq!(schema["properties"], expected);
    }
}
