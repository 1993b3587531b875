//! A walk through the whole API: every operation once at least, in an order in which each finds what
//! it needs.

mod steps;

use std::collections::{BTreeMap, BTreeSet};

use exa_mcp_model::Operation;
use exa_mcp_server::operations::{all, find};
use serde_json::Value;

use crate::support::{Sandbox, assert_none};

/// One call of the walk. A text such as `$websetId` in its arguments stands for what an earlier step
/// has kept under that name.
struct Step {
    operation: &'static Operation,
    arguments: Value,
    /// Names under which parts of the answer are kept.
    keep: Vec<(&'static str, &'static str)>,
    /// Parts that the answer must have.
    shows: Vec<(&'static str, Value)>,
    /// Milliseconds that pass before it.
    after: u64,
}

fn step(operation: &str, arguments: Value) -> Step {
    Step {
        operation: find(operation).unwrap_or_else(|| panic!("no operation {operation}")),
        arguments,
        keep: Vec::new(),
        shows: Vec::new(),
        after: 0,
    }
}

impl Step {
    fn keep(mut self, name: &'static str, pointer: &'static str) -> Self {
        self.keep.push((name, pointer));
        self
    }

    fn shows(mut self, pointer: &'static str, value: impl Into<Value>) -> Self {
        self.shows.push((pointer, value.into()));
        self
    }

    fn after(mut self, milliseconds: u64) -> Self {
        self.after = milliseconds;
        self
    }
}

/// Walks through the API with a way to call operations, which gives the structured content.
pub(super) fn walk(sandbox: &Sandbox, mut call: impl FnMut(&'static Operation, Value) -> Value) {
    let mut kept = BTreeMap::new();
    let mut problems = Vec::new();
    let mut called = BTreeSet::new();
    for step in steps::all() {
        if step.after > 0 {
            sandbox.advance(step.after);
        }
        let name = step.operation.name;
        let answer = call(step.operation, filled(&step.arguments, &kept));
        called.insert(name);
        problems.extend(unfit(step.operation, &answer));
        for (pointer, value) in &step.shows {
            if answer.pointer(pointer) != Some(value) {
                problems.push(format!("{name}: {pointer} is not {value} in {answer}"));
            }
        }
        for (name, pointer) in step.keep {
            let part = answer.pointer(pointer).cloned();
            kept.insert(
                name,
                part.unwrap_or_else(|| panic!("no {pointer} in {answer}")),
            );
        }
    }
    let missed = all()
        .iter()
        .filter(|operation| !called.contains(operation.name));
    problems.extend(missed.map(|operation| format!("{} was not called", operation.name)));
    assert_none(&problems);
    assert_eq!(called.len(), 69);
}

/// What an answer lacks of its published schema.
fn unfit(operation: &Operation, answer: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(operation.output_schema).expect("a schema");
    let validator = jsonschema::validator_for(&schema).expect("a usable schema");
    let errors = validator.iter_errors(answer);
    errors
        .map(|error| format!("{}: {error} at {}", operation.name, error.instance_path()))
        .collect()
}

fn filled(value: &Value, kept: &BTreeMap<&str, Value>) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix('$') {
            Some(name) => kept.get(name).expect("something kept").clone(),
            None => value.clone(),
        },
        Value::Array(list) => list.iter().map(|entry| filled(entry, kept)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), filled(value, kept)))
            .collect(),
        _ => value.clone(),
    }
}
