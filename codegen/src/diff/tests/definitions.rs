//! Named definitions: reported once, recursive, and shared by operations.

use super::super::{Impact, OperationSnapshots, compare, report};
use super::{input_changes, output_changes, single_operation, snapshot};
use serde_json::{Value, json};

/// Returns a tree whose nodes hold a `value` of the given type.
fn tree(kind: &str) -> Value {
    json!({
        "$ref": "#/$defs/Node",
        "$defs": {"Node": {"type": "object", "properties": {
            "value": {"type": kind},
            "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            "parent": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
        }}},
    })
}

#[test]
fn recursive_definitions_terminate() {
    assert_eq!(
        output_changes(tree("string"), tree("integer")),
        ["breaking output value: type string → integer (breaks clients that rely on it)"]
    );
}

#[test]
fn recursion_at_different_depths_terminates() {
    // The references of the two versions lie at different depths and never meet.
    let even = json!({
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "object", "properties": {
            "x": {"type": "object", "properties": {"x": {"$ref": "#/$defs/A"}}},
        }}},
    });
    let odd = json!({
        "type": "object",
        "properties": {"x": {"type": "object", "properties": {"x": {"$ref": "#/$defs/B"}}}},
        "$defs": {"B": {"type": "object", "properties": {
            "x": {"type": "object", "properties": {"x": {"$ref": "#/$defs/B"}}},
        }}},
    });
    assert_eq!(input_changes(even, odd), [""; 0]);
}

#[test]
fn definitions_that_only_refer_to_themselves_terminate() {
    let looped = |reference: &str| {
        json!({
            "type": "object",
            "properties": {"x": {"$ref": reference}},
            "$defs": {
                "Loop": {"$ref": "#/$defs/Loop"},
                "All": {"allOf": [{"$ref": "#/$defs/All"}, {"type": "string"}]},
                "Any": {"anyOf": [{"$ref": "#/$defs/Any"}, {"type": "string"}]},
            },
        })
    };
    let (all, any) = (looped("#/$defs/All"), looped("#/$defs/Any"));
    assert_eq!(input_changes(all.clone(), any), [""; 0]);
    let from_nothing = input_changes(looped("#/$defs/Loop"), all.clone());
    assert_eq!(from_nothing, ["breaking argument x: type any → string"]);
    let missing = input_changes(all, looped("#/$defs/Missing"));
    assert_eq!(missing.len(), 1, "{missing:?}");
}

#[test]
fn recursion_with_added_constraints_terminates() {
    let schema = |kind: &str| {
        json!({
            "$ref": "#/$defs/A",
            "$defs": {"A": {
                "type": "object",
                "properties": {"x": {"$ref": "#/$defs/A", "minProperties": 1}, "v": {"type": kind}},
                "allOf": [{"properties": {"x": {"$ref": "#/$defs/A", "maxProperties": 9}}}],
            }},
        })
    };
    let changes = input_changes(schema("string"), schema("integer"));
    assert_eq!(
        changes.first().map(String::as_str),
        Some("breaking argument v: type string → integer")
    );
}

/// Two properties of one definition, which itself inherits from another.
fn twice(own: &str, inherited: &str) -> Value {
    json!({
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/B"}, "c": {"$ref": "#/$defs/A"}},
        "$defs": {
            "Base": {"type": "object", "properties": {"base": {"type": inherited}}},
            "A": {"allOf": [{"$ref": "#/$defs/Base"}, {"properties": {"own": {"type": own}}}]},
            "B": {"allOf": [{"$ref": "#/$defs/Base"}, {"properties": {"other": {}}}]},
        },
    })
}

#[test]
fn reports_a_definition_once_per_operation() {
    assert_eq!(
        input_changes(twice("string", "string"), twice("integer", "boolean")),
        [
            "breaking argument a.base: type string → boolean",
            "breaking argument a.own: type string → integer",
        ]
    );
}

#[test]
fn reports_a_switched_definition_at_every_location() {
    let with = |target: &str| {
        json!({
            "type": "object",
            "properties": {"a": {"$ref": target}, "b": {"$ref": target}},
            "$defs": {"A": {"type": "string"}, "B": {"type": "integer"}},
        })
    };
    assert_eq!(
        input_changes(with("#/$defs/A"), with("#/$defs/B")),
        [
            "breaking argument a: type string → integer",
            "breaking argument b: type string → integer",
        ]
    );
}

#[test]
fn a_renamed_definition_is_not_a_change() {
    let with = |name: &str| {
        json!({
            "type": "object",
            "properties": {"a": {"$ref": format!("#/$defs/{name}")}},
            "$defs": {name: {"type": "string"}},
        })
    };
    assert_eq!(input_changes(with("A"), with("B")), [""; 0]);
}

#[test]
fn records_paths_relative_to_the_definition() {
    let old = single_operation(snapshot(json!({}), twice("string", "string")));
    let new = single_operation(snapshot(json!({}), twice("integer", "boolean")));
    let paths: Vec<_> = compare(&old, &new)
        .into_iter()
        .map(|change| change.definition_path)
        .collect();
    assert_eq!(
        paths,
        [Some("Base.base".to_owned()), Some("A.own".to_owned())]
    );
}

#[test]
fn groups_operations_that_share_a_definition() {
    let all = |kind: &str| -> OperationSnapshots {
        let deep = json!({
            "type": "object",
            "properties": {"data": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
            "$defs": tree(kind).get("$defs"),
        });
        OperationSnapshots::from([
            ("nodes.get".to_owned(), snapshot(json!({}), tree(kind))),
            ("nodes.list".to_owned(), snapshot(json!({}), deep)),
        ])
    };
    let changes = compare(&all("integer"), &all("string"));
    assert_eq!(changes.len(), 2);
    assert!(
        changes
            .iter()
            .all(|change| change.impact == Impact::Breaking)
    );
    assert_eq!(
        report(&changes),
        "# API changes\n\n**1 breaking**, 0 compatible, 0 documentation\n\n## Several operations\n\n\
         - **breaking** output `Node.value`: type integer → string (breaks clients that rely on it) \
         — in 2 operations: `nodes.get`, `nodes.list`\n"
    );
}
