//! A changed spec needs no changes of code: the project is copied, regenerated, compiled and called.

use std::process::Command;

use serde_json::{Value, json};

use crate::constructs;
use crate::project::{Project, serve_once, stderr};
use crate::support::repository;

const JSON: &str = "application/json";

/// Returns a new operation with constructs that the current specs do not use.
fn exports() -> Value {
    json!({
        "operationId": "websets-exports-create",
        "summary": "Export a webset",
        "parameters": [
            {"name": "webset", "in": "path", "required": true, "schema": {"type": "string"}},
            {"name": "column", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
            {"name": "sort", "in": "query", "explode": false,
             "schema": {"type": "array", "items": {"type": "string"}}},
            {"name": "body", "in": "query", "schema": {"type": "boolean"}},
            {"name": "X-Exa-Trace-Id", "in": "header", "schema": {"type": "string"}}],
        "requestBody": {"required": true, "content": {"application/json": {"schema":
            {"$ref": "#/components/schemas/CreateExport"}}}},
        "responses": {
            "200": {"description": "done", "content": {"application/json": {"schema": {"type": "object"}}}},
            "202": {"description": "started", "content": {"application/json": {"schema":
                {"type": "object", "properties": {"exportId": {"type": "string"}}}}}},
            "404": {"description": "gone", "content": {"application/json": {"schema":
                {"type": "object", "properties": {"code": {"type": "string", "enum": ["a"]}}}}}}},
    })
}

fn change_websets(spec: &mut Value) {
    spec["paths"]["/v0/websets/{webset}/exports"] = json!({"post": exports()});
    constructs::add(spec);
    // Remove two operations that the surface names, and a field that a marker reads.
    let paths = spec["paths"].as_object_mut().unwrap();
    paths.shift_remove("/v0/webhooks/{id}/attempts").unwrap();
    paths
        .shift_remove("/v0/websets/{webset}/enrichments/{id}/cancel")
        .unwrap();
    let schemas = &mut spec["components"]["schemas"];
    schemas["Webset"]["properties"]
        .as_object_mut()
        .unwrap()
        .shift_remove("status")
        .unwrap();
    schemas["CreateExport"] = json!({
        "type": "object",
        "required": ["format", "filter"],
        "properties": {
            "format": {"const": "csv"},
            "note": {"type": ["string", "null"]},
            "filter": {"$ref": "#/components/schemas/Filter"},
            "target": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"url": {"type": "string"}}}]},
            "size": {"type": ["integer", "string"]}}});
    schemas["Filter"] = json!({
        "type": "object",
        "properties": {
            "field": {"type": "string"},
            "and": {"type": "array", "items": {"$ref": "#/components/schemas/Filter"}},
            "not": {"oneOf": [{"$ref": "#/components/schemas/Filter"}, {"type": "null"}]}}});
    // Rename a property.
    let create = &mut schemas["CreateEnrichmentParameters"];
    create["properties"]["format"]["enum"]
        .as_array_mut()
        .unwrap()
        .push(json!("currency"));
    let description = create["properties"]
        .as_object_mut()
        .unwrap()
        .shift_remove("description")
        .unwrap();
    create["properties"]["prompt"] = description;
    create["required"] = json!(["prompt"]);
}

#[test]
fn a_changed_spec_needs_no_code_changes() {
    let project = Project::new("spec-update");
    project.edit("exa-websets-spec.yaml", change_websets);

    // Without the generator, the stale tree does not compile, and the message names the command.
    let stale = project.cargo(&["build"], false);
    assert!(!stale.status.success());
    assert!(
        stderr(&stale).contains("run `cargo build --features codegen`"),
        "{}",
        stderr(&stale)
    );

    // The check reports the differences and writes nothing.
    let before = project.generated_files();
    let check = project.cargo(&["build", "--features", "codegen"], true);
    assert!(!check.status.success());
    assert!(
        stderr(&check).contains("generated/operations.rs"),
        "{}",
        stderr(&check)
    );
    assert!(
        before == project.generated_files(),
        "the check wrote something"
    );

    let built = project.cargo(&["build", "--features", "codegen"], false);
    assert!(built.status.success(), "{}", stderr(&built));
    let warnings = stderr(&built);
    assert!(
        warnings.contains("surface.yaml entry GET /websets/v0/webhooks/{id}/attempts"),
        "{warnings}"
    );
    assert!(
        warnings.contains("`enrichments.cancel` no longer exists"),
        "{warnings}"
    );
    assert!(warnings.contains("has no field `status`"), "{warnings}");

    // Now the tree is up to date: check and ordinary build succeed.
    let check = project.cargo(&["build", "--features", "codegen"], true);
    assert!(check.status.success(), "{}", stderr(&check));
    let plain = project.cargo(&["build"], false);
    assert!(plain.status.success(), "{}", stderr(&plain));

    check_registry(&project);
    check_new_operation(&project);
    check_renamed_property(&project);
    check_declared_error(&project);
    check_diff_report(&project);
    constructs::check(&project);
}

fn check_registry(project: &Project) {
    let listed = project.program(&["operations", "--json"], "http://127.0.0.1:1");
    let operations: Vec<Value> = serde_json::from_slice(&listed.stdout).unwrap();
    let find = |name: &str| {
        operations
            .iter()
            .find(|operation| operation["name"] == name)
    };
    // Two are gone and one is new.
    let snapshots = repository().join("codegen-snapshots/operations");
    let before = std::fs::read_dir(snapshots).unwrap().count();
    assert_eq!(operations.len(), before - 2 + 1 + constructs::COUNT);
    assert!(find("enrichments.cancel").is_none() && find("webhooks.list_attempts").is_none());
    let exports = find("exports.create").unwrap();
    assert_eq!(
        exports["inputSchema"]["properties"]["format"]["const"],
        "csv"
    );
    assert_eq!(
        exports["inputSchema"]["required"],
        json!(["websetId", "format", "filter"])
    );
    assert_eq!(
        exports["outputSchema"]["anyOf"].as_array().unwrap().len(),
        2
    );
    assert_eq!(find("websets.create").unwrap().get("longRunning"), None);
    let enrich = find("enrichments.create").unwrap();
    assert_eq!(
        enrich["inputSchema"]["required"],
        json!(["websetId", "prompt"])
    );
}

fn check_new_operation(project: &Project) {
    let (url, request) = serve_once(
        "202 Accepted",
        JSON,
        br#"{"exportId":"e1","new":{"x":0.005}}"#,
    );
    let body = json!({
        "format": "xlsx", "note": null, "target": {"url": "u", "more": []}, "size": 10,
        "filter": {"field": "a", "and": [{"not": null}, {"not": {"field": "b", "extra": 1e-7}}]},
        "unknown": 18446744073709551615u64});
    let mut arguments = body.clone();
    arguments["websetId"] = json!("w 1/2");
    arguments["column"] = json!(["a", "b"]);
    arguments["sort"] = json!(["x", "y"]);
    arguments["traceId"] = json!("t-1");
    // A query parameter may be called `body` even if the request has a body with fields.
    arguments["body"] = json!(true);
    let called = project.program(&["call", "exports.create", &arguments.to_string()], &url);
    assert!(called.status.success(), "{}", stderr(&called));
    let request = request.join().unwrap();
    let (path, query) = request.target().split_once('?').unwrap();
    assert_eq!(path, "/websets/v0/websets/w%201%2F2/exports");
    let mut pairs: Vec<&str> = query.split('&').collect();
    pairs.sort_unstable();
    assert_eq!(pairs, ["body=true", "column=a", "column=b", "sort=x%2Cy"]);
    let headers = &request.headers;
    assert!(headers.contains("x-exa-trace-id: t-1"), "{headers}");
    assert_eq!(request.json(), body);
    let response: Value = serde_json::from_slice(&called.stdout).unwrap();
    assert_eq!(response, json!({"exportId": "e1", "new": {"x": 0.005}}));
}

fn check_renamed_property(project: &Project) {
    let (url, request) = serve_once("200 OK", JSON, b"{}");
    let arguments = r#"{"id":"w","prompt":"p","format":"currency"}"#;
    let called = project.program(&["call", "enrichments.create", arguments], &url);
    assert!(called.status.success(), "{}", stderr(&called));
    assert_eq!(
        request.join().unwrap().json(),
        json!({"prompt": "p", "format": "currency"})
    );
}

fn check_declared_error(project: &Project) {
    let (url, request) = serve_once(
        "404 Not Found",
        JSON,
        br#"{"requestId":"r1","error":"no such webset","tag":"NOT_FOUND"}"#,
    );
    let arguments = r#"{"id":"w","format":"csv","filter":{}}"#;
    let called = project.program(&["call", "exports.create", arguments], &url);
    request.join().unwrap();
    assert_eq!(called.status.code(), Some(1));
    let message = stderr(&called);
    for part in ["404", "no such webset", "NOT_FOUND", "r1"] {
        assert!(message.contains(part), "{part} is missing in {message}");
    }
}

fn check_diff_report(project: &Project) {
    let arguments = [
        "diff".to_owned(),
        repository().display().to_string(),
        project.root.display().to_string(),
    ];
    let output = Command::new(env!("CARGO_BIN_EXE_codegen"))
        .args(arguments)
        .output()
        .unwrap();
    let report = String::from_utf8(output.stdout).unwrap();
    let line = |parts: &[&str]| {
        let found = report
            .lines()
            .any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(found, "no line with {parts:?} in\n{report}");
    };
    line(&["compatible", "exports.create", "added"]);
    line(&["breaking", "webhooks.list_attempts", "removed"]);
    line(&["breaking", "enrichments.create", "description", "prompt"]);
    line(&["compatible", "currency"]);
}

/// Building only the server must not require the generator.
#[test]
fn an_ordinary_build_does_not_need_the_client_generator() {
    let tree = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "-p",
            "exa-mcp-server",
            "-e",
            "normal,build",
            "--prefix",
            "none",
        ])
        .current_dir(repository())
        .output()
        .unwrap();
    let tree = String::from_utf8(tree.stdout).unwrap();
    assert!(tree.contains("progenitor-client"), "{tree}");
    for heavy in ["progenitor-impl", "progenitor v", "typify", "openapiv3"] {
        assert!(!tree.contains(heavy), "{heavy} is in\n{tree}");
    }
}
