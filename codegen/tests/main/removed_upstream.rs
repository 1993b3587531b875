//! Removals by upstream are reported, and generation continues without the affected parts.

use codegen::GeneratedOutput;
use serde_json::{Value, json};

use crate::support::{DesignCopy, snapshot};

/// Generates after a change. Returns the output and the notices as text.
fn generate_after(change: impl FnOnce(&DesignCopy)) -> (GeneratedOutput, String) {
    let copy = DesignCopy::new();
    change(&copy);
    let output = copy.generate().unwrap();
    let notices: Vec<String> = output.notices.iter().map(ToString::to_string).collect();
    let notices = notices.join("\n");
    let surface = &output.files["codegen-snapshots/SURFACE.md"];
    for notice in notices.lines() {
        assert!(
            surface.contains(&notice.replace('|', "\\|")),
            "SURFACE.md does not contain {notice}"
        );
    }
    (output, notices)
}

fn remove(value: &mut Value, key: &str) {
    assert!(
        value.as_object_mut().unwrap().shift_remove(key).is_some(),
        "{key}"
    );
}

#[test]
fn reports_a_removed_operation_that_the_overlay_extends() {
    let (output, notices) = generate_after(|copy| {
        copy.edit("exa-search-spec.yaml", |spec| {
            remove(&mut spec["paths"], "/answer")
        });
    });
    assert!(
        notices.contains("exa-search-overlay.yaml action"),
        "{notices}"
    );
    assert!(notices.contains("no longer matches anything"), "{notices}");
    assert!(
        notices.contains("surface.yaml entry POST /answer"),
        "{notices}"
    );
    assert!(
        !output
            .files
            .contains_key("generated/schemas/answer.input.json")
    );
    assert!(
        output
            .files
            .contains_key("generated/schemas/search.input.json")
    );
}

#[test]
fn reports_removed_operations_of_a_long_running_marker() {
    let (output, notices) = generate_after(|copy| {
        copy.edit("exa-websets-spec.yaml", |spec| {
            remove(&mut spec["paths"], "/v0/websets/{webset}/searches/{id}");
            remove(&mut spec["paths"], "/v0/websets/{id}/cancel");
        });
    });
    assert!(
        notices.contains("`searches.get` no longer exists; long-running marker omitted"),
        "{notices}"
    );
    assert!(
        notices.contains("`websets.cancel` no longer exists"),
        "{notices}"
    );
    assert_eq!(
        snapshot(&output, "searches.create").get("longRunning"),
        None
    );
    let marker = &snapshot(&output, "websets.create")["longRunning"];
    assert_eq!(
        (&marker["get"], marker.get("cancel")),
        (&json!("websets.get"), None)
    );
}

#[test]
fn reports_a_removed_field_that_the_surface_reads() {
    let (output, notices) = generate_after(|copy| {
        copy.edit("exa-websets-spec.yaml", |spec| {
            remove(
                &mut spec["components"]["schemas"]["Import"]["properties"],
                "status",
            );
        });
    });
    assert!(
        notices.contains("`imports.get` has no field `status`"),
        "{notices}"
    );
    assert_eq!(snapshot(&output, "imports.create").get("longRunning"), None);
}

#[test]
fn reports_a_removed_parameter_that_the_surface_renames() {
    let (output, notices) = generate_after(|copy| {
        copy.edit("exa-websets-spec.yaml", |spec| {
            spec["paths"]["/v0/websets/preview"]["post"]["parameters"] = json!([]);
        });
    });
    assert!(notices.contains("no parameter `search`"), "{notices}");
    assert_eq!(
        snapshot(&output, "websets.preview")["arguments"].get("withItems"),
        None
    );
}

#[test]
fn reports_a_removed_schema_that_the_overlay_refers_to() {
    let (output, notices) = generate_after(|copy| {
        copy.edit("exa-search-spec.yaml", |spec| {
            let text = spec.to_string().replace("AgentError", "RunError");
            *spec = serde_json::from_str(&text).unwrap();
        });
    });
    assert!(notices.contains("any value is accepted here"), "{notices}");
    assert!(
        output
            .files
            .contains_key("generated/schemas/agent.runs.get.output.json")
    );
}

#[test]
fn additions_of_upstream_take_precedence_over_the_overlay() {
    let (output, notices) = generate_after(|copy| {
        copy.edit("exa-search-spec.yaml", |spec| {
            spec["paths"]["/batches"] = json!({"post": {
                "operationId": "create-batch", "summary": "Upstream's own",
                "requestBody": {"required": true, "content": {"application/json": {"schema":
                    {"type": "object", "properties": {"task": {"type": "string", "description": "t"}}}}}},
                "responses": {"200": {"description": "ok"}}}});
        });
    });
    assert!(notices.contains("upstream now has `/batches`"), "{notices}");
    assert_eq!(
        snapshot(&output, "batches.create")["summary"],
        "Upstream's own"
    );
}

/// The opposite case: upstream adds an argument that the server already has.
#[test]
fn arguments_of_the_spec_replace_server_arguments() {
    let (output, notices) = generate_after(|copy| {
        copy.edit("exa-websets-spec.yaml", |spec| {
            let import = &mut spec["components"]["schemas"]["CreateImportParameters"];
            let fields = import.pointer_mut("/oneOf/0").unwrap();
            fields["properties"]["filePath"] = json!({"type": "integer"});
        });
    });
    assert!(
        notices.contains("upstream now has `filePath`; its version is used"),
        "{notices}"
    );
    let import = snapshot(&output, "imports.create");
    assert_eq!(import["arguments"]["filePath"]["type"], "integer");
    assert_eq!(import["arguments"]["filePath"]["in"], "body");
    assert_eq!(import["arguments"]["csvContent"]["in"], "server");
    assert_eq!(import["inputSchema"]["required"], json!(["entity"]));
    let table = &output.files["generated/operations.rs"];
    assert!(table.contains("Argument::body(\"size\", true).unless(&[\"csvContent\"])"));
    assert!(table.contains("Argument::server(\"csvContent\")"));
    assert!(!table.contains("Argument::server(\"filePath\")"));
}

/// The behavior of an operation is omitted with the operations and arguments that it needs.
#[test]
fn reports_removed_operations_and_arguments_that_behavior_needs() {
    let (output, notices) = generate_after(|copy| {
        copy.edit("exa-websets-spec.yaml", |spec| {
            remove(&mut spec["paths"]["/v0/imports/{id}"], "delete");
            remove(&mut spec["paths"]["/v0/websets/{id}"], "get");
            let monitor = &mut spec["components"]["schemas"]["CreateMonitorParameters"];
            remove(&mut monitor["properties"], "cadence");
            monitor["required"] = json!(["websetId", "behavior"]);
        });
    });
    for notice in [
        "`imports.delete` no longer exists; upload omitted",
        "the operation has no argument `cadence.cron`; check omitted",
        "surface.yaml resources: `websets.get` no longer exists; `websets` omitted",
        "prompts.yaml prompt build_webset: `websets.get` no longer exists; step omitted",
        "surface.yaml tool suggest_enrichments: `websets.get` no longer exists; omitted",
    ] {
        assert!(
            notices.contains(notice),
            "missing notice {notice} in {notices}"
        );
    }
    assert_eq!(snapshot(&output, "imports.create").get("upload"), None);
    assert_eq!(snapshot(&output, "monitors.create").get("checks"), None);
    assert!(snapshot(&output, "monitors.create").get("hints").is_some());
    assert_eq!(output.files["generated/resources.json"], "{}\n");
    assert!(!output.files["generated/prompts.json"].contains("websets.get"));
}

#[test]
fn reports_a_removed_operation_that_a_prompt_needs() {
    let (output, notices) = generate_after(|copy| {
        copy.edit("exa-search-spec.yaml", |spec| {
            remove(&mut spec["paths"], "/search");
        });
    });
    for prompt in ["research_topic", "compare_companies"] {
        let notice = format!("prompt {prompt}: `search` no longer exists");
        assert!(notices.contains(&notice), "{notices}");
        assert!(!output.files["generated/prompts.json"].contains(prompt));
    }
}
