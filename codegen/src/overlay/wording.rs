//! Overlays with our wording. They describe what a spec has and add nothing else, so that a field that upstream
//! removed does not come back as an empty one. An action with `x-if-absent: true` keeps the texts that are there.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{ActionChange, NO_TARGET, OverlayAction, parse_actions};
use crate::error::{Notice, Result};
use crate::load::{Document, escape};

/// Adds the texts of `overlay` to `document` and reports every text without a place.
pub fn apply_wording(document: &mut Document, overlay: &Document) -> Result<Vec<Notice>> {
    let mut notices = Vec::new();
    for action in &parse_actions(overlay)? {
        let messages = describe(action, &mut document.root);
        notices.extend(action.notices(overlay, messages));
    }
    Ok(notices)
}

fn describe(action: &OverlayAction, root: &mut Value) -> Vec<String> {
    let ActionChange::Update { value, if_absent } = &action.change else {
        return vec!["wording only adds texts; action skipped".to_owned()];
    };
    let mut messages = Vec::new();
    let (pointers, _) = action.find(root, &mut messages);
    if pointers.is_empty() {
        return vec![NO_TARGET.to_owned()];
    }
    let mut placed = BTreeSet::new();
    for pointer in &pointers {
        if let Some(node) = root.pointer_mut(pointer) {
            add_texts(node, value, *if_absent, "", &mut placed);
        }
    }
    let mut all = BTreeSet::new();
    collect_texts(value, "", &mut all);
    let left_out: Vec<String> = all
        .difference(&placed)
        .map(|place| format!("`{place}`"))
        .collect();
    if !left_out.is_empty() {
        messages.push(format!("nothing to describe at {}", left_out.join(", ")));
    }
    messages
}

/// Adds the texts of `update` that `node` has a place for, and records where they are in `update`.
fn add_texts(
    node: &mut Value,
    update: &Value,
    if_absent: bool,
    place: &str,
    placed: &mut BTreeSet<String>,
) {
    let (Value::Object(node), Value::Object(update)) = (node, update) else {
        return;
    };
    for (key, value) in update {
        let place = format!("{place}/{}", escape(key));
        if !is_text(key, value) {
            if let Some(child) = node.get_mut(key) {
                add_texts(child, value, if_absent, &place, placed);
            }
            continue;
        }
        let present = node.get(key);
        // An object here would be a property that is called `description`.
        if present.is_none_or(Value::is_string) {
            if present.is_none() || !if_absent {
                node.insert(key.clone(), value.clone());
            }
            placed.insert(place);
        }
    }
}

/// Lists the places of all values of `update`, of which only texts are ever placed.
fn collect_texts(update: &Value, place: &str, texts: &mut BTreeSet<String>) {
    match update {
        Value::Object(map) => {
            for (key, value) in map {
                collect_texts(value, &format!("{place}/{}", escape(key)), texts);
            }
        }
        _ => {
            texts.insert(place.to_owned());
        }
    }
}

fn is_text(key: &str, value: &Value) -> bool {
    value.is_string() && (key == "description" || key == "summary")
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
            file: "wording.yaml".into(),
            root: json!({"overlay": "1.0.0", "info": {"title": "t", "version": "1"}, "actions": actions}),
        };
        let notices = apply_wording(&mut document, &overlay).unwrap();
        let notices = notices.iter().map(ToString::to_string).collect();
        (document.root, notices)
    }

    #[test]
    fn describes_what_exists_and_reports_the_rest() {
        let (root, notices) = run(
            json!({"a": {"properties": {"b": {"type": "string"}}}}),
            json!([{"target": "$.a", "update": {"description": "A.", "type": "object", "properties": {
                "b": {"description": "B."}, "gone": {"description": "G."}}}}]),
        );
        assert_eq!(
            root,
            json!({"a": {"properties": {"b": {"type": "string", "description": "B."}}, "description": "A."}})
        );
        let [notice] = notices.as_slice() else {
            panic!("{notices:?}")
        };
        assert!(
            notice.contains("nothing to describe at `/properties/gone/description`, `/type`"),
            "{notice}"
        );
    }

    #[test]
    fn one_of_several_targets_is_enough() {
        let (root, notices) = run(
            json!({"a": {"properties": {"b": {}}}, "c": {"properties": {"d": {}}}}),
            json!([{"target": "$..properties", "update": {"b": {"description": "B."}, "d": {"description": "D."}}}]),
        );
        assert_eq!(
            root,
            json!({"a": {"properties": {"b": {"description": "B."}}},
                "c": {"properties": {"d": {"description": "D."}}}})
        );
        assert!(notices.is_empty(), "{notices:?}");
    }

    #[test]
    fn if_absent_keeps_texts_that_are_there() {
        let action = |if_absent: bool| json!([{"target": "$[*]", "x-if-absent": if_absent, "update": {"description": "New."}}]);
        let spec = json!({"a": {"description": "Old."}, "b": {}});
        let (root, notices) = run(spec.clone(), action(true));
        assert_eq!(
            root,
            json!({"a": {"description": "Old."}, "b": {"description": "New."}})
        );
        assert!(notices.is_empty(), "{notices:?}");
        let (root, _) = run(spec, action(false));
        assert_eq!(root["a"]["description"], "New.");
    }

    #[test]
    fn a_property_called_description_is_no_text() {
        let spec = json!({"properties": {"description": {"type": "string"}}});
        let (root, notices) = run(
            spec.clone(),
            json!([{"target": "$.properties", "update": {"description": "Lost."}}]),
        );
        assert_eq!(root, spec);
        assert_eq!(notices.len(), 1, "{notices:?}");
        let (root, notices) = run(
            spec,
            json!([{"target": "$.properties", "update": {"description": {"description": "Kept."}}}]),
        );
        assert_eq!(
            root,
            json!({"properties": {"description": {"type": "string", "description": "Kept."}}})
        );
        assert!(notices.is_empty(), "{notices:?}");
    }

    #[test]
    fn finds_a_path_with_other_variable_names() {
        let (root, notices) = run(
            json!({"paths": {"/a/{runId}": {"get": {"parameters": [{"name": "runId"}]}}}}),
            json!([{"target": "$.paths['/a/{id}'].get.parameters[?@.name=='id']", "update": {"description": "Run."}},
                {"target": "$.paths['/b'].get", "update": {"summary": "B"}},
                {"target": "$.paths['/a/{id}']", "remove": true}]),
        );
        assert_eq!(
            root,
            json!({"paths": {"/a/{runId}": {"get": {"parameters": [{"name": "runId", "description": "Run."}]}}}})
        );
        assert_eq!(notices.len(), 3, "{notices:?}");
        assert!(notices[1].contains("no longer matches"), "{notices:?}");
        assert!(notices[2].contains("only adds texts"), "{notices:?}");
    }
}
