//! A walk through the whole API: every operation at least once, in an order in which each finds the objects
//! it needs. An operation that the spec has just added needs no step: the sandbox answers it with a sample.

mod steps;

use std::collections::{BTreeMap, BTreeSet};

use exa_mcp_model::Operation;
use exa_mcp_server::operations::{all, find};
use serde_json::Value;

use crate::support::{Sandbox, assert_no_problems, sample};

/// One call of the walk. A string such as `$websetId` in its arguments stands for a value that an earlier step
/// has saved under that name.
struct Step {
    operation: &'static Operation,
    arguments: Value,
    /// The names and pointers of the values to save.
    save: Vec<(&'static str, &'static str)>,
    /// The pointers and values that the response must contain.
    expected: Vec<(&'static str, Value)>,
    /// Milliseconds to advance the clock before the call.
    after: u64,
}

fn step(operation: &str, arguments: Value) -> Step {
    Step {
        operation: find(operation).unwrap_or_else(|| panic!("no operation {operation}")),
        arguments,
        save: Vec::new(),
        expected: Vec::new(),
        after: 0,
    }
}

impl Step {
    fn save(mut self, name: &'static str, pointer: &'static str) -> Self {
        self.save.push((name, pointer));
        self
    }

    fn with_expected(mut self, pointer: &'static str, value: impl Into<Value>) -> Self {
        self.expected.push((pointer, value.into()));
        self
    }

    fn after(mut self, milliseconds: u64) -> Self {
        self.after = milliseconds;
        self
    }
}

/// Walks through the API with a function that calls an operation and returns its response.
pub(super) fn walk(sandbox: &Sandbox, mut call: impl FnMut(&'static Operation, Value) -> Value) {
    let mut saved = BTreeMap::new();
    let mut problems = Vec::new();
    let mut called = BTreeSet::new();
    for step in steps::all() {
        if step.after > 0 {
            sandbox.advance(step.after);
        }
        let name = step.operation.name;
        let response = call(step.operation, substitute(&step.arguments, &saved));
        called.insert(name);
        problems.extend(schema_violations(step.operation, &response));
        for (pointer, value) in &step.expected {
            if response.pointer(pointer) != Some(value) {
                problems.push(format!("{name}: {pointer} is not {value} in {response}"));
            }
        }
        for (name, pointer) in step.save {
            let part = response.pointer(pointer).cloned();
            saved.insert(
                name,
                part.unwrap_or_else(|| panic!("no {pointer} in {response}")),
            );
        }
    }
    assert!(called.len() >= 76, "steps are missing: {called:?}");
    // Team management has tools, a key and a host of its own; `team.rs` tests it.
    let others = all()
        .iter()
        .filter(|operation| operation.api.name != "team" && !called.contains(operation.name));
    for operation in others {
        let schema: Value = serde_json::from_str(operation.input_schema).expect("a schema");
        let response = call(operation, sample::minimal(&schema, &schema));
        problems.extend(schema_violations(operation, &response));
    }
    assert_no_problems(&problems);
}

/// Returns the violations of the published response schema.
fn schema_violations(operation: &Operation, response: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(operation.output_schema).expect("a schema");
    let validator = jsonschema::validator_for(&schema).expect("a usable schema");
    // The mark of the sandbox and what the server adds are not part of the API, some of whose responses take no other
    // fields.
    let mut response = response.clone();
    if let Some(fields) = response.as_object_mut() {
        for own in ["sandbox", "isComplete", "checkWith", "cancelWith", "hint"] {
            fields.shift_remove(own);
        }
    }
    remove_absent_fields(&mut response);
    let errors = validator.iter_errors(&response);
    errors
        .map(|error| format!("{}: {error} at {}", operation.name, error.instance_path()))
        .collect()
}

/// Removes the fields that every page has in JSON results, even if they are absent from the response.
fn remove_absent_fields(response: &mut Value) {
    for list in ["results", "citations"] {
        let pages = response.get_mut(list).and_then(Value::as_array_mut);
        for page in pages.into_iter().flatten() {
            if let Some(fields) = page.as_object_mut() {
                fields.retain(|_, value| !value.is_null());
            }
        }
    }
}

fn substitute(value: &Value, saved: &BTreeMap<&str, Value>) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix('$') {
            Some(name) => saved.get(name).expect("a saved value").clone(),
            None => value.clone(),
        },
        Value::Array(list) => list.iter().map(|entry| substitute(entry, saved)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), substitute(value, saved)))
            .collect(),
        _ => value.clone(),
    }
}
