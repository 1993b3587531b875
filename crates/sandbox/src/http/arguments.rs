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
    let mut parser = ArgumentParser::new(route, request.is_lenient());
    for argument in &route.spec.arguments {
        let value = match argument.location {
            ArgumentLocation::Path => {
                let variable = variables.iter().find(|(name, _)| name == argument.wire);
                variable.map(|(_, value)| value.as_str().into())
            }
            ArgumentLocation::Header => parser.header(argument, request),
            ArgumentLocation::Query => parser.query(argument, request),
            ArgumentLocation::Body | ArgumentLocation::Server => None,
        };
        if let Some(value) = value {
            parser.args.insert(argument.name.to_owned(), value);
        }
    }
    parser.report_unknown_query(request);
    parser.read_body(body, request.header("content-type"))?;
    parser.finish(&[])
}

/// Returns the flat arguments of a request that has only a body.
pub(super) fn parse_body(
    route: &Route,
    body: &Map<String, Value>,
) -> Result<Map<String, Value>, ApiError> {
    let mut parser = ArgumentParser::new(route, false);
    parser.take_fields(body.clone());
    // The headers of the enclosing request count, so none can be missing here.
    parser.finish(&[ArgumentLocation::Header])
}

struct ArgumentParser<'a> {
    route: &'a Route,
    lenient: bool,
    args: Map<String, Value>,
    issues: Vec<ValidationIssue>,
}

impl<'a> ArgumentParser<'a> {
    fn new(route: &'a Route, lenient: bool) -> Self {
        ArgumentParser {
            route,
            lenient,
            args: Map::new(),
            issues: Vec::new(),
        }
    }

    /// Validates the arguments. Issues about arguments in the `ignored` locations do not count.
    fn finish(mut self, ignored: &[ArgumentLocation]) -> Result<Map<String, Value>, ApiError> {
        if !self.lenient {
            self.validate(&self.route.validator);
        } else if let Ok(open) = compile_schema(&self.route.spec.input_schema) {
            // Lenient requests are rare, so the open schema is not cached. It compiled before.
            self.validate(&open);
        }
        self.report_missing();
        self.issues
            .retain(|issue| !ignored.contains(&issue.location));
        if self.issues.is_empty() {
            Ok(self.args)
        } else {
            Err(ApiError::from_issues(self.issues))
        }
    }

    fn report(&mut self, location: ArgumentLocation, path: &str, message: &str) {
        let issue = ValidationIssue::new(location, path, message);
        self.issues.push(issue);
    }

    fn header(&self, argument: &Argument, request: &IncomingRequest) -> Option<Value> {
        let text = request.header(argument.wire)?;
        let schema = self.route.schema_of(argument.name);
        if self.allows(schema, "array") {
            let parts = text.split(',').map(str::trim);
            let parts = parts.filter(|part| !part.is_empty());
            return Some(parts.map(Value::from).collect());
        }
        Some(self.typed(schema, text))
    }

    fn query(&mut self, argument: &Argument, request: &IncomingRequest) -> Option<Value> {
        let schema = self.route.schema_of(argument.name);
        if let Some(object) = self.query_object(argument, schema, request) {
            return Some(object);
        }
        let pairs = request.query.iter();
        let pairs = pairs.filter(|(key, _)| key == argument.wire);
        let values: Vec<&str> = pairs.map(|(_, value)| value.as_str()).collect();
        let first = values.first()?;
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

    /// Returns the object that `name[key]=value` pairs describe, if the schema allows one.
    fn query_object(
        &mut self,
        argument: &Argument,
        schema: Option<&Value>,
        request: &IncomingRequest,
    ) -> Option<Value> {
        if !self.allows(schema, "object") {
            return None;
        }
        let schema = schema.map(|schema| self.resolve(schema));
        let mut object = Map::new();
        for (pair, value) in &request.query {
            let Some((_, key)) = split_pair(pair).filter(|(wire, _)| *wire == argument.wire) else {
                continue;
            };
            let properties = schema.and_then(|schema| schema.get("properties"));
            let field = properties.and_then(|properties| properties.get(key));
            let field = field.or_else(|| schema.and_then(|it| it.get("additionalProperties")));
            let value = self.typed(field, value);
            if object.insert(key.to_owned(), value).is_some() {
                self.report(ArgumentLocation::Query, pair, "was given more than once");
            }
        }
        (!object.is_empty()).then_some(Value::Object(object))
    }

    fn report_unknown_query(&mut self, request: &IncomingRequest) {
        for (key, _) in &request.query {
            let whole = self.route.argument_at(ArgumentLocation::Query, key);
            let part = || {
                let (wire, _) = split_pair(key)?;
                let argument = self.route.argument_at(ArgumentLocation::Query, wire)?;
                let schema = self.route.schema_of(argument.name);
                self.allows(schema, "object").then_some(argument)
            };
            if whole.or_else(part).is_none() && !self.lenient {
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

    fn read_body(&mut self, body: &[u8], content_type: Option<&str>) -> Result<(), ApiError> {
        if body.is_empty() {
            return Ok(());
        }
        require_json(content_type.unwrap_or_default())?;
        let invalid = |message| ApiError::new(400, "INVALID_REQUEST_BODY", message);
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| invalid(format!("The body is not JSON: {error}")))?;
        let Value::Object(fields) = value else {
            return Err(invalid("The body must be a JSON object".to_owned()));
        };
        self.take_fields(fields);
        Ok(())
    }

    /// Takes the fields of a body.
    fn take_fields(&mut self, fields: Map<String, Value>) {
        for (field, value) in fields {
            let argument = self.route.argument_at(ArgumentLocation::Body, &field);
            if let Some(argument) = argument {
                self.args.insert(argument.name.to_owned(), value);
            } else if !self.lenient {
                let message = "is not a field of this operation";
                self.report(ArgumentLocation::Body, &field, message);
            }
        }
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

fn require_json(content_type: &str) -> Result<(), ApiError> {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let message = format!("Content-Type must be application/json, not '{content_type}'");
    Err(ApiError::new(415, "UNSUPPORTED_MEDIA_TYPE", message))
}

/// Splits `name[key]`.
fn split_pair(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once('[')?;
    let key = rest.strip_suffix(']').filter(|key| !key.is_empty())?;
    Some((name, key))
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}
