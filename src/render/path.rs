//! Dotted paths into JSON; `*` stands for any one field.

use serde_json::{Map, Value};

/// Up to this many fields, a linear search is faster than hashing.
const LINEAR_SEARCH_MAX: usize = 16;

/// Returns a field of an object.
pub(super) fn field<'a>(map: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    if map.len() > LINEAR_SEARCH_MAX {
        return map.get(name);
    }
    let mut fields = map.iter();
    fields.find_map(|(own, value)| (own == name).then_some(value))
}

/// Returns the first value at one of the paths that is not empty.
pub(super) fn first<'a>(value: &'a Value, paths: &[&str]) -> Option<&'a Value> {
    paths.iter().find_map(|path| get(value, path))
}

/// Returns the value at a path, if it is not empty.
pub(super) fn get<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let (head, rest) = match path.split_once('.') {
        Some((head, rest)) => (head, Some(rest)),
        None => (path, None),
    };
    let inside = |value: &'a Value| match rest {
        Some(rest) => get(value, rest),
        None => Some(value).filter(|value| !is_empty(value)),
    };
    match (value, head) {
        (Value::Object(map), "*") => map.values().find_map(inside),
        (Value::Object(map), head) => inside(field(map, head)?),
        _ => None,
    }
}

/// Takes the value at a path, if it is not empty, and leaves null behind. An object is copied instead, because
/// other paths may lead through it.
pub(super) fn take(value: &mut Value, path: &str) -> Option<Value> {
    let (head, rest) = match path.split_once('.') {
        Some((head, rest)) => (head, Some(rest)),
        None => (path, None),
    };
    let inside = |value: &mut Value| match rest {
        Some(rest) => take(value, rest),
        None if is_empty(value) => None,
        None if value.is_object() => Some(value.clone()),
        None => Some(value.take()),
    };
    match (value, head) {
        (Value::Object(map), "*") => map.values_mut().find_map(inside),
        (Value::Object(map), head) => inside(map.get_mut(head)?),
        _ => None,
    }
}

/// Returns whether a value is null, blank or empty.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Returns the parts of a value at the paths, with the structure unchanged; lists are traversed.
pub(super) fn pick(value: &Value, paths: &[&str]) -> Value {
    part(value, paths).unwrap_or_else(|| Value::Object(Map::new()))
}

/// Returns the fields of an object at the paths.
pub(super) fn pick_fields(value: &Value, paths: &[&str]) -> impl Iterator<Item = (String, Value)> {
    let fields = value.as_object().into_iter().flatten();
    fields.filter_map(|(name, inner)| {
        let below: Vec<&str> = below(paths, name).collect();
        let inner = match below.as_slice() {
            [] => return None,
            below if below.contains(&"") => inner.clone(),
            below => part(inner, below)?,
        };
        Some((name.clone(), inner))
    })
}

fn part(value: &Value, paths: &[&str]) -> Option<Value> {
    let picked = match value {
        Value::Array(list) => list.iter().filter_map(|entry| part(entry, paths)).collect(),
        Value::Object(_) => Value::Object(pick_fields(value, paths).collect()),
        // A scalar has nothing below it.
        _ => return None,
    };
    Some(picked).filter(|picked| !is_empty(picked))
}

/// Returns the remainders of the paths that lead through `name`; empty for one that ends there.
fn below<'a>(paths: &[&'a str], name: &str) -> impl Iterator<Item = &'a str> {
    paths.iter().filter_map(move |path| {
        let (head, rest) = path.split_once('.').unwrap_or((path, ""));
        (head == name || head == "*").then_some(rest)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_values_at_paths() {
        let value = json!({"a": {"b": {"name": "x"}}, "empty": "", "n": 0});
        assert_eq!(get(&value, "a.b.name"), Some(&json!("x")));
        assert_eq!(get(&value, "a.*.name"), Some(&json!("x")));
        assert_eq!(first(&value, &["empty", "n"]), Some(&json!(0)));
        assert_eq!(get(&value, "a.c"), None);
        assert_eq!(get(&value, "n.c"), None);
        let mut value = value;
        assert_eq!(take(&mut value, "a.*.name"), Some(json!("x")));
        assert_eq!(take(&mut value, "a.b.name"), None);
        assert_eq!(take(&mut value, "empty"), None);
        assert_eq!(
            value,
            json!({"a": {"b": {"name": null}}, "empty": "", "n": 0})
        );
    }

    #[test]
    fn picks_fields() {
        let value = json!({"a": [{"b": 1, "c": 2}, {"b": 3}], "d": 4, "e": 5});
        let picked = pick(&value, &["a.b", "e", "x"]);
        assert_eq!(picked, json!({"a": [{"b": 1}, {"b": 3}], "e": 5}));
        let value = json!({"p": {"type": "x", "company": {"name": "n"}, "none": null}, "list": [1, {"name": 2}]});
        assert_eq!(
            pick(&value, &["*.*.name", "p.none"]),
            json!({"p": {"company": {"name": "n"}, "none": null}})
        );
        assert_eq!(pick(&value, &["list.name"]), json!({"list": [{"name": 2}]}));
        assert_eq!(pick(&value, &["x.y"]), json!({}));
    }
}
