//! `exa-mcp-server operations`.

use serde_json::{Value, json};

use super::call::find_operation;
use super::output::shell_word;
use super::{Failure, command_name};
use crate::operations::price::cost_in_words;
use crate::operations::validation::shape_at;
use crate::operations::{all, input_schema};
use exa_mcp_model::Operation;

/// Returns the operations as a table.
pub(super) fn table() -> String {
    let width = all()
        .iter()
        .map(|operation| operation.name.len())
        .max()
        .unwrap_or_default();
    let lines: Vec<String> = all()
        .iter()
        .map(|operation| {
            let note = if operation.deprecated {
                " (deprecated)"
            } else {
                ""
            };
            format!("{:width$}  {}{note}", operation.name, operation.summary)
        })
        .collect();
    lines.join("\n")
}

/// Returns one operation in words, or as JSON.
pub(super) fn single(name: &str, as_json: bool) -> Result<String, Failure> {
    let operation = find_operation(name)?;
    if as_json {
        return Ok(serde_json::to_string_pretty(&entry(operation)).unwrap_or_default());
    }
    let deprecated = if operation.deprecated {
        "\nDeprecated."
    } else {
        ""
    };
    let example = shell_word(&crate::operations::example(operation).to_string());
    let program = command_name();
    Ok(format!(
        "{}\n\n{}{deprecated}\n\nRequest: {} {}\nCost: {}\n{}\nExample:\n  {program} call {} {example}\n\n\
         Arguments as JSON Schema: {program} operations {} --json",
        operation.signature,
        operation.description,
        operation.method,
        operation.path,
        cost_in_words(operation),
        arguments(operation),
        operation.name,
        operation.name,
    ))
}

/// Returns the arguments with their types, values and defaults.
fn arguments(operation: &'static Operation) -> String {
    let mut text = String::new();
    let schema: &Value = input_schema(operation);
    for argument in operation.arguments {
        let shape = shape_at(schema, &[argument.name]).unwrap_or_default();
        let mut facts = vec![if shape.types.is_empty() {
            "any".to_owned()
        } else {
            shape.types.join(" or ")
        }];
        if argument.required {
            facts.push("required".to_owned());
        }
        if let Some(default) = &shape.default {
            facts.push(format!("default {default}"));
        }
        text += &format!("\n  {} ({})", argument.name, facts.join(", "));
        if !shape.values.is_empty() {
            let values = shape.values.iter();
            let values =
                values.map(|value| value.as_str().map_or(value.to_string(), str::to_owned));
            text += &format!("\n      values: {}", values.collect::<Vec<_>>().join(", "));
        }
        if let Some(description) = &shape.description {
            text += &format!("\n      {description}");
        }
    }
    if text.is_empty() {
        return "\nIt has no arguments.\n".to_owned();
    }
    format!("\nArguments:{text}\n")
}

/// Returns the operations as JSON.
pub(super) fn json() -> String {
    let operations: Vec<Value> = all().iter().map(entry).collect();
    serde_json::to_string_pretty(&operations).unwrap_or_default()
}

fn entry(operation: &Operation) -> Value {
    let schema = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
    let mut entry = json!({
        "name": operation.name,
        "domain": operation.domain,
        "api": operation.api.name,
        "method": operation.method,
        "path": operation.path,
        "summary": operation.summary,
        "description": operation.description,
        "deprecated": operation.deprecated,
        "cost": cost_in_words(operation),
        "timeoutSeconds": operation.timeout_seconds,
        "inputSchema": schema(operation.input_schema),
        "outputSchema": schema(operation.output_schema),
    });
    if let Some(long_running) = &operation.behavior.long_running {
        let long_running = json!({
            "get": long_running.get,
            "cancel": long_running.cancel,
            "arguments": long_running.arguments,
            "status": long_running.status,
            "final": long_running.final_states,
        });
        if let Value::Object(entry) = &mut entry {
            entry.insert("longRunning".to_owned(), long_running);
        }
    }
    entry
}
