//! Resolves references and merges `allOf` into one schema object.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// The longest chain of references that is followed.
const MAX_DEPTH: usize = 32;

/// Keywords that define the structure of a value; the others describe or restrict it.
const STRUCTURAL: [&str; 11] = [
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "items",
    "prefixItems",
    "enum",
    "const",
    "oneOf",
    "anyOf",
    "allOf",
];

/// Returns whether a schema defines the structure of a value.
pub(super) fn is_structural(schema: &Value) -> bool {
    let has = |key: &str| schema.get(key).is_some();
    has("type") || has("$ref") || STRUCTURAL.into_iter().any(has)
}

/// Returns the target of a schema that is a reference and adds no structure to it.
pub(super) fn sole_reference(schema: &Value) -> Option<&str> {
    let target = schema.get("$ref")?.as_str()?;
    let adds = STRUCTURAL.iter().any(|key| schema.get(*key).is_some());
    (!adds).then_some(target)
}

/// Returns the name and the schema that a reference inside `root` points to.
pub(super) fn resolve<'a>(root: &'a Value, target: &str) -> Option<(String, &'a Value)> {
    let pointer = target.strip_prefix('#')?;
    let name = pointer
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .replace("~1", "/")
        .replace("~0", "~");
    Some((name, root.pointer(pointer)?))
}

/// Returns a schema with its references resolved and its `allOf` merged.
pub(super) fn flatten(root: &Value, schema: &Value) -> Value {
    flatten_at(root, schema, 0)
}

fn flatten_at(root: &Value, schema: &Value, depth: usize) -> Value {
    let Value::Object(object) = schema else {
        return schema.clone();
    };
    if depth > MAX_DEPTH {
        return json!({});
    }
    let mut own = object.clone();
    let reference = own.remove("$ref");
    let branches = own.remove("allOf");
    let mut parts = Vec::new();
    if let Some(target) = reference.as_ref().and_then(Value::as_str) {
        let Some((_, found)) = resolve(root, target) else {
            return json!({});
        };
        parts.push(flatten_at(root, found, depth + 1));
    }
    if let Some(Value::Array(branches)) = branches {
        let flat = |branch| flatten_at(root, branch, depth + 1);
        parts.extend(branches.iter().map(flat));
    }
    let mut whole = Map::new();
    for part in parts {
        if let Value::Object(part) = part {
            merge(&mut whole, part);
        }
    }
    merge(&mut whole, own);
    Value::Object(whole)
}

/// Merges a schema that also applies; on conflict the later one is more specific.
pub(super) fn merge(whole: &mut Map<String, Value>, part: Map<String, Value>) {
    for (key, value) in part {
        let before = whole.remove(&key);
        let joined = match (key.as_str(), before, value) {
            ("properties", Some(Value::Object(mut all)), Value::Object(more)) => {
                merge_properties(&mut all, more);
                Value::Object(all)
            }
            ("required", Some(Value::Array(mut all)), Value::Array(more)) => {
                all.extend(more);
                Value::Array(all)
            }
            (_, _, value) => value,
        };
        whole.insert(key, joined);
    }
}

fn merge_properties(all: &mut Map<String, Value>, more: Map<String, Value>) {
    for (name, schema) in more {
        let joined = match all.get(&name) {
            Some(before) if *before != schema => json!({"allOf": [before, schema]}),
            _ => schema,
        };
        all.insert(name, joined);
    }
}

/// Returns a text that is equal for equal schemas, including their referenced definitions.
pub(super) fn fingerprint(root: &Value, schema: &Value) -> String {
    let mut targets = BTreeSet::new();
    collect_references(root, schema, &mut targets);
    let mut text = schema.to_string();
    for target in targets {
        let found = resolve(root, &target).map(|(_, found)| found.to_string());
        text.push_str(&format!("\n{target}={}", found.unwrap_or_default()));
    }
    text
}

fn collect_references(root: &Value, value: &Value, targets: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            let target = object.get("$ref").and_then(Value::as_str);
            if let Some(target) = target
                && targets.insert(target.to_owned())
                && let Some((_, found)) = resolve(root, target)
            {
                collect_references(root, found, targets);
            }
            for part in object.values() {
                collect_references(root, part, targets);
            }
        }
        Value::Array(parts) => {
            for part in parts {
                collect_references(root, part, targets);
            }
        }
        _ => {}
    }
}
