//! Stage 2: applies overlays, which complete and correct upstream's specs.
//!
//! OpenAPI Overlay 1.0 with additions for a spec that changes: existing list entries are not added again, an
//! action with `x-if-absent: true` does not override what upstream has, an action finds a path whose variables
//! upstream renamed, and an action without effect is a notice. An overlay with our wording only adds texts.

mod wording;

use serde_json::{Map, Value};
use serde_json_path::JsonPath;

use crate::error::{Error, Notice, Result};
use crate::load::Document;
use crate::path_template::{self, VariableNames};

pub use wording::apply_wording;

const NO_TARGET: &str = "the target no longer matches anything; action skipped";

/// Applies `overlay` to `document` and reports every action without a target or effect.
pub fn apply(document: &mut Document, overlay: &Document) -> Result<Vec<Notice>> {
    let actions = parse_actions(overlay)?;
    let mut notices = Vec::new();
    for action in &actions {
        let messages = action.apply(&mut document.root);
        notices.extend(action.notices(overlay, messages));
    }
    Ok(notices)
}

struct OverlayAction {
    number: usize,
    target_text: String,
    target: JsonPath,
    change: ActionChange,
}

enum ActionChange {
    Update { value: Value, if_absent: bool },
    Remove,
}

/// Parses all actions, so that nothing is applied if one is invalid.
fn parse_actions(overlay: &Document) -> Result<Vec<OverlayAction>> {
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
    let mut parsed = Vec::new();
    let mut errors = Vec::new();
    for (index, action) in actions.iter().enumerate() {
        match parse_action(overlay, index, action) {
            Ok(action) => parsed.push(action),
            Err(error) => errors.push(error),
        }
    }
    Error::combine(errors).map(|()| parsed)
}

fn parse_action(overlay: &Document, index: usize, action: &Value) -> Result<OverlayAction> {
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
        (_, true) => ActionChange::Remove,
        (Some(value), false) => ActionChange::Update {
            value: value.clone(),
            if_absent,
        },
        (None, false) => {
            return Err(fail(
                "an action needs `update` or `remove: true`".to_owned(),
            ));
        }
    };
    Ok(OverlayAction {
        number: index + 1,
        target_text: target_text.to_owned(),
        target,
        change,
    })
}

impl OverlayAction {
    /// Applies the action and returns messages for the maintainer.
    fn apply(&self, root: &mut Value) -> Vec<String> {
        let mut messages = Vec::new();
        let (mut pointers, names) = self.find(root, &mut messages);
        if pointers.is_empty() {
            return vec![NO_TARGET.to_owned()];
        }
        // Remove from the end, so that the indices of the remaining list entries stay valid.
        pointers.reverse();
        let mut changed = false;
        for pointer in &pointers {
            changed |= match &self.change {
                ActionChange::Remove => remove(root, pointer),
                ActionChange::Update { value, if_absent } => {
                    let Some(node) = root.pointer_mut(pointer) else {
                        continue;
                    };
                    let mut value = value.clone();
                    path_template::rename_parameters(&mut value, &names);
                    if pointer == "/paths" {
                        value = with_current_paths(node, value, &mut messages);
                    }
                    if *if_absent {
                        value = absent_part(node, &value, &mut messages);
                    }
                    merge(node, &value)
                }
            };
        }
        if !changed && messages.is_empty() {
            messages.push(
                "no effect because upstream already has this; the action can be deleted".to_owned(),
            );
        }
        messages
    }

    /// Returns the pointers of the targets, and how upstream renamed their path variables.
    fn find(&self, root: &Value, messages: &mut Vec<String>) -> (Vec<String>, VariableNames) {
        let (target, names) = self.current_target(root, messages);
        let target = target.as_ref().unwrap_or(&self.target);
        let located = target.query_located(root);
        let pointers = located
            .locations()
            .map(|location| location.to_json_pointer())
            .collect();
        (pointers, names)
    }

    fn notices(&self, overlay: &Document, messages: Vec<String>) -> Vec<Notice> {
        let location = format!("action {} ({})", self.number, self.target_text);
        let notice = |message| Notice {
            file: overlay.file.clone(),
            location: location.clone(),
            message,
        };
        messages.into_iter().map(notice).collect()
    }

    /// Returns the target with the path variables of upstream, if they differ, and how they were renamed.
    fn current_target(
        &self,
        root: &Value,
        messages: &mut Vec<String>,
    ) -> (Option<JsonPath>, VariableNames) {
        let mut text = self.target_text.clone();
        let mut names = VariableNames::new();
        let Some(Value::Object(paths)) = root.get("paths") else {
            return (None, names);
        };
        for literal in self.target_text.split(['\'', '"']).skip(1).step_by(2) {
            if let Some(current) = path_template::equivalent(paths, literal) {
                text = text.replace(literal, current);
                names.extend(path_template::renamed_variables(literal, current));
                messages.push(renamed_path(literal, current));
            }
        }
        for (old, new) in &names {
            text = text.replace(&format!("@.name=='{old}'"), &format!("@.name=='{new}'"));
        }
        let changed = text != self.target_text;
        let target = changed.then(|| JsonPath::parse(&text).ok()).flatten();
        (target, names)
    }
}

fn renamed_path(old: &str, new: &str) -> String {
    format!("`{old}` is the same path as upstream's `{new}`, which is used")
}

/// Returns an update of `paths` whose keys are those of the same paths of upstream.
fn with_current_paths(node: &Value, update: Value, messages: &mut Vec<String>) -> Value {
    let (Value::Object(paths), Value::Object(update)) = (node, &update) else {
        return update;
    };
    let entries = update.iter().map(|(path, item)| {
        let mut item = item.clone();
        let Some(current) = path_template::equivalent(paths, path) else {
            return (path.clone(), item);
        };
        messages.push(renamed_path(path, current));
        let names = path_template::renamed_variables(path, current);
        path_template::rename_parameters(&mut item, &names);
        (current.to_owned(), item)
    });
    Value::Object(entries.collect())
}

/// Returns the part of `update` whose keys `node` does not have.
fn absent_part(node: &Value, update: &Value, messages: &mut Vec<String>) -> Value {
    let (Value::Object(present), Value::Object(update)) = (node, update) else {
        return update.clone();
    };
    let (known, new): (Vec<_>, Vec<_>) = update
        .iter()
        .partition(|(key, _)| present.contains_key(*key));
    messages.extend(
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

/// Merges `update` into `node` and returns whether anything changed.
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

/// Adds `entry` if it is not in the list. A parameter is merged into one with the same name and `in`.
fn append(list: &mut Vec<Value>, entry: &Value) -> bool {
    let identity = |value: &Value| {
        let name = value.get("name")?.as_str()?.to_owned();
        let location = value.get("in")?.as_str()?.to_owned();
        Some((name, location))
    };
    if let Some(key) = identity(entry)
        && let Some(existing) = list
            .iter_mut()
            .find(|value| identity(value).as_ref() == Some(&key))
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
    fn appends_one_or_several_entries_to_a_list_target() {
        let (root, _) = run(
            json!({"enum": ["a"]}),
            json!([{"target": "$.enum", "update": "b"}, {"target": "$.enum", "update": ["b", "c"]}]),
        );
        assert_eq!(root, json!({"enum": ["a", "b", "c"]}));
    }

    #[test]
    fn filters_select_matching_nodes() {
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
    fn removes_keys_and_every_matching_list_entry() {
        let (root, _) = run(
            json!({"p": [1, 2, 1], "k/x": 1}),
            json!([{"target": "$.p[?@==1]", "remove": true}, {"target": "$['k/x']", "remove": true}]),
        );
        assert_eq!(root, json!({"p": [2]}));
    }

    #[test]
    fn merges_a_parameter_that_upstream_already_has() {
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
    fn a_path_with_other_variable_names_is_the_path_of_upstream() {
        let parameter = |name: &str| json!({"name": name, "in": "path", "required": true});
        let spec = json!({"paths": {"/a/{runId}": {"get": {"parameters": [parameter("runId")]}}}});
        let (root, notices) = run(
            spec.clone(),
            json!([{"target": "$.paths", "x-if-absent": true, "update": {
                "/a/{id}": {"get": {"parameters": [parameter("id")]}}, "/b": {"get": {}}}},
                {"target": "$.paths['/a/{id}'].get.parameters[?@.name=='id']", "update": {"schema": {}}},
                {"target": "$.paths", "update": {"/a/{x}": {"post": {"parameters": [parameter("x")]}}}}]),
        );
        let mut described = parameter("runId");
        described["schema"] = json!({});
        let item = json!({"get": {"parameters": [described]},
            "post": {"parameters": [parameter("runId")]}});
        assert_eq!(
            root,
            json!({"paths": {"/a/{runId}": item, "/b": {"get": {}}}})
        );
        assert_eq!(notices.len(), 4, "{notices:?}");
        assert!(notices[0].contains("`/a/{id}` is the same path as upstream's `/a/{runId}`"));
    }

    #[test]
    fn reports_and_skips_an_action_without_a_target() {
        let (root, notices) = run(
            json!({"a": 1}),
            json!([{"target": "$.gone.b", "update": {"x": 1}}]),
        );
        assert_eq!(root, json!({"a": 1}));
        assert!(notices[0].contains("action 1 ($.gone.b)"), "{notices:?}");
        assert!(
            notices[0].contains("no longer matches anything"),
            "{notices:?}"
        );
    }

    #[test]
    fn reports_an_action_without_effect() {
        let (_, notices) = run(
            json!({"a": {"b": 1}}),
            json!([{"target": "$.a", "update": {"b": 1}}]),
        );
        assert!(notices[0].contains("no effect"), "{notices:?}");
    }

    #[test]
    fn if_absent_does_not_override_upstream() {
        let (root, notices) = run(
            json!({"paths": {"/a": {"get": 1}}}),
            json!([{"target": "$.paths", "x-if-absent": true, "update": {"/a": {"get": 2}, "/b": 3}}]),
        );
        assert_eq!(root, json!({"paths": {"/a": {"get": 1}, "/b": 3}}));
        assert!(notices[0].contains("upstream now has `/a`"), "{notices:?}");
    }

    #[test]
    fn rejects_invalid_overlays_with_their_location() {
        let error_for = |root: Value| {
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
        assert!(error_for(json!({"openapi": "3.1.0"})).contains("o.yaml#/overlay"));
        assert!(error_for(json!({"overlay": "1.0.0"})).contains("o.yaml#/actions"));
        let with = |action: Value| json!({"overlay": "1.0.0", "actions": [action]});
        assert!(error_for(with(json!({"update": {}}))).contains("o.yaml#/actions/0"));
        assert!(error_for(with(json!({"target": "a..[", "update": {}}))).contains("JSONPath"));
        assert!(error_for(with(json!({"target": "$.a"}))).contains("`update` or `remove"));
        assert!(error_for(with(json!({"target": "$", "remove": true}))).contains("whole document"));
    }
}
