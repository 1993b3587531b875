//! Specs that no one should write: nothing panics, what is supported is generated, and the rest is reported.

use serde_json::{Value, json};

use crate::support::DesignCopy;

fn ok() -> Value {
    json!({"200": {"description": "d", "content": {"application/json": {"schema": {"type": "object"}}}}})
}

fn operation(id: &str) -> Value {
    json!({"operationId": id, "responses": ok()})
}

fn body(id: &str, schema: Value) -> Value {
    json!({"operationId": id, "responses": ok(),
        "requestBody": {"required": true, "content": {"application/json": {"schema": schema}}}})
}

fn schema(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn document() -> Value {
    let parameter = |name: &str, place: &str| json!({"name": name, "in": place, "required": place == "path", "schema": {"type": "string"}});
    let values: Vec<String> = (0..2_000).map(|number| format!("v{number}")).collect();
    json!({
        "openapi": "3.1.0",
        "info": {"title": "\"Bad\"\n", "version": "v\n1 é"},
        "servers": [{"url": "https://{region}.example.com", "variables": {"region": {"default": "eu"}}}],
        "webhooks": {"w": {"post": operation("hook")}},
        "paths": {
            "/x/{base_url}": {"get": {"operationId": "base", "parameters": [parameter("base_url", "path")], "responses": ok()}},
            "/names": {"get": operation("new"), "post": operation("self"), "put": operation("client"),
                "delete": operation("extra"), "patch": operation("finish"), "head": operation("head")},
            "/case": {"get": operation("fooBar"), "post": operation("foo_bar"), "put": operation("foo-bar"),
                "delete": operation("foo.bar"), "patch": operation("fooBar")},
            "/odd": {"get": operation(""), "post": operation("日本語"), "put": operation("!!!"), "delete": {"operationId": 5}},
            "/recursive": {"post": body("recursive", schema("Node"))},
            "/wrapped": {"post": body("wrapped", schema("Wrapped"))},
            "/all-of": {"post": body("allOf", schema("CycleA"))},
            "/loop": {"post": body("loop", schema("Loop"))},
            "/enum": {"get": {"operationId": "enum", "responses": ok(), "parameters": [
                {"name": "e", "in": "query", "schema": {"type": "string", "enum": values}}]}},
            "/boolean-parameters/{a}": {"get": {"operationId": "booleanParameters", "responses": ok(), "parameters": [
                {"name": "a", "in": "path", "required": true, "schema": true},
                {"name": "b", "in": "query", "description": "d", "deprecated": true, "schema": false}]}},
            "/booleans": {"post": body("booleans", json!({"type": "object", "properties": {"yes": true, "no": false}})),
                "put": body("anything", json!(true)), "patch": body("nothing", json!(false))},
            "/external": {"post": body("external", json!({"$ref": "other.yaml#/Schema"}))},
            "/item": {"$ref": "#/components/pathItems/Item"},
            "/not-objects": {"get": null, "post": [], "put": "text", "delete": 1},
            "/null": null,
            "/parts/{a}{b}.json": {"get": {"operationId": "parts", "responses": ok(),
                "parameters": [parameter("a", "path"), parameter("b", "path")]}},
        },
        "components": {
            "schemas": {
                "Node": {"type": "object", "properties": {"next": schema("Node"),
                    "list": {"type": "array", "items": schema("Node")}}},
                // As written for a field that may be null in OpenAPI 3.0.
                "Wrapped": {"type": "object", "properties": {
                    "parent": {"allOf": [schema("Wrapped")], "nullable": true},
                    "parts": {"type": "array", "items": {"allOf": [schema("Wrapped"), {"description": "d"}]}},
                    "by_name": {"type": "object", "additionalProperties": {"allOf": [schema("Wrapped")]}}}},
                "CycleA": {"allOf": [schema("CycleB"), {"type": "object", "properties": {"a": {"type": "string"}}}]},
                "CycleB": {"allOf": [schema("CycleA")]},
                "Loop": schema("Loop"),
            },
            "pathItems": {"Item": {"get": operation("viaReference")}},
        },
    })
}

#[test]
fn hostile_specs_are_generated_as_far_as_possible() {
    let copy = DesignCopy::new();
    copy.write("exa-websets-spec.yaml", &document().to_string());
    let output = copy.generate().unwrap();
    for name in [
        "base",
        "new",
        "self",
        "foo_bar",
        "recursive",
        "wrapped",
        "enum",
        "booleans",
        "boolean_parameters",
        "via_reference",
        "parts",
    ] {
        let file = format!("generated/schemas/{name}.input.json");
        assert!(output.files.contains_key(&file), "{name}");
    }
    let notices: Vec<String> = output.notices.iter().map(ToString::to_string).collect();
    for expected in [
        "#/paths/~1loop/post: `POST /loop` omitted",
        "#/paths/~1names/head: HEAD is not an operation",
        "#/paths/~1not-objects/get: `GET /not-objects` omitted",
        "#/paths/~1not-objects/put: `PUT /not-objects` omitted",
        "other.yaml#/Schema` does not resolve",
        "another operation is named `foo_bar`",
    ] {
        assert!(
            notices.iter().any(|it| it.contains(expected)),
            "{expected}: {notices:#?}"
        );
    }
    for (name, text) in output
        .files
        .iter()
        .filter(|(name, _)| name.ends_with(".rs"))
    {
        syn::parse_file(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn an_empty_document_has_no_operations() {
    let copy = DesignCopy::new();
    copy.write(
        "exa-websets-spec.yaml",
        r#"{"openapi": "3.0.3", "info": {}, "paths": {}}"#,
    );
    let output = copy.generate().unwrap();
    assert!(
        !output
            .files
            .contains_key("generated/schemas/websets.get.input.json")
    );
    assert!(
        output
            .files
            .contains_key("generated/schemas/search.input.json")
    );
}
