//! Stage 6: lowers a copy of the spec to what the client generator can read.
//!
//! The copy is built from the model and contains only the operations, their parameters and the types
//! of their request bodies. Schemas for clients of the server come from the original document.

pub mod rules;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

pub use rules::{LoweringRule, LoweringRules};
pub use schema::{SchemaLowerer, Shape, shape};

use crate::error::Result;
use crate::load::Document;
use crate::model::{ApiModel, Body, Encoding, Location, Operation, Parameter};
use crate::names;
use crate::responses::{self, ResponseTypes};

/// A document for the client generator.
#[derive(Debug)]
pub struct LoweredDocument {
    /// The OpenAPI 3.0 document.
    pub root: Value,
    /// The components that stand for Rust types of ours, with the paths of those types.
    pub replacements: BTreeMap<String, String>,
}

/// Returns the OpenAPI 3.0 document of one API.
pub fn lower(
    document: &Document,
    api: &ApiModel,
    operations: &[&Operation],
    types: &ResponseTypes,
    rules: LoweringRules,
) -> Result<LoweredDocument> {
    let mut lowerer = SchemaLowerer::new(document, rules);
    let mut paths = Map::new();
    for operation in operations {
        let mut lowered = lower_operation(&mut lowerer, document, operation, rules)?;
        if rules.has(LoweringRule::TypedResponses)
            && let Some(name) = types.by_function.get(&operation.function)
            && let Some(schema) = lowered.pointer_mut(RESPONSE_SCHEMA)
        {
            let reference = format!("#/components/schemas/{}", response_component(name));
            *schema = json!({"$ref": reference});
        }
        let path = if rules.has(LoweringRule::PathVariables) {
            argument_path(operation)
        } else {
            operation.path.clone()
        };
        let item = paths.entry(path).or_insert_with(|| json!({}));
        item[&operation.method] = lowered;
    }
    let version = if rules.has(LoweringRule::AsciiVersion) {
        ascii_version(&api.version)
    } else {
        api.version.clone()
    };
    let openapi = if rules.has(LoweringRule::OpenApi30) {
        json!("3.0.3")
    } else {
        document.root.get("openapi").cloned().unwrap_or_default()
    };
    let mut components = if rules.has(LoweringRule::RequestTypesOnly) {
        Value::Object(lowerer.into_components())
    } else {
        let all = document.root.pointer("/components/schemas");
        all.cloned().unwrap_or_default()
    };
    let mut replacements = BTreeMap::new();
    for name in types.by_function.values() {
        let component = response_component(name);
        components[&component] = json!({});
        let path = format!("crate::{}::{}::{name}", api.name, responses::MODULE);
        replacements.insert(component, path);
    }
    let root = json!({
        "openapi": openapi,
        "info": {"title": comment_text(&api.title), "version": version},
        "paths": paths,
        "components": {"schemas": components},
    });
    Ok(LoweredDocument { root, replacements })
}

/// The JSON pointer of the response's schema in a lowered operation.
const RESPONSE_SCHEMA: &str = "/responses/2XX/content/application~1json/schema";

/// Returns the name of the component that stands for a response type. No other component has it, because type names
/// have no number after `Response`.
fn response_component(name: &str) -> String {
    format!("Response0{name}")
}

/// Returns the path with the names for the client generator as variables.
fn argument_path(operation: &Operation) -> String {
    let mut path = String::new();
    let mut parts = operation.path.split('{');
    path.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (variable, rest) = part.split_once('}').unwrap_or(("", part));
        let mut parameters = operation.parameters.iter();
        let parameter =
            parameters.find(|it| it.location == Location::Path && it.wire_name == variable);
        let name = parameter.map_or(variable, |parameter| &parameter.client_name);
        path.push_str(&format!("{{{name}}}{rest}"));
    }
    path
}

/// Returns text that does not end a comment.
fn comment_text(text: &str) -> String {
    text.replace("*/", "* /").replace("/*", "/ *")
}

fn ascii_version(version: &str) -> String {
    let ascii: String = version.chars().filter(char::is_ascii_graphic).collect();
    if ascii.is_empty() {
        "0".to_owned()
    } else {
        ascii
    }
}

fn lower_operation(
    lowerer: &mut SchemaLowerer<'_>,
    document: &Document,
    operation: &Operation,
    rules: LoweringRules,
) -> Result<Value> {
    let source = document
        .root
        .pointer(&operation.pointer)
        .cloned()
        .unwrap_or_default();
    let parameters: Vec<Value> = operation
        .parameters
        .iter()
        .filter(|parameter| !(parameter.via_context && rules.has(LoweringRule::UniqueParameters)))
        .map(|parameter| lower_parameter(parameter, rules))
        .collect();
    let operation_id = if rules.has(LoweringRule::OperationIds) {
        json!(operation.function)
    } else {
        source.get("operationId").cloned().unwrap_or_default()
    };
    let mut lowered = json!({
        "operationId": operation_id,
        "summary": comment_text(&operation.summary),
        "parameters": parameters,
        "responses": lower_responses(&source, rules),
    });
    let schema = match &operation.body {
        body if !body.is_typed() => None,
        Body::None => None,
        Body::Whole { .. } => Some(json!({})),
        Body::Fields {
            schema, pointer, ..
        } => {
            let hint = format!("{}_body", operation.function);
            Some(lowerer.lower(schema, pointer, &hint)?.schema)
        }
    };
    if let Some(schema) = schema {
        lowered["requestBody"] = json!({
            "required": true,
            "content": {"application/json": {"schema": schema}},
        });
    }
    Ok(lowered)
}

/// Declares every success as one JSON value. Errors are not declared, so they arrive with their body.
fn lower_responses(source: &Value, rules: LoweringRules) -> Value {
    let any = json!({"description": "", "content": {"application/json": {"schema": {}}}});
    let declared = source.get("responses").and_then(Value::as_object);
    let mut responses = Map::new();
    if rules.has(LoweringRule::SingleSuccess) {
        responses.insert("2XX".to_owned(), any.clone());
    }
    for (code, response) in declared.into_iter().flatten() {
        let is_success = code.starts_with('2');
        let is_copied = if is_success {
            !rules.has(LoweringRule::SingleSuccess) || !rules.has(LoweringRule::RawResponses)
        } else {
            !rules.has(LoweringRule::UndeclaredErrors)
        };
        if is_copied && response.get("$ref").is_none() {
            responses.insert(code.clone(), response.clone());
        }
    }
    if !rules.has(LoweringRule::RawResponses) {
        responses.shift_remove("2XX");
    }
    Value::Object(responses)
}

fn lower_parameter(parameter: &Parameter, rules: LoweringRules) -> Value {
    let schema = match parameter.encoding {
        Encoding::Number => json!({"type": "number"}),
        Encoding::Boolean => json!({"type": "boolean"}),
        Encoding::Repeated => json!({"type": "array", "items": {"type": "string"}}),
        Encoding::Joined(_) if !rules.has(LoweringRule::TextParameters) => {
            json!({"type": "array", "items": {"type": "string"}})
        }
        Encoding::Text
        | Encoding::Joined(_)
        | Encoding::Json
        | Encoding::ObjectText(_)
        | Encoding::Pairs(_) => json!({"type": "string"}),
    };
    let name = match parameter.location {
        Location::Path if !rules.has(LoweringRule::PathVariables) => &parameter.wire_name,
        _ => &parameter.client_name,
    };
    json!({
        "name": name,
        "in": parameter.location.as_str(),
        "required": parameter.required && parameter.always_sent.is_empty(),
        "schema": schema,
    })
}

/// Returns the Rust name of a parameter in the generated client.
pub fn client_identifier(parameter: &Parameter) -> String {
    names::parameter_identifier(&parameter.client_name)
}
