//! Stage 6: the copy of the spec that the client generator can read.
//!
//! The copy is built from the model rather than edited in place: it holds operations, their
//! parameters and the types of their request bodies, and nothing else. What clients of the server
//! see comes from the original document, never from here.

pub mod rules;
mod schema;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

pub use rules::{Rule, Rules};
pub use schema::{Lowering, Shape, shape};

use crate::error::Result;
use crate::load::Document;
use crate::model::{ApiModel, Body, Encoding, Location, Operation, Parameter};
use crate::names;

/// The OpenAPI 3.0 document of one API.
pub fn lower(
    document: &Document,
    api: &ApiModel,
    operations: &[&Operation],
    rules: Rules,
) -> Result<Value> {
    let mut lowering = Lowering::new(document, rules);
    let mut paths = Map::new();
    for operation in operations {
        let lowered = lower_operation(&mut lowering, document, operation, rules)?;
        let path = match rules.has(Rule::N02) {
            true => argument_path(operation),
            false => operation.path.clone(),
        };
        let item = paths.entry(path).or_insert_with(|| json!({}));
        item[&operation.method] = lowered;
    }
    let version = match rules.has(Rule::N09) {
        true => printable(&api.version),
        false => api.version.clone(),
    };
    let openapi = match rules.has(Rule::D01) {
        true => json!("3.0.3"),
        false => document.root.get("openapi").cloned().unwrap_or_default(),
    };
    let components = match rules.has(Rule::R07) {
        true => Value::Object(lowering.into_components()),
        false => document
            .root
            .pointer("/components/schemas")
            .cloned()
            .unwrap_or_default(),
    };
    Ok(json!({
        "openapi": openapi,
        "info": {"title": api.title, "version": version},
        "paths": paths,
        "components": {"schemas": components},
    }))
}

/// The path with the argument names in it.
fn argument_path(operation: &Operation) -> String {
    operation
        .parameters
        .iter()
        .filter(|parameter| parameter.location == Location::Path)
        .fold(operation.path.clone(), |path, parameter| {
            path.replace(
                &format!("{{{}}}", parameter.wire),
                &format!("{{{}}}", parameter.name),
            )
        })
}

fn printable(version: &str) -> String {
    let kept: String = version.chars().filter(char::is_ascii_graphic).collect();
    match kept.is_empty() {
        true => "0".to_owned(),
        false => kept,
    }
}

fn lower_operation(
    lowering: &mut Lowering<'_>,
    document: &Document,
    operation: &Operation,
    rules: Rules,
) -> Result<Value> {
    let source = document
        .root
        .pointer(&operation.pointer)
        .cloned()
        .unwrap_or_default();
    let parameters: Vec<Value> = operation
        .parameters
        .iter()
        .filter(|parameter| !(parameter.carried && rules.has(Rule::N08)))
        .map(|parameter| lower_parameter(parameter, rules))
        .collect();
    let operation_id = match rules.has(Rule::N01) {
        true => json!(operation.function),
        false => source.get("operationId").cloned().unwrap_or_default(),
    };
    let mut lowered = json!({
        "operationId": operation_id,
        "summary": operation.summary,
        "parameters": parameters,
        "responses": lower_responses(&source, rules),
    });
    let schema = match &operation.body {
        Body::None => None,
        Body::Whole { .. } => Some(json!({})),
        Body::Fields {
            schema, pointer, ..
        } => {
            let hint = format!("{}_body", operation.function);
            Some(lowering.lower(schema, pointer, &hint)?.schema)
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

/// Every success is one JSON value; errors are not declared and so arrive with their body.
fn lower_responses(source: &Value, rules: Rules) -> Value {
    let any = json!({"description": "", "content": {"application/json": {"schema": {}}}});
    let declared = source.get("responses").and_then(Value::as_object);
    let mut responses = Map::new();
    if rules.has(Rule::N04) {
        responses.insert("2XX".to_owned(), any.clone());
    }
    for (code, response) in declared.into_iter().flatten() {
        let success = code.starts_with('2');
        let kept = match success {
            true => !rules.has(Rule::N04) || !rules.has(Rule::R04),
            false => !rules.has(Rule::N03),
        };
        if kept && response.get("$ref").is_none() {
            responses.insert(code.clone(), response.clone());
        }
    }
    if !rules.has(Rule::R04) {
        responses.shift_remove("2XX");
    }
    Value::Object(responses)
}

fn lower_parameter(parameter: &Parameter, rules: Rules) -> Value {
    let schema = match parameter.encoding {
        Encoding::Number => json!({"type": "number"}),
        Encoding::Boolean => json!({"type": "boolean"}),
        Encoding::Repeated => json!({"type": "array", "items": {"type": "string"}}),
        Encoding::Joined(_) if !rules.has(Rule::N07) => {
            json!({"type": "array", "items": {"type": "string"}})
        }
        Encoding::Text | Encoding::Joined(_) | Encoding::Json => json!({"type": "string"}),
    };
    let name = match parameter.location {
        Location::Path if rules.has(Rule::N02) => parameter.name.clone(),
        Location::Header => parameter.wire.to_ascii_lowercase(),
        _ => parameter.wire.clone(),
    };
    json!({
        "name": name,
        "in": parameter.location.as_str(),
        "required": parameter.required && parameter.always.is_empty(),
        "schema": schema,
    })
}

/// The Rust name of a parameter in the generated client.
pub fn client_identifier(parameter: &Parameter) -> String {
    match parameter.location {
        Location::Path => names::parameter_identifier(&parameter.name),
        _ => names::parameter_identifier(&parameter.wire),
    }
}
