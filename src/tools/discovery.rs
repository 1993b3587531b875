//! Discovery of operations: names, lists, and hints for wrong names. [`super::describe`] describes single operations.

use serde_json::{Map, Value, json};

use super::error::ToolError;
use super::outcome::put;
use crate::operations;
use crate::render::{self, OutputFormat, Rendered};
use exa_mcp_generated::tools::TOOLS;
use exa_mcp_model::{ToolFile, ToolPlan, ToolhostEntry};

/// Splits a call of a dispatcher or toolhost into the operation and its arguments. `keys` are the names under which
/// the arguments may be given; the first is the documented one.
pub(super) fn parse_request(
    mut given: Map<String, Value>,
    keys: &[&str],
    corrections: &mut Vec<String>,
) -> Result<(String, Value), String> {
    let name = match given.shift_remove("operation") {
        Some(Value::String(name)) if !name.trim().is_empty() => name.trim().to_owned(),
        Some(other) => {
            return Err(format!(
                "`operation` must be the name of an operation, not {other}."
            ));
        }
        None => return Err("`operation` is missing.".to_owned()),
    };
    for (position, key) in keys.iter().enumerate() {
        let Some(value) = given.shift_remove(*key) else {
            continue;
        };
        if position > 0 {
            corrections.push(format!(
                "`{key}` was read as `{}`",
                keys.first().unwrap_or(key)
            ));
        }
        let mut arguments = parse_json_text(value, key, corrections);
        if let Value::Object(map) = &mut arguments {
            for (beside, value) in given {
                corrections.push(match map.get(&beside) {
                    Some(inside) if *inside != value => {
                        format!("`{beside}` beside `{key}` was ignored: `{key}` has another value")
                    }
                    _ => format!("`{beside}` was moved into `{key}`"),
                });
                map.entry(beside).or_insert(value);
            }
        }
        return Ok((name, arguments));
    }
    // Arguments beside the operation are assumed to be its arguments.
    if !given.is_empty() {
        corrections.push(format!(
            "arguments beside `operation` were read as `{}`",
            keys.first().unwrap_or(&"args")
        ));
    }
    Ok((name, Value::Object(given)))
}

/// Parses arguments given as JSON text; null means no arguments.
pub(super) fn parse_json_text(value: Value, key: &str, corrections: &mut Vec<String>) -> Value {
    match value {
        Value::Null => Value::Object(Map::new()),
        Value::String(text) => match serde_json::from_str::<Value>(&text) {
            Ok(Value::Object(map)) => {
                corrections.push(format!("`{key}` was read from JSON text"));
                Value::Object(map)
            }
            _ => Value::String(text),
        },
        other => other,
    }
}

/// Returns whether two names differ at most in punctuation and case.
pub(super) fn is_same_name(one: &str, other: &str) -> bool {
    normalize(one).eq(normalize(other))
}

/// Returns a name without punctuation and case.
fn normalize(name: &str) -> impl Iterator<Item = char> {
    name.chars()
        .filter(|c| !['.', '_', '-', '/', ' '].contains(c))
        .flat_map(char::to_lowercase)
}

/// Returns the known name that equals `name` or differs only in punctuation or case.
pub(super) fn resolve_name<'a>(
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a str>,
    corrections: &mut Vec<String>,
) -> Option<String> {
    let mut close = None;
    for candidate in known {
        if candidate == name {
            return Some(name.to_owned());
        }
        if is_same_name(candidate, name) {
            close = Some(candidate.to_owned());
        }
    }
    if let Some(close) = &close {
        corrections.push(format!("{what} `{name}` was read as `{close}`"));
    }
    close
}

/// Creates the error of a call without a usable operation.
pub(super) fn missing_operation<'a>(
    problem: &str,
    known: impl Iterator<Item = &'a str>,
) -> Box<ToolError> {
    let known: Vec<&str> = known.collect();
    let message = format!("{problem} It must be one of: {}.", known.join(", "));
    ToolError::invalid_request(message, json!({"operations": known}))
}

/// Creates the error of a call with an unknown operation, with a hint and all known operations.
pub(super) fn unknown_operation<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> Box<ToolError> {
    const SHOWN: usize = 100;
    let name: String = name.chars().take(SHOWN).collect();
    let name = name.as_str();
    let known: Vec<&str> = known.collect();
    let mut more = json!({"operation": name});
    let hint = match name_hint(name, &known) {
        Some(NameHint::DidYouMean(near)) => {
            put(&mut more, "didYouMean", json!(near));
            format!("Did you mean `{near}`? ")
        }
        Some(NameHint::OtherTool(tool)) => {
            put(&mut more, "tool", json!(tool));
            format!("It belongs to the tool `{tool}`. ")
        }
        None => String::new(),
    };
    put(&mut more, "operations", json!(known));
    let message = format!(
        "There is no operation `{name}` here. {hint}It must be one of: {}.",
        known.join(", ")
    );
    ToolError::invalid_request(message, more)
}

/// A hint for an operation that a tool does not have.
enum NameHint<'a> {
    /// The tool has it under this name.
    DidYouMean(&'a str),
    /// This other tool has it.
    OtherTool(&'static str),
}

/// Returns a hint for a wrong name. A name known to another tool is not a misspelling, and a toolhost may have its
/// own name for an operation.
fn name_hint<'a>(name: &str, known: &[&'a str]) -> Option<NameHint<'a>> {
    let same = |own: &str| is_same_name(own, name);
    let has_dots = known.iter().any(|own| own.contains('.'));
    for (tool, plan) in dispatching_tools() {
        match plan {
            ToolPlan::Dispatcher { operations }
                if has_dots && operations.iter().any(|own| same(own)) =>
            {
                return Some(NameHint::OtherTool(tool));
            }
            ToolPlan::Toolhost { entries } if !has_dots => {
                let behind = |entry: &&ToolhostEntry| entry.operation.as_deref().is_some_and(same);
                let renamed = entries
                    .iter()
                    .filter(behind)
                    .find_map(|entry| known.iter().find(|own| **own == entry.name));
                if let Some(own) = renamed {
                    return Some(NameHint::DidYouMean(own));
                }
                if entries.iter().any(|entry| same(&entry.name)) {
                    return Some(NameHint::OtherTool(tool));
                }
            }
            _ => {}
        }
    }
    let near = operations::closest(name, known.iter().copied())?;
    Some(NameHint::DidYouMean(near))
}

/// Returns all tools whose caller chooses the operation, whether they are enabled or not.
fn dispatching_tools() -> impl Iterator<Item = (&'static str, ToolPlan)> {
    TOOLS.iter().filter_map(|(name, text)| {
        let file: ToolFile = serde_json::from_str(text).ok()?;
        file.plan.is_open().then_some((*name, file.plan))
    })
}

/// Renders a description as JSON, with the corrections beside it.
pub(super) fn render_json(
    mut structured: Map<String, Value>,
    corrections: Vec<String>,
) -> Rendered {
    if !corrections.is_empty() {
        structured.insert("corrections".to_owned(), json!(corrections));
        render::add_deprecated_keys(&mut structured);
    }
    Rendered {
        text: serde_json::to_string(&structured).unwrap_or_default(),
        structured,
        links: Vec::new(),
        format: OutputFormat::Json,
        stats: None,
        job_end: None,
    }
}

/// Lists operations, one line each.
pub(super) fn list_operations<'a>(
    names: impl Iterator<Item = &'a str>,
    corrections: Vec<String>,
) -> Rendered {
    let lines: Vec<String> = names
        .filter_map(operations::find)
        .map(|operation| format!("{} — {}", operation.signature, operation.summary))
        .collect();
    let listed = Map::from_iter([("operations".to_owned(), json!(lines))]);
    let mut rendered = render_json(listed, corrections);
    // Pretty-printed, so that each entry has its own line.
    rendered.text = serde_json::to_string_pretty(&rendered.structured).unwrap_or_default();
    rendered
}

/// Returns the enumerated values of an argument.
pub(super) fn allowed_values(operation: &str, argument: &str) -> Vec<&'static str> {
    let schema = operations::find(operation).map(operations::input_schema);
    let property = schema.and_then(|schema| {
        let property = schema.pointer(&format!("/properties/{argument}"))?;
        let reference = property.get("$ref").and_then(Value::as_str);
        let target = reference.and_then(|it| schema.pointer(it.trim_start_matches('#')));
        Some(target.unwrap_or(property))
    });
    let branches = |property: &'static Value| {
        let unions = ["anyOf", "oneOf"].into_iter();
        unions.filter_map(|union| property.get(union)?.as_array())
    };
    let all = property
        .into_iter()
        .chain(property.into_iter().flat_map(branches).flatten());
    let values = all.filter_map(|schema| schema.get("enum")?.as_array());
    values.flatten().filter_map(Value::as_str).collect()
}
