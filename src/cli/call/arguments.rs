//! The arguments of a call on the command line: JSON, files, and `key=value` pairs.

use std::io::Read;

use serde_json::{Map, Value};

use super::super::output::shell_word;
use super::Failure;
use crate::operations::validation::shape_at;

/// The maximum size of arguments that are read from a file or standard input.
const MAX_INPUT: u64 = 64 * 1024 * 1024;

/// Parses the arguments of a call. `schema` decides what the text of a `key=value` pair becomes.
pub(in super::super) fn parse_arguments(
    given: &[String],
    schema: &Value,
) -> Result<Value, Failure> {
    let mut whole: Option<Value> = None;
    let mut pairs = Vec::new();
    for argument in given {
        if let Some(pair) = split_pair(argument) {
            pairs.push(pair);
        } else if whole.is_some() {
            return Err(Failure::usage(
                "the arguments contain JSON twice; give one JSON object, and key=value pairs to change it",
            ));
        } else {
            whole = Some(read_whole(argument, schema)?);
        }
    }
    if pairs.is_empty() {
        return Ok(whole.unwrap_or(Value::Null));
    }
    let mut arguments = match whole {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(Value::Object(map)) => Value::Object(map),
        Some(_) => {
            return Err(Failure::usage(
                "the JSON beside key=value pairs must be an object",
            ));
        }
    };
    for (key, text) in pairs {
        let path = split_path(key);
        let value = read_value(&path, text, schema)?;
        insert(&mut arguments, &path, value)
            .map_err(|problem| Failure::usage(format!("`{key}`: {problem}")))?;
    }
    Ok(arguments)
}

/// Splits `key=value`; JSON, files and `-` are something else.
fn split_pair(argument: &str) -> Option<(&str, &str)> {
    let (key, value) = argument.split_once('=')?;
    let mut letters = key.chars();
    let first = letters.next()?;
    let is_key = (first.is_ascii_alphabetic() || first == '_')
        && letters.all(|c| c.is_ascii_alphanumeric() || "_-.[]".contains(c));
    is_key.then_some((key, value))
}

/// Splits a path such as `search.criteria[0].description`.
fn split_path(key: &str) -> Vec<&str> {
    let parts = key.split(['.', '[', ']']);
    parts.filter(|part| !part.is_empty()).collect()
}

fn read_whole(argument: &str, schema: &Value) -> Result<Value, Failure> {
    let is_inline = argument != "-" && !argument.starts_with('@');
    let text = match argument.strip_prefix('@') {
        _ if argument == "-" => read_stdin()?,
        Some(path) => read_file(path)?,
        None => argument.to_owned(),
    };
    // Some Windows shells start piped text with a byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(text).map_err(|error| {
        let is_word = !text.trim_start().starts_with(['{', '[', '"']);
        if is_inline && is_word {
            return Failure::usage(format!(
                "`{text}` is not JSON and not KEY=VALUE{}",
                meant(text, schema)
            ));
        }
        let hint = if is_inline {
            "; put JSON in single quotes, so that the shell leaves it as it is: '{\"key\": \"value\"}'"
        } else {
            ""
        };
        Failure::usage(format!("the arguments are not JSON: {error}{hint}"))
    })
}

/// Suggests the argument for a text that was given without one.
fn meant(text: &str, schema: &Value) -> String {
    let required = schema.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    let mut texts = names.filter(|name| {
        let shape = shape_at(schema, &[*name]).unwrap_or_default();
        shape.accepts("string")
    });
    match texts.next() {
        Some(name) => format!("; did you mean `{name}={}`?", shell_word(text)),
        None => String::new(),
    }
}

fn read_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let input = std::io::stdin().lock();
    let read = input.take(MAX_INPUT).read_to_string(&mut text);
    read.map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?;
    Ok(text)
}

fn read_file(path: &str) -> Result<String, Failure> {
    if path == "-" {
        return read_stdin();
    }
    let failure = |error| Failure::usage(format!("cannot read the file `{path}`: {error}"));
    let file = std::fs::File::open(path).map_err(failure)?;
    let mut text = String::new();
    file.take(MAX_INPUT)
        .read_to_string(&mut text)
        .map_err(failure)?;
    Ok(text)
}

/// Converts the text of a pair: to JSON where the schema wants something other than text.
fn read_value(path: &[&str], text: &str, schema: &Value) -> Result<Value, Failure> {
    let (text, is_file) = match text.strip_prefix('@') {
        // A leading @ is doubled.
        Some(rest) if rest.starts_with('@') => (rest.to_owned(), false),
        Some(file) if !file.is_empty() => (read_file(file)?, true),
        _ => (text.to_owned(), false),
    };
    Ok(convert(path, text, is_file, schema))
}

/// Converts a text to the type that the schema declares.
pub(super) fn convert(path: &[&str], text: String, is_file: bool, schema: &Value) -> Value {
    let shape = shape_at(schema, path).unwrap_or_default();
    let parsed = serde_json::from_str::<Value>(text.trim()).ok();
    let accepts = |value: &Value| match value {
        Value::Null => true,
        Value::Bool(_) => shape.accepts("boolean"),
        Value::Number(_) => shape.accepts("number") || shape.accepts("integer"),
        Value::String(_) => false,
        Value::Array(_) => shape.accepts("array"),
        Value::Object(_) => shape.accepts("object"),
    };
    let takes_text = shape.types.iter().any(|kind| kind == "string");
    let takes_list = shape.types.iter().any(|kind| kind == "array");
    match parsed {
        // A text that happens to be a number stays a text if a text is wanted.
        Some(value)
            if accepts(&value) && !(takes_text && (value.is_number() || value.is_null())) =>
        {
            value
        }
        Some(Value::String(inner)) if text.trim_start().starts_with('"') => Value::String(inner),
        _ if takes_list && !takes_text => {
            let separator = if is_file { '\n' } else { ',' };
            let entries = text.split(separator).map(str::trim);
            let entries = entries.filter(|entry| !entry.is_empty());
            entries
                .map(|entry| convert(&[path, &["0"]].concat(), entry.to_owned(), false, schema))
                .collect()
        }
        _ => Value::String(text),
    }
}

/// Inserts a value at a path. A list that is given twice is joined.
pub(super) fn insert(target: &mut Value, path: &[&str], value: Value) -> Result<(), String> {
    let Some((name, rest)) = path.split_first() else {
        match (target, value) {
            (Value::Array(list), Value::Array(more)) => list.extend(more),
            (target, value) => *target = value,
        }
        return Ok(());
    };
    let index = name.parse::<usize>().ok();
    if target.is_null() {
        *target = match index {
            Some(_) => Value::Array(Vec::new()),
            None => Value::Object(Map::new()),
        };
    }
    match (target, index) {
        (Value::Object(map), _) => {
            let inner = map.entry((*name).to_owned()).or_insert(Value::Null);
            insert(inner, rest, value)
        }
        (Value::Array(list), Some(index)) => {
            if index >= list.len() {
                if index > list.len() {
                    return Err(format!("entry {index} of the list has no entry before it"));
                }
                list.push(Value::Null);
            }
            list.get_mut(index)
                .map_or_else(|| Ok(()), |inner| insert(inner, rest, value))
        }
        // `contents.text=true contents.text.maxCharacters=5`: the object replaces the switch.
        (target @ Value::Bool(true), None) => {
            *target = Value::Object(Map::new());
            insert(target, path, value)
        }
        _ => Err(format!(
            "`{name}` cannot be set, because another pair sets a plain value there"
        )),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(given: &[&str]) -> Result<Value, String> {
        let schema = json!({"properties": {
            "query": {"type": "string"}, "count": {"type": ["integer", "null"]}, "flag": {"type": "boolean"},
            "sites": {"type": "array", "items": {"type": "string"}}, "search": {"properties": {
                "query": {"type": "string"}, "criteria": {"type": "array", "items": {"properties": {"description": {"type": "string"}}}},
            }},
        }});
        let given: Vec<String> = given.iter().map(|it| (*it).to_owned()).collect();
        parse_arguments(&given, &schema).map_err(|failure| failure.text)
    }

    #[test]
    fn converts_pairs_as_the_schema_wants() {
        let parsed = parse(&[
            "query=5",
            "count=5",
            "flag=true",
            "sites=a.com,b.com",
            "sites=c.com",
            "new=1",
        ]);
        let expected = json!({
            "query": "5", "count": 5, "flag": true, "sites": ["a.com", "b.com", "c.com"], "new": 1,
        });
        assert_eq!(parsed.unwrap(), expected);
    }

    #[test]
    fn nests_pairs() {
        let parsed = parse(&[
            "search.query=a=b",
            "search.criteria[0].description=x",
            "search.criteria.1.description=y",
        ]);
        let criteria = json!([{"description": "x"}, {"description": "y"}]);
        assert_eq!(
            parsed.unwrap(),
            json!({"search": {"query": "a=b", "criteria": criteria}})
        );
    }

    #[test]
    fn pairs_change_json() {
        assert_eq!(
            parse(&[r#"{"query": "a", "count": 1}"#, "count=2"]).unwrap(),
            json!({"query": "a", "count": 2})
        );
        assert!(parse(&["{}", "{}"]).unwrap_err().contains("twice"));
        assert!(parse(&["nope"]).unwrap_err().contains("not JSON"));
        assert!(parse(&["{query:x}"]).unwrap_err().contains("single quotes"));
        assert!(
            parse(&["query=a", "query.b=c"])
                .unwrap_err()
                .contains("query")
        );
    }
}
