//! Upstream also takes things away: the rest goes on, and the loss is reported.

use codegen::Output;
use serde_json::{Value, json};

use crate::support::{Copy, snapshot};

/// Generates after a change; gives the output and the notices as text.
fn after(change: impl FnOnce(&Copy)) -> (Output, String) {
    let copy = Copy::new();
    change(&copy);
    let output = copy.generate().unwrap();
    let notices: Vec<String> = output.notices.iter().map(ToString::to_string).collect();
    let notices = notices.join("\n");
    let surface = &output.files["codegen-snapshots/SURFACE.md"];
    for notice in notices.lines() {
        assert!(
            surface.contains(&notice.replace('|', "\\|")),
            "SURFACE.md lacks {notice}"
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
fn an_operation_that_the_overlay_extends() {
    let (output, notices) = after(|copy| {
        copy.edit("exa-search-spec.yaml", |spec| {
            remove(&mut spec["paths"], "/answer")
        });
    });
    assert!(
        notices.contains("exa-search-overlay.yaml action"),
        "{notices}"
    );
    assert!(notices.contains("matches nothing any more"), "{notices}");
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
fn operations_that_a_long_running_marker_names() {
    let (output, notices) = after(|copy| {
        copy.edit("exa-websets-spec.yaml", |spec| {
            remove(&mut spec["paths"], "/v0/websets/{webset}/searches/{id}");
            remove(&mut spec["paths"], "/v0/websets/{id}/cancel");
        });
    });
    assert!(
        notices.contains("`searches.get` does not exist any more; the marker was left out"),
        "{notices}"
    );
    assert!(
        notices.contains("`websets.cancel` does not exist any more"),
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
fn a_field_that_the_surface_reads() {
    let (output, notices) = after(|copy| {
        copy.edit("exa-websets-spec.yaml", |spec| {
            remove(
                &mut spec["components"]["schemas"]["Import"]["properties"],
                "status",
            );
        });
    });
    assert!(
        notices.contains("`imports.get` has no field `status` any more"),
        "{notices}"
    );
    assert_eq!(snapshot(&output, "imports.create").get("longRunning"), None);
}

#[test]
fn a_parameter_that_the_surface_renames() {
    let (output, notices) = after(|copy| {
        copy.edit("exa-websets-spec.yaml", |spec| {
            spec["paths"]["/v0/websets/preview"]["post"]["parameters"] = json!([]);
        });
    });
    assert!(
        notices.contains("no parameter `search` any more"),
        "{notices}"
    );
    assert_eq!(
        snapshot(&output, "websets.preview")["arguments"].get("withItems"),
        None
    );
}

#[test]
fn a_schema_that_the_overlay_refers_to() {
    let (output, notices) = after(|copy| {
        copy.edit("exa-search-spec.yaml", |spec| {
            let text = spec.to_string().replace("ContentsRequest", "PageContents");
            *spec = serde_json::from_str(&text).unwrap();
        });
    });
    assert!(
        notices.contains("upstream no longer has; any value is accepted here"),
        "{notices}"
    );
    assert!(
        output
            .files
            .contains_key("generated/schemas/search_monitors.create.input.json")
    );
}

#[test]
fn what_upstream_adds_by_itself_wins_over_the_overlay() {
    let (output, notices) = after(|copy| {
        copy.edit("exa-search-spec.yaml", |spec| {
            spec["paths"]["/agent/runs"] = json!({"post": {
                "operationId": "agent-runs-create", "summary": "Upstream's own",
                "requestBody": {"required": true, "content": {"application/json": {"schema":
                    {"type": "object", "properties": {"task": {"type": "string", "description": "t"}}}}}},
                "responses": {"200": {"description": "ok"}}}});
        });
    });
    assert!(
        notices.contains("upstream now has `/agent/runs`"),
        "{notices}"
    );
    assert_eq!(
        snapshot(&output, "agent.runs.create")["summary"],
        "Upstream's own"
    );
}

/// The other way round: what was the server's own, upstream now has itself.
#[test]
fn an_argument_of_the_servers_own_gives_way_to_the_spec() {
    let (output, notices) = after(|copy| {
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

/// What the server does for an operation goes with the operations and arguments that it needs.
#[test]
fn operations_and_arguments_that_behavior_needs() {
    let (output, notices) = after(|copy| {
        copy.edit("exa-websets-spec.yaml", |spec| {
            remove(&mut spec["paths"]["/v0/imports/{id}"], "delete");
            remove(&mut spec["paths"]["/v0/websets/{id}"], "get");
            let monitor = &mut spec["components"]["schemas"]["CreateMonitorParameters"];
            remove(&mut monitor["properties"], "cadence");
            monitor["required"] = json!(["websetId", "behavior"]);
        });
    });
    for notice in [
        "`imports.delete` does not exist any more; the upload was left out",
        "the operation has no argument `cadence` any more; its check was left out",
        "surface.yaml resources: `websets.get` does not exist any more; `websets` was left out",
        "prompts.yaml prompt build_webset: `websets.get` does not exist any more; its step was left out",
        "surface.yaml tool suggest_enrichments: `websets.get` does not exist any more; it was left out",
    ] {
        assert!(notices.contains(notice), "no {notice} in {notices}");
    }
    assert_eq!(snapshot(&output, "imports.create").get("upload"), None);
    assert_eq!(snapshot(&output, "monitors.create").get("checks"), None);
    assert!(snapshot(&output, "monitors.create").get("hints").is_some());
    assert_eq!(output.files["generated/resources.json"], "{}\n");
    assert!(!output.files["generated/prompts.json"].contains("websets.get"));
}

#[test]
fn an_operation_that_a_prompt_needs() {
    let (output, notices) = after(|copy| {
        copy.edit("exa-search-spec.yaml", |spec| {
            remove(&mut spec["paths"], "/search");
        });
    });
    for prompt in ["research_topic", "compare_companies"] {
        let notice = format!("prompt {prompt}: `search` does not exist any more");
        assert!(notices.contains(&notice), "{notices}");
        assert!(!output.files["generated/prompts.json"].contains(prompt));
    }
}
