//! Queries on a single schema.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::flatten::is_structural;
use super::names::pascal;
use super::types::Type;

/// Turns scalars into a literal type; an open one allows other strings, or any value of the same type.
pub(super) fn literals(values: &[Value], open: bool) -> Type {
    let (nulls, others): (Vec<&Value>, Vec<&Value>) =
        values.iter().partition(|value| value.is_null());
    let scalar = |value: &&Value| !value.is_array() && !value.is_object();
    let mut members = Vec::new();
    if others.iter().all(|value| value.is_string()) || (!open && others.iter().all(scalar)) {
        if !others.is_empty() {
            members.push(Type::Literals {
                values: others.into_iter().cloned().collect(),
                open,
            });
        }
    } else {
        members.extend(others.into_iter().map(type_of));
    }
    if !nulls.is_empty() {
        members.push(Type::Null);
    }
    Type::union(members)
}

fn type_of(value: &Value) -> Type {
    match value {
        Value::Bool(_) => Type::Boolean,
        Value::String(_) => Type::String,
        Value::Number(number) if number.is_f64() => Type::Number,
        Value::Number(_) => Type::Integer,
        _ => Type::Unknown,
    }
}

pub(super) fn implied_type(schema: &Value) -> Option<&'static str> {
    let has = |keys: &[&str]| keys.iter().any(|key| schema.get(*key).is_some());
    if has(&["properties", "additionalProperties", "patternProperties"]) {
        return Some("object");
    }
    has(&["items", "prefixItems"]).then_some("array")
}

pub(super) fn is_plain_object(schema: &Value) -> bool {
    let choice = ["oneOf", "anyOf", "enum", "const"];
    let is_object = schema.get("type").map_or_else(
        || implied_type(schema) == Some("object"),
        |kind| kind == "object",
    );
    is_object && choice.iter().all(|key| schema.get(*key).is_none())
}

pub(super) fn has_properties(schema: &Value) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.is_some_and(|found| !found.is_empty()) || !required(schema).is_empty()
}

pub(super) fn required(schema: &Value) -> Vec<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    names
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Returns whether a branch has a type of its own. `{"required": ["a"]}` has not: it only restricts a choice.
pub(super) fn is_structural_beyond_required(branch: &Value) -> bool {
    match branch {
        Value::Object(keys) if keys.len() == 1 => !keys.contains_key("required"),
        other => is_structural(other),
    }
}

fn constant<'a>(branch: &'a Value, field: &str) -> Option<&'a str> {
    branch.get("properties")?.get(field)?.get("const")?.as_str()
}

/// Returns the field whose constant distinguishes every branch that has it.
pub(super) fn discriminant(branches: &[Value]) -> Option<String> {
    let properties = branches
        .iter()
        .filter_map(|branch| branch.get("properties")?.as_object());
    properties.flat_map(Map::keys).find_map(|field| {
        let values: Vec<&str> = branches.iter().filter_map(|b| constant(b, field)).collect();
        let different: BTreeSet<&&str> = values.iter().collect();
        (!values.is_empty() && different.len() == values.len()).then(|| field.clone())
    })
}

/// Names a branch after its title or its discriminant.
pub(super) fn label(branch: &Value, discriminant: Option<&str>) -> String {
    let title = branch.get("title").and_then(Value::as_str);
    title
        .or_else(|| constant(branch, discriminant?))
        .map(pascal)
        .unwrap_or_default()
}
