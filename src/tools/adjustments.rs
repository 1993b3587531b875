//! Adjusts the arguments of an operation before they are validated.

use serde_json::{Map, Value};

use super::discovery::is_same_name;
use super::options::Options;
use crate::operations::{input_schema, is_paged};
use crate::render::ContentLevel;
use exa_mcp_model::Operation;

/// Characters of a page that the standard level shows if its whole text was requested.
const TEXT_CHARACTERS: u64 = 3_000;

/// Adds the content that a call gets if it names none.
pub(super) fn add_contents(operation: &Operation, arguments: &mut Value, level: ContentLevel) {
    let (Some(contents), Value::Object(arguments)) = (&operation.behavior.contents, arguments)
    else {
        return;
    };
    let is_named = |name: &String| {
        let mut given = arguments.iter().filter(|(_, value)| !value.is_null());
        given.any(|(given, _)| is_same_name(given, name))
    };
    if contents.unless.iter().any(is_named) {
        return;
    }
    let added = match level {
        ContentLevel::Summary => &contents.summary,
        ContentLevel::Standard => &contents.standard,
        ContentLevel::Full => &contents.full,
    };
    arguments.extend(added.clone());
}

/// Reads several pages if a call asks for more entries than one page can have, or skips some.
pub(super) fn spread_limit(
    operation: &'static Operation,
    arguments: &mut Value,
    options: &mut Options,
    corrections: &mut Vec<String>,
) {
    let Value::Object(arguments) = arguments else {
        return;
    };
    let bound = |name: &str| {
        let schema = input_schema(operation).pointer("/properties/limit")?;
        schema.get(name).and_then(Value::as_u64)
    };
    let maximum = bound("maximum");
    let limit = arguments.get("limit").and_then(whole_number);
    // Entries to skip may be more than the first page has.
    let size = limit.or_else(|| bound("default"));
    if let (Some(size), true) = (size, is_paged(operation))
        && options.offset() > 0
        && !options.all()
    {
        arguments.shift_remove("limit");
        return options.read_all(size);
    }
    if let (Some(limit), Some(maximum), true) = (limit, maximum, is_paged(operation))
        && limit > maximum
    {
        arguments.shift_remove("limit");
        options.read_all(limit);
        corrections.push(format!(
            "`limit` {limit} is more than the {maximum} entries of a page: read as `all` with at most {limit} entries"
        ));
    }
}

fn whole_number(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_u64(),
    }
}

/// Returns the characters of text or highlights that a request asks for.
pub(super) fn requested_characters(
    operation: &Operation,
    arguments: &Map<String, Value>,
) -> Option<usize> {
    let contents = arguments.get("contents");
    let option = |name: &str| {
        let inside = contents.and_then(|contents| contents.get(name));
        inside.or_else(|| arguments.get(name))
    };
    let characters = |option: Option<&Value>| option?.get("maxCharacters")?.as_u64();
    let text = option("text");
    let is_whole = operation.behavior.contents.is_some() && text == Some(&Value::Bool(true));
    let default = is_whole.then_some(TEXT_CHARACTERS);
    let most = [characters(text), characters(option("highlights")), default];
    usize::try_from(most.into_iter().flatten().max()?).ok()
}
