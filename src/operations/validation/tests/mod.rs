//! Validation against the schemas of all operations.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod corrections;
mod domain;
mod examples;
mod naming;
mod new_values;
mod random;
mod rejections;
mod types;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::{Value, json};

use super::super::find;
use super::{ArgumentSpec, InputSchema, ValidatedArguments, ValidationError, validate};

/// The input schemas of all operations, by name.
fn schemas() -> &'static BTreeMap<String, InputSchema> {
    static SCHEMAS: OnceLock<BTreeMap<String, InputSchema>> = OnceLock::new();
    SCHEMAS.get_or_init(|| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/generated/schemas");
        let files = std::fs::read_dir(folder).unwrap();
        let paths = files.map(|file| file.unwrap().path());
        paths
            .filter_map(|path| {
                let file = path.file_name()?.to_str()?;
                let operation = file.strip_suffix(".input.json")?.to_owned();
                let text = std::fs::read_to_string(&path).unwrap();
                Some((
                    operation,
                    InputSchema::new(serde_json::from_str(&text).unwrap()),
                ))
            })
            .collect()
    })
}

fn schema(operation: &str) -> &'static InputSchema {
    schemas()
        .get(operation)
        .unwrap_or_else(|| panic!("no schema of {operation}"))
}

/// Returns the aliases in the schema of an operation.
fn aliases(schema: &Value) -> Vec<(&str, &str)> {
    let properties = schema["properties"].as_object().unwrap();
    let pairs = properties.iter().flat_map(|(name, property)| {
        let aliases = property["x-aliases"].as_array().into_iter().flatten();
        aliases.map(|alias| (alias.as_str().unwrap(), name.as_str()))
    });
    pairs.collect()
}

fn run(operation: &str, arguments: Value) -> Result<ValidatedArguments, ValidationError> {
    run_with(operation, schema(operation), arguments)
}

fn run_with(
    operation: &str,
    schema: &InputSchema,
    arguments: Value,
) -> Result<ValidatedArguments, ValidationError> {
    let aliases = aliases(schema);
    let mut spec = ArgumentSpec::new(schema)
        .with_aliases(&aliases)
        .with_open_values(&[]);
    if let Some(operation) = find(operation) {
        spec = spec.with_behavior(&operation.behavior);
    }
    validate(&spec, arguments)
}

/// Asserts that a call is accepted with these arguments and corrections.
#[track_caller]
fn assert_corrected(operation: &str, given: Value, wanted: Value, notes: &[&str]) {
    let shown = given.to_string();
    match run(operation, given) {
        Ok(validated) => {
            assert_eq!(Value::Object(validated.arguments), wanted, "{shown}");
            assert_eq!(validated.corrections, notes, "{shown}");
        }
        Err(error) => panic!("{shown} was rejected: {error}"),
    }
}

/// Asserts that a call is accepted without corrections.
#[track_caller]
fn assert_unchanged(operation: &str, given: Value) {
    assert_corrected(operation, given.clone(), given, &[]);
}

/// Asserts that a call is rejected with exactly these problems, in any order.
#[track_caller]
fn assert_rejected(operation: &str, given: Value, problems: &[(&str, &str)]) {
    let shown = given.to_string();
    match run(operation, given) {
        Ok(validated) => panic!("{shown} was accepted: {validated:?}"),
        Err(error) => {
            let mut found: Vec<(&str, &str)> = error
                .problems
                .iter()
                .map(|problem| (problem.path.as_str(), problem.message.as_str()))
                .collect();
            let mut wanted = problems.to_vec();
            found.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(found, wanted, "{shown}");
        }
    }
}

#[test]
fn accepts_calls_with_a_note_if_the_schema_is_invalid() {
    let schema = InputSchema::new(json!({"type": "object", "properties": {}, "required": 5}));
    let validated = run_with("broken", &schema, json!({"a": 1})).unwrap();
    assert_eq!(Value::Object(validated.arguments), json!({"a": 1}));
    assert!(validated.corrections[0].starts_with("the arguments were not checked: "));
}

#[test]
fn schemas_are_not_fetched() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let reference = format!("http://{address}/schema.json");
    let schema = InputSchema::new(json!({"properties": {"a": {"$ref": reference}}}));
    let validated = validate(&ArgumentSpec::new(&schema), json!({"a": 1})).unwrap();
    assert!(validated.corrections[0].starts_with("the arguments were not checked: "));
    let error = listener.accept().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
}
