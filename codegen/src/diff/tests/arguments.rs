//! Arguments: required and optional, types and values.

use super::{argument_changes, changes_between, input_changes, snapshot, with_x};
use serde_json::{Value, json};

fn required_x() -> Value {
    json!({"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]})
}

#[test]
fn reports_added_removed_and_required_arguments() {
    let empty = || json!({"type": "object"});
    let optional = || with_x(json!({"type": "string"}));
    assert_eq!(
        input_changes(empty(), optional()),
        ["compatible argument x: added, optional (string)"]
    );
    assert_eq!(
        input_changes(empty(), required_x()),
        ["breaking argument x: added, required (string)"]
    );
    assert_eq!(
        input_changes(optional(), empty()),
        ["breaking argument x: removed"]
    );
    assert_eq!(
        input_changes(optional(), required_x()),
        ["breaking argument x: became required"]
    );
    assert_eq!(
        input_changes(required_x(), optional()),
        ["compatible argument x: became optional"]
    );
}

#[test]
fn reports_nested_locations_as_paths() {
    let nested = |leaf: Value| {
        json!({
            "type": "object",
            "properties": {"search": {"allOf": [{"$ref": "#/$defs/Search"}]}},
            "$defs": {
                "Search": {"type": "object", "properties": {
                    "criteria": {"type": "array", "items": {"$ref": "#/$defs/Criterion"}},
                }},
                "Criterion": {"type": "object", "properties": {"description": leaf}},
            },
        })
    };
    assert_eq!(
        input_changes(
            nested(json!({"type": "string"})),
            nested(json!({"type": "integer"}))
        ),
        ["breaking argument search.criteria[].description: type string → integer"]
    );
}

#[test]
fn classifies_type_changes() {
    let case =
        |old: Value, new: Value| argument_changes(json!({"type": old}), json!({"type": new}));
    for (old, new, text) in [
        (
            json!("string"),
            json!(["string", "null"]),
            "compatible argument x: type string → string or null",
        ),
        (
            json!(["string", "null"]),
            json!("string"),
            "breaking argument x: type string or null → string",
        ),
        (
            json!("string"),
            json!(["string", "integer"]),
            "compatible argument x: type string → string or integer",
        ),
        (
            json!("integer"),
            json!("number"),
            "compatible argument x: type integer → number",
        ),
        (
            json!("number"),
            json!("integer"),
            "breaking argument x: type number → integer",
        ),
        (
            json!("string"),
            json!("object"),
            "breaking argument x: type string → object",
        ),
        (
            json!(["integer", "null"]),
            json!("number"),
            "breaking argument x: type integer or null → number",
        ),
    ] {
        assert_eq!(case(old, new), [text]);
    }
    assert_eq!(
        argument_changes(json!({}), json!({"type": "string"})),
        ["breaking argument x: type any → string"]
    );
    assert_eq!(
        argument_changes(json!({"type": "string", "minLength": 1}), json!({})),
        ["compatible argument x: type string → any"]
    );
}

#[test]
fn classifies_enum_changes() {
    let of = |values: Value| json!({"type": "string", "enum": values});
    assert_eq!(
        argument_changes(of(json!(["a", "b"])), of(json!(["b", "c", "d"]))),
        [
            "breaking argument x: enum values removed: `a`",
            "compatible argument x: enum values added: `c`, `d`",
        ]
    );
    let free = || json!({"type": "string"});
    assert_eq!(
        argument_changes(free(), of(json!(["a", "b"]))),
        ["breaking argument x: enum added: only `a`, `b` allowed"]
    );
    assert_eq!(
        argument_changes(of(json!(["a"])), free()),
        ["compatible argument x: enum removed (was `a`)"]
    );
}

#[test]
fn a_constant_is_an_enum_with_one_value() {
    let constant = || json!({"const": "a"});
    assert_eq!(
        argument_changes(constant(), json!({"type": "string", "enum": ["a"]})),
        [""; 0]
    );
    assert_eq!(
        argument_changes(constant(), json!({"type": "string", "enum": ["a", "b"]})),
        ["compatible argument x: enum values added: `b`"]
    );
}

#[test]
fn reports_documentation_and_default_changes() {
    let with = |text: &str, default: u32| json!({"type": "integer", "description": text, "default": default});
    assert_eq!(
        argument_changes(with("old", 10), with("new", 25)),
        [
            "breaking argument x: default 10 → 25",
            "documentation argument x: description “old” → “new”",
        ]
    );
    assert_eq!(
        argument_changes(
            json!({"type": "string"}),
            json!({"type": "string", "deprecated": true})
        ),
        ["documentation argument x: deprecated"]
    );
}

#[test]
fn reports_a_required_argument_that_is_no_longer_declared() {
    let undeclared = || json!({"type": "object", "required": ["x"]});
    assert_eq!(
        input_changes(required_x(), undeclared()),
        ["breaking argument x: no longer declared but still listed as required"]
    );
    assert_eq!(
        input_changes(json!({"type": "object"}), undeclared()),
        ["breaking argument x: added, required (any)"]
    );
}

#[test]
fn compares_inherited_arguments() {
    let with = |maximum: u32| {
        let mut result = snapshot(
            json!({
                "allOf": [{"$ref": "#/$defs/Page"}, {"properties": {"q": {"type": "string"}}}],
                "$defs": {"Page": {"type": "object", "properties": {
                    "limit": {"type": "integer", "maximum": maximum},
                }}},
            }),
            json!({}),
        );
        if let Value::Object(fields) = &mut result {
            let limit = json!({"in": "query", "wire": "limit", "required": maximum == 5});
            fields.insert("arguments".to_owned(), json!({"limit": limit}));
        }
        result
    };
    assert_eq!(
        changes_between(with(10), with(5)),
        [
            "breaking argument limit: became required",
            "breaking argument limit: maximum 10 → 5",
        ]
    );
}
