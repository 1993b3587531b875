//! The specs as they are checked in.

use serde_json::Value;

use crate::support::{Copy, repository, snapshot};

#[test]
fn the_checked_in_output_belongs_to_the_specs() {
    let root = repository();
    codegen::generate(&root).unwrap().compare(&root).unwrap();
}

#[test]
fn two_runs_give_the_same_bytes() {
    let copy = Copy::new();
    assert_eq!(
        copy.generate().unwrap().files,
        copy.generate().unwrap().files
    );
}

#[test]
fn every_overlay_action_and_surface_entry_finds_its_place() {
    let output = codegen::generate(&repository()).unwrap();
    assert_eq!(output.notices, vec![]);
}

#[test]
fn writing_touches_only_what_differs_and_removes_what_is_left_over() {
    let copy = Copy::new();
    let output = copy.generate().unwrap();
    assert_eq!(output.write(copy.root()).unwrap().len(), output.files.len());
    assert_eq!(output.write(copy.root()).unwrap(), Vec::<String>::new());
    output.compare(copy.root()).unwrap();

    let old = copy.root().join("generated/schemas/old.input.json");
    std::fs::write(&old, "{}").unwrap();
    std::fs::write(copy.root().join("generated/mod.rs"), "// by hand").unwrap();
    let stale = output.compare(copy.root()).unwrap_err().to_string();
    assert!(
        stale.contains("generated/mod.rs, generated/schemas/old.input.json"),
        "{stale}"
    );
    assert!(stale.contains("cargo build --features codegen"), "{stale}");
    assert_eq!(output.write(copy.root()).unwrap().len(), 2);
    assert!(!old.exists());
    output.compare(copy.root()).unwrap();
}

#[test]
fn a_snapshot_has_sorted_keys() {
    fn check(value: &Value) {
        match value {
            Value::Object(map) => {
                assert!(
                    map.keys().is_sorted(),
                    "{:?}",
                    map.keys().collect::<Vec<_>>()
                );
                map.values().for_each(check);
            }
            Value::Array(list) => list.iter().for_each(check),
            _ => {}
        }
    }
    let output = codegen::generate(&repository()).unwrap();
    for (name, text) in &output.files {
        if name.starts_with("codegen-snapshots/") && name.ends_with(".json") {
            check(&serde_json::from_str(text).unwrap());
        }
    }
}

/// A language model fills arguments by their descriptions, so none may be missing.
#[test]
fn every_property_of_every_schema_is_described() {
    let output = codegen::generate(&repository()).unwrap();
    let mut missing = Vec::new();
    for (name, text) in &output.files {
        if let Some(name) = name.strip_prefix("generated/schemas/") {
            let schema: Value = serde_json::from_str(text).unwrap();
            undescribed(&schema, &schema, name.to_owned(), &mut missing);
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

fn undescribed(schema: &Value, root: &Value, place: String, missing: &mut Vec<String>) {
    let Value::Object(map) = schema else { return };
    for (key, value) in map {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    if !has_description(property, root) {
                        missing.push(format!("{place}.{name}"));
                    }
                    undescribed(property, root, format!("{place}.{name}"), missing);
                }
            }
            ("$defs", Value::Object(definitions)) => {
                for (name, definition) in definitions {
                    undescribed(definition, root, format!("{place} {name}"), missing);
                }
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                for branch in branches {
                    undescribed(branch, root, format!("{place}|"), missing);
                }
            }
            ("items" | "additionalProperties", value) => {
                undescribed(value, root, format!("{place}[]"), missing);
            }
            _ => {}
        }
    }
}

fn has_description(schema: &Value, root: &Value) -> bool {
    let target = schema.get("$ref").and_then(Value::as_str);
    let target = target.and_then(|target| root.pointer(target.trim_start_matches('#')));
    schema.get("description").is_some()
        || target.is_some_and(|target| has_description(target, root))
}

#[test]
fn headers_aliases_and_renamed_parameters_are_as_agreed() {
    let output = codegen::generate(&repository()).unwrap();
    let argument =
        |operation: &str, name: &str| snapshot(&output, operation)["arguments"][name].clone();
    let betas = argument("agent.monitors.list", "betas");
    assert_eq!(betas["wire"], "Exa-Beta");
    assert_eq!(betas["always"][0], "agent-monitors-2026-08-04");
    assert_eq!(betas["required"], false);
    assert_eq!(
        argument("websets.create", "priority")["wire"],
        "x-exa-websets-priority"
    );
    assert_eq!(
        argument("agent.monitors.create", "idempotencyKey")["wire"],
        "Idempotency-Key"
    );
    assert_eq!(argument("websets.preview", "withItems")["in"], "query");
    assert_eq!(argument("websets.preview", "search")["in"], "body");
    let aliases = |operation, name| argument(operation, name)["aliases"].clone();
    assert_eq!(
        aliases("items.list", "websetId"),
        serde_json::json!(["webset", "id"])
    );
    assert_eq!(
        aliases("items.get", "websetId"),
        serde_json::json!(["webset"])
    );
    assert_eq!(aliases("items.get", "itemId"), serde_json::json!(["id"]));
}
