//! Arguments: renaming, aliases and where they are sent.

use super::{between, inputs, snapshot};
use serde_json::{Value, json};

/// A snapshot whose only argument is `name`, described by `details`.
fn with_argument(name: &str, details: Value) -> Value {
    let mut properties = serde_json::Map::new();
    properties.insert(name.to_owned(), json!({"type": "string"}));
    let mut arguments = serde_json::Map::new();
    arguments.insert(name.to_owned(), details);
    let mut result = snapshot(
        json!({"type": "object", "properties": properties}),
        json!({}),
    );
    if let Value::Object(fields) = &mut result {
        fields.insert("arguments".to_owned(), Value::Object(arguments));
    }
    result
}

#[test]
fn a_lone_match_is_a_rename() {
    let one = |name: &str, text: &str| {
        json!({"type": "object", "properties": {
            "outer": {"type": "object", "properties": {
                name: {"type": "string", "minLength": 1, "description": text},
            }},
        }})
    };
    assert_eq!(
        inputs(one("a", "old"), one("b", "new")),
        [
            "breaking argument outer.b: renamed from `a` to `b`",
            "documentation argument outer.b: description “old” → “new”",
        ]
    );
}

#[test]
fn several_matches_are_no_rename() {
    let before = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let after = json!({"type": "object", "properties": {
        "b": {"type": "string"}, "c": {"type": "string"},
    }});
    assert_eq!(
        inputs(before, after),
        [
            "breaking argument a: removed",
            "compatible argument b: added, optional (string)",
            "compatible argument c: added, optional (string)",
        ]
    );
}

#[test]
fn a_rename_that_keeps_the_old_name_is_compatible() {
    let before = with_argument("a", json!({"in": "query", "wire": "a"}));
    let after = with_argument("b", json!({"in": "query", "wire": "b", "aliases": ["a"]}));
    assert_eq!(
        between(before.clone(), after),
        ["compatible argument b: renamed from `a` to `b`; the old name is still accepted"]
    );
    let elsewhere = with_argument("b", json!({"in": "header", "wire": "b"}));
    assert_eq!(
        between(before, elsewhere),
        [
            "breaking argument a: removed",
            "compatible argument b: added, optional (string)",
        ]
    );
}

#[test]
fn aliases() {
    let with = |aliases: Value| with_argument("a", json!({"in": "query", "aliases": aliases}));
    assert_eq!(
        between(with(json!(["b", "c"])), with(json!(["c", "d"]))),
        [
            "breaking argument a: alias removed: `b`",
            "compatible argument a: alias added: `d`",
        ]
    );
}

#[test]
fn moving_on_the_wire_is_compatible() {
    let before = with_argument("a", json!({"in": "query", "wire": "a"}));
    let after = with_argument("a", json!({"in": "body", "wire": "A"}));
    assert_eq!(
        between(before, after),
        [
            "compatible argument a: moved from `query` to `body` (callers notice nothing)",
            "compatible argument a: sent as `A` instead of `a` (callers notice nothing)",
        ]
    );
}

#[test]
fn what_only_the_arguments_say_counts_too() {
    let with = |required: bool, text: &str| {
        let details = json!({"in": "path", "required": required, "description": text});
        with_argument("a", details)
    };
    assert_eq!(
        between(with(false, "old"), with(true, "new")),
        [
            "breaking argument a: became required",
            "documentation argument a: description “old” → “new”",
        ]
    );
}
