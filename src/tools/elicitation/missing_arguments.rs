//! Arguments that must be there and are not: asked for by a form, or told with the call that would do.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::call::{Action, ToolCall};
use super::super::error::{InvalidCall, RetryHint, ToolError};
use super::super::outcome::{ToolResult, as_object};
use super::super::plan::Plan;
use super::super::registry::{Tool, ToolRegistry};
use crate::operations::client::{ClientHandle, FormRequest, InputError};
use crate::operations::{self, validation};

/// Calls larger than this are not repeated: neither shown nor made again.
const LARGEST: usize = 64 * 1024;

/// Under which names the arguments of an operation may stand; the first is the right one.
const OF_DISPATCHER: [&str; 3] = ["args", "params", "arguments"];
const OF_HOST: [&str; 3] = ["params", "args", "arguments"];

/// A call that may be made once more.
struct RetryContext {
    tool: Arc<Tool>,
    arguments: Map<String, Value>,
}

impl RetryContext {
    /// Remembers a call that is not too large.
    fn new(tool: Arc<Tool>, arguments: Map<String, Value>) -> Option<Self> {
        let mut left = LARGEST;
        let is_small = arguments
            .iter()
            .all(|(name, value)| spend(&mut left, name.len()) && is_small(value, &mut left));
        is_small.then_some(Self { tool, arguments })
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
            return json!({"tool": self.tool.name(), "arguments": arguments});
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

/// Asks for what an invalid call lacks and parses it again; what cannot be asked for is told together
/// with the call that would do.
pub(in super::super) async fn complete(
    registry: &ToolRegistry,
    call: ToolCall,
    client: &ClientHandle,
) -> ToolResult<Action> {
    let ToolCall {
        name,
        arguments,
        tool,
        action,
        ..
    } = call;
    let error = match action {
        Ok(action) => return Ok(action),
        Err(error) => *error,
    };
    let mut invalid = match error {
        ToolError::Validation(invalid) if !invalid.error.missing.is_empty() => invalid,
        error => return Err(error.into()),
    };
    let Some(retry) = tool.and_then(|tool| RetryContext::new(tool, arguments)) else {
        return Err(ToolError::Validation(invalid).into());
    };
    let asked = match ask(client, &retry.tool, &invalid).await {
        Ok(values) => return registry.parse(&name, retry.filled(values)).action,
        Err(InputError::Unable) => None,
        Err(why) => Some(why),
    };
    let missing = &invalid.error.missing;
    invalid.retry = Some(RetryHint {
        instruction: instruction(missing, asked.as_ref()),
        retry_with: retry.retry_with(missing),
    });
    Err(ToolError::Validation(invalid).into())
}

/// Asks the user by a form, if all that is missing fits into one.
async fn ask(
    client: &ClientHandle,
    tool: &Tool,
    invalid: &InvalidCall,
) -> Result<Map<String, Value>, InputError> {
    let missing = &invalid.error.missing;
    let schema = match operations::find(&invalid.operation) {
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
    let fields = fields.ok_or(InputError::Unable)?;
    let schema = json!({"type": "object", "properties": fields, "required": missing});
    let form = FormRequest {
        message: format!(
            "`{}` needs {} to go on.",
            invalid.operation,
            missing.join(", ")
        ),
        schema: as_object(schema),
    };
    let mut content = client.fill_form(form).await?;
    // What was not asked for is not taken.
    content.retain(|name, value| missing.contains(name) && !value.is_null());
    if content.len() == missing.len() {
        Ok(content)
    } else {
        Err(InputError::Failed(
            "a form that is not filled in".to_owned(),
        ))
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

/// What to do about missing arguments that the user did not give.
fn instruction(missing: &[String], asked: Option<&InputError>) -> String {
    let names = missing.join(", ");
    match asked {
        None => format!("Provide {names} and call again; ask the user if you do not know it."),
        Some(why) if why.is_decision() => {
            format!("The user was asked for {names}: {why}. Do not go on without them.")
        }
        Some(why) => {
            format!("The user was asked for {names}, but {why}. Ask them yourself, and call again.")
        }
    }
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
