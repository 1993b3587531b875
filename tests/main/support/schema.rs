//! Reads the subset of JSON Schema that the published schemas use.

use serde_json::Value;

/// Resolves `$ref`. The siblings of a `$ref` do not matter to these tests.
pub(crate) fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    while let Some(target) = reference(schema) {
        schema = lookup(root, target).unwrap_or_else(|| panic!("{target} cannot be resolved"));
    }
    schema
}

/// Returns the branches of a union, or `None` for other schemas.
pub(crate) fn branches(schema: &Value) -> Option<&Vec<Value>> {
    ["oneOf", "anyOf"]
        .iter()
        .find_map(|keyword| schema.get(keyword)?.as_array())
}

/// Returns the number of branches of the widest union in a schema, or 1 if it has no unions.
pub(crate) fn widest_union(root: &Value) -> usize {
    let mut widest = 1;
    walk(root, &mut |part| {
        let count = branches(part).map_or(1, Vec::len);
        widest = widest.max(count);
    });
    widest
}

/// Returns whether an object schema requires this property.
pub(crate) fn requires(schema: &Value, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|required| required == name))
}

/// Returns the references in a schema that cannot be resolved.
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

/// Returns the target of a reference. A property named `$ref` holds a schema, not a string.
fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()
}

fn lookup<'a>(root: &'a Value, target: &str) -> Option<&'a Value> {
    root.pointer(target.strip_prefix('#')?)
}
