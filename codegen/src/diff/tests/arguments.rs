//! Arguments: presence, types and values.

use super::{argument, between, inputs, snapshot, with_x};
use serde_json::{Value, json};

fn required_x() -> Value {
    json!({"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]})
}

#[test]
fn presence() {
    let empty = || json!({"type": "object"});
    let optional = || with_x(json!({"type": "string"}));
    assert_eq!(
        inputs(empty(), optional()),
        ["compatible argument x: added, optional (string)"]
    );
    assert_eq!(
        inputs(empty(), required_x()),
        ["breaking argument x: added, required (string)"]
    );
    assert_eq!(
        inputs(optional(), empty()),
        ["breaking argument x: removed"]
    );
    assert_eq!(
        inputs(optional(), required_x()),
        ["breaking argument x: became required"]
    );
    assert_eq!(
        inputs(required_x(), optional()),
        ["compatible argument x: became optional"]
    );
}

#[test]
fn nested_places_are_paths() {
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
        inputs(
            nested(json!({"type": "string"})),
            nested(json!({"type": "integer"}))
        ),
        ["breaking argument search.criteria[].description: type string → integer"]
    );
}

#[test]
fn types() {
    let case = |old: Value, new: Value| argument(json!({"type": old}), json!({"type": new}));
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
        argument(json!({}), json!({"type": "string"})),
        ["breaking argument x: type any → string"]
    );
    assert_eq!(
        argument(json!({"type": "string", "minLength": 1}), json!({})),
        ["compatible argument x: type string → any"]
    );
}

#[test]
fn enums() {
    let of = |values: Value| json!({"type": "string", "enum": values});
    assert_eq!(
        argument(of(json!(["a", "b"])), of(json!(["b", "c", "d"]))),
        [
            "breaking argument x: enum values removed: `a`",
            "compatible argument x: enum values added: `c`, `d`",
        ]
    );
    let free = || json!({"type": "string"});
    assert_eq!(
        argument(free(), of(json!(["a", "b"]))),
        ["breaking argument x: enum introduced: only `a`, `b`"]
    );
    assert_eq!(
        argument(of(json!(["a"])), free()),
        ["compatible argument x: enum dropped (was `a`)"]
    );
}

#[test]
fn a_constant_is_an_enum_of_one() {
    let constant = || json!({"const": "a"});
    assert_eq!(
        argument(constant(), json!({"type": "string", "enum": ["a"]})),
        [""; 0]
    );
    assert_eq!(
        argument(constant(), json!({"type": "string", "enum": ["a", "b"]})),
        ["compatible argument x: enum values added: `b`"]
    );
}

#[test]
fn words_and_defaults() {
    let with = |text: &str, default: u32| json!({"type": "integer", "description": text, "default": default});
    assert_eq!(
        argument(with("old", 10), with("new", 25)),
        [
            "compatible argument x: default 10 → 25",
            "documentation argument x: description “old” → “new”",
        ]
    );
    assert_eq!(
        argument(
            json!({"type": "string"}),
            json!({"type": "string", "deprecated": true})
        ),
        ["documentation argument x: deprecated"]
    );
}

#[test]
fn a_required_name_without_a_declaration_was_removed() {
    let undeclared = || json!({"type": "object", "required": ["x"]});
    assert_eq!(
        inputs(required_x(), undeclared()),
        ["breaking argument x: no longer declared, though still listed as required"]
    );
    assert_eq!(
        inputs(json!({"type": "object"}), undeclared()),
        ["breaking argument x: added, required (any)"]
    );
}

#[test]
fn inherited_arguments_are_arguments() {
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
        between(with(10), with(5)),
        [
            "breaking argument limit: became required",
            "breaking argument limit: maximum 10 → 5",
        ]
    );
}
