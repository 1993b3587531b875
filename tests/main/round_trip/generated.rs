//! Bodies generated from the published schemas arrive unchanged.

use std::collections::HashSet;

use exa_mcp_model::{ArgumentLocation, Operation};
use exa_mcp_server::operations::all;
use serde_json::{Map, Value, json};

use crate::support::{InProcessClient, assert_no_problems, sample, schema};

/// Enough variants to cover every branch of every union, including nested ones.
const VARIANTS: usize = 12;

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
    let mut path_arguments = Map::new();
    let properties = body["properties"].as_object_mut().expect("properties");
    for argument in operation.arguments {
        if argument.location == ArgumentLocation::Path {
            path_arguments.insert(argument.name.to_owned(), json!("id_1"));
        }
        if argument.location != ArgumentLocation::Body {
            properties.shift_remove(argument.name);
        }
    }
    // Without a file the server cannot count the records.
    if operation.name == "imports.create" {
        body["required"] = json!(["size", "count", "format", "entity"]);
    }
    let variables = operation.path.matches('{').count();
    assert_eq!(path_arguments.len(), variables, "{}", operation.name);
    Target {
        operation,
        path_arguments,
        body,
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
fn operations_with_a_body_are_covered() {
    let names: Vec<&str> = targets()
        .iter()
        .map(|target| target.operation.name)
        .collect();
    assert!(names.len() >= 27, "{names:?}");
    let has_body = |operation: &&Operation| {
        let mut locations = operation.arguments.iter().map(|it| it.location);
        locations.any(|location| location == ArgumentLocation::Body)
    };
    for operation in all().iter().filter(has_body) {
        assert!(names.contains(&operation.name), "{}", operation.name);
    }
}

/// Also those that the spec has just added, which have no case in the tables.
#[test]
fn required_arguments_of_every_operation_are_sent() {
    let client = InProcessClient::new();
    let mut problems = Vec::new();
    for operation in all() {
        let schema: Value = serde_json::from_str(operation.input_schema).expect("a schema");
        let mut arguments = sample::minimal(&schema, &schema);
        for argument in operation.arguments.iter().filter(|it| it.required) {
            if arguments.get(argument.name).is_none() {
                let property = &schema["properties"][argument.name];
                arguments[argument.name] = sample::minimal(&schema, property);
            }
        }
        let (result, requests) = client.call(operation, arguments.clone());
        let ([request], Ok(_)) = (requests.as_slice(), &result) else {
            problems.push(format!(
                "{} refused {arguments}: {result:?}",
                operation.name
            ));
            continue;
        };
        let mut path = operation.path.to_owned();
        let mut query = Vec::new();
        for argument in operation.arguments.iter().filter(|it| it.required) {
            let value = arguments[argument.name].as_str();
            match (argument.location, value) {
                (ArgumentLocation::Path, Some(value)) => {
                    path = path.replace(&format!("{{{}}}", argument.wire), value);
                }
                (ArgumentLocation::Query, Some(value)) => {
                    query.push((argument.wire.to_owned(), value.to_owned()));
                }
                _ => {}
            }
        }
        query.sort();
        let sent = (request.method.as_str(), request.path(), request.query());
        if sent != (operation.method, &*path, query) {
            problems.push(format!("{} sent {sent:?} for {arguments}", operation.name));
        }
    }
    assert_no_problems(&problems);
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
