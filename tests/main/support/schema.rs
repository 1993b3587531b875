//! Reading JSON Schemas, as far as the published ones go.

use serde_json::Value;

/// Follows `$ref` to what it means; siblings of a `$ref` say nothing that these tests need.
pub(crate) fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    while let Some(target) = reference(schema) {
        schema = lookup(root, target).unwrap_or_else(|| panic!("{target} leads nowhere"));
    }
    schema
}

/// The branches of a union, or nothing for other schemas.
pub(crate) fn branches(schema: &Value) -> Option<&Vec<Value>> {
    ["oneOf", "anyOf"]
        .iter()
        .find_map(|keyword| schema.get(keyword)?.as_array())
}

/// How many branches the widest union of a schema has; one if it has no unions.
pub(crate) fn widest_union(root: &Value) -> usize {
    let mut widest = 1;
    walk(root, &mut |part| {
        let count = branches(part).map_or(1, Vec::len);
        widest = widest.max(count);
    });
    widest
}

/// Says whether an object schema demands this property.
pub(crate) fn requires(schema: &Value, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|required| required == name))
}

/// The references in a schema that lead nowhere inside it.
pub(crate) fn broken_references(root: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    walk(root, &mut |part| {
        if let Some(target) = reference(part)
            && lookup(root, target).is_none()
        {
            broken.push(target.to_owned());
        }
    });
    broken
}

/// Visits every part of a value.
pub(crate) fn walk<'a>(value: &'a Value, visit: &mut impl FnMut(&'a Value)) {
    visit(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        Value::Object(fields) => fields.values().for_each(|field| walk(field, visit)),
        _ => {}
    }
}

/// The target of a reference. A property that happens to be called `$ref` has a schema, not a text.
fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()
}

fn lookup<'a>(root: &'a Value, target: &str) -> Option<&'a Value> {
    root.pointer(target.strip_prefix('#')?)
}
