//! Two ways of writing one schema are no change.

use super::{argument, inputs, output, outputs};
use serde_json::{Value, json};

fn same(one: Value, two: Value) {
    assert_eq!(argument(one.clone(), two.clone()), [""; 0], "{one} → {two}");
    assert_eq!(argument(two.clone(), one.clone()), [""; 0], "{two} → {one}");
    assert_eq!(output(one.clone(), two.clone()), [""; 0], "{one} → {two}");
    assert_eq!(output(two.clone(), one.clone()), [""; 0], "{two} → {one}");
}

#[test]
fn nullability() {
    let listed = || json!({"type": ["string", "null"], "minLength": 1});
    same(
        listed(),
        json!({"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]}),
    );
    same(
        listed(),
        json!({"oneOf": [{"type": "null"}, {"minLength": 1, "type": "string"}]}),
    );
    same(
        listed(),
        json!({"type": "string", "minLength": 1, "nullable": true}),
    );
    same(
        json!({"type": ["string", "null"], "enum": ["a", null]}),
        json!({"anyOf": [{"const": "a"}, {"type": "null"}]}),
    );
}

#[test]
fn lists_of_one() {
    same(json!({"type": ["string"]}), json!({"type": "string"}));
    same(
        json!({"allOf": [{"type": "string"}]}),
        json!({"type": "string"}),
    );
    same(
        json!({"oneOf": [{"type": "string"}]}),
        json!({"type": "string"}),
    );
}

#[test]
fn unions_of_types() {
    same(
        json!({"type": ["string", "integer"], "minLength": 1, "maximum": 5}),
        json!({"anyOf": [
            {"type": "integer", "maximum": 5},
            {"type": "string", "minLength": 1},
        ]}),
    );
    same(
        json!({"oneOf": [{"const": "a"}, {"const": "b"}]}),
        json!({"type": "string", "enum": ["b", "a"]}),
    );
    same(
        json!({"anyOf": [{"type": "string"}, {"anyOf": [{"type": "integer"}, {"type": "null"}]}]}),
        json!({"type": ["string", "integer", "null"]}),
    );
}

#[test]
fn parts_of_an_object() {
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
    same(whole, parts);
}

#[test]
fn everything_is_allowed() {
    same(json!(true), json!({}));
    same(
        json!({"type": "array"}),
        json!({"type": "array", "items": {}}),
    );
    same(
        json!({"properties": {}}),
        json!({"type": "object", "additionalProperties": true}),
    );
}

#[test]
fn references() {
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
        assert_eq!(inputs(plain(), other.clone()), [""; 0]);
        assert_eq!(outputs(other, plain()), [""; 0]);
    }
    assert_eq!(
        inputs(
            plain(),
            with(json!({"$ref": "#/$defs/A", "description": "Here"}))
        ),
        ["documentation argument x: description added: “Here”"]
    );
    let nullable = || with(json!({"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}));
    assert_eq!(
        inputs(plain(), nullable()),
        ["compatible argument x: type object → object or null"]
    );
    assert_eq!(
        outputs(plain(), nullable()),
        ["breaking output x: type object → object or null (breaks readers who rely on it)"]
    );
}

#[test]
fn a_type_next_to_a_reference_repeats_it() {
    let with = |x: Value| {
        let name = json!({"type": "string", "enum": ["a"]});
        json!({"type": "object", "properties": {"x": x}, "$defs": {"A": name}})
    };
    let plain = || with(json!({"$ref": "#/$defs/A"}));
    let typed = |kinds: Value| with(json!({"type": kinds, "$ref": "#/$defs/A"}));
    assert_eq!(inputs(plain(), typed(json!(["string"]))), [""; 0]);
    assert_eq!(
        inputs(plain(), typed(json!(["string", "null"]))),
        ["compatible argument x: type string → string or null"]
    );
    assert_eq!(
        inputs(plain(), typed(json!("integer"))),
        ["breaking argument x: type now integer, unlike the definition next to it"]
    );
}

#[test]
fn null_is_taken_at_its_word() {
    let listed = |kinds: Value| json!({"type": kinds, "enum": ["a", "b"]});
    assert_eq!(
        argument(listed(json!("string")), listed(json!(["string", "null"]))),
        ["compatible argument x: type string → string or null"]
    );
}

#[test]
fn covered_descriptions_are_still_seen() {
    let with = |inner: &str| json!({"description": "outer", "oneOf": [{"type": "string", "description": inner}]});
    assert_eq!(
        argument(with("old"), with("new")),
        ["documentation argument x: further description “old” → “new”"]
    );
}

#[test]
fn descriptions_of_listed_values_are_gathered() {
    let with = |words: &str| json!({"oneOf": [{"const": "a", "description": "first"}, {"const": "b", "description": words}]});
    assert_eq!(
        argument(with("old"), with("new")),
        [
            "documentation argument x: descriptions of values “a: first; b: old” → “a: first; b: new”"
        ]
    );
}

#[test]
fn parts_that_contradict_each_other_are_not_overlooked() {
    let with = |maximum: u32| json!({"allOf": [{"type": "string"}, {"type": "integer", "maximum": maximum}]});
    assert_eq!(argument(with(1), with(1)), [""; 0]);
    assert_eq!(
        argument(with(1), with(2)),
        ["breaking argument x: parts of allOf that cannot be merged changed"]
    );
}
