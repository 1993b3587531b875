//! Bounds and additional properties.

use super::{argument_changes, property_changes};
use serde_json::{Value, json};

fn with(kind: &str, key: &str, value: Value) -> Value {
    json!({"type": kind, key: value})
}

#[test]
fn tighter_bounds_are_breaking() {
    for (kind, key, loose, tight) in [
        ("integer", "minimum", 1, 5),
        ("integer", "maximum", 100, 50),
        ("number", "exclusiveMinimum", 1, 5),
        ("number", "exclusiveMaximum", 100, 50),
        ("string", "minLength", 1, 5),
        ("string", "maxLength", 100, 50),
        ("array", "minItems", 1, 5),
        ("array", "maxItems", 100, 50),
        ("object", "minProperties", 1, 5),
        ("object", "maxProperties", 100, 50),
        ("integer", "multipleOf", 5, 10),
    ] {
        let (wide, narrow) = (with(kind, key, json!(loose)), with(kind, key, json!(tight)));
        assert_eq!(
            argument_changes(wide.clone(), narrow.clone()),
            [format!("breaking argument x: {key} {loose} → {tight}")]
        );
        assert_eq!(
            argument_changes(narrow.clone(), wide),
            [format!("compatible argument x: {key} {tight} → {loose}")]
        );
        assert_eq!(
            argument_changes(json!({"type": kind}), narrow.clone()),
            [format!("breaking argument x: {key} none → {tight}")]
        );
        assert_eq!(
            argument_changes(narrow, json!({"type": kind})),
            [format!("compatible argument x: {key} {tight} → none")]
        );
    }
}

#[test]
fn changed_patterns_and_formats_are_breaking() {
    for key in ["pattern", "format"] {
        let (one, two) = (
            with("string", key, json!("a")),
            with("string", key, json!("b")),
        );
        assert_eq!(
            argument_changes(one.clone(), two),
            [format!("breaking argument x: {key} `a` → `b`")]
        );
        assert_eq!(
            argument_changes(json!({"type": "string"}), one.clone()),
            [format!("breaking argument x: {key} none → `a`")]
        );
        assert_eq!(
            argument_changes(one, json!({"type": "string"})),
            [format!("compatible argument x: {key} `a` → none")]
        );
    }
}

#[test]
fn classifies_unique_items() {
    let (free, unique) = (
        json!({"type": "array"}),
        with("array", "uniqueItems", json!(true)),
    );
    assert_eq!(
        argument_changes(free.clone(), unique.clone()),
        ["breaking argument x: uniqueItems none → true"]
    );
    assert_eq!(
        argument_changes(unique, free.clone()),
        ["compatible argument x: uniqueItems true → none"]
    );
    assert_eq!(
        argument_changes(free, with("array", "uniqueItems", json!(false))),
        [""; 0]
    );
}

#[test]
fn ignores_bounds_without_effect() {
    assert_eq!(
        argument_changes(
            json!({"type": "string"}),
            with("string", "minLength", json!(0))
        ),
        [""; 0]
    );
    assert_eq!(
        argument_changes(
            with("number", "minimum", json!(1)),
            with("number", "minimum", json!(1.0))
        ),
        [""; 0]
    );
}

#[test]
fn classifies_additional_properties() {
    let open = || json!({"type": "object"});
    let closed = || with("object", "additionalProperties", json!(false));
    assert_eq!(
        argument_changes(open(), closed()),
        ["breaking argument x: additionalProperties true → false"]
    );
    assert_eq!(
        argument_changes(closed(), open()),
        ["compatible argument x: additionalProperties false → true"]
    );
    assert_eq!(
        argument_changes(open(), with("object", "additionalProperties", json!({}))),
        [""; 0]
    );
    let of = |kind: &str| with("object", "additionalProperties", json!({"type": kind}));
    assert_eq!(
        argument_changes(of("integer"), of("number")),
        ["compatible argument x.*: type integer → number"]
    );
    assert_eq!(
        argument_changes(open(), of("string")),
        ["breaking argument x.*: type any → string"]
    );
}

#[test]
fn reports_changes_of_unknown_keywords() {
    let with = |value: Value| json!({"type": "string", "not": value});
    assert_eq!(
        argument_changes(with(json!({"const": "a"})), with(json!({"const": "b"}))),
        ["breaking argument x: not `{\"const\":\"a\"}` → `{\"const\":\"b\"}`"]
    );
}

#[test]
fn bounds_of_responses_are_documentation() {
    assert_eq!(
        property_changes(
            with("integer", "maximum", json!(100)),
            with("integer", "maximum", json!(50))
        ),
        ["documentation output x: maximum 100 → 50"]
    );
    assert_eq!(
        property_changes(
            json!({"type": "string"}),
            with("string", "format", json!("uri"))
        ),
        ["documentation output x: format none → `uri`"]
    );
    assert_eq!(
        property_changes(
            json!({"type": "object"}),
            with("object", "additionalProperties", json!(false))
        ),
        ["documentation output x: additionalProperties true → false"]
    );
}
