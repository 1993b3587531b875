//! Invalid input is reported with its location, and nothing is written.

use codegen::GeneratedOutput;
use serde_json::{Value, json};

use crate::support::{DesignCopy, repository, snapshot};

/// Applies a change that must fail and returns the error message.
fn error_after(change: impl FnOnce(&DesignCopy)) -> String {
    let copy = DesignCopy::new();
    change(&copy);
    let error = copy.generate().unwrap_err().to_string();
    for folder in codegen::output::OWNED_FOLDERS {
        assert!(!copy.root().join(folder).exists(), "{folder} was written");
    }
    error
}

#[test]
fn reports_invalid_yaml() {
    let error = error_after(|copy| {
        copy.write(
            "exa-search-spec.yaml",
            "openapi: 3.1.0\npaths: [unclosed\n  x: {",
        )
    });
    assert!(
        error.contains("exa-search-spec.yaml is not valid YAML"),
        "{error}"
    );
    assert!(error.contains("line") || error.contains("-->"), "{error}");
}

#[test]
fn reports_a_missing_file() {
    let error = error_after(|copy| {
        std::fs::remove_file(copy.root().join("data-design/exa-websets-spec.yaml")).unwrap();
    });
    assert!(error.contains("exa-websets-spec.yaml"), "{error}");
}

#[test]
fn rejects_documents_that_are_not_openapi() {
    for text in [
        "[]",
        "openapi: 2.0.0\npaths: {}",
        "openapi: 3.1.0",
        "just text",
    ] {
        let error = error_after(|copy| copy.write("exa-search-spec.yaml", text));
        assert!(error.contains("exa-search-spec.yaml#/"), "{error}");
    }
}

/// Applies a change after which parts are left out. Returns the output, the notices and the strict error.
fn omitted_after(change: impl FnOnce(&DesignCopy)) -> (GeneratedOutput, String, String) {
    let copy = DesignCopy::new();
    change(&copy);
    let output = copy.generate().unwrap();
    let notices: Vec<String> = output.notices.iter().map(ToString::to_string).collect();
    let strict = copy.generate().unwrap().into_strict().unwrap_err();
    (output, notices.join("\n"), strict.to_string())
}

#[test]
fn a_dangling_reference_accepts_any_value() {
    let (output, notices, strict) = omitted_after(|copy| {
        copy.edit("exa-websets-spec.yaml", |spec| {
            spec["components"]["schemas"]["Webset"]["properties"]["new"] =
                json!({"$ref": "#/components/schemas/Nowhere"});
        });
    });
    let location = "exa-websets-spec.yaml#/components/schemas/Webset/properties/new";
    for text in [&notices, &strict] {
        assert!(
            text.contains(location) && text.contains("#/components/schemas/Nowhere"),
            "{text}"
        );
    }
    let schema = &snapshot(&output, "websets.get")["outputSchema"];
    assert!(schema.to_string().contains(r#""new":{}"#), "{schema}");
}

#[test]
fn all_problems_are_reported_at_once_and_the_rest_is_generated() {
    let body = |media: &str, schema: Value| json!({"content": {media: {"schema": schema}}});
    let (output, notices, strict) = omitted_after(|copy| {
        copy.edit("exa-websets-spec.yaml", |spec| {
            let paths = spec["paths"].as_object_mut().unwrap();
            for (path, operation) in [
                ("/a", json!({"post": {"requestBody": {"$ref": "#/nowhere"}}})),
                ("/b", json!({"post": {"requestBody": body("application/json", json!({"type": "file"}))}})),
                ("/c", json!({"get": {"servers": [{"url": "ftp://example.com"}]}})),
                ("/d", json!({"get": {"parameters": [{"name": "c", "in": "cookie", "required": true}]}})),
                ("/e", json!({"head": {}, "options": {}, "trace": {}})),
                ("/f", json!({"$ref": "#/paths/~1f"})),
                ("/g", json!({"get": {"parameters": [null]}})),
                ("/h", json!({"get": {"operationId": "good"}})),
                ("i", json!({"get": {}})),
                ("/j", json!({"query": {}, "additionalOperations": {"COPY": {}}})),
            ] {
                paths.insert(path.to_owned(), operation);
            }
        });
    });
    for path in [
        "/a",
        "/b",
        "/c",
        "/d",
        "/f",
        "/g",
        "/j/query",
        "/j/additionalOperations",
    ] {
        let pointer = format!("exa-websets-spec.yaml #/paths/~1{}", &path[1..]);
        assert!(notices.contains(&pointer), "{path}: {notices}");
    }
    assert!(strict.starts_with("6 parts of the specs"), "{strict}");
    assert!(notices.contains("HEAD is not an operation"), "{notices}");
    assert!(
        notices.contains("#/paths/i: a path starts with `/`"),
        "{notices}"
    );
    assert!(
        output
            .files
            .contains_key("generated/schemas/good.input.json")
    );
    assert!(
        output
            .files
            .contains_key("generated/schemas/websets.get.input.json")
    );
}

#[test]
fn an_optional_parameter_that_cannot_be_sent_is_left_out_alone() {
    let copy = DesignCopy::new();
    copy.edit("exa-websets-spec.yaml", |spec| {
        let object = json!({"name": "o", "in": "query", "style": "pipeDelimited", "schema": {"type": "object"}});
        let mut required = object.clone();
        required["required"] = json!(true);
        let operation = |id: &str, parameter: Value| json!({"get": {"operationId": id, "parameters": [
            {"name": "a", "in": "query", "schema": {"type": "string"}}, {"name": "", "in": "header"}, parameter]}});
        spec["paths"]["/optional"] = operation("optional", object);
        spec["paths"]["/required"] = operation("required", required);
    });
    let output = copy.generate().unwrap();
    let arguments = &snapshot(&output, "optional")["arguments"];
    let names: Vec<&String> = arguments.as_object().unwrap().keys().collect();
    assert_eq!(names, ["a"]);
    let notices: Vec<String> = output.notices.iter().map(ToString::to_string).collect();
    let left_out = notices
        .iter()
        .filter(|it| it.contains("the optional parameter was omitted"));
    assert_eq!(left_out.count(), 3, "{notices:#?}");
    let schema = "generated/schemas/required.input.json";
    assert!(!output.files.contains_key(schema), "{notices:#?}");
}

#[test]
fn all_invalid_files_are_reported_at_once() {
    let error = error_after(|copy| {
        for file in [
            "exa-search-spec.yaml",
            "exa-websets-overlay.yaml",
            "prompts.yaml",
        ] {
            copy.write(file, "a: [");
        }
    });
    for file in [
        "exa-search-spec.yaml",
        "exa-websets-overlay.yaml",
        "prompts.yaml",
    ] {
        assert!(error.contains(file), "{file}: {error}");
    }
}

#[test]
fn a_duplicate_operation_gets_another_name() {
    let copy = DesignCopy::new();
    copy.edit("exa-websets-spec.yaml", |spec| {
        let servers = json!([{"url": "https://api.exa.ai/websets"}]);
        spec["paths"]["/v0/other"] = json!({"servers": servers, "get": {"operationId": "search"}});
        spec["paths"]["/v0/others"] =
            json!({"servers": servers, "get": {"operationId": "describe"}});
    });
    let output = copy.generate().unwrap();
    assert_eq!(snapshot(&output, "search")["path"], "/search");
    let other = snapshot(&output, "websets.other.list");
    assert_eq!(other["path"], "/websets/v0/other");
    assert!(
        output
            .files
            .contains_key("generated/schemas/websets.others.list.input.json")
    );
    let notice = output.notices[0].to_string();
    assert!(
        notice.contains("another operation is named `search`"),
        "{notice}"
    );
    assert!(
        notice.contains("exa-websets-spec.yaml #/paths/~1v0~1other/get"),
        "{notice}"
    );
}

#[test]
fn the_same_path_with_other_variables_is_read_once() {
    let copy = DesignCopy::new();
    copy.edit("exa-websets-spec.yaml", |spec| {
        let servers = json!([{"url": "https://api.exa.ai/websets"}]);
        spec["paths"]["/v0/websets/{other}"] =
            json!({"servers": servers, "get": {"operationId": "other"}});
    });
    let output = copy.generate().unwrap();
    assert!(
        !output
            .files
            .contains_key("generated/schemas/other.input.json")
    );
    let notices: Vec<String> = output.notices.iter().map(ToString::to_string).collect();
    let expected = "the same path as `#/paths/~1v0~1websets~1{id}/get`";
    assert!(
        notices.iter().any(|notice| notice.contains(expected)),
        "{notices:?}"
    );
}

#[test]
fn rejects_invalid_overlays() {
    for (text, pointer) in [
        ("openapi: 3.1.0", "#/overlay"),
        ("overlay: 1.0.0", "#/actions"),
        (
            "overlay: 1.0.0\nactions: [{target: '$.paths'}]",
            "#/actions/0",
        ),
        (
            "overlay: 1.0.0\nactions: [{target: 'paths[', update: {}}]",
            "#/actions/0",
        ),
        ("- a list", "#/overlay"),
    ] {
        let error = error_after(|copy| copy.write("exa-websets-overlay.yaml", text));
        assert!(
            error.contains(&format!("exa-websets-overlay.yaml{pointer}")),
            "{error}"
        );
    }
}

#[test]
fn rejects_unknown_fields_of_the_surface() {
    let error = error_after(|copy| {
        copy.edit("surface.yaml", |surface| {
            surface["operations"][0]["timeoutSecond"] = json!(3);
        });
    });
    assert!(
        error.contains("surface.yaml") && error.contains("timeoutSecond"),
        "{error}"
    );
}

/// Errors in hand-written files contain the line.
#[test]
fn errors_in_surface_and_prompts_contain_the_line() {
    for (file, from, to, expected) in [
        ("surface.yaml", "rule: schedule", "rule: shedule", "shedule"),
        ("surface.yaml", "probe: true", "prob: true", "prob"),
        ("surface.yaml", "form: answer", "form: anser", "anser"),
        (
            "prompts.yaml",
            "needs: { operation: search }",
            "need: { operation: search }",
            "need",
        ),
    ] {
        let text = std::fs::read_to_string(repository().join("data-design").join(file)).unwrap();
        let line = text.lines().position(|line| line.contains(from)).unwrap() + 1;
        let error = error_after(|copy| copy.write(file, &text.replacen(from, to, 1)));
        assert!(error.contains(file) && error.contains(expected), "{error}");
        assert!(error.contains(&format!("line {line} ")), "{line}: {error}");
    }
}

#[test]
fn rejects_unknown_prompt_placeholders() {
    let error = error_after(|copy| {
        copy.edit("prompts.yaml", |file| {
            file["prompts"][0]["text"] = json!("About {topik}");
        });
    });
    assert!(
        error.contains("prompt research_topic") && error.contains("{topik}"),
        "{error}"
    );
}
