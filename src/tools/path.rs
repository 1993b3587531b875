//! Dotted paths into arguments: `contents.text.maxCharacters`.

use serde_json::{Map, Value};

/// Returns whether there is a value at the path.
pub(super) fn has(map: &Map<String, Value>, path: &str) -> bool {
    match path.split_once('.') {
        None => map.contains_key(path),
        Some((first, rest)) => match map.get(first) {
            Some(Value::Object(inner)) => has(inner, rest),
            // A scalar in place of an object covers everything below it.
            Some(_) => true,
            None => false,
        },
    }
}

/// Sets the value at the path; scalars along the path are replaced by objects.
pub(super) fn set(map: &mut Map<String, Value>, path: &str, value: Value) {
    let Some((first, rest)) = path.split_once('.') else {
        map.insert(path.to_owned(), value);
        return;
    };
    let inner = map
        .entry(first.to_owned())
        .or_insert_with(|| Value::Object(Map::new()));
    if !inner.is_object() {
        *inner = Value::Object(Map::new());
    }
    if let Value::Object(inner) = inner {
        set(inner, rest, value);
    }
}

/// Merges a value into the map; existing values take precedence. Returns the paths of other values that they replace.
pub(super) fn join(map: &mut Map<String, Value>, name: String, value: Value) -> Vec<String> {
    match (map.get_mut(&name), value) {
        (Some(Value::Object(present)), Value::Object(more)) => more
            .into_iter()
            .flat_map(|(inner, value)| join(present, inner, value))
            .map(|path| format!("{name}.{path}"))
            .collect(),
        (Some(present), value) if *present != value && !value.is_null() => vec![name],
        (Some(_), _) => Vec::new(),
        (None, value) => {
            map.insert(name, value);
            Vec::new()
        }
    }
}

/// Returns the value at the path.
pub(super) fn get<'a>(map: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    match path.split_once('.') {
        None => map.get(path),
        Some((first, rest)) => get(map.get(first)?.as_object()?, rest),
    }
}

/// Removes and returns the value at the path.
pub(super) fn take(map: &mut Map<String, Value>, path: &str) -> Option<Value> {
    match path.split_once('.') {
        None => map.shift_remove(path),
        Some((first, rest)) => match map.get_mut(first) {
            Some(Value::Object(inner)) => take(inner, rest),
            _ => None,
        },
    }
}

/// Sets values that are absent.
pub(super) fn fill(map: &mut Map<String, Value>, defaults: &Map<String, Value>) {
    for (path, value) in defaults {
        if !has(map, path) {
            set(map, path, value.clone());
        }
    }
}

/// Sets values, replacing existing ones.
pub(super) fn force(map: &mut Map<String, Value>, fixed: &Map<String, Value>) {
    for (path, value) in fixed {
        set(map, path, value.clone());
    }
}
