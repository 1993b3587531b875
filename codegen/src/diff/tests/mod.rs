//! Tests of the comparison rules and of a complete report.

mod arguments;
mod bounds;
mod commands;
mod definitions;
mod equivalent_schemas;
mod golden;
mod names;
mod operations;
mod outputs;
mod tools;
mod transport;
mod unions;

use serde_json::{Value, json};

use super::{ApiChange, OperationSnapshots, compare};

/// Returns the snapshots of an API with one operation, `items.list`.
fn single_operation(snapshot: Value) -> OperationSnapshots {
    OperationSnapshots::from([("items.list".to_owned(), snapshot)])
}

/// Returns a snapshot with the given input and output schema.
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

/// Formats changes as `impact location: text`, without the operation.
fn lines_of(changes: &[ApiChange]) -> Vec<String> {
    let line = |change: &ApiChange| match change.location.as_str() {
        "" => format!("{}: {}", change.impact, change.text),
        location => format!("{} {location}: {}", change.impact, change.text),
    };
    changes.iter().map(line).collect()
}

/// Returns the changes between two versions of one snapshot.
fn changes_between(old: Value, new: Value) -> Vec<String> {
    lines_of(&compare(&single_operation(old), &single_operation(new)))
}

/// Returns the changes between two input schemas.
fn input_changes(old: Value, new: Value) -> Vec<String> {
    changes_between(snapshot(old, json!({})), snapshot(new, json!({})))
}

/// Returns the changes between two output schemas.
fn output_changes(old: Value, new: Value) -> Vec<String> {
    changes_between(snapshot(json!({}), old), snapshot(json!({}), new))
}

/// Returns an object schema with one optional property `x`.
fn with_x(schema: Value) -> Value {
    json!({"type": "object", "properties": {"x": schema}})
}

/// Returns the changes of an optional argument `x`.
fn argument_changes(old: Value, new: Value) -> Vec<String> {
    input_changes(with_x(old), with_x(new))
}

/// Returns the changes of a property `x` of the response.
fn property_changes(old: Value, new: Value) -> Vec<String> {
    output_changes(with_x(old), with_x(new))
}
