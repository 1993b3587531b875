//! Bodies generated from the published schemas arrive unchanged.

use std::collections::HashSet;

use exa_mcp_model::Operation;
use exa_mcp_server::operations::all;
use serde_json::{Map, Value, json};

use crate::support::{InProcessClient, assert_no_problems, sample, schema};

/// Enough variants to cover every branch of every union, including nested ones.
const VARIANTS: usize = 12;

/// The arguments that go into the query or a header.
const NON_BODY_ARGUMENTS: [&str; 4] = ["betas", "priority", "idempotencyKey", "withItems"];

/// An operation with its path arguments and the schema of its body.
struct Target {
    operation: &'static Operation,
    path_arguments: Map<String, Value>,
    body: Value,
}

/// Returns the operations that take a body.
fn targets() -> Vec<Target> {
    let candidates = all()
        .iter()
        .filter(|operation| ["POST", "PUT", "PATCH"].contains(&operation.method));
    candidates
        .map(target)
        .filter(|target| target.body["properties"] != json!({}))
        .collect()
}

fn target(operation: &'static Operation) -> Target {
    let mut body: Value = serde_json::from_str(operation.input_schema).expect("a schema");
    let identifiers = operation.path.matches('{').count();
    let mut path_arguments = Map::new();
    let properties = body["properties"].as_object_mut().expect("properties");
    properties.retain(|name, _| {
        let in_path = identifiers > 0 && name.ends_with("Id");
        if in_path {
            path_arguments.insert(name.clone(), json!("id_1"));
        }
        !in_path && !NON_BODY_ARGUMENTS.contains(&name.as_str()) && !is_own(operation, name)
    });
    // Without a file the server cannot count the records.
    if operation.name == "imports.create" {
        body["required"] = json!(["size", "count", "format", "entity"]);
    }
    assert_eq!(path_arguments.len(), identifiers, "{}", operation.name);
    Target {
        operation,
        path_arguments,
        body,
    }
}

/// Returns whether the server handles an argument itself.
fn is_own(operation: &Operation, name: &str) -> bool {
    match operation.name {
        "agent.runs.create" => name == "stream",
        "imports.create" => ["csvContent", "filePath"].contains(&name),
        _ => false,
    }
}

impl Target {
    fn is_closed(&self) -> bool {
        self.body["additionalProperties"] == json!(false)
    }

    fn full(&self, turn: usize) -> Value {
        sample::full(&self.body, &self.body, turn)
    }

    /// Sends a body and returns how it changed, if it did.
    fn problem(&self, client: &InProcessClient, body: &Value) -> Option<String> {
        let mut arguments = self.path_arguments.clone();
        arguments.extend(body.as_object().expect("an object").clone());
        let (result, requests) = client.call(self.operation, Value::Object(arguments));
        let name = self.operation.name;
        if let Err(error) = result {
            return Some(format!("{name} refused {body}: {error}"));
        }
        let sent = requests.first().and_then(|request| request.json());
        // A call without fields may send an empty object or no body.
        let same = sent.as_ref() == Some(body) || (sent.is_none() && *body == json!({}));
        (!same).then(|| format!("{name} changed {body} to {}", json!(sent)))
    }
}

#[test]
fn twenty_seven_operations_take_a_body() {
    let names: Vec<&str> = targets()
        .iter()
        .map(|target| target.operation.name)
        .collect();
    assert_eq!(names.len(), 27, "{names:?}");
}

#[test]
fn complete_bodies_round_trip_in_every_union_branch() {
    let client = InProcessClient::new();
    let mut problems = Vec::new();
    for target in targets() {
        for turn in 0..VARIANTS {
            problems.extend(target.problem(&client, &target.full(turn)));
        }
    }
    assert_no_problems(&problems);
}

#[test]
fn optional_fields_may_be_null_or_absent() {
    let client = InProcessClient::new();
    let mut problems = Vec::new();
    for target in targets() {
        let required = Value::Object(sample::required(&target.body));
        problems.extend(target.problem(&client, &required));
        let mut nulls = target.full(0);
        for (name, value) in nulls.as_object_mut().expect("an object") {
            if !schema::requires(&target.body, name) {
                *value = Value::Null;
            }
        }
        problems.extend(target.problem(&client, &nulls));
    }
    assert_no_problems(&problems);
}

#[test]
fn unusual_bodies_round_trip() {
    let client = InProcessClient::new();
    let mut problems = Vec::new();
    for target in targets() {
        let mut tried = HashSet::new();
        for turn in 0..schema::widest_union(&target.body) {
            let full = target.full(turn);
            for body in sample::edits(&target.body, &target.body, turn, &full) {
                // Only a closed body refuses a field that it does not know.
                let refused = target.is_closed() && body.get(sample::UNKNOWN_FIELD).is_some();
                if !refused && tried.insert(body.to_string()) {
                    problems.extend(target.problem(&client, &body));
                }
            }
        }
        assert!(tried.len() > 3, "{}: {tried:?}", target.operation.name);
    }
    assert_no_problems(&problems);
}
