//! The lines of a batch.

use serde_json::{Map, Value, json};

use super::super::Failure;
use super::super::call::{find_operation, with_defaults};
use crate::config::Settings;
use crate::operations::validation::ValidatedArguments;
use crate::operations::{OperationExecutor, all};
use exa_mcp_generated::tools::COMMANDS;
use exa_mcp_model::Operation;

/// The names under which a line may have its arguments.
const ARGUMENTS: [&str; 3] = ["arguments", "args", "body"];

/// One line of the file.
pub(super) struct BatchLine {
    /// Its number, counted from 0 without blank lines.
    pub(super) number: usize,
    /// Its number in the file, counted from 1.
    file_line: usize,
    /// Its text, by which the journal recognizes it.
    pub(super) text: String,
    /// The id that the caller gave it.
    pub(super) id: Option<Value>,
    /// Its call, or why it cannot be made.
    pub(super) call: Result<BatchCall, String>,
}

/// The call of a line.
pub(super) struct BatchCall {
    /// The operation.
    pub(super) operation: &'static Operation,
    /// Its validated arguments.
    pub(super) arguments: ValidatedArguments,
}

impl BatchLine {
    /// Returns the result of a call that succeeded.
    pub(super) fn success(&self, call: &BatchCall, response: Value) -> Value {
        let mut result = json!({
            "line": self.file_line,
            "id": self.id,
            "operation": call.operation.name,
            "ok": true,
            "response": response,
        });
        let corrections = &call.arguments.corrections;
        if let (Value::Object(result), false) = (&mut result, corrections.is_empty()) {
            result.insert("corrections".to_owned(), json!(corrections));
        }
        result
    }

    /// Returns the result of a call that failed or was not made.
    pub(super) fn failure(&self, problem: &str, code: u8) -> Value {
        let operation = self.call.as_ref().ok().map(|call| call.operation.name);
        json!({
            "line": self.file_line,
            "id": self.id,
            "operation": operation,
            "ok": false,
            "error": {"message": problem, "exitCode": code},
        })
    }
}

/// Parses all lines. A line that cannot be called is not an error of the whole.
pub(super) fn parse(
    settings: &Settings,
    text: &str,
    operation: Option<&str>,
) -> Result<Vec<BatchLine>, Failure> {
    let default = operation.or_else(|| COMMANDS.batch.as_ref()?.operation.as_deref());
    let default = default.map(find_operation).transpose()?;
    let text = text.trim_start_matches('\u{feff}');
    let lines = text.lines().zip(1..);
    let lines = lines.filter(|(line, _)| !line.trim().is_empty());
    let lines = lines.enumerate().map(|(number, (line, file_line))| {
        let parsed = serde_json::from_str::<Value>(line);
        let parsed = parsed.map_err(|error| format!("the line is not JSON: {error}"));
        let id = parsed.as_ref().ok().and_then(|value| {
            let id = value.get("id").or_else(|| value.get("customId"))?;
            (id.is_string() || id.is_number()).then(|| id.clone())
        });
        BatchLine {
            number,
            file_line,
            text: line.trim().to_owned(),
            id,
            call: parsed.and_then(|value| call(settings, value, default)),
        }
    });
    Ok(lines.collect())
}

fn call(
    settings: &Settings,
    value: Value,
    default: Option<&'static Operation>,
) -> Result<BatchCall, String> {
    let Value::Object(mut fields) = value else {
        return Err("the line must be a JSON object".to_owned());
    };
    let named = named_operation(&fields)?;
    let (operation, arguments) = match named {
        Some(operation) => {
            let arguments = ARGUMENTS.iter().find_map(|name| fields.shift_remove(*name));
            (operation, arguments.unwrap_or(Value::Null))
        }
        None => {
            let operation = default.ok_or("the line names no operation")?;
            // Few operations have an argument `id`.
            if !operation.arguments.iter().any(|it| it.name == "id") {
                fields.shift_remove("id");
            }
            (operation, Value::Object(fields))
        }
    };
    let arguments = with_defaults(settings, operation, arguments);
    let checked = OperationExecutor::validate(operation, arguments);
    let arguments = checked.map_err(|error| super::message(&error))?;
    Ok(BatchCall {
        operation,
        arguments,
    })
}

/// Returns the operation that a line names, or whose path it has.
fn named_operation(fields: &Map<String, Value>) -> Result<Option<&'static Operation>, String> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    if let Some(name) = text("operation") {
        return find_operation(name).map(Some).map_err(|failure| {
            let text = failure.text;
            text.strip_prefix("error: ").unwrap_or(&text).to_owned()
        });
    }
    let (Some(method), Some(url), true) =
        (text("method"), text("url"), fields.contains_key("body"))
    else {
        return Ok(None);
    };
    let mut operations = all().iter();
    let found = operations.find(|it| it.method.eq_ignore_ascii_case(method) && it.path == url);
    found
        .map(Some)
        .ok_or_else(|| format!("there is no operation {method} {url}"))
}
