//! What is wrong is named with its place, and nothing is written.

use serde_json::json;

use crate::support::{Copy, repository};

/// Runs a change that must be refused and gives the message.
fn refused(change: impl FnOnce(&Copy)) -> String {
    let copy = Copy::new();
    change(&copy);
    let error = copy.generate().unwrap_err().to_string();
    for folder in codegen::output::OWNED {
        assert!(!copy.root().join(folder).exists(), "{folder} was written");
    }
    error
}

#[test]
fn broken_yaml() {
    let error = refused(|copy| {
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
fn a_file_that_is_missing() {
    let error = refused(|copy| {
        std::fs::remove_file(copy.root().join("data-design/exa-websets-spec.yaml")).unwrap();
    });
    assert!(error.contains("exa-websets-spec.yaml"), "{error}");
}

#[test]
fn a_document_that_is_not_openapi() {
    for text in [
        "[]",
        "openapi: 2.0.0\npaths: {}",
        "openapi: 3.1.0",
        "just text",
    ] {
        let error = refused(|copy| copy.write("exa-search-spec.yaml", text));
        assert!(error.contains("exa-search-spec.yaml#/"), "{error}");
    }
}

#[test]
fn a_reference_to_nothing_in_upstreams_file() {
    let error = refused(|copy| {
        copy.edit("exa-websets-spec.yaml", |spec| {
            spec["components"]["schemas"]["Webset"]["properties"]["new"] =
                json!({"$ref": "#/components/schemas/Nowhere"});
        });
    });
    let place = "exa-websets-spec.yaml#/components/schemas/Webset/properties/new";
    assert!(
        error.contains(place) && error.contains("#/components/schemas/Nowhere"),
        "{error}"
    );
}

#[test]
fn two_operations_with_one_name() {
    let error = refused(|copy| {
        copy.edit("exa-search-spec.yaml", |spec| {
            spec["paths"]["/other"] = json!({"get": {"operationId": "search", "responses": {}}});
        });
    });
    assert!(
        error.contains("two operations are called `search`"),
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
fn an_overlay_that_is_none() {
    for (text, place) in [
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
        let error = refused(|copy| copy.write("exa-websets-overlay.yaml", text));
        assert!(
            error.contains(&format!("exa-websets-overlay.yaml{place}")),
            "{error}"
        );
    }
}

#[test]
fn a_surface_with_a_misspelt_field() {
    let error = refused(|copy| {
        copy.edit("surface.yaml", |surface| {
            surface["operations"][0]["timeoutSecond"] = json!(3);
        });
    });
    assert!(
        error.contains("surface.yaml") && error.contains("timeoutSecond"),
        "{error}"
    );
}

/// An error in a file that is written by hand names the line.
#[test]
fn lines_of_the_surface_and_the_prompts_are_named() {
    for (file, from, to, wanted) in [
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
        let error = refused(|copy| copy.write(file, &text.replacen(from, to, 1)));
        assert!(error.contains(file) && error.contains(wanted), "{error}");
        assert!(error.contains(&format!("line {line} ")), "{line}: {error}");
    }
}

#[test]
fn a_prompt_with_a_placeholder_that_nothing_fills() {
    let error = refused(|copy| {
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
fn a_construct_that_no_rule_covers() {
    let error = refused(|copy| {
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
