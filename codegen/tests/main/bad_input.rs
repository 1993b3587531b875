//! Invalid input is reported with its location, and nothing is written.

use serde_json::json;

use crate::support::{DesignCopy, repository};

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

#[test]
fn rejects_a_dangling_reference_of_upstream() {
    let error = error_after(|copy| {
        copy.edit("exa-websets-spec.yaml", |spec| {
            spec["components"]["schemas"]["Webset"]["properties"]["new"] =
                json!({"$ref": "#/components/schemas/Nowhere"});
        });
    });
    let location = "exa-websets-spec.yaml#/components/schemas/Webset/properties/new";
    assert!(
        error.contains(location) && error.contains("#/components/schemas/Nowhere"),
        "{error}"
    );
}

#[test]
fn rejects_duplicate_operation_names() {
    let error = error_after(|copy| {
        copy.edit("exa-search-spec.yaml", |spec| {
            spec["paths"]["/other"] = json!({"get": {"operationId": "search", "responses": {}}});
        });
    });
    assert!(
        error.contains("two operations are named `search`"),
        "{error}"
    );
    assert!(
        error.contains("exa-search-spec.yaml#/paths/~1search/post"),
        "{error}"
    );
    assert!(
        error.contains("exa-search-spec.yaml#/paths/~1other/get"),
        "{error}"
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

#[test]
fn rejects_constructs_that_no_rule_covers() {
    let error = error_after(|copy| {
        copy.edit("exa-search-spec.yaml", |spec| {
            spec["paths"]["/upload"] = json!({"post": {"operationId": "upload", "responses": {},
                "requestBody": {"content": {"multipart/form-data": {"schema": {"type": "object"}}}}}});
        });
    });
    assert!(
        error.contains("exa-search-spec.yaml#/paths/~1upload/post/requestBody"),
        "{error}"
    );
    assert!(error.contains("family `body`"), "{error}");
}
