//! The rules of the comparison, one test for each, and the report as a whole.

mod arguments;
mod bounds;
mod definitions;
mod forms;
mod golden;
mod names;
mod operations;
mod outputs;
mod unions;

use serde_json::{Value, json};

use super::{Catalogue, Change, compare};

/// A catalogue of one operation, `items.list`.
fn catalogue(snapshot: Value) -> Catalogue {
    Catalogue::from([("items.list".to_owned(), snapshot)])
}

/// A snapshot with the given input and output schema.
fn snapshot(input: Value, output: Value) -> Value {
    json!({
        "name": "items.list",
        "api": "websets",
        "domain": "items",
        "method": "GET",
        "path": "/websets/v0/websets/{webset}/items",
        "summary": "List items",
        "inputSchema": input,
        "outputSchema": output,
        "timeoutSeconds": 60,
    })
}

/// Changes as `class place: text`, without the operation.
fn told(changes: &[Change]) -> Vec<String> {
    let line = |change: &Change| match change.place.as_str() {
        "" => format!("{}: {}", change.class, change.text),
        place => format!("{} {place}: {}", change.class, change.text),
    };
    changes.iter().map(line).collect()
}

/// The changes between two versions of one snapshot.
fn between(old: Value, new: Value) -> Vec<String> {
    told(&compare(&catalogue(old), &catalogue(new)))
}

/// The changes between two input schemas.
fn inputs(old: Value, new: Value) -> Vec<String> {
    between(snapshot(old, json!({})), snapshot(new, json!({})))
}

/// The changes between two output schemas.
fn outputs(old: Value, new: Value) -> Vec<String> {
    between(snapshot(json!({}), old), snapshot(json!({}), new))
}

/// An object schema with one optional property `x`.
fn with_x(schema: Value) -> Value {
    json!({"type": "object", "properties": {"x": schema}})
}

/// The changes of an optional argument `x`.
fn argument(old: Value, new: Value) -> Vec<String> {
    inputs(with_x(old), with_x(new))
}

/// The changes of a property `x` of the answer.
fn output(old: Value, new: Value) -> Vec<String> {
    outputs(with_x(old), with_x(new))
}
