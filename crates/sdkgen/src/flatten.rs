//! References and `allOf` of a schema, put together into one object.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// Chains of references longer than this lead nowhere.
const DEEPEST: usize = 32;

/// Keywords that say what a value looks like; the others describe it or narrow it further.
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

/// Whether a schema says anything about the form of a value.
pub(super) fn is_structural(schema: &Value) -> bool {
    let says = |key: &str| schema.get(key).is_some();
    schema.get("type").is_some() || schema.get("$ref").is_some() || STRUCTURAL.into_iter().any(says)
}

/// The target of a schema that is a reference and adds nothing to it but words.
pub(super) fn plain_reference(schema: &Value) -> Option<&str> {
    let target = schema.get("$ref")?.as_str()?;
    let adds = STRUCTURAL.iter().any(|key| schema.get(*key).is_some());
    (!adds).then_some(target)
}

/// The name and the schema that a reference inside `root` points to.
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

/// A schema with its references and `allOf` put together.
pub(super) fn flatten(root: &Value, schema: &Value) -> Value {
    flatten_at(root, schema, 0)
}

fn flatten_at(root: &Value, schema: &Value, depth: usize) -> Value {
    let Value::Object(object) = schema else {
        return schema.clone();
    };
    if depth > DEEPEST {
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

/// Adds a schema that has to hold too; where both speak, the later one is more exact.
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

/// A text that is the same for schemas that mean the same, wherever they stand.
pub(super) fn fingerprint(root: &Value, schema: &Value) -> String {
    let mut targets = BTreeSet::new();
    gather(root, schema, &mut targets);
    let mut text = schema.to_string();
    for target in targets {
        let found = resolve(root, &target).map(|(_, found)| found.to_string());
        text.push_str(&format!("\n{target}={}", found.unwrap_or_default()));
    }
    text
}

fn gather(root: &Value, value: &Value, targets: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            let target = object.get("$ref").and_then(Value::as_str);
            if let Some(target) = target
                && targets.insert(target.to_owned())
                && let Some((_, found)) = resolve(root, target)
            {
                gather(root, found, targets);
            }
            object.values().for_each(|part| gather(root, part, targets));
        }
        Value::Array(parts) => parts.iter().for_each(|part| gather(root, part, targets)),
        _ => {}
    }
}
