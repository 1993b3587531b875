//! One fixture a rule: right with all rules, wrong or refused without the one.

use serde_json::{Value, json};

use super::{Rule, Rules};
use crate::load::Document;
use crate::surface::{Api, Surface};
use crate::{clients, operations};

/// The client of a spec as text without white space, or why there is none.
fn client(spec: Value, rules: Rules) -> Result<String, String> {
    let document = Document {
        file: "spec.yaml".into(),
        root: spec,
    };
    let api = Api {
        spec: "spec.yaml".into(),
        overlay: None,
        namespace: None,
    };
    let surface: Surface = serde_json::from_value(json!({
        "apis": {}, "defaults": {"timeoutSeconds": 1, "baseUrl": "https://api.example.com"}
    }))
    .unwrap();
    let mut notices = Vec::new();
    let (model, mut found) = operations::read(&document, "search", &api, &surface, &mut notices)
        .map_err(|e| e.to_string())?;
    operations::finish(std::slice::from_ref(&model), &mut found).map_err(|e| e.to_string())?;
    let all: Vec<_> = found.iter().collect();
    let client = clients::generate(&document, &model, &all, rules).map_err(|e| e.to_string())?;
    let text = prettyplease::unparse(&client.file);
    Ok(text.split_whitespace().collect::<Vec<_>>().concat())
}

fn spec(paths: Value, schemas: Value) -> Value {
    json!({"openapi": "3.1.0", "info": {"title": "t", "version": "1"},
        "paths": paths, "components": {"schemas": schemas}})
}

/// A spec with one operation whose body has this schema.
fn body_with(schema: Value, components: Value) -> Value {
    let operation = json!({"operationId": "things-create",
        "requestBody": {"required": true, "content": {"application/json": {"schema": schema}}},
        "responses": {"200": {"description": ""}}});
    spec(json!({"/things": {"post": operation}}), components)
}

/// A spec with one operation whose body has one optional field `a`.
fn field(schema: Value) -> Value {
    body_with(
        json!({"type": "object", "properties": {"a": schema}}),
        json!({}),
    )
}

fn get(path: &str, operation: Value) -> Value {
    spec(json!({ path: {"get": operation} }), json!({}))
}

type Check = fn(&str) -> bool;

const STRING: &str = "puba:exa_mcp_exa_client::Maybe<::std::string::String>";
const ANY: &str = "puba:exa_mcp_exa_client::Maybe<::serde_json::Value>";

/// The fixture of a rule and what must hold of the generated client.
fn fixture(rule: Rule) -> (Value, Check) {
    let anything: Check = |_| true;
    let string: Check = |text| text.contains(STRING);
    let any: Check = |text| text.contains(ANY);
    match rule {
        Rule::D01 => (field(json!({"type": "string"})), anything),
        Rule::D02 => (field(json!({"type": ["string"]})), string),
        Rule::D03 => (field(json!({"type": ["string", "null"]})), string),
        Rule::D04 => (field(json!({"type": ["string", "number"]})), any),
        Rule::D05 => (
            field(json!({"oneOf": [{"type": "string"}, {"type": "null"}]})),
            string,
        ),
        Rule::D06 => (field(json!({"const": "x"})), string),
        Rule::D07 => (
            body_with(
                json!({"$ref": "#/components/schemas/Base", "properties": {"b": {"type": "string"}}}),
                json!({"Base": {"type": "object", "properties": {"a": {"type": "string"}}}}),
            ),
            |text| text.contains(STRING) && text.contains("pubb:"),
        ),
        Rule::D08 => (field(json!(true)), any),
        Rule::N01 => (get("/things", json!({"responses": {}})), |text| {
            text.contains("fnthings_list<")
        }),
        Rule::N02 => (
            get(
                "/things/{id}",
                json!({"operationId": "things-get", "responses": {}, "parameters": [
                {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}},
                {"name": "id", "in": "query", "schema": {"type": "string"}}]}),
            ),
            |text| text.contains("thing_id:&'astr,id:Option<&'astr>"),
        ),
        Rule::N03 => (
            get(
                "/things",
                json!({"operationId": "things-list", "responses": {
                "200": {"description": ""},
                "404": {"description": "", "content": {"application/json": {"schema":
                    {"type": "object", "properties": {"error": {"type": "string"}}}}}}}}),
            ),
            |text| text.contains("Error<()>") && text.contains("UnexpectedResponse"),
        ),
        Rule::N04 => (
            get(
                "/things",
                json!({"operationId": "things-list", "responses": {
                "200": {"description": "", "content": {"application/json": {"schema": {"type": "string"}}}},
                "202": {"description": ""}}}),
            ),
            |text| text.contains("200..=299=>ResponseValue::from_response"),
        ),
        Rule::N05 => (
            body_with(json!({"properties": {"a": {"type": "string"}}}), json!({})),
            string,
        ),
        Rule::N06 => (
            body_with(
                json!({"$ref": "#/components/schemas/Monitor"}),
                json!({"MonitorBehavior": {"type": "object", "properties": {"x": {"type": "string"}}},
                    "Monitor": {"type": "object", "properties": {
                        "other": {"$ref": "#/components/schemas/MonitorBehavior"},
                        "behavior": {"type": "object", "properties": {"y": {"type": "string"}}}}}}),
            ),
            |text| text.matches("pubstructMonitorBehavior{").count() == 1 && text.contains("puby:"),
        ),
        Rule::N07 => (
            get(
                "/things",
                json!({"operationId": "things-list", "responses": {}, "parameters": [
                {"name": "Exa-Beta", "in": "header", "schema": {"type": "array", "items": {"type": "string"}}}]}),
            ),
            |text| text.contains("exa_beta:Option<&'astr>"),
        ),
        Rule::N08 => (
            get(
                "/things",
                json!({"operationId": "things-list", "responses": {}, "parameters": [
                {"name": "user-id", "in": "query", "schema": {"type": "string"}},
                {"name": "user_id", "in": "query", "schema": {"type": "string"}}]}),
            ),
            |text| text.matches("user_id:Option<&'astr>").count() == 1,
        ),
        Rule::N09 => {
            let mut spec = field(json!({"type": "string"}));
            spec["info"]["version"] = json!("2026 é");
            (spec, |text| {
                text.contains("\"2026\"") && !text.contains('é')
            })
        }
        Rule::R01 => (
            field(json!({"type": "string", "format": "uuid", "maxLength": 9})),
            string,
        ),
        Rule::R02 => (field(json!({"type": "integer"})), |text| {
            text.contains("puba:exa_mcp_exa_client::Maybe<::serde_json::Number>")
        }),
        Rule::R03 => (field(json!({"type": "boolean", "default": true})), |text| {
            text.contains("puba:exa_mcp_exa_client::Maybe<bool>")
        }),
        Rule::R04 => (
            get(
                "/things",
                json!({"operationId": "things-list", "responses": {"200": {"description": "",
                "content": {"application/json": {"schema":
                    {"type": "object", "properties": {"status": {"type": "string", "enum": ["a"]}}}}}}}}),
            ),
            |text| text.contains("ResponseValue<::serde_json::Value>"),
        ),
        Rule::R05 => (field(json!({"type": "string", "enum": ["a", "b"]})), string),
        Rule::R06 => (
            field(
                json!({"anyOf": [{"type": "string"}, {"type": "object", "properties": {"x": {"type": "string"}}}]}),
            ),
            any,
        ),
        Rule::R07 => {
            let body = json!({"type": "object", "properties": {"a": {"type": "string"}}});
            (
                body_with(body, json!({"Answer": {"type": ["string", "null"]}})),
                string,
            )
        }
        Rule::R08 => (field(json!({"type": "string"})), |text| {
            text.contains("#[serde(flatten)]pubextra:")
        }),
        Rule::R09 => (
            field(json!({"type": "array", "items": {"type": "string"}})),
            |text| {
                text.contains(
                    "puba:exa_mcp_exa_client::Maybe<::std::vec::Vec<::std::string::String>>",
                )
            },
        ),
        Rule::R10 => (
            body_with(
                json!({"allOf": [
                    {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
                    {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}]}),
                json!({}),
            ),
            |text| {
                let body = text.split("pubstructThingsCreateBody{").nth(1);
                let fields = body.and_then(|body| body.split('}').next());
                fields.is_some_and(|fields| fields.contains("puba:") && fields.contains("pubb:"))
            },
        ),
    }
}

#[test]
fn every_rule_is_needed() {
    for rule in Rule::ALL {
        let (spec, check) = fixture(*rule);
        let with = client(spec.clone(), Rules::default());
        assert!(
            with.as_deref().is_ok_and(check),
            "{} does not do what it is for: {with:?}",
            rule.id()
        );
        let without = client(spec, Rules::without(*rule));
        assert!(
            !without.as_deref().is_ok_and(check),
            "{} is not needed by its fixture: {}",
            rule.id(),
            rule.why()
        );
    }
}

#[test]
fn a_recursive_body_ends_in_a_boxed_type() {
    let text = client(
        body_with(
            json!({"$ref": "#/components/schemas/Tree"}),
            json!({"Tree": {"type": "object", "properties": {
                "children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}},
                "parent": {"$ref": "#/components/schemas/Tree"}}}}),
        ),
        Rules::default(),
    )
    .unwrap();
    assert!(
        text.contains("pubparent:exa_mcp_exa_client::Maybe<::std::boxed::Box<Tree>>"),
        "{text}"
    );
}

#[test]
fn a_schema_that_leads_only_to_itself_takes_anything() {
    let text = client(
        body_with(
            json!({"type": "object", "properties": {"a": {"$ref": "#/components/schemas/L"}}}),
            json!({"L": {"type": "array", "items": {"$ref": "#/components/schemas/L"}}}),
        ),
        Rules::default(),
    );
    assert!(text.is_ok(), "{text:?}");
}

#[test]
fn a_construct_without_a_rule_is_named_with_its_place() {
    let cases = [
        (
            field(json!({"type": "file"})),
            "#/paths/~1things/post/requestBody",
            "type",
        ),
        (
            get(
                "/t",
                json!({"operationId": "t", "responses": {}, "parameters": [
                {"name": "f", "in": "query", "style": "deepObject", "schema": {"type": "object"}}]}),
            ),
            "#/paths/~1t/get/parameters/0",
            "parameter",
        ),
        (
            get(
                "/t",
                json!({"operationId": "t", "responses": {}, "parameters": [
                {"name": "c", "in": "cookie", "required": true, "schema": {"type": "string"}}]}),
            ),
            "#/paths/~1t/get/parameters/0",
            "parameter",
        ),
        (
            spec(
                json!({"/t": {"post": {"operationId": "t", "responses": {}, "requestBody":
                    {"content": {"multipart/form-data": {"schema": {"type": "object"}}}}}}}),
                json!({}),
            ),
            "#/paths/~1t/post/requestBody",
            "body",
        ),
        (
            field(json!({"$dynamicRef": "#x"})),
            "#/paths/~1things/post/requestBody",
            "reference",
        ),
        (
            get(
                "/t",
                json!({"operationId": "t", "responses": {}, "servers": [{"url": "https://other.example.com"}]}),
            ),
            "#/paths/~1t/get",
            "server",
        ),
    ];
    for (spec, place, family) in cases {
        let error = client(spec, Rules::default()).unwrap_err();
        assert!(error.contains(&format!("spec.yaml{place}")), "{error}");
        assert!(error.contains(&format!("family `{family}`")), "{error}");
    }
}
