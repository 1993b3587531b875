//! Response changes, from the view of clients that read them.

use super::{changes_between, output_changes, property_changes, snapshot, with_x};
use serde_json::{Value, json};

fn required_x(kind: &str) -> Value {
    json!({"type": "object", "properties": {"x": {"type": kind}}, "required": ["x"]})
}

#[test]
fn reports_added_removed_and_required_properties() {
    let empty = || json!({"type": "object"});
    assert_eq!(
        output_changes(empty(), required_x("string")),
        ["compatible output x: added (string)"]
    );
    assert_eq!(
        output_changes(required_x("string"), empty()),
        ["breaking output x: removed (breaks clients that rely on it)"]
    );
    let optional = || with_x(json!({"type": "string"}));
    assert_eq!(
        output_changes(required_x("string"), optional()),
        ["breaking output x: became optional and may be absent (breaks clients that rely on it)"]
    );
    assert_eq!(
        output_changes(optional(), required_x("string")),
        ["compatible output x: is now always present"]
    );
}

#[test]
fn wider_types_are_breaking() {
    let case =
        |old: Value, new: Value| property_changes(json!({"type": old}), json!({"type": new}));
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
        let changes = case(old, new);
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert!(
            changes
                .iter()
                .all(|line| line.starts_with("breaking output x: ")
                    && line.ends_with("(breaks clients that rely on it)")),
            "{changes:?}"
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
fn only_replaced_enum_values_are_breaking() {
    let of = |values: Value| json!({"type": "string", "enum": values});
    assert_eq!(
        property_changes(of(json!(["a", "b"])), of(json!(["b", "c"]))),
        ["breaking output x: enum values replaced: `a` → `c` (breaks clients that rely on it)"]
    );
    assert_eq!(
        property_changes(of(json!(["a", "b"])), of(json!(["b"]))),
        ["compatible output x: enum values removed: `a`"]
    );
    assert_eq!(
        property_changes(of(json!(["b"])), of(json!(["b", "c"]))),
        ["compatible output x: new value: `c`"]
    );
    let free = || json!({"type": "string"});
    assert_eq!(
        property_changes(of(json!(["a"])), free()),
        ["compatible output x: enum removed (was `a`)"]
    );
    assert_eq!(
        property_changes(free(), of(json!(["a"]))),
        ["compatible output x: enum added: only `a` allowed"]
    );
}

#[test]
fn documentation_changes_are_documentation() {
    assert_eq!(
        property_changes(
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
fn does_not_detect_renames_in_responses() {
    let of = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}});
    assert_eq!(
        output_changes(of("a"), of("b")),
        [
            "breaking output a: removed (breaks clients that rely on it)",
            "compatible output b: added (string)",
        ]
    );
}

#[test]
fn a_response_without_a_schema_can_be_anything() {
    let described = snapshot(json!({}), json!({"type": "object"}));
    let mut undescribed = described.clone();
    if let Value::Object(fields) = &mut undescribed {
        fields.remove("outputSchema");
    }
    assert_eq!(
        changes_between(undescribed.clone(), described.clone()),
        ["compatible output: type any → object"]
    );
    assert_eq!(
        changes_between(described, undescribed),
        ["breaking output: type object → any (breaks clients that rely on it)"]
    );
}

#[test]
fn compares_the_values_of_maps() {
    let of = |schema: Value| json!({"type": "object", "additionalProperties": schema});
    assert_eq!(
        property_changes(
            of(json!({"type": "integer"})),
            of(json!({"type": "number"}))
        ),
        ["breaking output x.*: type integer → number (breaks clients that rely on it)"]
    );
    assert_eq!(
        property_changes(of(json!({"type": "integer"})), of(json!(false))),
        [
            "breaking output x: additionalProperties `{\"type\":\"integer\"}` → false \
             (breaks clients that rely on it)"
        ]
    );
}
