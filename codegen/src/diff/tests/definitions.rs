//! Named definitions: told once, followed without end, and shared by operations.

use super::super::{Catalogue, Class, compare, report};
use super::{catalogue, inputs, outputs, snapshot};
use serde_json::{Value, json};

/// A tree whose nodes hold a `value` of the given type.
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
fn recursion_ends() {
    assert_eq!(
        outputs(tree("string"), tree("integer")),
        ["breaking output value: type string → integer (breaks readers who rely on it)"]
    );
}

#[test]
fn recursion_out_of_step_ends() {
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
    assert_eq!(inputs(even, odd), [""; 0]);
}

#[test]
fn definitions_that_lead_nowhere_end() {
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
    assert_eq!(inputs(all.clone(), any), [""; 0]);
    let from_nothing = inputs(looped("#/$defs/Loop"), all.clone());
    assert_eq!(from_nothing, ["breaking argument x: type any → string"]);
    let missing = inputs(all, looped("#/$defs/Missing"));
    assert_eq!(missing.len(), 1, "{missing:?}");
}

#[test]
fn growing_recursion_ends() {
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
    let told = inputs(schema("string"), schema("integer"));
    assert_eq!(
        told.first().map(String::as_str),
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
fn a_definition_is_told_once_in_an_operation() {
    assert_eq!(
        inputs(twice("string", "string"), twice("integer", "boolean")),
        [
            "breaking argument a.base: type string → boolean",
            "breaking argument a.own: type string → integer",
        ]
    );
}

#[test]
fn a_place_that_switched_definitions_is_told_at_every_place() {
    let with = |target: &str| {
        json!({
            "type": "object",
            "properties": {"a": {"$ref": target}, "b": {"$ref": target}},
            "$defs": {"A": {"type": "string"}, "B": {"type": "integer"}},
        })
    };
    assert_eq!(
        inputs(with("#/$defs/A"), with("#/$defs/B")),
        [
            "breaking argument a: type string → integer",
            "breaking argument b: type string → integer",
        ]
    );
}

#[test]
fn a_renamed_definition_is_no_change() {
    let with = |name: &str| {
        json!({
            "type": "object",
            "properties": {"a": {"$ref": format!("#/$defs/{name}")}},
            "$defs": {name: {"type": "string"}},
        })
    };
    assert_eq!(inputs(with("A"), with("B")), [""; 0]);
}

#[test]
fn places_are_also_told_from_the_definition() {
    let old = catalogue(snapshot(json!({}), twice("string", "string")));
    let new = catalogue(snapshot(json!({}), twice("integer", "boolean")));
    let shared: Vec<_> = compare(&old, &new)
        .into_iter()
        .map(|change| change.shared)
        .collect();
    assert_eq!(
        shared,
        [Some("Base.base".to_owned()), Some("A.own".to_owned())]
    );
}

#[test]
fn operations_that_share_a_definition_share_a_line() {
    let all = |kind: &str| -> Catalogue {
        let deep = json!({
            "type": "object",
            "properties": {"data": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
            "$defs": tree(kind).get("$defs"),
        });
        Catalogue::from([
            ("nodes.get".to_owned(), snapshot(json!({}), tree(kind))),
            ("nodes.list".to_owned(), snapshot(json!({}), deep)),
        ])
    };
    let changes = compare(&all("integer"), &all("string"));
    assert_eq!(changes.len(), 2);
    assert!(changes.iter().all(|change| change.class == Class::Breaking));
    assert_eq!(
        report(&changes),
        "# API changes\n\n**1 breaking**, 0 compatible, 0 documentation\n\n## Breaking\n\n\
         - **breaking** output `Node.value`: type integer → string (breaks readers who rely on it) \
         — in 2 operations: `nodes.get`, `nodes.list`\n"
    );
}
