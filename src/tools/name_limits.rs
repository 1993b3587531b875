//! Limits the names in the arguments of a call.
//!
//! Every unknown name is compared with the known ones, so a call with thousands of them, or with a name as long as
//! a document, would keep a worker busy for seconds.

use serde_json::{Map, Value, json};

use super::error::ToolError;

/// The maximum number of fields of one object, and of all objects of a call together.
const MAX_FIELDS: usize = 300;
const MAX_TOTAL_FIELDS: usize = 3_000;

/// The maximum length of a field name, in bytes.
const MAX_NAME_BYTES: usize = 300;

/// Rejects a call with too many names, or with one that is too long.
///
/// # Errors
/// Fails with the limit that is exceeded.
pub(super) fn check(tool: &str, arguments: &Map<String, Value>) -> Result<(), Box<ToolError>> {
    let Err(problem) = count(arguments, &mut 0) else {
        return Ok(());
    };
    let message = format!("`{tool}` was not called: {problem}.");
    Err(ToolError::invalid_request(message, json!({})))
}

fn count(fields: &Map<String, Value>, total: &mut usize) -> Result<(), String> {
    *total = total.saturating_add(fields.len());
    if fields.len() > MAX_FIELDS || *total > MAX_TOTAL_FIELDS {
        return Err(format!(
            "its arguments have too many fields; the limit is {MAX_FIELDS} per object and {MAX_TOTAL_FIELDS} in \
             total"
        ));
    }
    for (name, value) in fields {
        if name.len() > MAX_NAME_BYTES {
            let start: String = name.chars().take(40).collect();
            return Err(format!(
                "the field name `{start}…` has {} bytes; the limit is {MAX_NAME_BYTES}",
                name.len()
            ));
        }
        count_in(value, total)?;
    }
    Ok(())
}

fn count_in(value: &Value, total: &mut usize) -> Result<(), String> {
    match value {
        Value::Object(fields) => count(fields, total),
        Value::Array(entries) => entries.iter().try_for_each(|entry| count_in(entry, total)),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::error_messages;
    use super::*;

    fn rejection(arguments: Value) -> Option<String> {
        let error = check("search", arguments.as_object().unwrap()).err()?;
        Some(error_messages::text(&error))
    }

    fn fields(count: usize) -> Value {
        (0..count)
            .map(|n| (format!("f{n}"), json!(n)))
            .collect::<Map<_, _>>()
            .into()
    }

    #[test]
    fn accepts_ordinary_calls() {
        assert_eq!(
            rejection(json!({"query": "x".repeat(100_000), "a": fields(300)})),
            None
        );
        let list: Vec<Value> = (0..19).map(|_| fields(100)).collect();
        assert_eq!(rejection(json!({"enrichments": list})), None);
    }

    #[test]
    fn rejects_too_many_and_too_long_names() {
        for flood in [
            fields(301),
            json!({"a": [{"b": fields(301)}]}),
            json!({"a": (0..20).map(|_| fields(200)).collect::<Vec<_>>()}),
            json!({"x".repeat(301): 1}),
        ] {
            let text = rejection(flood).unwrap();
            assert!(
                text.starts_with("`search` was not called") && text.len() < 300,
                "{text}"
            );
        }
    }
}
