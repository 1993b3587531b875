//! Stage 2: the overlay adds and corrects what upstream's file lacks or gets wrong.
//!
//! OpenAPI Overlay 1.0 with two helps for a moving target: list entries that are already there are
//! not added twice, and an action marked `x-if-absent: true` leaves alone what upstream has by now.

use serde_json::{Map, Value};
use serde_json_path::JsonPath;

use crate::error::{Error, Notice, Result};
use crate::load::Document;

/// Applies `overlay` to `document` and reports every action that found or changed nothing.
pub fn apply(document: &mut Document, overlay: &Document) -> Result<Vec<Notice>> {
    let actions = actions(overlay)?;
    let mut notices = Vec::new();
    for action in &actions {
        let outcome = action.run(&mut document.root);
        notices.extend(outcome.into_iter().map(|text| Notice {
            file: overlay.file.clone(),
            place: format!("action {} ({})", action.number, action.target_text),
            text,
        }));
    }
    Ok(notices)
}

struct Action {
    number: usize,
    target_text: String,
    target: JsonPath,
    change: Change,
}

enum Change {
    Update { value: Value, if_absent: bool },
    Remove,
}

/// Checks the whole overlay before anything is applied.
fn actions(overlay: &Document) -> Result<Vec<Action>> {
    let version = overlay.root.get("overlay").and_then(Value::as_str);
    if !version.is_some_and(|v| v.starts_with("1.")) {
        return Err(overlay.error(
            "/overlay",
            "not an OpenAPI Overlay: the field `overlay` must give a 1.x version".to_owned(),
        ));
    }
    let Some(Value::Array(actions)) = overlay.root.get("actions") else {
        return Err(overlay.error("/actions", "`actions` must be a list".to_owned()));
    };
    actions
        .iter()
        .enumerate()
        .map(|(index, action)| parse_action(overlay, index, action))
        .collect()
}

fn parse_action(overlay: &Document, index: usize, action: &Value) -> Result<Action> {
    let fail = |message: String| -> Error { overlay.error(&format!("/actions/{index}"), message) };
    let Some(target_text) = action.get("target").and_then(Value::as_str) else {
        return Err(fail("an action needs a `target` (JSONPath)".to_owned()));
    };
    let target = JsonPath::parse(target_text)
        .map_err(|error| fail(format!("`target` is not a JSONPath: {error}")))?;
    let remove = action.get("remove") == Some(&Value::Bool(true));
    let if_absent = action.get("x-if-absent") == Some(&Value::Bool(true));
    let change = match (action.get("update"), remove) {
        (_, true) if target_text.trim() == "$" => {
            return Err(fail("the whole document cannot be removed".to_owned()));
        }
        (_, true) => Change::Remove,
        (Some(value), false) => Change::Update {
            value: value.clone(),
            if_absent,
        },
        (None, false) => {
            return Err(fail(
                "an action needs `update` or `remove: true`".to_owned(),
            ));
        }
    };
    Ok(Action {
        number: index + 1,
        target_text: target_text.to_owned(),
        target,
        change,
    })
}

impl Action {
    /// Applies the action; the texts say what a maintainer should know.
    fn run(&self, root: &mut Value) -> Vec<String> {
        let mut pointers: Vec<String> = self
            .target
            .query_located(root)
            .locations()
            .map(|location| location.to_json_pointer())
            .collect();
        if pointers.is_empty() {
            return vec!["the target matches nothing any more; the action was left out".to_owned()];
        }
        // Removing from the end keeps the positions of the remaining list entries valid.
        pointers.reverse();
        let mut notices = Vec::new();
        let mut changed = false;
        for pointer in &pointers {
            changed |= match &self.change {
                Change::Remove => remove(root, pointer),
                Change::Update { value, if_absent } => {
                    let Some(node) = root.pointer_mut(pointer) else {
                        continue;
                    };
                    let value = match if_absent {
                        true => without_present(node, value, &mut notices),
                        false => value.clone(),
                    };
                    merge(node, &value)
                }
            };
        }
        if !changed && notices.is_empty() {
            notices.push(
                "changes nothing: upstream already says this; the action can be deleted".to_owned(),
            );
        }
        notices
    }
}

/// The part of `update` whose keys `node` does not have yet.
fn without_present(node: &Value, update: &Value, notices: &mut Vec<String>) -> Value {
    let (Value::Object(present), Value::Object(update)) = (node, update) else {
        return update.clone();
    };
    let (known, new): (Vec<_>, Vec<_>) = update
        .iter()
        .partition(|(key, _)| present.contains_key(*key));
    notices.extend(
        known
            .iter()
            .map(|(key, _)| format!("upstream now has `{key}`; its version is used")),
    );
    new.into_iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect::<Map<_, _>>()
        .into()
}

fn remove(root: &mut Value, pointer: &str) -> bool {
    let Some((parent, last)) = pointer.rsplit_once('/') else {
        return false;
    };
    let key = last.replace("~1", "/").replace("~0", "~");
    match root.pointer_mut(parent) {
        Some(Value::Object(map)) => map.shift_remove(&key).is_some(),
        Some(Value::Array(list)) => match key.parse::<usize>() {
            Ok(index) if index < list.len() => {
                list.remove(index);
                true
            }
            _ => false,
        },
        _ => false,
    }
}

/// Merges `update` into `node`; says whether anything changed.
fn merge(node: &mut Value, update: &Value) -> bool {
    match (node, update) {
        (Value::Object(node), Value::Object(update)) => {
            let mut changed = false;
            for (key, value) in update {
                changed |= match node.get_mut(key) {
                    Some(existing) => merge(existing, value),
                    None => {
                        node.insert(key.clone(), value.clone());
                        true
                    }
                };
            }
            changed
        }
        (Value::Array(node), Value::Array(entries)) => {
            let mut changed = false;
            for entry in entries {
                changed |= append(node, entry);
            }
            changed
        }
        (Value::Array(node), entry) => append(node, entry),
        (node, update) => {
            let changed = node != update;
            *node = update.clone();
            changed
        }
    }
}

/// Adds `entry` unless it is there; a parameter is merged into the one of the same name and place.
fn append(list: &mut Vec<Value>, entry: &Value) -> bool {
    let identity = |value: &Value| {
        let name = value.get("name")?.as_str()?.to_owned();
        let place = value.get("in")?.as_str()?.to_owned();
        Some((name, place))
    };
    if let Some(wanted) = identity(entry)
        && let Some(existing) = list
            .iter_mut()
            .find(|value| identity(value).as_ref() == Some(&wanted))
    {
        return merge(existing, entry);
    }
    if list.contains(entry) {
        return false;
    }
    list.push(entry.clone());
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(root: Value, actions: Value) -> (Value, Vec<String>) {
        let mut document = Document {
            file: "spec.yaml".into(),
            root,
        };
        let overlay = Document {
            file: "overlay.yaml".into(),
            root: json!({"overlay": "1.0.0", "info": {"title": "t", "version": "1"}, "actions": actions}),
        };
        let notices = apply(&mut document, &overlay).unwrap();
        let notices = notices.iter().map(ToString::to_string).collect();
        (document.root, notices)
    }

    #[test]
    fn update_merges_objects_replaces_scalars_and_appends_to_lists() {
        let (root, notices) = run(
            json!({"a": {"b": 1, "keep": true, "list": [1, 2]}}),
            json!([{"target": "$.a", "update": {"b": 2, "c": {"d": 3}, "list": [2, 3]}}]),
        );
        assert_eq!(
            root,
            json!({"a": {"b": 2, "keep": true, "list": [1, 2, 3], "c": {"d": 3}}})
        );
        assert!(notices.is_empty());
    }

    #[test]
    fn a_list_target_takes_one_entry_or_several() {
        let (root, _) = run(
            json!({"enum": ["a"]}),
            json!([{"target": "$.enum", "update": "b"}, {"target": "$.enum", "update": ["b", "c"]}]),
        );
        assert_eq!(root, json!({"enum": ["a", "b", "c"]}));
    }

    #[test]
    fn wildcards_and_filters_reach_several_nodes() {
        let (root, _) = run(
            json!({"p": [{"name": "x", "in": "path"}, {"name": "y", "in": "path"}]}),
            json!([{"target": "$.p[?@.name=='y']", "update": {"in": "query"}}]),
        );
        assert_eq!(
            root,
            json!({"p": [{"name": "x", "in": "path"}, {"name": "y", "in": "query"}]})
        );
    }

    #[test]
    fn remove_takes_out_keys_and_every_matching_list_entry() {
        let (root, _) = run(
            json!({"p": [1, 2, 1], "k/x": 1}),
            json!([{"target": "$.p[?@==1]", "remove": true}, {"target": "$['k/x']", "remove": true}]),
        );
        assert_eq!(root, json!({"p": [2]}));
    }

    #[test]
    fn a_parameter_that_upstream_has_by_now_is_not_doubled() {
        let (root, _) = run(
            json!({"parameters": [{"name": "cursor", "in": "query", "required": false}]}),
            json!([{"target": "$.parameters", "update": {"name": "cursor", "in": "query", "schema": {}}}]),
        );
        assert_eq!(
            root,
            json!({"parameters": [{"name": "cursor", "in": "query", "required": false, "schema": {}}]})
        );
    }

    #[test]
    fn an_action_without_a_target_node_is_reported_and_left_out() {
        let (root, notices) = run(
            json!({"a": 1}),
            json!([{"target": "$.gone.b", "update": {"x": 1}}]),
        );
        assert_eq!(root, json!({"a": 1}));
        assert!(notices[0].contains("action 1 ($.gone.b)"), "{notices:?}");
        assert!(notices[0].contains("matches nothing"), "{notices:?}");
    }

    #[test]
    fn an_action_that_changes_nothing_is_reported() {
        let (_, notices) = run(
            json!({"a": {"b": 1}}),
            json!([{"target": "$.a", "update": {"b": 1}}]),
        );
        assert!(notices[0].contains("changes nothing"), "{notices:?}");
    }

    #[test]
    fn if_absent_leaves_upstreams_version_alone() {
        let (root, notices) = run(
            json!({"paths": {"/a": {"get": 1}}}),
            json!([{"target": "$.paths", "x-if-absent": true, "update": {"/a": {"get": 2}, "/b": 3}}]),
        );
        assert_eq!(root, json!({"paths": {"/a": {"get": 1}, "/b": 3}}));
        assert!(notices[0].contains("upstream now has `/a`"), "{notices:?}");
    }

    #[test]
    fn what_is_not_an_overlay_is_refused_with_the_place() {
        let refused = |root: Value| {
            let mut document = Document {
                file: "spec.yaml".into(),
                root: json!({"a": 1}),
            };
            let overlay = Document {
                file: "o.yaml".into(),
                root,
            };
            let text = apply(&mut document, &overlay).unwrap_err().to_string();
            assert_eq!(document.root, json!({"a": 1}));
            text
        };
        assert!(refused(json!({"openapi": "3.1.0"})).contains("o.yaml#/overlay"));
        assert!(refused(json!({"overlay": "1.0.0"})).contains("o.yaml#/actions"));
        let with = |action: Value| json!({"overlay": "1.0.0", "actions": [action]});
        assert!(refused(with(json!({"update": {}}))).contains("o.yaml#/actions/0"));
        assert!(refused(with(json!({"target": "a..[", "update": {}}))).contains("JSONPath"));
        assert!(refused(with(json!({"target": "$.a"}))).contains("`update` or `remove"));
        assert!(refused(with(json!({"target": "$", "remove": true}))).contains("whole document"));
    }
}
