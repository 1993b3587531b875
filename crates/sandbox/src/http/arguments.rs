//! Conversion of a request to typed, flat arguments, validated by the input schema.

use exa_mcp_model::{Argument, ArgumentLocation};
use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};

use super::incoming::IncomingRequest;
use super::routes::{Route, compile_schema};
use crate::api_error::{ApiError, ValidationIssue};
use crate::json::{list, text};

/// Maximum number of issues in one response.
const MAX_ISSUES: usize = 20;
/// Maximum length of an issue's message, which quotes the value that was sent.
const MAX_MESSAGE: usize = 300;

/// Maximum depth of references and alternatives; a schema may refer to itself.
const MAX_DEPTH: usize = 8;

/// Returns the flat arguments of a request.
pub(super) fn parse(
    route: &Route,
    request: &IncomingRequest,
    variables: Vec<(String, String)>,
    body: &[u8],
) -> Result<Map<String, Value>, ApiError> {
    let mut parser = ArgumentParser {
        route,
        request,
        args: Map::new(),
        issues: Vec::new(),
    };
    for argument in &route.spec.arguments {
        let value = match argument.location {
            ArgumentLocation::Path => {
                let variable = variables.iter().find(|(name, _)| name == argument.wire);
                variable.map(|(_, value)| value.as_str().into())
            }
            ArgumentLocation::Header => parser.header(argument),
            ArgumentLocation::Query => parser.query(argument),
            ArgumentLocation::Body | ArgumentLocation::Server => None,
        };
        if let Some(value) = value {
            parser.args.insert(argument.name.to_owned(), value);
        }
    }
    parser.report_unknown_query();
    parser.read_body(body)?;
    if !request.is_lenient() {
        parser.validate(&route.validator);
    } else if let Ok(open) = compile_schema(&route.spec.input_schema) {
        // Lenient requests are rare, so the open schema is not cached. It compiled before.
        parser.validate(&open);
    }
    parser.report_missing();
    if parser.issues.is_empty() {
        Ok(parser.args)
    } else {
        Err(ApiError::from_issues(parser.issues))
    }
}

struct ArgumentParser<'a> {
    route: &'a Route,
    request: &'a IncomingRequest,
    args: Map<String, Value>,
    issues: Vec<ValidationIssue>,
}

impl<'a> ArgumentParser<'a> {
    fn report(&mut self, location: ArgumentLocation, path: &str, message: &str) {
        let issue = ValidationIssue::new(location, path, message);
        self.issues.push(issue);
    }

    fn header(&self, argument: &Argument) -> Option<Value> {
        let text = self.request.header(argument.wire)?;
        let schema = self.route.schema_of(argument.name);
        if self.allows(schema, "array") {
            let parts = text.split(',').map(str::trim);
            let parts = parts.filter(|part| !part.is_empty());
            return Some(parts.map(Value::from).collect());
        }
        Some(self.typed(schema, text))
    }

    fn query(&mut self, argument: &Argument) -> Option<Value> {
        let pairs = self.request.query.iter();
        let pairs = pairs.filter(|(key, _)| key == argument.wire);
        let values: Vec<&str> = pairs.map(|(_, value)| value.as_str()).collect();
        let first = values.first()?;
        let schema = self.route.schema_of(argument.name);
        if self.allows(schema, "array") {
            let items = schema.and_then(|schema| self.resolve(schema).get("items"));
            return Some(values.iter().map(|text| self.typed(items, text)).collect());
        }
        if values.len() > 1 {
            let message = "was given more than once";
            self.report(ArgumentLocation::Query, argument.wire, message);
        }
        Some(self.typed(schema, first))
    }

    fn report_unknown_query(&mut self) {
        for (key, _) in &self.request.query {
            let argument = self.route.argument_at(ArgumentLocation::Query, key);
            if argument.is_none() && !self.request.is_lenient() {
                let message = "is not a parameter of this operation";
                self.report(ArgumentLocation::Query, key, message);
            }
        }
    }

    /// Converts text to the type in its schema; text of another type stays text and fails the
    /// validation.
    fn typed(&self, schema: Option<&Value>, text: &str) -> Value {
        if self.allows(schema, "integer") || self.allows(schema, "number") {
            if let Ok(number) = text.parse::<i64>() {
                return number.into();
            }
            if let Ok(number) = text.parse::<f64>() {
                return number.into();
            }
        }
        if self.allows(schema, "boolean") {
            match text {
                // exa-py sends Python's spelling, which the API accepts.
                "true" | "True" => return true.into(),
                "false" | "False" => return false.into(),
                _ => {}
            }
        }
        text.into()
    }

    /// Whether the schema or one of its alternatives allows the type.
    fn allows(&self, schema: Option<&Value>, type_name: &str) -> bool {
        schema.is_some_and(|schema| self.allows_at_depth(schema, type_name, 0))
    }

    fn allows_at_depth(&self, schema: &Value, type_name: &str, depth: usize) -> bool {
        let schema = self.resolve(schema);
        let mut types = list(schema, "type").iter().filter_map(Value::as_str);
        let mut alternatives = list(schema, "oneOf").iter().chain(list(schema, "anyOf"));
        text(schema, "type") == type_name
            || types.any(|one| one == type_name)
            || depth < MAX_DEPTH
                && alternatives.any(|schema| self.allows_at_depth(schema, type_name, depth + 1))
    }

    /// Follows a chain of `$ref`s into `$defs`.
    fn resolve<'b>(&self, mut schema: &'b Value) -> &'b Value
    where
        'a: 'b,
    {
        let definitions = self.route.spec.input_schema.get("$defs");
        for _ in 0..MAX_DEPTH {
            let name = text(schema, "$ref").strip_prefix("#/$defs/");
            match name.and_then(|name| definitions?.get(name)) {
                Some(target) => schema = target,
                None => break,
            }
        }
        schema
    }

    fn read_body(&mut self, body: &[u8]) -> Result<(), ApiError> {
        if body.is_empty() {
            return Ok(());
        }
        self.require_json_content_type()?;
        let invalid = |message| ApiError::new(400, "INVALID_REQUEST_BODY", message);
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| invalid(format!("The body is not JSON: {error}")))?;
        let Value::Object(fields) = value else {
            return Err(invalid("The body must be a JSON object".to_owned()));
        };
        for (field, value) in fields {
            let argument = self.route.argument_at(ArgumentLocation::Body, &field);
            if let Some(argument) = argument {
                self.args.insert(argument.name.to_owned(), value);
            } else if !self.request.is_lenient() {
                let message = "is not a field of this operation";
                self.report(ArgumentLocation::Body, &field, message);
            }
        }
        Ok(())
    }

    fn require_json_content_type(&self) -> Result<(), ApiError> {
        let sent = self.request.header("content-type").unwrap_or_default();
        let essence = sent.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("application/json") {
            return Ok(());
        }
        let message = format!("Content-Type must be application/json, not '{sent}'");
        Err(ApiError::new(415, "UNSUPPORTED_MEDIA_TYPE", message))
    }

    fn validate(&mut self, validator: &Validator) {
        let instance = Value::Object(self.args.clone());
        for error in validator.iter_errors(&instance) {
            if self.issues.len() >= MAX_ISSUES {
                return;
            }
            let pointer = error.instance_path().as_str();
            let mut path: Vec<String> = pointer.split('/').skip(1).map(unescape).collect();
            if let ValidationErrorKind::Required { property } = error.kind()
                && path.is_empty()
            {
                path.push(property.as_str().unwrap_or_default().to_owned());
            }
            let (location, path) = self.wire_path(path);
            let message: String = error.to_string().chars().take(MAX_MESSAGE).collect();
            self.report(location, &path, &message);
        }
    }

    /// Reports required arguments that the schema does not require.
    fn report_missing(&mut self) {
        let required = self.route.spec.arguments.iter().filter(|it| it.required);
        for argument in required {
            let is_reported = self
                .issues
                .iter()
                .any(|issue| issue.location == argument.location && issue.path == argument.wire);
            if !self.args.contains_key(argument.name) && !is_reported {
                self.report(argument.location, argument.wire, "is required");
            }
        }
    }

    /// Replaces the argument name in a path by the wire name, which is the one that clients know.
    fn wire_path(&self, mut path: Vec<String>) -> (ArgumentLocation, String) {
        let mut location = ArgumentLocation::Body;
        let mut arguments = self.route.spec.arguments.iter();
        if let Some(first) = path.first_mut()
            && let Some(argument) = arguments.find(|argument| argument.name == first)
        {
            location = argument.location;
            argument.wire.clone_into(first);
        }
        (location, path.join("."))
    }
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}
