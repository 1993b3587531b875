//! Checks against the schemas that are really used.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod corrections;
mod domain;
mod examples;
mod kinds;
mod naming;
mod random;
mod refusals;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::{Value, json};

use super::super::find;
use super::{Checked, InputSchema, Subject, ValidationError, check};

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

/// The aliases that the schema of an operation tells.
fn aliases(schema: &Value) -> Vec<(&str, &str)> {
    let properties = schema["properties"].as_object().unwrap();
    let pairs = properties.iter().flat_map(|(name, property)| {
        let aliases = property["x-aliases"].as_array().into_iter().flatten();
        aliases.map(|alias| (alias.as_str().unwrap(), name.as_str()))
    });
    pairs.collect()
}

fn run(operation: &str, arguments: Value) -> Result<Checked, ValidationError> {
    run_with(operation, schema(operation), arguments)
}

fn run_with(
    operation: &str,
    schema: &InputSchema,
    arguments: Value,
) -> Result<Checked, ValidationError> {
    let aliases = aliases(schema);
    let mut subject = Subject::new(schema).with_aliases(&aliases);
    if let Some(operation) = find(operation) {
        subject = subject.with_behavior(&operation.behavior);
    }
    check(&subject, arguments)
}

/// The call is taken with these arguments and these notes.
#[track_caller]
fn corrected(operation: &str, given: Value, wanted: Value, notes: &[&str]) {
    let shown = given.to_string();
    match run(operation, given) {
        Ok(checked) => {
            assert_eq!(Value::Object(checked.arguments), wanted, "{shown}");
            assert_eq!(checked.corrections, notes, "{shown}");
        }
        Err(refused) => panic!("{shown} was refused: {refused}"),
    }
}

/// The call is taken as it is, without a word.
#[track_caller]
fn untouched(operation: &str, given: Value) {
    corrected(operation, given.clone(), given, &[]);
}

/// The call is refused with exactly these problems, in whatever order.
#[track_caller]
fn refused(operation: &str, given: Value, problems: &[(&str, &str)]) {
    let shown = given.to_string();
    match run(operation, given) {
        Ok(checked) => panic!("{shown} was taken: {checked:?}"),
        Err(refused) => {
            let mut found: Vec<(&str, &str)> = refused
                .problems
                .iter()
                .map(|problem| (problem.place.as_str(), problem.text.as_str()))
                .collect();
            let mut wanted = problems.to_vec();
            found.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(found, wanted, "{shown}");
        }
    }
}

#[test]
fn a_broken_schema_lets_the_call_through_with_a_note() {
    let schema = InputSchema::new(json!({"type": "object", "properties": {}, "required": 5}));
    let checked = run_with("broken", &schema, json!({"a": 1})).unwrap();
    assert_eq!(Value::Object(checked.arguments), json!({"a": 1}));
    assert!(checked.corrections[0].starts_with("the arguments were not checked: "));
}
