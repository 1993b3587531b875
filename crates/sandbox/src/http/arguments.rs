//! From a raw request to flat arguments in their types, checked against the input schema.

use axum::http::HeaderMap;
use exa_mcp_model::ArgumentLocation;
use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};

use super::routes::{Operation, validator};
use crate::failure::{Failure, Issue};

/// Problems listed in one answer; a body can be wrong in a thousand places.
const MOST_ISSUES: usize = 20;
/// Characters of one problem; messages quote the value that was sent.
const LONGEST_MESSAGE: usize = 300;

/// How far references and alternatives are followed; a schema may refer to itself.
const DEEPEST: usize = 8;

/// A request as it came in.
pub(super) struct Raw<'a> {
    pub(super) variables: Vec<(String, String)>,
    pub(super) query: &'a [(String, String)],
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
    /// Unknown query parameters and body fields are left out instead of refused.
    pub(super) lenient: bool,
}

/// The flat arguments of a request.
pub(super) fn gather(operation: &Operation, raw: Raw<'_>) -> Result<Map<String, Value>, Failure> {
    let mut args = Map::new();
    let mut issues = Vec::new();
    for argument in &operation.spec.arguments {
        let value = match argument.location {
            ArgumentLocation::Path => variable(&raw, argument.wire),
            ArgumentLocation::Header => header(operation, &raw, argument.name, argument.wire),
            ArgumentLocation::Query => {
                query(operation, &raw, argument.name, argument.wire, &mut issues)
            }
            ArgumentLocation::Body | ArgumentLocation::Server => None,
        };
        if let Some(value) = value {
            args.insert(argument.name.to_owned(), value);
        }
    }
    if !raw.lenient {
        unknown_query(operation, &raw, &mut issues);
    }
    take_body(operation, &raw, &mut args, &mut issues)?;
    match raw.lenient {
        false => check(operation, &operation.validator, &args, &mut issues),
        // Seldom wanted, so it is not kept; the spec itself was compiled before, so this does not fail.
        true => {
            if let Ok(open) = validator(&operation.spec.input_schema) {
                check(operation, &open, &args, &mut issues);
            }
        }
    }
    missing(operation, &args, &mut issues);
    if issues.is_empty() {
        Ok(args)
    } else {
        Err(Failure::of_issues(issues))
    }
}

fn variable(raw: &Raw<'_>, wire: &str) -> Option<Value> {
    let (_, value) = raw.variables.iter().find(|(name, _)| name == wire)?;
    Some(Value::String(value.clone()))
}

fn header(operation: &Operation, raw: &Raw<'_>, name: &str, wire: &str) -> Option<Value> {
    let text = raw.headers.get(wire)?.to_str().ok()?;
    let schema = operation.schema_of(name);
    if wants(operation, schema, "array") {
        let parts = text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty());
        return Some(parts.map(Value::from).collect());
    }
    Some(typed(operation, schema, text))
}

fn query(
    operation: &Operation,
    raw: &Raw<'_>,
    name: &str,
    wire: &str,
    issues: &mut Vec<Issue>,
) -> Option<Value> {
    let values: Vec<&str> = raw
        .query
        .iter()
        .filter(|(key, _)| key == wire)
        .map(|(_, value)| value.as_str())
        .collect();
    let schema = operation.schema_of(name);
    if values.is_empty() {
        return None;
    }
    if wants(operation, schema, "array") {
        let items = schema.and_then(|schema| resolve(operation, schema).get("items"));
        return Some(
            values
                .iter()
                .map(|text| typed(operation, items, text))
                .collect(),
        );
    }
    if values.len() > 1 {
        issues.push(Issue::new(
            ArgumentLocation::Query,
            wire,
            "was given more than once",
        ));
    }
    values.first().map(|text| typed(operation, schema, text))
}

fn unknown_query(operation: &Operation, raw: &Raw<'_>, issues: &mut Vec<Issue>) {
    for (key, _) in raw.query {
        let known = operation
            .spec
            .arguments
            .iter()
            .any(|a| a.location == ArgumentLocation::Query && a.wire == *key);
        if !known {
            issues.push(Issue::new(
                ArgumentLocation::Query,
                key.as_str(),
                "is not a parameter of this operation",
            ));
        }
    }
}

/// Text in the type its schema asks for; text that does not fit stays text and fails the check.
fn typed(operation: &Operation, schema: Option<&Value>, text: &str) -> Value {
    if wants(operation, schema, "integer") || wants(operation, schema, "number") {
        if let Ok(number) = text.parse::<i64>() {
            return number.into();
        }
        if let Ok(number) = text.parse::<f64>() {
            return number.into();
        }
    }
    if wants(operation, schema, "boolean") {
        match text {
            // exa-py sends Python's spelling and the API takes it.
            "true" | "True" => return true.into(),
            "false" | "False" => return false.into(),
            _ => {}
        }
    }
    text.into()
}

/// Whether the schema allows the type, by itself or by one of its alternatives.
fn wants(operation: &Operation, schema: Option<&Value>, kind: &str) -> bool {
    schema.is_some_and(|schema| allows(operation, schema, kind, 0))
}

fn allows(operation: &Operation, schema: &Value, kind: &str, depth: usize) -> bool {
    let schema = resolve(operation, schema);
    let own = match schema.get("type") {
        Some(Value::String(one)) => one == kind,
        Some(Value::Array(several)) => several.iter().any(|one| one.as_str() == Some(kind)),
        _ => false,
    };
    let alternatives = ["oneOf", "anyOf"]
        .into_iter()
        .filter_map(|word| schema.get(word)?.as_array())
        .flatten();
    own || (depth < DEEPEST
        && alternatives
            .into_iter()
            .any(|one| allows(operation, one, kind, depth + 1)))
}

/// The schema behind a chain of `$ref`s into `$defs`.
fn resolve<'a>(operation: &'a Operation, schema: &'a Value) -> &'a Value {
    let defs = operation.spec.input_schema.get("$defs");
    let target = |schema: &'a Value| {
        let reference = schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?;
        defs?.get(reference)
    };
    let mut schema = schema;
    for _ in 0..DEEPEST {
        match target(schema) {
            Some(next) => schema = next,
            None => break,
        }
    }
    schema
}

fn take_body(
    operation: &Operation,
    raw: &Raw<'_>,
    args: &mut Map<String, Value>,
    issues: &mut Vec<Issue>,
) -> Result<(), Failure> {
    if raw.body.is_empty() {
        return Ok(());
    }
    content_type(raw.headers)?;
    let value: Value = serde_json::from_slice(raw.body).map_err(|error| {
        Failure::new(
            400,
            "INVALID_REQUEST_BODY",
            format!("The body is not JSON: {error}"),
        )
    })?;
    let Value::Object(fields) = value else {
        return Err(Failure::new(
            400,
            "INVALID_REQUEST_BODY",
            "The body must be a JSON object",
        ));
    };
    for (field, value) in fields {
        let known = operation
            .spec
            .arguments
            .iter()
            .find(|a| a.location == ArgumentLocation::Body && a.wire == field);
        match known {
            Some(argument) => {
                args.insert(argument.name.to_owned(), value);
            }
            None if raw.lenient => {}
            None => issues.push(Issue::new(
                ArgumentLocation::Body,
                field,
                "is not a field of this operation",
            )),
        }
    }
    Ok(())
}

fn content_type(headers: &HeaderMap) -> Result<(), Failure> {
    let sent = headers
        .get("content-type")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = sent.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let message = format!("Content-Type must be application/json, not '{sent}'");
    Err(Failure::new(415, "UNSUPPORTED_MEDIA_TYPE", message))
}

fn check(
    operation: &Operation,
    validator: &Validator,
    args: &Map<String, Value>,
    issues: &mut Vec<Issue>,
) {
    let instance = Value::Object(args.clone());
    for error in validator.iter_errors(&instance) {
        if issues.len() >= MOST_ISSUES {
            return;
        }
        let mut way: Vec<String> = error
            .instance_path()
            .as_str()
            .split('/')
            .skip(1)
            .map(unescape)
            .collect();
        if let (true, ValidationErrorKind::Required { property }) = (way.is_empty(), error.kind()) {
            way.push(property.as_str().unwrap_or_default().to_owned());
        }
        let (place, path) = on_the_wire(operation, way);
        let message: String = error.to_string().chars().take(LONGEST_MESSAGE).collect();
        issues.push(Issue::new(place, path, message));
    }
}

/// Required arguments that the schema did not insist on.
fn missing(operation: &Operation, args: &Map<String, Value>, issues: &mut Vec<Issue>) {
    let required = operation
        .spec
        .arguments
        .iter()
        .filter(|argument| argument.required);
    for argument in required.filter(|argument| !args.contains_key(argument.name)) {
        let told = |issue: &Issue| issue.place == argument.location && issue.path == argument.wire;
        if !issues.iter().any(told) {
            issues.push(Issue::new(argument.location, argument.wire, "is required"));
        }
    }
}

/// Problems are told in wire names: a client of the API knows no others.
fn on_the_wire(operation: &Operation, mut way: Vec<String>) -> (ArgumentLocation, String) {
    let mut place = ArgumentLocation::Body;
    if let Some(first) = way.first_mut()
        && let Some((at, wire)) = operation.wire_of(first)
    {
        place = at;
        wire.clone_into(first);
    }
    (place, way.join("."))
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}
