//! Finding out what can be called: lists, descriptions, and what a wrong name probably meant.

use serde_json::{Map, Value, json};

use super::error::ToolError;
use super::outcome::{ToolResult, put};
use super::plan::{Entry, Plan, ToolFile};
use crate::operations::{self, validation};
use crate::render::{Format, Rendered};
use exa_mcp_generated::tools::TOOLS;
use exa_mcp_model::Operation;

/// The operation and its arguments out of a call of a dispatcher or host.
pub(super) fn request(
    mut given: Map<String, Value>,
    holders: &[&str],
    mended: &mut Vec<String>,
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
    for (position, holder) in holders.iter().enumerate() {
        let Some(value) = given.shift_remove(*holder) else {
            continue;
        };
        if position > 0 {
            mended.push(format!(
                "`{holder}` was read as `{}`",
                holders.first().unwrap_or(holder)
            ));
        }
        let mut arguments = parsed(value, holder, mended);
        if let Value::Object(map) = &mut arguments {
            for (beside, value) in given {
                mended.push(format!(
                    "`{beside}` stood beside `{holder}` and was read as part of it"
                ));
                map.entry(beside).or_insert(value);
            }
        }
        return Ok((name, arguments));
    }
    // Arguments that stand beside the operation are taken as meant for it.
    if !given.is_empty() {
        mended.push(format!(
            "arguments beside `operation` were read as `{}`",
            holders.first().unwrap_or(&"args")
        ));
    }
    Ok((name, Value::Object(given)))
}

/// Arguments that came as JSON text are read; null means none.
pub(super) fn parsed(value: Value, holder: &str, mended: &mut Vec<String>) -> Value {
    match value {
        Value::Null => Value::Object(Map::new()),
        Value::String(text) => match serde_json::from_str::<Value>(&text) {
            Ok(Value::Object(map)) => {
                mended.push(format!("`{holder}` was read from JSON text"));
                Value::Object(map)
            }
            _ => Value::String(text),
        },
        other => other,
    }
}

/// Whether two names differ in nothing but their punctuation and case.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    plain(one).eq(plain(other))
}

/// A name without punctuation and case.
fn plain(name: &str) -> impl Iterator<Item = char> {
    name.chars()
        .filter(|letter| !['.', '_', '-', '/', ' '].contains(letter))
        .flat_map(char::to_lowercase)
}

/// A name that differs from a known one only in its punctuation or case.
pub(super) fn meant<'a>(
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a str>,
    mended: &mut Vec<String>,
) -> Option<String> {
    let mut close = None;
    for candidate in known {
        if candidate == name {
            return Some(name.to_owned());
        }
        if is_same(candidate, name) {
            close = Some(candidate.to_owned());
        }
    }
    if let Some(close) = &close {
        mended.push(format!("{what} `{name}` was read as `{close}`"));
    }
    close
}

/// The failure of a call without a usable operation.
pub(super) fn no_operation<'a>(
    problem: &str,
    known: impl Iterator<Item = &'a str>,
) -> Box<ToolError> {
    let known: Vec<&str> = known.collect();
    let message = format!("{problem} It must be one of: {}.", known.join(", "));
    ToolError::impossible(message, json!({"operations": known}))
}

/// The failure of a call with an unknown operation: what was meant, where it is, and what there is.
pub(super) fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Box<ToolError> {
    const SHOWN: usize = 100;
    let name: String = name.chars().take(SHOWN).collect();
    let name = name.as_str();
    let known: Vec<&str> = known.collect();
    let mut more = json!({"operation": name});
    let hint = match elsewhere(name, &known) {
        Some(Elsewhere::SameTool(near)) => {
            put(&mut more, "didYouMean", json!(near));
            format!("Did you mean `{near}`? ")
        }
        Some(Elsewhere::Tool(tool)) => {
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
    ToolError::impossible(message, more)
}

/// Where an operation is that a tool does not have.
enum Elsewhere<'a> {
    /// In the same tool, under this name.
    SameTool(&'a str),
    /// In this other tool.
    Tool(&'static str),
}

/// What a wrong name was probably meant for. What another tool has is no misspelling, and an operation may
/// have a name of its own here.
fn elsewhere<'a>(name: &str, known: &[&'a str]) -> Option<Elsewhere<'a>> {
    let same = |own: &str| is_same(own, name);
    let has_dots = known.iter().any(|own| own.contains('.'));
    for (tool, plan) in open_tools() {
        match plan {
            Plan::Dispatcher { operations }
                if has_dots && operations.iter().any(|own| same(own)) =>
            {
                return Some(Elsewhere::Tool(tool));
            }
            Plan::Host { entries } if !has_dots => {
                let behind = |entry: &&Entry| entry.operation.as_deref().is_some_and(same);
                let meant = entries
                    .iter()
                    .filter(behind)
                    .find_map(|entry| known.iter().find(|own| **own == entry.name));
                if let Some(own) = meant {
                    return Some(Elsewhere::SameTool(own));
                }
                if entries.iter().any(|entry| same(&entry.name)) {
                    return Some(Elsewhere::Tool(tool));
                }
            }
            _ => {}
        }
    }
    let near = operations::closest(name, known.iter().copied())?;
    Some(Elsewhere::SameTool(near))
}

/// All tools whose caller chooses the operation, whether they are offered or not.
fn open_tools() -> impl Iterator<Item = (&'static str, Plan)> {
    TOOLS.iter().filter_map(|(name, text)| {
        let file: ToolFile = serde_json::from_str(text).ok()?;
        file.plan.is_open().then_some((*name, file.plan))
    })
}

/// What can be called, as JSON; corrections stand beside it.
fn shown(mut structured: Map<String, Value>, mended: Vec<String>) -> Rendered {
    if !mended.is_empty() {
        structured.insert("mended".to_owned(), json!(mended));
    }
    Rendered {
        text: serde_json::to_string(&structured).unwrap_or_default(),
        structured,
        links: Vec::new(),
        format: Format::Json,
        stats: None,
    }
}

/// One line an operation.
pub(super) fn list<'a>(names: impl Iterator<Item = &'a str>, mended: Vec<String>) -> Rendered {
    let lines: Vec<String> = names
        .filter_map(operations::find)
        .map(|operation| format!("{} — {}", operation.signature, operation.summary))
        .collect();
    let listed = Map::from_iter([("operations".to_owned(), json!(lines))]);
    let mut rendered = shown(listed, mended);
    // One line for each entry.
    rendered.text = serde_json::to_string_pretty(&rendered.structured).unwrap_or_default();
    rendered
}

/// The exact schema, an example and the hints of one operation.
pub(super) fn describe<'a>(
    args: &Value,
    known: impl Iterator<Item = &'a str> + Clone,
    mut mended: Vec<String>,
) -> ToolResult {
    let wanted = ["operation", "name"]
        .iter()
        .find_map(|key| args.get(*key)?.as_str());
    let Some(wanted) = wanted.or(args.as_str()) else {
        return Err(no_operation(
            "describe needs args {\"operation\": NAME}.",
            known,
        ));
    };
    let operation = meant("operation", wanted, known.clone(), &mut mended)
        .and_then(|name| operations::find(&name));
    match operation {
        Some(operation) => Ok(shown(description(operation), mended)),
        None => Err(unknown(wanted, known)),
    }
}

fn description(operation: &'static Operation) -> Map<String, Value> {
    let schema = schema(operation);
    let hints = &operation.behavior.hints;
    let described = json!({
        "operation": operation.name,
        "signature": operation.signature,
        "summary": operation.summary,
        "description": operation.description,
        "example": {"operation": operation.name, "args": validation::example(&operation.behavior.example, &schema)},
        "hints": hints,
        "inputSchema": schema,
    });
    super::outcome::as_object(described)
}

/// The entries of a host with their schemas; `params.operation` asks for one of them.
pub(super) fn list_entries(
    entries: &[Entry],
    params: &Value,
    mut mended: Vec<String>,
) -> ToolResult {
    let known = || entries.iter().map(|entry| entry.name.as_str());
    let wanted = match params.get("operation").and_then(Value::as_str) {
        None => None,
        Some(name) => match meant("operation", name, known(), &mut mended) {
            Some(name) => Some(name),
            None => return Err(unknown(name, known())),
        },
    };
    let listed: Vec<Value> = entries
        .iter()
        .filter(|entry| wanted.as_deref().is_none_or(|wanted| wanted == entry.name))
        .map(entry_description)
        .collect();
    let listed = Map::from_iter([("operations".to_owned(), json!(listed))]);
    Ok(shown(listed, mended))
}

fn entry_description(entry: &Entry) -> Value {
    let mut described = json!({"name": entry.name, "description": entry.summary});
    let operation = entry.operation.as_deref().and_then(operations::find);
    let Some(operation) = operation else {
        put(&mut described, "supported", json!(false));
        put(&mut described, "why", json!(entry.unsupported));
        put(
            &mut described,
            "inputSchema",
            plain_schema(&entry.parameters),
        );
        return described;
    };
    let mut schema = schema(operation);
    rename_properties(entry, &mut schema);
    add_own_properties(entry, &mut schema);
    put(&mut described, "inputSchema", schema);
    described
}

/// The schema of parameters that are all strings and all required.
fn plain_schema(parameters: &[String]) -> Value {
    let properties: Map<String, Value> = parameters
        .iter()
        .map(|name| (name.clone(), json!({"type": "string"})))
        .collect();
    json!({"type": "object", "properties": properties, "required": parameters})
}

/// Objects that an entry takes beside the arguments of its operation.
fn add_own_properties(entry: &Entry, schema: &mut Value) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    let inside = entry.rename.iter().filter(|(_, to)| to.contains('.'));
    let inside = inside.map(|(name, to)| (name, format!("Read as `{to}`.")));
    let spread = entry.spread.iter();
    let spread = spread.map(|name| (name, "Its fields are read as parameters.".to_owned()));
    for (name, description) in inside.chain(spread) {
        let property = json!({"type": "object", "description": description});
        properties.insert(name.clone(), property);
    }
}

/// A simple renaming shows in the schema; the operation's own name works as well.
fn rename_properties(entry: &Entry, schema: &mut Value) {
    for (from, to) in entry.rename.iter().filter(|(_, to)| !to.contains('.')) {
        let Some(Value::Object(properties)) = schema.get_mut("properties") else {
            return;
        };
        if let Some(property) = properties.shift_remove(to) {
            properties.insert(from.clone(), property);
        }
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required
                .iter_mut()
                .filter(|name| *name == to)
                .for_each(|name| *name = json!(from));
        }
    }
    // What is filled in, or partly filled in, need not be given.
    let defaulted = |name: &Value| {
        let first = |path: &String| path.split('.').next() == name.as_str();
        entry.defaults.keys().any(first)
    };
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| !defaulted(name));
    }
}

/// The input schema without the words that only a validator needs.
fn schema(operation: &'static Operation) -> Value {
    let mut schema = Value::clone(operations::input_schema(operation));
    if let Value::Object(schema) = &mut schema {
        schema.shift_remove("$schema");
    }
    schema
}

/// The values that an argument of an operation may have.
pub(super) fn values_of(operation: &str, argument: &str) -> Vec<&'static str> {
    let schema = operations::find(operation).map(operations::input_schema);
    let values = schema.and_then(|schema| schema.pointer(&format!("/properties/{argument}/enum")));
    let values = values.and_then(Value::as_array).into_iter().flatten();
    values.filter_map(Value::as_str).collect()
}
