//! Renamed arguments, aliases, and where arguments are sent.

use super::{changes_between, input_changes, snapshot};
use serde_json::{Value, json};

/// Returns a snapshot whose only argument is `name`, with these `details`.
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
fn detects_an_unambiguous_rename() {
    let one = |name: &str, text: &str| {
        json!({"type": "object", "properties": {
            "outer": {"type": "object", "properties": {
                name: {"type": "string", "minLength": 1, "description": text},
            }},
        }})
    };
    assert_eq!(
        input_changes(one("a", "old"), one("b", "new")),
        [
            "breaking argument outer.b: renamed from `a` to `b`",
            "documentation argument outer.b: description “old” → “new”",
        ]
    );
}

#[test]
fn does_not_guess_between_several_rename_candidates() {
    let before = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let after = json!({"type": "object", "properties": {
        "b": {"type": "string"}, "c": {"type": "string"},
    }});
    assert_eq!(
        input_changes(before, after),
        [
            "breaking argument a: removed",
            "compatible argument b: added, optional (string)",
            "compatible argument c: added, optional (string)",
        ]
    );
}

#[test]
fn a_rename_with_the_old_name_as_alias_is_compatible() {
    let before = with_argument("a", json!({"in": "query", "wire": "a"}));
    let after = with_argument("b", json!({"in": "query", "wire": "b", "aliases": ["a"]}));
    assert_eq!(
        changes_between(before.clone(), after),
        ["compatible argument b: renamed from `a` to `b`; the old name is still accepted"]
    );
    let elsewhere = with_argument("b", json!({"in": "header", "wire": "b"}));
    assert_eq!(
        changes_between(before, elsewhere),
        [
            "breaking argument a: removed",
            "compatible argument b: added, optional (string)",
        ]
    );
}

#[test]
fn reports_added_and_removed_aliases() {
    let with = |aliases: Value| with_argument("a", json!({"in": "query", "aliases": aliases}));
    assert_eq!(
        changes_between(with(json!(["b", "c"])), with(json!(["c", "d"]))),
        [
            "breaking argument a: alias removed: `b`",
            "compatible argument a: alias added: `d`",
        ]
    );
}

#[test]
fn changing_where_an_argument_is_sent_is_compatible() {
    let before = with_argument("a", json!({"in": "query", "wire": "a"}));
    let after = with_argument("a", json!({"in": "body", "wire": "A"}));
    assert_eq!(
        changes_between(before, after),
        [
            "compatible argument a: moved from `query` to `body` (no effect on callers)",
            "compatible argument a: sent as `A` instead of `a` (no effect on callers)",
        ]
    );
}

#[test]
fn compares_facts_that_only_the_arguments_section_has() {
    let with = |required: bool, text: &str| {
        let details = json!({"in": "path", "required": required, "description": text});
        with_argument("a", details)
    };
    assert_eq!(
        changes_between(with(false, "old"), with(true, "new")),
        [
            "breaking argument a: became required",
            "documentation argument a: description “old” → “new”",
        ]
    );
}
