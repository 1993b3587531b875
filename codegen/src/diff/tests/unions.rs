//! Unions: matching, added and removed branches.

use super::{argument_changes, input_changes, property_changes};
use serde_json::{Value, json};

/// Returns an object with the discriminator `type`.
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
fn matches_branches_by_discriminator() {
    let before = json!({"oneOf": [kind("a", text()), kind("b", text())]});
    let after = json!({"oneOf": [
        kind("b", json!({"type": "integer"})),
        kind("c", text()),
        kind("a", text()),
    ]});
    assert_eq!(
        argument_changes(before.clone(), after.clone()),
        [
            "compatible argument x: union branch added: `type=c`",
            "breaking argument x{type=b}.detail: type string → integer",
        ]
    );
    assert_eq!(
        argument_changes(after, before.clone()),
        [
            "breaking argument x: union branch removed: `type=c`",
            "breaking argument x{type=b}.detail: type integer → string",
        ]
    );
    let fewer = json!({"oneOf": [kind("a", text()), kind("c", text()), kind("d", text())]});
    assert_eq!(
        property_changes(before, fewer),
        [
            "compatible output x: union branch removed: `type=b`",
            "compatible output x: union branch added: `type=c`",
            "compatible output x: union branch added: `type=d`",
        ]
    );
}

#[test]
fn matches_branches_by_definition_name() {
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
        input_changes(with(["A", "B"], "string"), with(["B", "A"], "integer")),
        ["breaking argument x{A}.v: type string → integer"]
    );
}

#[test]
fn matches_branches_by_content_and_then_by_similarity() {
    let of = |name: &str, schema: Value| json!({"type": "object", "properties": {name: schema}});
    let before = json!({"oneOf": [of("a", text()), of("b", text())]});
    let after = json!({"oneOf": [of("b", json!({"type": "integer"})), of("a", text())]});
    assert_eq!(
        argument_changes(before, after),
        ["breaking argument x{object}.b: type string → integer"]
    );
}

#[test]
fn the_only_branch_of_its_type_has_no_label() {
    let with = |maximum: u32| {
        json!({"anyOf": [
            {"type": "boolean"},
            {"type": "object", "properties": {"n": {"type": "integer", "maximum": maximum}}},
        ]})
    };
    assert_eq!(
        argument_changes(with(10), with(5)),
        ["breaking argument x.n: maximum 10 → 5"]
    );
}

#[test]
fn an_integer_branch_may_widen_to_number() {
    let with = |kind: &str| json!({"anyOf": [{"type": "boolean"}, {"type": kind}]});
    assert_eq!(
        argument_changes(with("integer"), with("number")),
        ["compatible argument x: type integer → number"]
    );
}

#[test]
fn becoming_a_union_widens_the_type() {
    let single = || json!({"type": "string"});
    let union = || json!({"anyOf": [{"type": "array", "items": text()}, {"type": "string"}]});
    assert_eq!(
        argument_changes(single(), union()),
        ["compatible argument x: type string → array or string"]
    );
    assert_eq!(
        argument_changes(union(), single()),
        ["breaking argument x: type array or string → string"]
    );
    assert_eq!(
        property_changes(single(), union()),
        ["breaking output x: type string → array or string (breaks clients that rely on it)"]
    );
}

#[test]
fn a_null_branch_makes_the_union_nullable() {
    let plain = json!({"anyOf": [{"type": "string"}, {"type": "integer"}]});
    let nullable = json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]});
    assert_eq!(
        argument_changes(plain.clone(), nullable.clone()),
        ["compatible argument x: union now allows `null`"]
    );
    assert_eq!(
        argument_changes(nullable.clone(), plain.clone()),
        ["breaking argument x: union no longer allows `null`"]
    );
    assert_eq!(
        property_changes(plain, nullable),
        ["breaking output x: union now allows `null` (breaks clients that rely on it)"]
    );
}

#[test]
fn removing_a_covered_branch_is_compatible() {
    let single = || json!({"type": "string"});
    let union = || json!({"anyOf": [{"type": "string"}, {"type": "string", "enum": ["a"]}]});
    assert_eq!(
        argument_changes(union(), single()),
        ["compatible argument x: type string or string → string"]
    );
    assert_eq!(
        property_changes(single(), union()),
        ["compatible output x: type string → string or string"]
    );
}

#[test]
fn compares_the_documentation_of_branches() {
    let with = |text: &str| {
        json!({"description": "all", "anyOf": [
            {"type": "string", "description": text},
            {"type": "integer"},
        ]})
    };
    assert_eq!(
        argument_changes(with("old"), with("new")),
        ["documentation argument x: description “old” → “new”"]
    );
}

#[test]
fn combinations_of_arguments_have_no_branch_labels() {
    let with = |maximum: u32, required: Value| {
        json!({
            "type": "object",
            "properties": {"a": {"type": "integer", "maximum": maximum}, "b": {"type": "string"}},
            "anyOf": required,
        })
    };
    let either = || json!([{"required": ["a"]}, {"required": ["b"]}]);
    assert_eq!(
        input_changes(with(10, either()), with(5, either())),
        ["breaking argument a: maximum 10 → 5"]
    );
}
