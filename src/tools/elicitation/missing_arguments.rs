//! Missing arguments: requested with a form, or reported with a call to retry.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::call::{Action, ToolCall};
use super::super::discovery::is_same_name;
use super::super::error::{InvalidCall, RetryHint, ToolError};
use super::super::outcome::{ToolResult, as_object};
use super::super::registry::{Tool, ToolRegistry};
use crate::operations::interaction::{ClientHandle, FormRequest, InputError};
use crate::operations::{self, validation};
use exa_mcp_model::ToolPlan;

/// Larger calls are not retried, and no retry is suggested.
const MAX_BYTES: usize = 64 * 1024;

/// Names under which the arguments of an operation may be given; the first is the documented one.
const DISPATCHER_KEYS: [&str; 3] = ["args", "params", "arguments"];
const TOOLHOST_KEYS: [&str; 3] = ["params", "args", "arguments"];

/// A call that may be retried.
struct RetryContext {
    tool: Arc<Tool>,
    arguments: Map<String, Value>,
}

impl RetryContext {
    /// Stores a call, unless it is too large.
    fn new(tool: Arc<Tool>, arguments: Map<String, Value>) -> Option<Self> {
        let mut left = MAX_BYTES;
        let is_small = arguments
            .iter()
            .all(|(name, value)| take_bytes(&mut left, name.len()) && is_small(value, &mut left));
        is_small.then_some(Self { tool, arguments })
    }

    /// Returns the arguments with the missing values added.
    fn with_values(self, values: Map<String, Value>) -> Map<String, Value> {
        let mut arguments = self.arguments;
        let Some(argument_keys) = argument_keys(&self.tool.plan) else {
            arguments.extend(values);
            return arguments;
        };
        let key = argument_keys
            .iter()
            .find(|name| arguments.contains_key(**name));
        let key = key.or(argument_keys.first()).copied().unwrap_or_default();
        let mut inner = inner(arguments.get(key));
        inner.extend(values);
        arguments.insert(key.to_owned(), Value::Object(inner));
        arguments
    }

    /// Returns the call to make, with placeholders or examples for missing values. It is valid: arguments that are not
    /// are left out.
    fn retry_with(&self, registry: &ToolRegistry, invalid: &InvalidCall) -> Value {
        let error = &invalid.error;
        let placeholders = |name: &String| {
            let mark = json!(format!("<your {name}>"));
            (name.clone(), mark)
        };
        let example = |name: &String| {
            let value = error.example.get(name).cloned();
            (name.clone(), value.unwrap_or_else(|| placeholders(name).1))
        };
        let placeholders: Map<String, Value> = error.missing.iter().map(placeholders).collect();
        let examples: Map<String, Value> = error.missing.iter().map(example).collect();
        let known = self.known(&self.given(), &invalid.operation);
        let tries = [
            self.call(known.clone(), &placeholders),
            self.call(known, &examples),
            self.call(Map::new(), &placeholders),
            self.call(as_object(Value::clone(&error.example)), &Map::new()),
        ];
        let works = |call: &&Map<String, Value>| {
            let parsed = registry.parse(self.tool.name(), Map::clone(call));
            parsed.action.is_ok()
        };
        let call = tries.iter().find(works).cloned();
        let call = call.unwrap_or_else(|| self.call(Map::new(), &examples));
        match argument_keys(&self.tool.plan) {
            Some(_) => Value::Object(call),
            None => json!({"tool": self.tool.name(), "arguments": call}),
        }
    }

    /// Returns the given arguments of the operation.
    fn given(&self) -> Map<String, Value> {
        let Some(argument_keys) = argument_keys(&self.tool.plan) else {
            return self.arguments.clone();
        };
        let key = argument_keys
            .iter()
            .find(|name| self.arguments.contains_key(**name));
        match key {
            Some(key) => inner(self.arguments.get(*key)),
            None => {
                let mut beside = self.arguments.clone();
                beside.shift_remove("operation");
                beside
            }
        }
    }

    /// Returns the arguments without those that nothing knows.
    fn known(&self, given: &Map<String, Value>, operation: &str) -> Map<String, Value> {
        let operation = operations::find(operation).or_else(|| match &self.tool.plan {
            ToolPlan::Named(plan) => operations::find(&plan.operation),
            _ => None,
        });
        let is_known = |name: &str| {
            let schema = match operation {
                Some(operation) => operations::input_schema(operation),
                None => self.tool.schema(),
            };
            let names = schema.get("properties").and_then(Value::as_object);
            let own = names.into_iter().flat_map(|names| names.keys());
            let in_tool = self
                .tool
                .schema()
                .get("properties")
                .and_then(Value::as_object);
            let in_tool = in_tool.into_iter().flat_map(|names| names.keys());
            let renamed = renamed_parameters(&self.tool.plan);
            let arguments = operation
                .into_iter()
                .flat_map(|operation| operation.arguments);
            let aliases = arguments.flat_map(|argument| argument.aliases.iter().copied());
            own.chain(in_tool)
                .map(String::as_str)
                .chain(renamed)
                .chain(aliases)
                .any(|known| is_same_name(known, name))
        };
        let known = given.iter().filter(|(name, _)| is_known(name));
        known
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// Returns a call with these arguments in the form of the tool.
    fn call(&self, mut inner: Map<String, Value>, more: &Map<String, Value>) -> Map<String, Value> {
        inner.extend(more.clone());
        let Some(argument_keys) = argument_keys(&self.tool.plan) else {
            return inner;
        };
        let operation = self.arguments.get("operation").cloned();
        let key = argument_keys.first().copied().unwrap_or_default();
        Map::from_iter([
            ("operation".to_owned(), operation.unwrap_or_default()),
            (key.to_owned(), Value::Object(inner)),
        ])
    }
}

/// Returns the names that a toolhost has for arguments of operations.
fn renamed_parameters(plan: &ToolPlan) -> impl Iterator<Item = &str> {
    let entries = match plan {
        ToolPlan::Toolhost { entries } => entries.as_slice(),
        _ => &[],
    };
    let names = entries
        .iter()
        .flat_map(|entry| entry.rename.keys().chain(&entry.spread));
    names.map(String::as_str)
}

/// Requests the missing arguments of a call and parses it again. Without a form, the error contains the call to make.
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
    let no_reply = match ask(client, &retry.tool, &invalid).await {
        Ok(values) => return registry.parse(&name, retry.with_values(values)).action,
        Err(InputError::Unable) => None,
        Err(why) => Some(why),
    };
    invalid.retry = Some(RetryHint {
        instruction: instruction(&invalid.error.missing, no_reply.as_ref()),
        retry_with: retry.retry_with(registry, &invalid),
    });
    Err(ToolError::Validation(invalid).into())
}

/// Asks the user with a form, if all missing arguments fit into one.
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
            let field = validation::form_field(schema, operation_name(&tool.plan, name))?;
            Some((name.clone(), field.into()))
        })
        .collect();
    let fields = fields.ok_or(InputError::Unable)?;
    let schema = json!({"type": "object", "properties": fields, "required": missing});
    // Stored tasks identify a form by its text, so a change of the text makes them ask again.
    let form = FormRequest {
        message: format!(
            "`{}` needs {} to go on.",
            invalid.operation,
            missing.join(", ")
        ),
        schema: as_object(schema),
    };
    let mut content = client.fill_form(form).await?;
    // Fields that were not requested are ignored.
    content.retain(|name, value| missing.contains(name) && !value.is_null());
    if content.len() == missing.len() {
        Ok(content)
    } else {
        Err(InputError::Failed(
            "a form that is not filled in".to_owned(),
        ))
    }
}

/// Returns the operation's name of an argument that a toolhost renames.
fn operation_name<'a>(plan: &'a ToolPlan, name: &'a str) -> &'a str {
    let ToolPlan::Toolhost { entries } = plan else {
        return name;
    };
    let mut names = entries.iter().filter_map(|entry| entry.rename.get(name));
    names.next().map_or(name, String::as_str)
}

/// Returns what to do about arguments that the user did not provide.
fn instruction(missing: &[String], no_reply: Option<&InputError>) -> String {
    let names = missing.join(", ");
    match no_reply {
        None => format!("Provide {names} and call again; ask the user if you do not know it."),
        Some(why) if why.is_decision() => {
            format!("The user was asked for {names}: {why}. Do not continue without them.")
        }
        Some(why) => {
            format!("The user was asked for {names}, but {why}. Ask them yourself, and call again.")
        }
    }
}

/// Returns the names under which a tool accepts the arguments of an operation; `None` for tools without nesting.
fn argument_keys(plan: &ToolPlan) -> Option<&'static [&'static str]> {
    match plan {
        ToolPlan::Dispatcher { .. } => Some(&DISPATCHER_KEYS),
        ToolPlan::Toolhost { .. } => Some(&TOOLHOST_KEYS),
        _ => None,
    }
}

/// Returns the arguments of an operation, parsed if they are JSON text.
fn inner(given: Option<&Value>) -> Map<String, Value> {
    match given {
        Some(Value::Object(map)) => map.clone(),
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
        _ => Map::new(),
    }
}

fn is_small(value: &Value, left: &mut usize) -> bool {
    match value {
        Value::String(text) => take_bytes(left, text.len()),
        Value::Array(list) => list.iter().all(|entry| is_small(entry, left)),
        Value::Object(map) => map
            .iter()
            .all(|(name, value)| take_bytes(left, name.len()) && is_small(value, left)),
        _ => take_bytes(left, 8),
    }
}

fn take_bytes(left: &mut usize, bytes: usize) -> bool {
    match left.checked_sub(bytes) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    }
}
