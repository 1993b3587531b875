//! Answers, seen by those who read them.

use super::{between, output, outputs, snapshot, with_x};
use serde_json::{Value, json};

fn required_x(kind: &str) -> Value {
    json!({"type": "object", "properties": {"x": {"type": kind}}, "required": ["x"]})
}

#[test]
fn presence() {
    let empty = || json!({"type": "object"});
    assert_eq!(
        outputs(empty(), required_x("string")),
        ["compatible output x: added (string)"]
    );
    assert_eq!(
        outputs(required_x("string"), empty()),
        ["breaking output x: removed (breaks readers who rely on it)"]
    );
    let optional = || with_x(json!({"type": "string"}));
    assert_eq!(
        outputs(required_x("string"), optional()),
        ["breaking output x: became optional, may be missing (breaks readers who rely on it)"]
    );
    assert_eq!(
        outputs(optional(), required_x("string")),
        ["compatible output x: is always there now"]
    );
}

#[test]
fn types_are_judged_the_other_way_round() {
    let case = |old: Value, new: Value| output(json!({"type": old}), json!({"type": new}));
    for (old, new) in [
        (json!("string"), json!(["string", "null"])),
        (json!("string"), json!(["string", "integer"])),
        (
            json!(["string", "integer"]),
            json!(["string", "integer", "boolean"]),
        ),
        (json!("integer"), json!("number")),
        (json!("string"), json!("integer")),
    ] {
        let told = case(old, new);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told.iter()
                .all(|line| line.starts_with("breaking output x: ")
                    && line.ends_with("(breaks readers who rely on it)")),
            "{told:?}"
        );
    }
    assert_eq!(
        case(json!(["string", "null"]), json!("string")),
        ["compatible output x: type string or null → string"]
    );
    assert_eq!(
        case(json!("number"), json!("integer")),
        ["compatible output x: type number → integer"]
    );
}

#[test]
fn enums_are_compatible() {
    let of = |values: Value| json!({"type": "string", "enum": values});
    assert_eq!(
        output(of(json!(["a", "b"])), of(json!(["b", "c"]))),
        [
            "compatible output x: enum values removed: `a`",
            "compatible output x: new value: `c`",
        ]
    );
    let free = || json!({"type": "string"});
    assert_eq!(
        output(of(json!(["a"])), free()),
        ["compatible output x: enum dropped (was `a`)"]
    );
    assert_eq!(
        output(free(), of(json!(["a"]))),
        ["compatible output x: enum introduced: only `a`"]
    );
}

#[test]
fn words_are_documentation() {
    assert_eq!(
        output(
            json!({"type": "string", "description": "old", "default": "a"}),
            json!({"type": "string", "description": "new", "default": "b"}),
        ),
        [
            "documentation output x: default `a` → `b`",
            "documentation output x: description “old” → “new”",
        ]
    );
}

#[test]
fn properties_of_answers_are_not_renamed() {
    let of = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}});
    assert_eq!(
        outputs(of("a"), of("b")),
        [
            "breaking output a: removed (breaks readers who rely on it)",
            "compatible output b: added (string)",
        ]
    );
}

#[test]
fn an_undescribed_answer_can_be_anything() {
    let described = snapshot(json!({}), json!({"type": "object"}));
    let mut undescribed = described.clone();
    if let Value::Object(fields) = &mut undescribed {
        fields.remove("outputSchema");
    }
    assert_eq!(
        between(undescribed.clone(), described.clone()),
        ["compatible output: type any → object"]
    );
    assert_eq!(
        between(described, undescribed),
        ["breaking output: type object → any (breaks readers who rely on it)"]
    );
}

#[test]
fn maps_are_followed() {
    let of = |schema: Value| json!({"type": "object", "additionalProperties": schema});
    assert_eq!(
        output(
            of(json!({"type": "integer"})),
            of(json!({"type": "number"}))
        ),
        ["breaking output x.*: type integer → number (breaks readers who rely on it)"]
    );
    assert_eq!(
        output(of(json!({"type": "integer"})), of(json!(false))),
        [
            "breaking output x: additionalProperties `{\"type\":\"integer\"}` → false \
             (breaks readers who rely on it)"
        ]
    );
}
