//! Tests of the checked-in specs and output.

use serde_json::Value;

use crate::support::{DesignCopy, repository, snapshot};

#[test]
fn the_checked_in_output_is_up_to_date() {
    let root = repository();
    codegen::generate(&root).unwrap().compare(&root).unwrap();
}

#[test]
fn generation_is_deterministic() {
    let copy = DesignCopy::new();
    assert_eq!(
        copy.generate().unwrap().files,
        copy.generate().unwrap().files
    );
}

#[test]
fn the_checked_in_specs_cause_no_notices() {
    let output = codegen::generate(&repository()).unwrap();
    assert_eq!(output.notices, vec![]);
}

#[test]
fn writes_only_changed_files_and_removes_obsolete_ones() {
    let copy = DesignCopy::new();
    let output = copy.generate().unwrap();
    assert_eq!(output.write(copy.root()).unwrap().len(), output.files.len());
    assert_eq!(output.write(copy.root()).unwrap(), Vec::<String>::new());
    output.compare(copy.root()).unwrap();

    let old = copy.root().join("generated/schemas/old.input.json");
    std::fs::write(&old, "{}").unwrap();
    std::fs::write(copy.root().join("generated/mod.rs"), "// hand-written").unwrap();
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
fn snapshots_have_sorted_keys() {
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

/// Language models rely on the descriptions of arguments, so all must exist.
#[test]
fn every_schema_property_has_a_description() {
    let output = codegen::generate(&repository()).unwrap();
    let mut missing = Vec::new();
    for (name, text) in &output.files {
        if let Some(name) = name.strip_prefix("generated/schemas/") {
            let schema: Value = serde_json::from_str(text).unwrap();
            collect_undescribed(&schema, &schema, name.to_owned(), &mut missing);
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

fn collect_undescribed(schema: &Value, root: &Value, path: String, missing: &mut Vec<String>) {
    let Value::Object(map) = schema else { return };
    for (key, value) in map {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    if !has_description(property, root) {
                        missing.push(format!("{path}.{name}"));
                    }
                    collect_undescribed(property, root, format!("{path}.{name}"), missing);
                }
            }
            ("$defs", Value::Object(definitions)) => {
                for (name, definition) in definitions {
                    collect_undescribed(definition, root, format!("{path} {name}"), missing);
                }
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                for branch in branches {
                    collect_undescribed(branch, root, format!("{path}|"), missing);
                }
            }
            ("items" | "additionalProperties", value) => {
                collect_undescribed(value, root, format!("{path}[]"), missing);
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
fn headers_aliases_and_renamed_parameters_match_the_contract() {
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
    assert_eq!(
        argument("agent.runs.events.list", "lastEventId")["wire"],
        "Last-Event-ID"
    );
    // A field that needs a beta token sends it unasked.
    let token = &argument("get_contents", "betas")["with"][0];
    assert_eq!(token["send"], "dynamic-highlights-2026-08-28");
    assert_eq!(token["given"], "highlights.dynamic");
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
