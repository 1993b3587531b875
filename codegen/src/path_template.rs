//! Path templates, which are the same path if only the names of their variables differ.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// New names of path variables, by old name.
pub type VariableNames = BTreeMap<String, String>;

/// Returns the names of the variables, in order.
pub fn variables(path: &str) -> Vec<String> {
    path.split('{')
        .skip(1)
        .filter_map(|part| Some(part.split_once('}')?.0.to_owned()))
        .collect()
}

/// Returns the path without variable names: `/a/{}/b`.
pub fn shape(path: &str) -> String {
    let mut parts = path.split('{');
    let mut shape = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.split_once('}').map_or(part, |(_, rest)| rest);
        shape.push_str("{}");
        shape.push_str(rest);
    }
    shape
}

/// Returns how the variables of `old` are called in `new`, which is the same path.
pub fn renamed_variables(old: &str, new: &str) -> VariableNames {
    let pairs = variables(old).into_iter().zip(variables(new));
    pairs.filter(|(old, new)| old != new).collect()
}

/// Returns the key of `paths` that is the same path as `path`, if its variables have other names.
pub fn equivalent<'a>(paths: &'a Map<String, Value>, path: &str) -> Option<&'a str> {
    if !path.starts_with('/') || !path.contains('{') || paths.contains_key(path) {
        return None;
    }
    let wanted = shape(path);
    let mut keys = paths.keys();
    keys.find(|key| shape(key) == wanted).map(String::as_str)
}

/// Renames the declared path parameters of a path item, of one of its operations or of a list of parameters.
pub fn rename_parameters(node: &mut Value, names: &VariableNames) {
    match node {
        Value::Object(map) if map.get("in").and_then(Value::as_str) == Some("path") => {
            if let Some(Value::String(name)) = map.get_mut("name")
                && let Some(new) = names.get(name)
            {
                *name = new.clone();
            }
        }
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                if key == "parameters" || value.get("parameters").is_some() {
                    rename_parameters(value, names);
                }
            }
        }
        Value::Array(list) => list
            .iter_mut()
            .for_each(|entry| rename_parameters(entry, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_names_of_variables_are_ignored() {
        assert_eq!(shape("/a/{x}/b/{y}"), shape("/a/{id}/b/{z}"));
        assert_ne!(shape("/a/{x}.json"), shape("/a/{x}.xml"));
        assert_ne!(shape("/a/{x}"), shape("/a/b"));
        assert_eq!(shape("/a/{unclosed"), "/a/{}unclosed");
    }

    #[test]
    fn finds_the_same_path_with_other_variables() {
        let paths = json!({"/a/{id}": {}, "/a/b": {}});
        let paths = paths.as_object().unwrap();
        assert_eq!(equivalent(paths, "/a/{x}"), Some("/a/{id}"));
        assert_eq!(equivalent(paths, "/a/{id}"), None);
        assert_eq!(equivalent(paths, "/a/c"), None);
    }

    #[test]
    fn renames_declared_path_parameters_only() {
        let mut item = json!({
            "parameters": [{"name": "id", "in": "path"}],
            "get": {"parameters": [{"name": "id", "in": "path"}, {"name": "id", "in": "query"}]}});
        rename_parameters(&mut item, &renamed_variables("/a/{id}", "/a/{runId}"));
        assert_eq!(
            item,
            json!({
                "parameters": [{"name": "runId", "in": "path"}],
                "get": {"parameters": [{"name": "runId", "in": "path"}, {"name": "id", "in": "query"}]}})
        );
    }
}
