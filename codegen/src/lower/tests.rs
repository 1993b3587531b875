//! One fixture per rule: correct with all rules, wrong or rejected without the rule.

use serde_json::{Value, json};

use super::{LoweringRule, LoweringRules};
use crate::error::Findings;
use crate::load::Document;
use crate::surface::{ApiEntry, Surface};
use crate::{clients, operations};

/// Generates the client of a spec as text without whitespace.
fn client(spec: Value, rules: LoweringRules) -> Result<String, String> {
    let document = Document {
        file: "spec.yaml".into(),
        root: spec,
    };
    let api = ApiEntry {
        spec: "spec.yaml".into(),
        overlay: None,
        namespace: None,
        key: exa_mcp_model::KeyKind::default(),
        set: None,
    };
    let surface: Surface = serde_json::from_value(json!({
        "apis": {}, "defaults": {"timeoutSeconds": 1, "baseUrl": "https://api.example.com"}
    }))
    .unwrap();
    let mut findings = Findings::default();
    let (model, mut operations) =
        operations::read(&document, "search", &api, &surface, &mut findings);
    if let Some(error) = findings.omissions.first() {
        return Err(error.to_string());
    }
    let apis = std::slice::from_ref(&model);
    operations::finish(apis, &mut operations, &mut findings.notices);
    let all: Vec<_> = operations.iter().collect();
    let client = clients::generate(&document, &model, &all, rules).map_err(|e| e.to_string())?;
    let text = prettyplease::unparse(&client.file);
    Ok(text.split_whitespace().collect::<Vec<_>>().concat())
}

fn spec(paths: Value, schemas: Value) -> Value {
    json!({"openapi": "3.1.0", "info": {"title": "t", "version": "1"},
        "paths": paths, "components": {"schemas": schemas}})
}

/// Returns a spec with one operation whose body has this schema.
fn body_with(schema: Value, components: Value) -> Value {
    let operation = json!({"operationId": "things-create",
        "requestBody": {"required": true, "content": {"application/json": {"schema": schema}}},
        "responses": {"200": {"description": ""}}});
    spec(json!({"/things": {"post": operation}}), components)
}

/// Returns a spec with one operation whose body has one optional field `a`.
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

/// Returns the fixture of a rule and the check of the generated client.
fn fixture(rule: LoweringRule) -> (Value, Check) {
    let anything: Check = |_| true;
    let string: Check = |text| text.contains(STRING);
    let any: Check = |text| text.contains(ANY);
    match rule {
        LoweringRule::OpenApi30 => (field(json!({"type": "string"})), anything),
        LoweringRule::SingleTypeList => (field(json!({"type": ["string"]})), string),
        LoweringRule::NullableTypeList => (field(json!({"type": ["string", "null"]})), string),
        LoweringRule::MultiTypeList => (field(json!({"type": ["string", "number"]})), any),
        LoweringRule::NullBranch => (
            field(json!({"oneOf": [{"type": "string"}, {"type": "null"}]})),
            string,
        ),
        LoweringRule::ConstType => (field(json!({"const": "x"})), string),
        LoweringRule::ReferenceSiblings => (
            body_with(
                json!({"$ref": "#/components/schemas/Base", "properties": {"b": {"type": "string"}}}),
                json!({"Base": {"type": "object", "properties": {"a": {"type": "string"}}}}),
            ),
            |text| text.contains(STRING) && text.contains("pubb:"),
        ),
        LoweringRule::BooleanSchema => (field(json!(true)), any),
        LoweringRule::OperationIds => (get("/things", json!({"responses": {}})), |text| {
            text.contains("fnthings_list<")
        }),
        LoweringRule::PathVariables => (
            get(
                "/things/{id}",
                json!({"operationId": "things-get", "responses": {}, "parameters": [
                {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}},
                {"name": "id", "in": "query", "schema": {"type": "string"}}]}),
            ),
            |text| text.contains("thing_id:&'astr,id:Option<&'astr>"),
        ),
        LoweringRule::UndeclaredErrors => (
            get(
                "/things",
                json!({"operationId": "things-list", "responses": {
                "200": {"description": ""},
                "404": {"description": "", "content": {"application/json": {"schema":
                    {"type": "object", "properties": {"error": {"type": "string"}}}}}}}}),
            ),
            |text| text.contains("Error<()>") && text.contains("UnexpectedResponse"),
        ),
        LoweringRule::SingleSuccess => (
            get(
                "/things",
                json!({"operationId": "things-list", "responses": {
                "200": {"description": "", "content": {"application/json": {"schema": {"type": "string"}}}},
                "202": {"description": ""}}}),
            ),
            |text| text.contains("200..=299=>ResponseValue::from_response"),
        ),
        LoweringRule::ImpliedType => (
            body_with(json!({"properties": {"a": {"type": "string"}}}), json!({})),
            string,
        ),
        LoweringRule::NamedInlineObjects => (
            body_with(
                json!({"$ref": "#/components/schemas/Monitor"}),
                json!({"MonitorBehavior": {"type": "object", "properties": {"x": {"type": "string"}}},
                    "Monitor": {"type": "object", "properties": {
                        "other": {"$ref": "#/components/schemas/MonitorBehavior"},
                        "behavior": {"type": "object", "properties": {"y": {"type": "string"}}}}}}),
            ),
            |text| text.matches("pubstructMonitorBehavior{").count() == 1 && text.contains("puby:"),
        ),
        LoweringRule::TextParameters => (
            get(
                "/things",
                json!({"operationId": "things-list", "responses": {}, "parameters": [
                {"name": "tags", "in": "query", "explode": false,
                    "schema": {"type": "array", "items": {"type": "string"}}}]}),
            ),
            |text| text.contains("tags:Option<&'astr>"),
        ),
        LoweringRule::UniqueFields => (
            body_with(
                json!({"type": "object", "properties": {
                    "fooBar": {"type": "string"}, "foo_bar": {"type": "string"}, "extra": {}}}),
                json!({}),
            ),
            |text| {
                let count = |field: &str| text.matches(field).count();
                count("pubfoo_bar:") == 1 && count("pubextra:") == 1
            },
        ),
        LoweringRule::UniqueParameters => (
            get(
                "/things",
                json!({"operationId": "things-list", "responses": {}, "parameters": [
                {"name": "user-id", "in": "query", "schema": {"type": "string"}},
                {"name": "user_id", "in": "query", "schema": {"type": "string"}}]}),
            ),
            |text| text.matches("user_id:Option<&'astr>").count() == 1,
        ),
        LoweringRule::AsciiVersion => {
            let mut spec = field(json!({"type": "string"}));
            spec["info"]["version"] = json!("2026 é");
            (spec, |text| {
                text.contains("\"2026\"") && !text.contains('é')
            })
        }
        LoweringRule::NoBounds => (
            field(json!({"type": "string", "format": "uuid", "maxLength": 9})),
            string,
        ),
        LoweringRule::ExactNumbers => (field(json!({"type": "integer"})), |text| {
            text.contains("puba:exa_mcp_exa_client::Maybe<::serde_json::Number>")
        }),
        LoweringRule::NoDefaults => (field(json!({"type": "boolean", "default": true})), |text| {
            text.contains("puba:exa_mcp_exa_client::Maybe<bool>")
        }),
        LoweringRule::RawResponses => (
            get(
                "/things",
                json!({"operationId": "things-list", "responses": {"200": {"description": "",
                "content": {"application/json": {"schema":
                    {"type": "object", "properties": {"status": {"type": "string", "enum": ["a"]}}}}}}}}),
            ),
            |text| !text.contains("pubstructThingsListResponse"),
        ),
        LoweringRule::TypedResponses => (
            get(
                "/things",
                json!({"operationId": "things-list", "responses": {"200": {"description": "",
                "content": {"application/json": {"schema":
                    {"type": "object", "properties": {"status": {"type": "string", "enum": ["a"]}}}}}}}}),
            ),
            |text| text.contains("ResponseValue<crate::search::responses::ThingsListResponse>"),
        ),
        LoweringRule::OpenEnums => (field(json!({"type": "string", "enum": ["a", "b"]})), string),
        LoweringRule::OpenUnions => (
            field(
                json!({"anyOf": [{"type": "string"}, {"type": "object", "properties": {"x": {"type": "string"}}}]}),
            ),
            any,
        ),
        LoweringRule::RequestTypesOnly => {
            let body = json!({"type": "object", "properties": {"a": {"type": "string"}}});
            (
                body_with(body, json!({"Response": {"type": ["string", "null"]}})),
                string,
            )
        }
        LoweringRule::OpenObjects => (field(json!({"type": "string"})), |text| {
            text.contains("#[serde(flatten)]pubextra:")
        }),
        LoweringRule::NullableCollections => (
            field(json!({"type": "array", "items": {"type": "string"}})),
            |text| {
                text.contains(
                    "puba:exa_mcp_exa_client::Maybe<::std::vec::Vec<::std::string::String>>",
                )
            },
        ),
        LoweringRule::MergedAllOf => (
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
    for rule in LoweringRule::ALL {
        let (spec, check) = fixture(*rule);
        let with = client(spec.clone(), LoweringRules::default());
        assert!(
            with.as_deref().is_ok_and(check),
            "rule {} has no effect: {with:?}",
            rule.id()
        );
        let without = client(spec, LoweringRules::without(*rule));
        assert!(
            !without.as_deref().is_ok_and(check),
            "the fixture of rule {} passes without the rule: {}",
            rule.id(),
            rule.reason()
        );
    }
}

#[test]
fn a_recursive_body_becomes_a_boxed_type() {
    let text = client(
        body_with(
            json!({"$ref": "#/components/schemas/Tree"}),
            json!({"Tree": {"type": "object", "properties": {
                "children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}},
                "parent": {"$ref": "#/components/schemas/Tree"}}}}),
        ),
        LoweringRules::default(),
    )
    .unwrap();
    assert!(
        text.contains("pubparent:exa_mcp_exa_client::Maybe<::std::boxed::Box<Tree>>"),
        "{text}"
    );
}

#[test]
fn a_schema_that_only_refers_to_itself_accepts_any_value() {
    let text = client(
        body_with(
            json!({"type": "object", "properties": {"a": {"$ref": "#/components/schemas/L"}}}),
            json!({"L": {"type": "array", "items": {"$ref": "#/components/schemas/L"}}}),
        ),
        LoweringRules::default(),
    );
    assert!(text.is_ok(), "{text:?}");
}

#[test]
fn reports_unsupported_constructs_with_their_location() {
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
                {"name": "f", "in": "query", "required": true, "style": "matrix", "schema": {"type": "object"}}]}),
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
                    {"content": {"multipart/form-data": {"schema": {"type": "array"}}}}}}}),
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
    ];
    for (spec, pointer, family) in cases {
        let error = client(spec, LoweringRules::default()).unwrap_err();
        assert!(error.contains(&format!("spec.yaml{pointer}")), "{error}");
        assert!(error.contains(&format!("family `{family}`")), "{error}");
    }
}
