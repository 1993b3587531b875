//! Different spellings of the same schema are not reported as changes.

use super::{argument_changes, input_changes, output_changes, property_changes};
use serde_json::{Value, json};

fn assert_equivalent(one: Value, two: Value) {
    assert_eq!(
        argument_changes(one.clone(), two.clone()),
        [""; 0],
        "{one} → {two}"
    );
    assert_eq!(
        argument_changes(two.clone(), one.clone()),
        [""; 0],
        "{two} → {one}"
    );
    assert_eq!(
        property_changes(one.clone(), two.clone()),
        [""; 0],
        "{one} → {two}"
    );
    assert_eq!(
        property_changes(two.clone(), one.clone()),
        [""; 0],
        "{two} → {one}"
    );
}

#[test]
fn spellings_of_nullable_types_are_equivalent() {
    let listed = || json!({"type": ["string", "null"], "minLength": 1});
    assert_equivalent(
        listed(),
        json!({"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]}),
    );
    assert_equivalent(
        listed(),
        json!({"oneOf": [{"type": "null"}, {"minLength": 1, "type": "string"}]}),
    );
    assert_equivalent(
        listed(),
        json!({"type": "string", "minLength": 1, "nullable": true}),
    );
    assert_equivalent(
        json!({"type": ["string", "null"], "enum": ["a", null]}),
        json!({"anyOf": [{"const": "a"}, {"type": "null"}]}),
    );
}

#[test]
fn single_element_lists_are_equivalent_to_the_element() {
    assert_equivalent(json!({"type": ["string"]}), json!({"type": "string"}));
    assert_equivalent(
        json!({"allOf": [{"type": "string"}]}),
        json!({"type": "string"}),
    );
    assert_equivalent(
        json!({"oneOf": [{"type": "string"}]}),
        json!({"type": "string"}),
    );
}

#[test]
fn spellings_of_type_unions_are_equivalent() {
    assert_equivalent(
        json!({"type": ["string", "integer"], "minLength": 1, "maximum": 5}),
        json!({"anyOf": [
            {"type": "integer", "maximum": 5},
            {"type": "string", "minLength": 1},
        ]}),
    );
    assert_equivalent(
        json!({"oneOf": [{"const": "a"}, {"const": "b"}]}),
        json!({"type": "string", "enum": ["b", "a"]}),
    );
    assert_equivalent(
        json!({"anyOf": [{"type": "string"}, {"anyOf": [{"type": "integer"}, {"type": "null"}]}]}),
        json!({"type": ["string", "integer", "null"]}),
    );
}

#[test]
fn all_of_is_equivalent_to_the_merged_object() {
    let whole = json!({
        "type": "object",
        "properties": {"a": {"type": "string", "minLength": 2}, "b": {"type": "integer"}},
        "required": ["b", "a"],
    });
    let parts = json!({
        "required": ["a"],
        "allOf": [
            {"properties": {"a": {"type": "string"}}},
            {"type": "object", "properties": {
                "a": {"minLength": 2},
                "b": {"type": "integer"},
            }, "required": ["b"]},
        ],
    });
    assert_equivalent(whole, parts);
}

#[test]
fn spellings_of_unrestricted_schemas_are_equivalent() {
    assert_equivalent(json!(true), json!({}));
    assert_equivalent(
        json!({"type": "array"}),
        json!({"type": "array", "items": {}}),
    );
    assert_equivalent(
        json!({"properties": {}}),
        json!({"type": "object", "additionalProperties": true}),
    );
}

#[test]
fn references_are_equivalent_to_their_definitions() {
    let with = |x: Value| {
        json!({
            "type": "object",
            "properties": {"x": x},
            "$defs": {"A": {"type": "object", "description": "An A", "properties": {
                "a": {"type": "string"},
            }}},
        })
    };
    let plain = || with(json!({"$ref": "#/$defs/A"}));
    let inline = with(
        json!({"type": "object", "description": "An A", "properties": {
            "a": {"type": "string"},
        }}),
    );
    for other in [inline, with(json!({"allOf": [{"$ref": "#/$defs/A"}]}))] {
        assert_eq!(input_changes(plain(), other.clone()), [""; 0]);
        assert_eq!(output_changes(other, plain()), [""; 0]);
    }
    assert_eq!(
        input_changes(
            plain(),
            with(json!({"$ref": "#/$defs/A", "description": "Here"}))
        ),
        ["documentation argument x: description added: “Here”"]
    );
    let nullable = || with(json!({"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}));
    assert_eq!(
        input_changes(plain(), nullable()),
        ["compatible argument x: type object → object or null"]
    );
    assert_eq!(
        output_changes(plain(), nullable()),
        ["breaking output x: type object → object or null (breaks clients that rely on it)"]
    );
}

#[test]
fn compares_a_type_next_to_a_reference() {
    let with = |x: Value| {
        let name = json!({"type": "string", "enum": ["a"]});
        json!({"type": "object", "properties": {"x": x}, "$defs": {"A": name}})
    };
    let plain = || with(json!({"$ref": "#/$defs/A"}));
    let typed = |kinds: Value| with(json!({"type": kinds, "$ref": "#/$defs/A"}));
    assert_eq!(input_changes(plain(), typed(json!(["string"]))), [""; 0]);
    assert_eq!(
        input_changes(plain(), typed(json!(["string", "null"]))),
        ["compatible argument x: type string → string or null"]
    );
    assert_eq!(
        input_changes(plain(), typed(json!("integer"))),
        ["breaking argument x: type is now integer, which contradicts the referenced definition"]
    );
}

#[test]
fn an_explicit_null_type_allows_null() {
    let listed = |kinds: Value| json!({"type": kinds, "enum": ["a", "b"]});
    assert_eq!(
        argument_changes(listed(json!("string")), listed(json!(["string", "null"]))),
        ["compatible argument x: type string → string or null"]
    );
}

#[test]
fn reports_changes_of_hidden_descriptions() {
    let with = |inner: &str| json!({"description": "outer", "oneOf": [{"type": "string", "description": inner}]});
    assert_eq!(
        argument_changes(with("old"), with("new")),
        ["documentation argument x: inner description “old” → “new”"]
    );
}

#[test]
fn joins_the_descriptions_of_enum_values() {
    let with = |text: &str| json!({"oneOf": [{"const": "a", "description": "first"}, {"const": "b", "description": text}]});
    assert_eq!(
        argument_changes(with("old"), with("new")),
        ["documentation argument x: value descriptions “a: first; b: old” → “a: first; b: new”"]
    );
}

#[test]
fn reports_changes_in_contradictory_parts() {
    let with = |maximum: u32| json!({"allOf": [{"type": "string"}, {"type": "integer", "maximum": maximum}]});
    assert_eq!(argument_changes(with(1), with(1)), [""; 0]);
    assert_eq!(
        argument_changes(with(1), with(2)),
        ["breaking argument x: `allOf` parts that cannot be merged changed"]
    );
}
