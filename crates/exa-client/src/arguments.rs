//! Flat arguments are sorted into path, query, headers and body.

use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

use exa_mcp_model::{Argument, ArgumentLocation, Operation, RequestBody};
use exa_mcp_text::similar_names;

use super::CallError;

/// The least similarity at which a known argument is suggested instead of an unknown one.
const SIMILAR: f64 = 0.7;

/// No identifier of the API comes near this length.
const MAX_IDENTIFIER: usize = 1_024;

/// What a problem is about that is not about a single argument.
const ALL: &str = "arguments";

/// Why arguments do not fit an operation: everything that is wrong, at once.
#[derive(Debug, thiserror::Error)]
#[error("`{operation}` was not called: {}", problems.join("; "))]
pub struct ArgumentsError {
    /// The operation.
    pub operation: &'static str,
    /// What the problems are about: an argument, or `arguments` for all of them.
    pub place: &'static str,
    /// One sentence a problem.
    pub problems: Vec<String>,
}

impl ArgumentsError {
    /// A problem that is not about a single argument.
    pub fn new(operation: &'static str, problem: String) -> Self {
        Self {
            operation,
            place: ALL,
            problems: vec![problem],
        }
    }
}

/// The arguments of one call, sorted by where they go.
#[derive(Debug)]
pub struct RequestParts {
    operation: &'static str,
    parameters: Map<String, Value>,
    body: Option<Value>,
}

/// Sorts `arguments`, which must be an object (or null for none).
pub fn split_arguments(
    operation: &'static Operation,
    arguments: Value,
) -> Result<RequestParts, ArgumentsError> {
    let fail = |problems| ArgumentsError {
        operation: operation.name,
        place: ALL,
        problems,
    };
    let arguments = match arguments {
        Value::Object(map) => map,
        Value::Null => Map::new(),
        other => {
            let kind = kind(&other);
            return Err(fail(vec![format!(
                "the arguments must be a JSON object, not {kind}"
            )]));
        }
    };
    let mut parameters = Map::new();
    let mut fields = Map::new();
    let mut problems = Vec::new();
    let own = own_names(operation, &arguments);
    for (given, value) in arguments {
        let known = find(operation, &given);
        let into = match known {
            Some(argument) if argument.location == ArgumentLocation::Server => continue,
            Some(argument) if argument.location != ArgumentLocation::Body => &mut parameters,
            Some(_) => &mut fields,
            None if matches!(operation.body, RequestBody::Fields { closed: false, .. }) => {
                &mut fields
            }
            None => {
                problems.push(unknown(operation, &given));
                continue;
            }
        };
        let name = known.map_or(given.clone(), |argument| argument.name.to_owned());
        match into.get(&name) {
            Some(other) if *other != value => {
                problems.push(format!(
                    "`{name}` and `{given}` mean the same argument but differ"
                ));
            }
            _ => drop(into.insert(name, value)),
        }
    }
    problems.extend(missing(operation, &parameters, &fields, &own));
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

/// The given arguments that this server acts on; they are never sent.
fn own_names(operation: &Operation, arguments: &Map<String, Value>) -> Vec<&'static str> {
    let own = operation
        .arguments
        .iter()
        .filter(|argument| argument.location == ArgumentLocation::Server);
    own.map(|argument| argument.name)
        .filter(|name| arguments.get(*name).is_some_and(|value| !value.is_null()))
        .collect()
}

fn find(operation: &'static Operation, given: &str) -> Option<&'static Argument> {
    let mut arguments = operation.arguments.iter();
    let exact = arguments.find(|argument| argument.name == given);
    exact.or_else(|| {
        operation
            .arguments
            .iter()
            .find(|argument| argument.aliases.contains(&given))
    })
}

fn unknown(operation: &Operation, given: &str) -> String {
    let names: Vec<&str> = operation
        .arguments
        .iter()
        .map(|argument| argument.name)
        .collect();
    let meant = similar_names::most_similar(given, names.iter().copied(), SIMILAR);
    let hint = match (meant, names.is_empty()) {
        (Some(meant), _) => format!("did you mean `{meant}`?"),
        (None, true) => "it takes no arguments".to_owned(),
        (None, false) => format!("it takes {}", names.join(", ")),
    };
    format!("there is no argument `{given}`; {hint}")
}

fn missing(
    operation: &'static Operation,
    parameters: &Map<String, Value>,
    fields: &Map<String, Value>,
    own: &[&str],
) -> Vec<String> {
    let replaced = |argument: &Argument| argument.unless.iter().any(|other| own.contains(other));
    let given = |argument: &Argument| match argument.location {
        ArgumentLocation::Body => fields.contains_key(argument.name),
        _ => parameters
            .get(argument.name)
            .is_some_and(|value| !value.is_null()),
    };
    operation
        .arguments
        .iter()
        .filter(|argument| argument.required && !given(argument) && !replaced(argument))
        .map(required_text)
        .collect()
}

fn required_text(argument: &Argument) -> String {
    let others: Vec<String> = argument.unless.iter().map(|it| format!("`{it}`")).collect();
    match others.is_empty() {
        true => format!("`{}` is required", argument.name),
        false => format!(
            "`{}` is required, unless {} is given",
            argument.name,
            others.join(" or ")
        ),
    }
}

impl RequestParts {
    /// Whether there is a body to send.
    pub fn has_body(&self) -> bool {
        self.body.is_some()
    }

    /// The request body as the client wants it.
    pub fn body<T: DeserializeOwned>(&mut self) -> Result<T, CallError> {
        let body = self
            .body
            .take()
            .unwrap_or_else(|| Value::Object(Map::new()));
        serde_json::from_value(body.clone())
            .map_err(|error| self.problem(format!("{}: {error}", culprit::<T>(&body, &error))))
    }

    /// A path parameter, as text that stays inside its segment of the path.
    pub fn path(&mut self, name: &str) -> Result<String, CallError> {
        let text = self.text(name);
        let text = self.required(name, text)?;
        let refused = if text.trim().is_empty() {
            Some("must not be empty")
        } else if text == "." || text == ".." {
            Some("must be an identifier, not a step in a path")
        } else if text.contains('\\') || text.contains(char::is_control) {
            Some("must not contain backslashes or control characters")
        } else if text.len() > MAX_IDENTIFIER {
            Some("is too long for an identifier")
        } else {
            None
        };
        match refused {
            Some(why) => Err(self.problem(format!("`{name}` {why}"))),
            None => Ok(text),
        }
    }

    /// An argument written as text; numbers and booleans are written out.
    pub fn text(&mut self, name: &str) -> Result<Option<String>, CallError> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        match scalar(&value) {
            Some(text) => Ok(Some(text)),
            None => Err(self.wrong_kind(name, "a string", &value)),
        }
    }

    /// An argument that goes into a header, which takes printable ASCII only.
    pub fn header(&mut self, name: &str) -> Result<Option<String>, CallError> {
        let text = self.text(name)?;
        self.printable(name, text)
    }

    /// A list that goes into one header, with the entries that are sent unasked first.
    pub fn header_list(
        &mut self,
        name: &str,
        always: &[&str],
    ) -> Result<Option<String>, CallError> {
        let joined = self.joined(name, ',', always)?;
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

    /// A number.
    pub fn number(&mut self, name: &str) -> Result<Option<Number>, CallError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number)),
            Some(other) => Err(self.wrong_kind(name, "a number", &other)),
        }
    }

    /// A truth value.
    pub fn boolean(&mut self, name: &str) -> Result<Option<bool>, CallError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(self.wrong_kind(name, "true or false", &other)),
        }
    }

    /// A list of texts.
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
            None => Err(self.wrong_kind(name, "a list of strings", &value)),
        }
    }

    /// A list in one text, with the entries that are sent unasked before the caller's.
    pub fn joined(
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

    /// Any JSON, as text.
    pub fn json(&mut self, name: &str) -> Result<Option<String>, CallError> {
        Ok(self.take(name).map(|value| value.to_string()))
    }

    /// The value of an argument that must be there.
    pub fn required<T>(
        &self,
        name: &str,
        value: Result<Option<T>, CallError>,
    ) -> Result<T, CallError> {
        value?.ok_or_else(|| self.problem(format!("`{name}` is required")))
    }

    /// Null means that the argument was left out: only a body can carry it.
    fn take(&mut self, name: &str) -> Option<Value> {
        self.parameters
            .shift_remove(name)
            .filter(|value| !value.is_null())
    }

    fn wrong_kind(&self, name: &str, wanted: &str, given: &Value) -> CallError {
        self.problem(format!("`{name}` must be {wanted}, not {}", kind(given)))
    }

    fn problem(&self, problem: String) -> CallError {
        ArgumentsError::new(self.operation, problem).into()
    }
}

/// The field that keeps a body from fitting, named as a path such as `search.query`.
fn culprit<T: DeserializeOwned>(body: &Value, error: &serde_json::Error) -> String {
    let mut path = Vec::new();
    narrow::<T>(body, &error.to_string(), &mut path);
    match path.is_empty() {
        true => "the body does not fit".to_owned(),
        false => format!("`{}` does not fit", path.join(".")),
    }
}

/// Follows the complaint inwards: without its cause, the complaint is another one.
fn narrow<T: DeserializeOwned>(body: &Value, complaint: &str, path: &mut Vec<String>) {
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
        let still = serde_json::from_value::<T>(without)
            .err()
            .map(|error| error.to_string());
        if still.as_deref() != Some(complaint) {
            path.push(step);
            return narrow::<T>(body, complaint, path);
        }
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
