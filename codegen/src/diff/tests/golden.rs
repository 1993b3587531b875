//! A complete report, and its determinism.

use super::super::{OperationSnapshots, compare, report};
use super::snapshot;
use serde_json::{Map, Value, json};

fn old() -> OperationSnapshots {
    let item = json!({"type": "object", "properties": {
        "id": {"type": "string"},
        "status": {"type": "string", "enum": ["open", "done"]},
    }, "required": ["id"]});
    let input = json!({"type": "object", "properties": {
        "limit": {"type": "integer", "maximum": 100, "description": "How many | at most"},
        "mode": {"type": "string", "enum": ["fast", "deep"]},
    }});
    let page = json!({"type": "object", "properties": {
        "data": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
    }, "$defs": {"Item": item}});
    let one = json!({"$ref": "#/$defs/Item", "$defs": {"Item": item}});
    OperationSnapshots::from([
        ("items.get".to_owned(), named("/items/{id}", json!({}), one)),
        ("items.list".to_owned(), named("/items", input, page)),
        (
            "items.purge".to_owned(),
            named("/purge", json!({}), json!({})),
        ),
    ])
}

fn new() -> OperationSnapshots {
    let item = json!({"type": "object", "properties": {
        "id": {"type": "string"},
        "status": {"type": "string", "enum": ["open", "done", "lost"]},
    }});
    let input = json!({"type": "object", "properties": {
        "limit": {"type": "integer", "maximum": 50, "description": "The `most` items"},
        "mode": {"type": "string", "enum": ["deep", "fast", "auto"]},
        "cursor": {"type": "string"},
    }});
    let page = json!({"type": "object", "properties": {
        "data": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
    }, "$defs": {"Item": item}});
    let one = json!({"$ref": "#/$defs/Item", "$defs": {"Item": item}});
    OperationSnapshots::from([
        (
            "items.fetch".to_owned(),
            named("/items/{item}", json!({}), one),
        ),
        ("items.list".to_owned(), named("/items", input, page)),
        ("items.add".to_owned(), named("/add", json!({}), json!({}))),
    ])
}

fn named(path: &str, input: Value, output: Value) -> Value {
    let mut result = snapshot(input, output);
    if let Value::Object(fields) = &mut result {
        fields.insert("path".to_owned(), json!(path));
    }
    result
}

/// Returns the value with the keys of every object in reverse order.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Array(elements) => elements.iter().map(reversed).collect(),
        Value::Object(fields) => {
            let pairs = fields.iter().rev();
            let pairs = pairs.map(|(key, value)| (key.clone(), reversed(value)));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

const REPORT: &str = "\
# API changes

**4 breaking**, 5 compatible, 1 documentation

## Several operations

- **breaking** output `Item.id`: became optional and may be absent (breaks clients that rely on it) — in 2 operations: `items.fetch`, `items.list`
- **compatible** output `Item.status`: new value: `lost` — in 2 operations: `items.fetch`, `items.list`

## `items.fetch`

- **breaking** `items.fetch`: renamed from `items.get` to `items.fetch`
- **compatible** `items.fetch`: path `/items/{id}` → `/items/{item}` (no effect on callers)

## `items.list`

- **breaking** `items.list` argument `limit`: maximum 100 → 50
- **compatible** `items.list` argument `cursor`: added, optional (string)
- **compatible** `items.list` argument `mode`: enum values added: `auto`
- **documentation** `items.list` argument `limit`: description “How many \\| at most” → “The \\`most\\` items”

## `items.purge`

- **breaking** `items.purge`: removed (`GET /purge`)

## `items.add`

- **compatible** `items.add`: added (`GET /add`)
";

#[test]
fn formats_the_complete_report() {
    assert_eq!(report(&compare(&old(), &new())), REPORT);
}

#[test]
fn every_line_starts_with_its_impact() {
    let text = report(&compare(&old(), &new()));
    let marks = [
        "- **breaking** ",
        "- **compatible** ",
        "- **documentation** ",
    ];
    let lines = || text.lines().filter(|line| line.starts_with('-'));
    assert_eq!(lines().count(), 10);
    assert!(lines().all(|line| marks.iter().any(|mark| line.starts_with(mark))));
}

#[test]
fn ignores_the_order_of_keys() {
    let reverse_all = |snapshots: &OperationSnapshots| -> OperationSnapshots {
        let reverse = |(name, snapshot): (&String, &Value)| (name.clone(), reversed(snapshot));
        snapshots.iter().map(reverse).collect()
    };
    let changes = compare(&old(), &new());
    assert_eq!(changes, compare(&old(), &new()));
    assert_eq!(changes, compare(&reverse_all(&old()), &reverse_all(&new())));
    assert_eq!(changes, compare(&reverse_all(&old()), &new()));
}

#[test]
fn reports_no_changes_between_identical_versions() {
    assert_eq!(
        report(&compare(&new(), &new())),
        "# API changes\n\nNo changes.\n"
    );
}
