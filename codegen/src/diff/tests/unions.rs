//! Unions: which branch became which, and what came and went.

use super::{argument, inputs, output};
use serde_json::{Value, json};

/// An object told apart by its `type`.
fn kind(name: &str, detail: Value) -> Value {
    json!({
        "type": "object",
        "properties": {"type": {"const": name}, "detail": detail},
        "required": ["type"],
    })
}

fn text() -> Value {
    json!({"type": "string"})
}

#[test]
fn branches_are_matched_by_their_discriminator() {
    let before = json!({"oneOf": [kind("a", text()), kind("b", text())]});
    let after = json!({"oneOf": [
        kind("b", json!({"type": "integer"})),
        kind("c", text()),
        kind("a", text()),
    ]});
    assert_eq!(
        argument(before.clone(), after.clone()),
        [
            "compatible argument x: union branch added: `type=c`",
            "breaking argument x{type=b}.detail: type string → integer",
        ]
    );
    assert_eq!(
        argument(after, before.clone()),
        [
            "breaking argument x: union branch removed: `type=c`",
            "breaking argument x{type=b}.detail: type integer → string",
        ]
    );
    let fewer = json!({"oneOf": [kind("a", text()), kind("c", text()), kind("d", text())]});
    assert_eq!(
        output(before, fewer),
        [
            "compatible output x: union branch removed: `type=b`",
            "compatible output x: union branch added: `type=c`",
            "compatible output x: union branch added: `type=d`",
        ]
    );
}

#[test]
fn branches_are_matched_by_the_name_of_their_definition() {
    let with = |order: [&str; 2], kind: &str| {
        let options = order.map(|name| json!({"$ref": format!("#/$defs/{name}")}));
        json!({
            "type": "object",
            "properties": {"x": {"anyOf": options}},
            "$defs": {
                "A": {"type": "object", "properties": {"object": {"const": "o"}, "v": {"type": kind}}},
                "B": {"type": "object", "properties": {"object": {"const": "o"}, "v": {"type": "boolean"}}},
            },
        })
    };
    assert_eq!(
        inputs(with(["A", "B"], "string"), with(["B", "A"], "integer")),
        ["breaking argument x{A}.v: type string → integer"]
    );
}

#[test]
fn branches_are_matched_by_content_and_then_by_likeness() {
    let of = |name: &str, schema: Value| json!({"type": "object", "properties": {name: schema}});
    let before = json!({"oneOf": [of("a", text()), of("b", text())]});
    let after = json!({"oneOf": [of("b", json!({"type": "integer"})), of("a", text())]});
    assert_eq!(
        argument(before, after),
        ["breaking argument x{object}.b: type string → integer"]
    );
}

#[test]
fn a_branch_alone_of_its_type_needs_no_label() {
    let with = |maximum: u32| {
        json!({"anyOf": [
            {"type": "boolean"},
            {"type": "object", "properties": {"n": {"type": "integer", "maximum": maximum}}},
        ]})
    };
    assert_eq!(
        argument(with(10), with(5)),
        ["breaking argument x.n: maximum 10 → 5"]
    );
}

#[test]
fn numbers_in_unions_may_widen() {
    let with = |kind: &str| json!({"anyOf": [{"type": "boolean"}, {"type": kind}]});
    assert_eq!(
        argument(with("integer"), with("number")),
        ["compatible argument x: type integer → number"]
    );
}

#[test]
fn becoming_a_union_widens_the_type() {
    let single = || json!({"type": "string"});
    let union = || json!({"anyOf": [{"type": "array", "items": text()}, {"type": "string"}]});
    assert_eq!(
        argument(single(), union()),
        ["compatible argument x: type string → array or string"]
    );
    assert_eq!(
        argument(union(), single()),
        ["breaking argument x: type array or string → string"]
    );
    assert_eq!(
        output(single(), union()),
        ["breaking output x: type string → array or string (breaks readers who rely on it)"]
    );
}

#[test]
fn null_in_unions_is_nullability() {
    let plain = json!({"anyOf": [{"type": "string"}, {"type": "integer"}]});
    let nullable = json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]});
    assert_eq!(
        argument(plain.clone(), nullable.clone()),
        ["compatible argument x: union gains `null`"]
    );
    assert_eq!(
        argument(nullable.clone(), plain.clone()),
        ["breaking argument x: union loses `null`"]
    );
    assert_eq!(
        output(plain, nullable),
        ["breaking output x: union gains `null` (breaks readers who rely on it)"]
    );
}

#[test]
fn a_branch_that_another_covers_is_not_missed() {
    let single = || json!({"type": "string"});
    let union = || json!({"anyOf": [{"type": "string"}, {"type": "string", "enum": ["a"]}]});
    assert_eq!(
        argument(union(), single()),
        ["compatible argument x: type string or string → string"]
    );
    assert_eq!(
        output(single(), union()),
        ["compatible output x: type string → string or string"]
    );
}

#[test]
fn words_of_branches_are_compared() {
    let with = |words: &str| {
        json!({"description": "all", "anyOf": [
            {"type": "string", "description": words},
            {"type": "integer"},
        ]})
    };
    assert_eq!(
        argument(with("old"), with("new")),
        ["documentation argument x: description “old” → “new”"]
    );
}

#[test]
fn combinations_of_arguments_are_one_set_of_arguments() {
    let with = |maximum: u32, required: Value| {
        json!({
            "type": "object",
            "properties": {"a": {"type": "integer", "maximum": maximum}, "b": {"type": "string"}},
            "anyOf": required,
        })
    };
    let either = || json!([{"required": ["a"]}, {"required": ["b"]}]);
    assert_eq!(
        inputs(with(10, either()), with(5, either())),
        ["breaking argument a: maximum 10 → 5"]
    );
}
