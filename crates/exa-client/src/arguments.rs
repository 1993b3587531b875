//! Splits flat arguments into path, query, headers and body.

use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

use exa_mcp_model::{Argument, ArgumentLocation, Operation, RequestBody};
use exa_mcp_text::similar_names;

use super::CallError;

/// The minimum similarity at which a known argument is suggested for an unknown one.
const MIN_SIMILARITY: f64 = 0.7;

/// Far longer than any identifier of the API.
const MAX_IDENTIFIER: usize = 1_024;

/// The subject of a problem that concerns no single argument.
const ALL_ARGUMENTS: &str = "arguments";

/// The arguments do not match an operation. Lists all problems at once.
#[derive(Debug, thiserror::Error)]
#[error("`{operation}` was not called: {}", problems.join("; "))]
pub struct ArgumentsError {
    /// The operation.
    pub operation: &'static str,
    /// The argument that the problems concern, or `arguments`.
    pub argument: &'static str,
    /// A clause for each problem.
    pub problems: Vec<String>,
}

impl ArgumentsError {
    /// Creates an error with one problem that concerns no single argument.
    pub fn new(operation: &'static str, problem: String) -> Self {
        Self {
            operation,
            argument: ALL_ARGUMENTS,
            problems: vec![problem],
        }
    }
}

/// The arguments of one call, split by location.
#[derive(Debug)]
pub struct RequestParts {
    operation: &'static str,
    parameters: Map<String, Value>,
    body: Option<Value>,
}

/// Splits `arguments`, which must be an object or null.
///
/// # Errors
/// Arguments are unknown, missing or given twice with different values.
pub fn split_arguments(
    operation: &'static Operation,
    arguments: Value,
) -> Result<RequestParts, ArgumentsError> {
    let fail = |problems| ArgumentsError {
        operation: operation.name,
        argument: ALL_ARGUMENTS,
        problems,
    };
    let arguments = match arguments {
        Value::Object(map) => map,
        Value::Null => Map::new(),
        other => {
            let kind = type_name(&other);
            return Err(fail(vec![format!(
                "the arguments must be a JSON object, not {kind}"
            )]));
        }
    };
    let mut parameters = Map::new();
    let mut fields = Map::new();
    let mut problems = Vec::new();
    let server_arguments = server_argument_names(operation, &arguments);
    for (given, value) in arguments {
        let known = find_argument(operation, &given);
        let target = match known {
            Some(argument) if argument.location == ArgumentLocation::Server => continue,
            Some(argument) if argument.location != ArgumentLocation::Body => &mut parameters,
            Some(_) => &mut fields,
            None if matches!(operation.body, RequestBody::Fields { closed: false, .. }) => {
                &mut fields
            }
            None => {
                problems.push(unknown_argument(operation, &given));
                continue;
            }
        };
        let name = known.map_or(given.clone(), |argument| argument.name.to_owned());
        match target.get(&name) {
            Some(other) if *other != value => {
                problems.push(format!(
                    "`{name}` and `{given}` are the same argument but have different values"
                ));
            }
            _ => drop(target.insert(name, value)),
        }
    }
    problems.extend(missing_arguments(
        operation,
        &parameters,
        &fields,
        &server_arguments,
    ));
    if !problems.is_empty() {
        return Err(fail(problems));
    }
    let body = match operation.body {
        RequestBody::None => None,
        RequestBody::Whole { .. } => fields.shift_remove("body"),
        RequestBody::Fields {
            required: false, ..
        } if fields.is_empty() => None,
        RequestBody::Fields { .. } => Some(Value::Object(fields)),
    };
    Ok(RequestParts {
        operation: operation.name,
        parameters,
        body,
    })
}

/// Returns the names of the given arguments that this server handles itself and never sends.
fn server_argument_names(
    operation: &Operation,
    arguments: &Map<String, Value>,
) -> Vec<&'static str> {
    let server_arguments = operation
        .arguments
        .iter()
        .filter(|argument| argument.location == ArgumentLocation::Server);
    server_arguments
        .map(|argument| argument.name)
        .filter(|name| arguments.get(*name).is_some_and(|value| !value.is_null()))
        .collect()
}

fn find_argument(operation: &'static Operation, given: &str) -> Option<&'static Argument> {
    let mut arguments = operation.arguments.iter();
    let exact = arguments.find(|argument| argument.name == given);
    exact.or_else(|| {
        operation
            .arguments
            .iter()
            .find(|argument| argument.aliases.contains(&given))
    })
}

fn unknown_argument(operation: &Operation, given: &str) -> String {
    let names: Vec<&str> = operation
        .arguments
        .iter()
        .map(|argument| argument.name)
        .collect();
    let suggestion = similar_names::most_similar(given, names.iter().copied(), MIN_SIMILARITY);
    let hint = match (suggestion, names.is_empty()) {
        (Some(name), _) => format!("did you mean `{name}`?"),
        (None, true) => "the operation has no arguments".to_owned(),
        (None, false) => format!("available: {}", names.join(", ")),
    };
    format!("unknown argument `{given}`; {hint}")
}

fn missing_arguments(
    operation: &'static Operation,
    parameters: &Map<String, Value>,
    fields: &Map<String, Value>,
    server_arguments: &[&str],
) -> Vec<String> {
    let is_replaced = |argument: &Argument| {
        let mut others = argument.unless.iter();
        others.any(|other| server_arguments.contains(other))
    };
    let is_given = |argument: &Argument| match argument.location {
        ArgumentLocation::Body => fields.contains_key(argument.name),
        _ => parameters
            .get(argument.name)
            .is_some_and(|value| !value.is_null()),
    };
    operation
        .arguments
        .iter()
        .filter(|argument| argument.required && !is_given(argument) && !is_replaced(argument))
        .map(required_message)
        .collect()
}

fn required_message(argument: &Argument) -> String {
    let others: Vec<String> = argument.unless.iter().map(|it| format!("`{it}`")).collect();
    let name = argument.name;
    if others.is_empty() {
        format!("`{name}` is required")
    } else {
        format!(
            "`{name}` is required, unless {} is given",
            others.join(" or ")
        )
    }
}

impl RequestParts {
    /// Returns whether there is a body to send.
    pub fn has_body(&self) -> bool {
        self.body.is_some()
    }

    /// Takes the request body, converted to the type of the client.
    pub fn body<T: DeserializeOwned>(&mut self) -> Result<T, CallError> {
        let body = self
            .body
            .take()
            .unwrap_or_else(|| Value::Object(Map::new()));
        serde_json::from_value(body.clone()).map_err(|error| {
            self.problem(format!("{}: {error}", invalid_field::<T>(&body, &error)))
        })
    }

    /// Takes the request body as it was given.
    pub(super) fn take_body(&mut self) -> Option<Value> {
        self.body.take()
    }

    /// Takes a path parameter, which must not change the structure of the path.
    pub fn path(&mut self, name: &str) -> Result<String, CallError> {
        let text = self.text(name);
        let text = self.required(name, text)?;
        self.check_path(name, text)
    }

    /// Checks that the text of a path parameter does not change the structure of the path.
    pub(super) fn check_path(&self, name: &str, text: String) -> Result<String, CallError> {
        let problem = if text.trim().is_empty() {
            Some("must not be empty")
        } else if text == "." || text == ".." {
            Some("must be an identifier, not a relative path segment")
        } else if text.contains('\\') || text.contains(char::is_control) {
            Some("must not contain backslashes or control characters")
        } else if text.len() > MAX_IDENTIFIER {
            Some("is too long for an identifier")
        } else {
            None
        };
        match problem {
            Some(problem) => Err(self.problem(format!("`{name}` {problem}"))),
            None => Ok(text),
        }
    }

    /// Takes an argument as text; numbers and booleans are formatted.
    pub fn text(&mut self, name: &str) -> Result<Option<String>, CallError> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        match scalar(&value) {
            Some(text) => Ok(Some(text)),
            None => Err(self.wrong_type(name, "a string", &value)),
        }
    }

    /// Takes a header argument, which must be printable ASCII.
    pub fn header(&mut self, name: &str) -> Result<Option<String>, CallError> {
        let text = self.text(name)?;
        self.printable(name, text)
    }

    /// Returns the list entries whose condition holds: the body field at a dotted path has this value, or any
    /// value but null and false.
    pub fn entries_sent_with(
        &self,
        conditions: &[(&'static str, &str, Option<&str>)],
    ) -> Vec<&'static str> {
        let field = |path: &str| {
            let body = self.body.as_ref()?;
            path.split('.')
                .try_fold(body, |value, name| value.get(name))
        };
        let mut entries = Vec::new();
        for (entry, path, expected) in conditions {
            let holds = match (field(path), expected) {
                (None | Some(Value::Null | Value::Bool(false)), _) => false,
                (Some(value), Some(expected)) => value.as_str() == Some(expected),
                (Some(_), None) => true,
            };
            if holds && !entries.contains(entry) {
                entries.push(*entry);
            }
        }
        entries
    }

    /// Takes a list for one header; the entries of `always` come first.
    pub fn header_list(
        &mut self,
        name: &str,
        always: &[&str],
    ) -> Result<Option<String>, CallError> {
        let joined = self.join(name, ',', always)?;
        self.printable(name, joined)
    }

    fn printable(&self, name: &str, text: Option<String>) -> Result<Option<String>, CallError> {
        let printable = |text: &String| text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        match text.filter(|text| !text.trim().is_empty()) {
            Some(text) if !printable(&text) => Err(self.problem(format!(
                "`{name}` must be printable ASCII, because it is sent in a header"
            ))),
            text => Ok(text),
        }
    }

    /// Takes a number.
    pub fn number(&mut self, name: &str) -> Result<Option<Number>, CallError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number)),
            Some(other) => Err(self.wrong_type(name, "a number", &other)),
        }
    }

    /// Takes a boolean.
    pub fn boolean(&mut self, name: &str) -> Result<Option<bool>, CallError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(self.wrong_type(name, "true or false", &other)),
        }
    }

    /// Takes a list of strings.
    pub fn list(&mut self, name: &str) -> Result<Option<Vec<String>>, CallError> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let texts = match &value {
            Value::Array(list) => list.iter().map(scalar).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        match texts {
            Some(texts) => Ok(Some(texts)),
            None => Err(self.wrong_type(name, "a list of strings", &value)),
        }
    }

    /// Takes a list and joins it; the entries of `always` come first.
    pub fn join(
        &mut self,
        name: &str,
        separator: char,
        always: &[&str],
    ) -> Result<Option<String>, CallError> {
        let given = self.list(name)?.unwrap_or_default();
        let mut all: Vec<String> = always.iter().map(|entry| (*entry).to_owned()).collect();
        for entry in given.into_iter().map(|entry| entry.trim().to_owned()) {
            if entry.contains(separator) {
                let problem = format!("an entry of `{name}` must not contain `{separator}`");
                return Err(self.problem(problem));
            }
            if !entry.is_empty() && !all.contains(&entry) {
                all.push(entry);
            }
        }
        Ok((!all.is_empty()).then(|| all.join(&separator.to_string())))
    }

    /// Takes any value as JSON text.
    pub fn json(&mut self, name: &str) -> Result<Option<String>, CallError> {
        Ok(self.take(name).map(|value| value.to_string()))
    }

    /// Unwraps the value of a required argument.
    pub fn required<T>(
        &self,
        name: &str,
        value: Result<Option<T>, CallError>,
    ) -> Result<T, CallError> {
        value?.ok_or_else(|| self.problem(format!("`{name}` is required")))
    }

    /// Removes an argument. Null counts as absent, because only a body can carry it.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.parameters
            .shift_remove(name)
            .filter(|value| !value.is_null())
    }

    pub(super) fn wrong_type(&self, name: &str, expected: &str, given: &Value) -> CallError {
        self.problem(format!(
            "`{name}` must be {expected}, not {}",
            type_name(given)
        ))
    }

    pub(super) fn problem(&self, problem: String) -> CallError {
        ArgumentsError::new(self.operation, problem).into()
    }
}

/// Describes the field that does not match the type, as a path such as `search.query`.
fn invalid_field<T: DeserializeOwned>(body: &Value, error: &serde_json::Error) -> String {
    let mut path = Vec::new();
    let error_of = |body| {
        let error = serde_json::from_value::<T>(body).err();
        error.map(|error| error.to_string())
    };
    narrow(body, &error.to_string(), &error_of, &mut path);
    if path.is_empty() {
        "the body is not valid".to_owned()
    } else {
        format!("`{}` is not valid", path.join("."))
    }
}

/// Finds the field that causes an error: without it, the error is a different one.
fn narrow(
    body: &Value,
    message: &str,
    error_of: &dyn Fn(Value) -> Option<String>,
    path: &mut Vec<String>,
) {
    let pointer: String = path.iter().map(|step| format!("/{step}")).collect();
    let steps: Vec<String> = match body.pointer(&pointer) {
        Some(Value::Object(fields)) => fields.keys().cloned().collect(),
        Some(Value::Array(list)) => (0..list.len()).map(|index| index.to_string()).collect(),
        _ => return,
    };
    for step in steps {
        let mut without = body.clone();
        match without.pointer_mut(&pointer) {
            Some(Value::Object(fields)) => drop(fields.shift_remove(&step)),
            Some(Value::Array(list)) => drop(step.parse().map(|index: usize| list.remove(index))),
            _ => return,
        }
        if error_of(without).as_deref() != Some(message) {
            path.push(step);
            return narrow(body, message, error_of, path);
        }
    }
}

/// Returns text, numbers and booleans as text.
pub(super) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
