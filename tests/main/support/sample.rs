//! Generates values from a schema: complete values, and variations that differ in a single place.

use serde_json::{Map, Value, json};

use super::schema::{branches, requires, resolve};

/// The name of a field that no schema has.
pub(crate) const UNKNOWN_FIELD: &str = "unknownField ü";

/// Returns a value with every property. `variant` chooses among the branches of unions and the values of enums;
/// counting it up visits all of them, including nested unions.
pub(crate) fn full(root: &Value, schema: &Value, variant: usize) -> Value {
    let schema = resolve(root, schema);
    if let Some(branches) = branches(schema) {
        let branch = &branches[variant % branches.len()];
        return full(root, branch, variant / branches.len());
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values[variant % values.len()].clone();
    }
    match kind(schema, variant) {
        Some("object") => object(root, schema, variant),
        Some("array") => match schema.get("items") {
            Some(items) => json!([full(root, items, variant), full(root, items, variant + 1)]),
            None => json!([]),
        },
        Some("string") => json!(text(schema)),
        Some("integer") => json!(7 + variant),
        Some("number") => json!(0.25 + variant as f64),
        Some("boolean") => json!(variant.is_multiple_of(2)),
        Some("null") => Value::Null,
        Some(other) => panic!("no sample for the type {other}"),
        None => json!({"any": [null, true, -1.5, "é", [], {}]}),
    }
}

/// Returns a plain value with the required properties only.
pub(crate) fn minimal(root: &Value, schema: &Value) -> Value {
    let schema = resolve(root, schema);
    if let Some(branch) = branches(schema).and_then(|branches| branches.first()) {
        return minimal(root, branch);
    }
    let first = schema.get("enum").and_then(|values| values.get(0));
    if let Some(value) = schema.get("const").or(first) {
        return value.clone();
    }
    match kind(schema, 0) {
        Some("object") => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let properties = properties.into_iter().flatten();
            let wanted = properties.filter(|(name, _)| requires(schema, name));
            let fields = wanted.map(|(name, part)| (name.clone(), minimal(root, part)));
            Value::Object(fields.collect())
        }
        Some("array") => json!([minimal(root, schema.get("items").unwrap_or(&json!({})))]),
        Some("string") if schema.get("format").is_none() => json!("sample"),
        _ => full(root, schema, 0),
    }
}

/// Returns the required properties of an object schema.
pub(crate) fn required(schema: &Value) -> Map<String, Value> {
    let properties = schema["properties"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let wanted = properties.iter().filter(|(name, _)| requires(schema, name));
    wanted
        .map(|(name, part)| (name.clone(), full(schema, part, 0)))
        .collect()
}

/// Returns all values that differ in one place from `value`, the complete sample of this variant: optional parts become
/// null, lists and objects become empty, objects get an unknown field, enums an unknown value, and numbers become large
/// or very precise. An open API accepts all of them.
pub(crate) fn edits(root: &Value, schema: &Value, variant: usize, value: &Value) -> Vec<Value> {
    let schema = resolve(root, schema);
    if let Some(branches) = branches(schema) {
        let branch = &branches[variant % branches.len()];
        return edits(root, branch, variant / branches.len(), value);
    }
    match value {
        Value::Object(fields) => object_edits(root, schema, variant, fields),
        Value::Array(items) => {
            let mut edited = vec![json!([])];
            let part = schema.get("items").unwrap_or(&Value::Null);
            for (index, item) in items.iter().enumerate() {
                for other in edits(root, part, variant + index, item) {
                    let mut items = items.clone();
                    items[index] = other;
                    edited.push(Value::Array(items));
                }
            }
            edited
        }
        Value::String(_) if schema.get("enum").is_some() => vec![json!("no such value ✓")],
        Value::String(_) => vec![json!("")],
        Value::Number(number) => {
            let mut edited = vec![
                json!(9_007_199_254_740_993_u64),
                json!(u64::MAX),
                json!(i64::MIN),
            ];
            if number.is_f64() {
                edited.extend([json!(0.005), json!(1e-7), json!(0.1), json!(3)]);
            }
            edited
        }
        Value::Bool(_) | Value::Null => Vec::new(),
    }
}

fn object_edits(
    root: &Value,
    schema: &Value,
    variant: usize,
    fields: &Map<String, Value>,
) -> Vec<Value> {
    let with = |name: &str, value: Value| {
        let mut fields = fields.clone();
        fields.insert(name.to_owned(), value);
        Value::Object(fields)
    };
    let mut edited = vec![with(UNKNOWN_FIELD, json!({"a": [null, {}], "b": u64::MAX}))];
    if !fields.keys().any(|name| requires(schema, name)) {
        edited.push(json!({}));
    }
    for (name, value) in fields {
        if !requires(schema, name) {
            edited.push(with(name, Value::Null));
        }
        let others = edits(root, property(schema, name), variant, value);
        edited.extend(others.into_iter().map(|other| with(name, other)));
    }
    edited
}

/// Returns the schema of a declared or additional property.
fn property<'a>(schema: &'a Value, name: &str) -> &'a Value {
    let declared = schema.get("properties").and_then(|all| all.get(name));
    declared
        .or_else(|| schema.get("additionalProperties"))
        .unwrap_or(&Value::Null)
}

fn object(root: &Value, schema: &Value, variant: usize) -> Value {
    let mut fields = Map::new();
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (name, part) in properties {
            fields.insert(name.clone(), full(root, part, variant));
        }
    }
    if let Some(further) = schema
        .get("additionalProperties")
        .filter(|part| part.is_object())
    {
        fields.insert("further é".to_owned(), full(root, further, variant));
    }
    Value::Object(fields)
}

/// Returns the type of a schema; `variant` chooses among several.
fn kind(schema: &Value, variant: usize) -> Option<&str> {
    match schema.get("type")? {
        Value::Array(kinds) => kinds[variant % kinds.len()].as_str(),
        kind => kind.as_str(),
    }
}

fn text(schema: &Value) -> &'static str {
    match schema.get("format").and_then(Value::as_str) {
        Some("date-time") => "2026-04-03T10:20:30.123Z",
        Some("uri") => "https://example.com/a%20b?c=d&e=%C3%A9#f",
        _ => "a \"quoted\" text\\ with é, 漢字, 🙂, \u{7f} and\na line break",
    }
}
