//! Checks that values of `surface.yaml` fit the schema of their place.

use serde_json::{Map, Value};

use super::places::{Field, Place, listed, locate};

/// More members of an enum are not listed in a message.
const SHOWN_MEMBERS: usize = 12;

/// Returns why a value cannot be sent at a path, if so. `what` names the owner of the path.
pub(crate) fn problem(root: &Value, what: &str, path: &str, value: &Value) -> Option<String> {
    match locate(root, path) {
        Place::Missing => Some(format!("{what} has no argument `{path}`")),
        Place::Open => None,
        Place::Declared(fields) => misfit(root, &fields, path, value),
    }
}

/// Returns why a value fits none of the fields, if so.
pub(crate) fn misfit(
    root: &Value,
    fields: &[Field<'_>],
    path: &str,
    value: &Value,
) -> Option<String> {
    let mut first = None;
    let mut fits = false;
    for field in fields {
        match validate(root, field.schema, value) {
            None => fits = true,
            Some(message) => first = first.or(Some(message)),
        }
    }
    let value_text = shown(value);
    // A spec that accepts any text still lists the values that mean something.
    let members = listed(root, fields);
    if fits && (members.is_empty() || !value.is_string() || members.contains(value)) {
        return None;
    }
    if fits || (!members.is_empty() && value.is_string()) {
        let listed = members.iter().take(SHOWN_MEMBERS).map(shown);
        let mut listed: Vec<String> = listed.collect();
        if members.len() > SHOWN_MEMBERS {
            listed.push("…".to_owned());
        }
        let listed = listed.join(", ");
        return Some(format!(
            "value {value_text} is gone from `{path}`, which has {listed}"
        ));
    }
    first.map(|message| format!("value {value_text} does not fit `{path}`: {message}"))
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

/// Returns why a value does not fit a schema inside `root`, if so.
pub(crate) fn validate(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    let schema = match (schema, root.get("$defs")) {
        (Value::Object(schema), Some(definitions)) => {
            let mut schema: Map<String, Value> = schema.clone();
            schema.insert("$defs".to_owned(), definitions.clone());
            Value::Object(schema)
        }
        _ => schema.clone(),
    };
    // A schema that the validator cannot read is upstream's problem and reported elsewhere.
    let validator = jsonschema::draft202012::new(&schema).ok()?;
    let error = validator.validate(value).err()?;
    Some(error.to_string())
}
