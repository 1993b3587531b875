//! Arguments that must be there and are not: asked for by a form, or told with the call that would do.

use serde_json::{Map, Value, json};

use super::super::outcome::put;
use super::super::plan::Plan;
use super::super::{Call, Catalogue, Outcome, Tool};
use crate::operations::client::{ClientHandle, Form, NoReply};
use crate::operations::{self, validation};

/// Calls larger than this are not repeated: neither shown nor made again.
const LARGEST: usize = 64 * 1024;

/// Under which names the arguments of an operation may stand; the first is the right one.
const OF_DISPATCHER: [&str; 3] = ["args", "params", "arguments"];
const OF_HOST: [&str; 3] = ["params", "args", "arguments"];

/// A call that may be made once more.
pub(in super::super) struct Again<'a> {
    tool: &'a Tool,
    arguments: Map<String, Value>,
}

impl<'a> Again<'a> {
    /// Remembers a call that is not too large.
    pub(in super::super) fn of(tool: &'a Tool, arguments: &Map<String, Value>) -> Option<Self> {
        let mut left = LARGEST;
        arguments
            .iter()
            .all(|(name, value)| spend(&mut left, name.len()) && is_small(value, &mut left))
            .then(|| Self {
                tool,
                arguments: arguments.clone(),
            })
    }

    /// The same call with these values in place of what was missing.
    fn filled(self, values: Map<String, Value>) -> Map<String, Value> {
        let mut arguments = self.arguments;
        let Some(holders) = holders(&self.tool.plan) else {
            arguments.extend(values);
            return arguments;
        };
        let holder = holders.iter().find(|name| arguments.contains_key(**name));
        let holder = holder.or(holders.first()).copied().unwrap_or_default();
        let mut inner = inner(arguments.get(holder));
        inner.extend(values);
        arguments.insert(holder.to_owned(), Value::Object(inner));
        arguments
    }

    /// The call to make, with what is missing marked.
    fn retry_with(&self, missing: &[String]) -> Value {
        let marks = missing
            .iter()
            .map(|name| (name.clone(), json!(format!("<your {name}>"))));
        let Some(holders) = holders(&self.tool.plan) else {
            let mut arguments = self.arguments.clone();
            arguments.extend(marks);
            return json!({"tool": self.tool.definition.name, "arguments": arguments});
        };
        let holder = holders
            .iter()
            .find(|name| self.arguments.contains_key(**name));
        let mut inner = match holder {
            Some(holder) => inner(self.arguments.get(*holder)),
            None => {
                let mut beside = self.arguments.clone();
                beside.shift_remove("operation");
                beside
            }
        };
        inner.extend(marks);
        let right = holders.first().copied().unwrap_or_default();
        json!({"operation": self.arguments.get("operation"), right: inner})
    }
}

impl Catalogue {
    /// Asks for what a refused call lacks and makes it again; what cannot be asked for is told together
    /// with the call that would do.
    pub(in super::super) async fn complete(
        &self,
        again: Option<Again<'_>>,
        call: &Call,
        outcome: Outcome,
    ) -> Outcome {
        let missing = missing(&outcome);
        let Some(again) = again.filter(|_| !missing.is_empty()) else {
            return outcome;
        };
        let retry = again.retry_with(&missing);
        match ask(&call.client, again.tool, &outcome, &missing).await {
            Ok(values) => {
                let tool = again.tool;
                let arguments = again.filled(values);
                self.call_once(tool, arguments, call).await
            }
            Err(NoReply::Unable) => with_retry(outcome, &missing, &retry, None),
            Err(why) => with_retry(outcome, &missing, &retry, Some(&why)),
        }
    }
}

/// Asks the user by a form, if all that is missing fits into one.
async fn ask(
    client: &ClientHandle,
    tool: &Tool,
    outcome: &Outcome,
    missing: &[String],
) -> Result<Map<String, Value>, NoReply> {
    let error = outcome.structured.get("error");
    let name = error.and_then(|error| error.get("operation")?.as_str());
    let schema = match name.and_then(operations::find) {
        Some(operation) => operations::input_schema(operation),
        None => tool.schema(),
    };
    let fields: Option<Map<String, Value>> = missing
        .iter()
        .map(|name| {
            let field = validation::form_field(schema, behind(&tool.plan, name))?;
            Some((name.clone(), field.into()))
        })
        .collect();
    let fields = fields.ok_or(NoReply::Unable)?;
    let schema = json!({"type": "object", "properties": fields, "required": missing});
    let form = Form {
        message: format!(
            "`{}` needs {} to go on.",
            name.unwrap_or("The call"),
            missing.join(", ")
        ),
        schema: super::super::outcome::as_object(schema),
    };
    let mut content = client.fill(form).await?;
    // What was not asked for is not taken.
    content.retain(|name, value| missing.contains(name) && !value.is_null());
    match content.len() == missing.len() {
        true => Ok(content),
        false => Err(NoReply::Failed("a form that is not filled in".to_owned())),
    }
}

/// What the operation calls an argument that has a name of its own in a host.
fn behind<'a>(plan: &'a Plan, name: &'a str) -> &'a str {
    let Plan::Host { entries } = plan else {
        return name;
    };
    let mut names = entries.iter().filter_map(|entry| entry.rename.get(name));
    names.next().map_or(name, String::as_str)
}

/// What a refused call lacks, as its outcome tells it.
fn missing(outcome: &Outcome) -> Vec<String> {
    let error = outcome.structured.get("error");
    let told = error.and_then(|error| error.get("missing")?.as_array());
    let names = told.into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

/// The refusal with the call that would do.
fn with_retry(
    mut outcome: Outcome,
    missing: &[String],
    retry: &Value,
    asked: Option<&NoReply>,
) -> Outcome {
    let names = missing.join(", ");
    let instruction = match asked {
        None => format!("Provide {names} and call again; ask the user if you do not know it."),
        Some(why) if why.is_decision() => {
            format!("The user was asked for {names}: {why}. Do not go on without them.")
        }
        Some(why) => {
            format!("The user was asked for {names}, but {why}. Ask them yourself, and call again.")
        }
    };
    let more = format!("\n{instruction}\nretryWith: {retry}");
    outcome.text.push_str(&more);
    if let Some(error) = outcome.structured.get_mut("error") {
        put(error, "instruction", json!(instruction));
        put(error, "retryWith", retry.clone());
    }
    outcome
}

/// The names of the argument that holds those of the operation, for tools that have one.
fn holders(plan: &Plan) -> Option<&'static [&'static str]> {
    match plan {
        Plan::Dispatcher { .. } => Some(&OF_DISPATCHER),
        Plan::Host { .. } => Some(&OF_HOST),
        _ => None,
    }
}

/// The arguments of an operation, also where they came as JSON text.
fn inner(given: Option<&Value>) -> Map<String, Value> {
    match given {
        Some(Value::Object(map)) => map.clone(),
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
        _ => Map::new(),
    }
}

fn is_small(value: &Value, left: &mut usize) -> bool {
    match value {
        Value::String(text) => spend(left, text.len()),
        Value::Array(list) => list.iter().all(|entry| is_small(entry, left)),
        Value::Object(map) => map
            .iter()
            .all(|(name, value)| spend(left, name.len()) && is_small(value, left)),
        _ => spend(left, 8),
    }
}

fn spend(left: &mut usize, bytes: usize) -> bool {
    match left.checked_sub(bytes) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    }
}
