//! Dotted paths into arguments: `contents.text.maxCharacters`.

use serde_json::{Map, Value};

/// Whether something stands at the path.
pub(super) fn has(map: &Map<String, Value>, path: &str) -> bool {
    match path.split_once('.') {
        None => map.contains_key(path),
        Some((first, rest)) => match map.get(first) {
            Some(Value::Object(inner)) => has(inner, rest),
            // A plain value where an object could stand says all there is to say.
            Some(_) => true,
            None => false,
        },
    }
}

/// Puts a value at the path; plain values on the way give way to objects.
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

/// Adds a value beside what is there; what is there wins where both say something.
pub(super) fn join(map: &mut Map<String, Value>, name: String, value: Value) {
    match (map.get_mut(&name), value) {
        (Some(Value::Object(present)), Value::Object(more)) => {
            for (name, value) in more {
                join(present, name, value);
            }
        }
        (Some(_), _) => {}
        (None, value) => drop(map.insert(name, value)),
    }
}

/// Takes away what stands at the path.
pub(super) fn take(map: &mut Map<String, Value>, path: &str) -> Option<Value> {
    match path.split_once('.') {
        None => map.shift_remove(path),
        Some((first, rest)) => match map.get_mut(first) {
            Some(Value::Object(inner)) => take(inner, rest),
            _ => None,
        },
    }
}

/// Sets what is absent.
pub(super) fn fill(map: &mut Map<String, Value>, defaults: &Map<String, Value>) {
    for (path, value) in defaults {
        if !has(map, path) {
            set(map, path, value.clone());
        }
    }
}

/// Sets in any case.
pub(super) fn force(map: &mut Map<String, Value>, fixed: &Map<String, Value>) {
    for (path, value) in fixed {
        set(map, path, value.clone());
    }
}
