//! Validates the arguments of a call before anything is sent, and corrects harmless mistakes of language models.
//!
//! Validation has three steps: correct and report harmless mistakes, check the result against the JSON Schema, and
//! check the constraints that a schema cannot express. All problems are reported at once, with an example of a valid
//! call.

mod coerce;
mod constraints;
mod cron;
mod domain;
mod duration;
mod example;
mod explain;
mod input_schema;
mod messages;
mod missing;
mod names;
mod normalize;
mod open_values;
mod schema;
mod shape;
mod synonyms;
mod time_zones;

#[cfg(test)]
mod tests;

use std::fmt;

use exa_mcp_model::{ArgumentCheck, ExampleCall, OperationBehavior};
use jsonschema::Validator;
use serde_json::{Map, Value};

pub use example::example;
pub use input_schema::InputSchema;
pub use missing::form_field;
pub use open_values::values_at;
pub use shape::{ArgumentShape, shape_at};
pub(crate) use synonyms::of_values as value_synonyms;

pub(super) use cron::runs as cron_runs;
pub(super) use duration::minutes;

use coerce::{Coercer, CoercionScope};
use messages::ArgumentPath;
use open_values::OpenValues;
use schema::Node;

/// The most problems or corrections that are listed; further ones are only counted.
const MAX_LISTED: usize = 25;

/// What is known about the arguments of an operation or a tool: their schema, aliases and further checks.
#[derive(Debug, Clone, Copy)]
pub struct ArgumentSpec<'a> {
    input_schema: &'a InputSchema,
    aliases: &'a [(&'a str, &'a str)],
    extra_names: &'a [&'a str],
    hints: &'a [String],
    checks: &'a [ArgumentCheck],
    example: &'a ExampleCall,
    open_values: OpenValues<'a>,
}

impl<'a> ArgumentSpec<'a> {
    /// Creates a specification from a schema.
    pub fn new(input_schema: &'a InputSchema) -> Self {
        static PLAIN: ExampleCall = ExampleCall::EMPTY;
        Self {
            input_schema,
            aliases: &[],
            extra_names: &[],
            hints: &[],
            checks: &[],
            example: &PLAIN,
            open_values: OpenValues::None,
        }
    }

    /// Accepts values beyond the enums if they are plausible, except in these arguments.
    pub fn with_open_values(self, except: &'a [&'a str]) -> Self {
        Self {
            open_values: OpenValues::Except(except),
            ..self
        }
    }

    /// Adds aliases: pairs of an alias and the argument that it stands for.
    pub fn with_aliases(self, aliases: &'a [(&'a str, &'a str)]) -> Self {
        Self { aliases, ..self }
    }

    /// Adds names that are not in the schema, but are handled elsewhere.
    pub fn with_extra_names(self, extra_names: &'a [&'a str]) -> Self {
        Self {
            extra_names,
            ..self
        }
    }

    /// Sets the example.
    pub fn with_example(self, example: &'a ExampleCall) -> Self {
        Self { example, ..self }
    }

    /// Adds the hints, checks and example of an operation.
    pub fn with_behavior(self, behavior: &'a OperationBehavior) -> Self {
        Self {
            hints: &behavior.hints,
            checks: &behavior.checks,
            example: &behavior.example,
            ..self
        }
    }
}

/// Valid arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidatedArguments {
    /// The arguments, after corrections.
    pub arguments: Map<String, Value>,
    /// One short sentence per correction or remark.
    pub corrections: Vec<String>,
}

/// A problem with an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentProblem {
    /// The path of the argument, such as `search.criteria[0].description`; `arguments` for all of them.
    pub path: String,
    /// What is wrong, what was given and what is allowed.
    pub message: String,
}

impl fmt::Display for ArgumentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The error for invalid arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidationError {
    /// All problems.
    pub problems: Vec<ArgumentProblem>,
    /// Minimal valid arguments.
    pub example: Box<Value>,
    /// Hints about common mistakes with this operation.
    pub hints: Vec<String>,
    /// The missing required arguments, if that is the only problem.
    pub missing: Vec<String>,
}

impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<&str> = self.problems.iter().map(|it| it.message.as_str()).collect();
        f.write_str(&texts.join("; "))
    }
}

impl std::error::Error for ValidationError {}

/// Corrects and validates the arguments of a call, or returns all problems with them.
///
/// Arguments that match the schema are returned unchanged, except for misspelled names that an open schema would
/// accept, and numbers such as 5.0 for 5.
pub fn validate(
    spec: &ArgumentSpec<'_>,
    arguments: Value,
) -> Result<ValidatedArguments, ValidationError> {
    let mut notes = Vec::new();
    let mut map = match normalize::unwrap(spec, arguments, &mut notes) {
        Ok(map) => map,
        Err(problem) => return Err(invalid(spec, vec![problem], Vec::new())),
    };
    let mut problems = normalize::aliases(spec, &mut map, &mut notes);
    let validator = match spec.input_schema.validator() {
        Ok(validator) => validator,
        // An invalid schema is no reason to reject a call: the API will validate it.
        Err(error) => {
            let error = messages::short(error);
            notes.push(format!("the arguments were not checked: {error}"));
            return Ok(validated_arguments(map, notes));
        }
    };
    let (mut map, violations) = coerce_arguments(spec, validator, map, &mut notes);
    let domain_problems = domain::apply(spec.checks, &mut map, &mut notes);
    problems.extend(violations);
    for problem in domain_problems {
        // One problem per path is enough.
        if problems.iter().all(|known| known.path != problem.path) {
            problems.push(problem);
        }
    }
    if problems.is_empty() {
        Ok(validated_arguments(map, notes))
    } else {
        let missing = missing::find(spec.input_schema, &map, &problems);
        Err(invalid(spec, problems, missing))
    }
}

/// Corrects `map` as far as needed, and returns it with the remaining violations of the schema.
fn coerce_arguments(
    spec: &ArgumentSpec<'_>,
    validator: &Validator,
    map: Map<String, Value>,
    notes: &mut Vec<String>,
) -> (Map<String, Value>, Vec<ArgumentProblem>) {
    let schema: &Value = spec.input_schema;
    let given = Value::Object(map);
    let coerce = |scope| {
        let mut value = given.clone();
        let mut coercer = Coercer::new(scope, spec.extra_names);
        coercer.value(&Node::root(schema), &mut value, &ArgumentPath::default());
        (value, coercer)
    };
    let (mut value, mut coercer) = coerce(CoercionScope::Names);
    let mut problems = Vec::new();
    if !validator.is_valid(&value) {
        (value, coercer) = coerce(CoercionScope::Values);
        let found = explain::problems(schema, validator, &value, spec.open_values);
        problems = found.problems;
        coercer.notes.extend(found.notes);
    }
    let misspelled = coercer.problems.into_iter();
    let misspelled: Vec<ArgumentProblem> = misspelled
        .filter(|problem| !is_reported(problem, &problems))
        .collect();
    problems.extend(misspelled);
    notes.extend(coercer.notes);
    match value {
        Value::Object(map) => (map, problems),
        // Coercion never turns an object into something else.
        _ => (Map::new(), problems),
    }
}

/// Returns whether a misspelled name is already reported with the required argument that it stands for.
fn is_reported(misspelled: &ArgumentProblem, problems: &[ArgumentProblem]) -> bool {
    let (parent, name) = split_path(&misspelled.path);
    let given = format!("`{name}` was given");
    problems
        .iter()
        .any(|problem| problem.message.contains(&given) && split_path(&problem.path).0 == parent)
}

/// Splits a path into its parent and its last name.
fn split_path(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}

fn validated_arguments(arguments: Map<String, Value>, notes: Vec<String>) -> ValidatedArguments {
    let remainder = |number| format!("and {number} more such notes");
    ValidatedArguments {
        arguments,
        corrections: truncate(notes, remainder),
    }
}

fn invalid(
    spec: &ArgumentSpec<'_>,
    problems: Vec<ArgumentProblem>,
    missing: Vec<String>,
) -> ValidationError {
    let remainder = |number| ArgumentProblem {
        path: ArgumentPath::default().to_string(),
        message: format!("and {number} more such problems"),
    };
    ValidationError {
        problems: truncate(problems, remainder),
        example: Box::new(example(spec.example, spec.input_schema)),
        hints: spec.hints.to_vec(),
        missing,
    }
}

/// Shortens a list; the last entry says how many were left out.
fn truncate<T>(mut list: Vec<T>, remainder: impl Fn(usize) -> T) -> Vec<T> {
    let more = list.len().saturating_sub(MAX_LISTED);
    if more > 0 {
        list.truncate(MAX_LISTED);
        list.push(remainder(more));
    }
    list
}
