//! Arguments that a language model got slightly wrong are put right or explained, before anything
//! is sent.
//!
//! Three things happen to a call: harmless slips are corrected and reported, what is left is held
//! against the schema, and last come the few rules that no schema can say. Whatever is wrong is
//! told at once, with a call that would have been right.

mod coerce;
mod cron;
mod domain;
mod duration;
mod example;
mod explain;
mod messages;
mod missing;
mod names;
mod normalize;
mod rules;
mod schema;
mod validate;
mod zones;

#[cfg(test)]
mod tests;

use std::fmt;

use exa_mcp_model::{ArgumentCheck, ExampleCall, OperationBehavior};
use jsonschema::Validator;
use serde_json::{Map, Value};

pub use example::example;
pub use missing::form_field;
pub use validate::InputSchema;

pub(super) use cron::runs as cron_runs;
pub(super) use duration::minutes;

use coerce::{Coercer, Reach};
use messages::Place;
use schema::Node;

/// More sentences than this help nobody; the rest are counted.
const MAX_SENTENCES: usize = 25;

/// What is called: the form of its arguments, and what is known about them.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    input_schema: &'a InputSchema,
    aliases: &'a [(&'a str, &'a str)],
    beyond: &'a [&'a str],
    hints: &'a [String],
    checks: &'a [ArgumentCheck],
    example: &'a ExampleCall,
}

impl<'a> Subject<'a> {
    /// Something whose arguments have this form.
    pub fn new(input_schema: &'a InputSchema) -> Self {
        static PLAIN: ExampleCall = ExampleCall::EMPTY;
        Self {
            input_schema,
            aliases: &[],
            beyond: &[],
            hints: &[],
            checks: &[],
            example: &PLAIN,
        }
    }

    /// Adds other names of arguments: the alias, and the argument it means.
    pub fn with_aliases(self, aliases: &'a [(&'a str, &'a str)]) -> Self {
        Self { aliases, ..self }
    }

    /// Adds names that the schema does not have, but whoever gets the arguments next.
    pub fn with_beyond(self, beyond: &'a [&'a str]) -> Self {
        Self { beyond, ..self }
    }

    /// Adds what an example shows.
    pub fn with_example(self, example: &'a ExampleCall) -> Self {
        Self { example, ..self }
    }

    /// Adds what is known about the arguments of an operation.
    pub fn with_behavior(self, behavior: &'a OperationBehavior) -> Self {
        Self {
            hints: &behavior.hints,
            checks: &behavior.checks,
            example: &behavior.example,
            ..self
        }
    }
}

/// Arguments that fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The arguments, as the schema wants them.
    pub arguments: Map<String, Value>,
    /// One short sentence for everything that was changed or looks odd.
    pub corrections: Vec<String>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where, for example `search.criteria[0].description`; `arguments` for all of them.
    pub place: String,
    /// What is wrong, what was given and what is allowed.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The error for arguments that do not fit: what is wrong, and what to do about it.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidationError {
    /// Everything that is wrong.
    pub problems: Vec<Problem>,
    /// A minimal call that would be right.
    pub example: Box<Value>,
    /// What often goes wrong with this operation.
    pub hints: Vec<String>,
    /// The arguments that must be there, if all that is wrong is that they are not.
    pub missing: Vec<String>,
}

impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<&str> = self.problems.iter().map(|it| it.text.as_str()).collect();
        f.write_str(&texts.join("; "))
    }
}

impl std::error::Error for ValidationError {}

/// Puts the arguments of a call right, or says everything that is wrong with them.
///
/// Arguments that fit the schema come back as they were; only names that an open schema would let
/// through although another spelling of them is known, and numbers like 5.0 for 5, are changed.
pub fn check(subject: &Subject<'_>, arguments: Value) -> Result<Checked, ValidationError> {
    let mut notes = Vec::new();
    let mut map = match normalize::open(subject, arguments, &mut notes) {
        Ok(map) => map,
        Err(problem) => return Err(invalid(subject, vec![problem], Vec::new())),
    };
    let mut problems = normalize::aliases(subject, &mut map, &mut notes);
    let validator = match subject.input_schema.validator() {
        Ok(validator) => validator,
        // A broken schema is no reason to refuse a call: the API will judge it.
        Err(error) => {
            let error = messages::short(error);
            notes.push(format!("the arguments were not checked: {error}"));
            return Ok(checked(map, notes));
        }
    };
    let (mut map, unfit) = fitted(subject, validator, map, &mut notes);
    let special = domain::apply(subject.checks, &mut map, &mut notes);
    problems.extend(unfit);
    for problem in special {
        // The schema has said what is wrong there; twice is no help.
        if problems.iter().all(|known| known.place != problem.place) {
            problems.push(problem);
        }
    }
    if problems.is_empty() {
        Ok(checked(map, notes))
    } else {
        let missing = missing::find(subject.input_schema, &map, &problems);
        Err(invalid(subject, problems, missing))
    }
}

/// Corrects `map` as far as needed; what still does not fit the schema comes with it.
fn fitted(
    subject: &Subject<'_>,
    validator: &Validator,
    map: Map<String, Value>,
    notes: &mut Vec<String>,
) -> (Map<String, Value>, Vec<Problem>) {
    let schema: &Value = subject.input_schema;
    let given = Value::Object(map);
    let coerce = |reach| {
        let mut value = given.clone();
        let mut coercer = Coercer::new(reach, subject.beyond);
        coercer.value(&Node::top(schema), &mut value, &Place::default());
        (value, coercer)
    };
    let (mut value, mut coercer) = coerce(Reach::Form);
    let mut problems = Vec::new();
    if !validator.is_valid(&value) {
        (value, coercer) = coerce(Reach::Values);
        problems = explain::problems(schema, validator, &value);
    }
    let slips = coercer.problems.into_iter();
    let slips: Vec<Problem> = slips.filter(|slip| !is_told(slip, &problems)).collect();
    problems.extend(slips);
    notes.extend(coercer.notes);
    match value {
        Value::Object(map) => (map, problems),
        // The walk keeps an object an object.
        _ => (Map::new(), problems),
    }
}

/// Whether a misspelt name was told with the required argument that it was meant to be.
fn is_told(slip: &Problem, problems: &[Problem]) -> bool {
    let (above, name) = apart(&slip.place);
    let given = format!("`{name}` was given");
    let told =
        |problem: &Problem| problem.text.contains(&given) && apart(&problem.place).0 == above;
    problems.iter().any(told)
}

/// A place as what it is in and its own name.
fn apart(place: &str) -> (&str, &str) {
    place.rsplit_once('.').unwrap_or(("", place))
}

fn checked(arguments: Map<String, Value>, notes: Vec<String>) -> Checked {
    let rest = |number| format!("and {number} more such notes");
    Checked {
        arguments,
        corrections: few(notes, rest),
    }
}

fn invalid(subject: &Subject<'_>, problems: Vec<Problem>, missing: Vec<String>) -> ValidationError {
    let rest = |number| Problem {
        place: Place::default().to_string(),
        text: format!("and {number} more such problems"),
    };
    ValidationError {
        problems: few(problems, rest),
        example: Box::new(example(subject.example, subject.input_schema)),
        hints: subject.hints.to_vec(),
        missing,
    }
}

/// A list of a length that can be read.
fn few<T>(mut list: Vec<T>, rest: impl Fn(usize) -> T) -> Vec<T> {
    let more = list.len().saturating_sub(MAX_SENTENCES);
    if more > 0 {
        list.truncate(MAX_SENTENCES);
        list.push(rest(more));
    }
    list
}
