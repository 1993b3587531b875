//! Operations written so briefly that a model can call them without looking them up.

use serde_json::Value;

use crate::model::{Location, Operation};

/// How much of the optional arguments a signature shows.
#[derive(Debug, Clone, Copy)]
pub struct Detail {
    /// At most this many optional arguments an operation; the rest is `…`.
    pub optional: usize,
    /// At most this many optional fields of an object.
    pub inner: usize,
}

/// All operations of an API, a line a domain.
pub fn groups(operations: &[&Operation], detail: Detail) -> String {
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for operation in operations {
        let verb = verb(operation);
        let text = format!("{verb}({})", arguments(operation, detail));
        match lines
            .iter_mut()
            .find(|(domain, _)| *domain == operation.domain)
        {
            Some((_, texts)) => texts.push(text),
            None => lines.push((operation.domain.clone(), vec![text])),
        }
    }
    let lines: Vec<String> = lines
        .into_iter()
        .map(|(domain, texts)| format!("{domain}: {}", texts.join(" ")))
        .collect();
    lines.join("\n")
}

/// One operation with its whole name and all its arguments.
pub fn whole(operation: &Operation) -> String {
    let detail = Detail {
        optional: usize::MAX,
        inner: 3,
    };
    format!("{}({})", operation.name, arguments(operation, detail))
}

/// The name without its domain, or the whole name where the domain is no part of it.
fn verb(operation: &Operation) -> &str {
    let rest = operation.name.strip_prefix(&operation.domain);
    rest.and_then(|rest| rest.strip_prefix('.'))
        .unwrap_or(&operation.name)
}

fn arguments(operation: &Operation, detail: Detail) -> String {
    let schema = &operation.input_schema;
    let required = names(schema.get("required"));
    let is_header = |name: &str| {
        let mut parameters = operation.parameters.iter();
        parameters.any(|p| p.name == name && p.location == Location::Header)
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let shown = properties
        .into_iter()
        .flatten()
        .filter(|(name, property)| !is_deprecated(property, schema) && !is_header(name));
    let (must, mut may): (Vec<_>, Vec<_>) =
        shown.partition(|(name, _)| required.contains(&name.as_str()));
    let first = &operation.show;
    may.sort_by_key(|(name, _)| {
        first
            .iter()
            .position(|shown| shown == *name)
            .unwrap_or(first.len())
    });
    let mut texts: Vec<String> = must
        .iter()
        .map(|(name, property)| format!("{name}{}", inner(property, schema, detail)))
        .collect();
    let more = may.len() > detail.optional;
    let may = may.into_iter().take(detail.optional);
    texts.extend(may.map(|(name, property)| format!("{name}{}?", inner(property, schema, detail))));
    if more {
        texts.push("…".to_owned());
    }
    texts.join(", ")
}

/// The fields of an object that must be there, which a model would otherwise have to guess.
fn inner(property: &Value, root: &Value, detail: Detail) -> String {
    let property = resolve(property, root);
    if let Some(items) = property.get("items") {
        let text = inner(items, root, detail);
        return match text.is_empty() {
            true => String::new(),
            false => format!("[{text}]"),
        };
    }
    let required = names(property.get("required"));
    let properties = property.get("properties").and_then(Value::as_object);
    let (Some(properties), false) = (properties, required.is_empty()) else {
        return String::new();
    };
    let mut texts: Vec<String> = Vec::new();
    for name in &required {
        let text = properties
            .get(*name)
            .map(|field| inner(field, root, detail))
            .unwrap_or_default();
        texts.push(format!("{name}{text}"));
    }
    let optional = properties
        .iter()
        .filter(|(name, field)| !required.contains(&name.as_str()) && !is_deprecated(field, root));
    texts.extend(
        optional
            .take(detail.inner)
            .map(|(name, _)| format!("{name}?")),
    );
    format!("{{{}}}", texts.join(", "))
}

fn names(value: Option<&Value>) -> Vec<&str> {
    let list = value.and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn is_deprecated(property: &Value, root: &Value) -> bool {
    let flagged = |schema: &Value| schema.get("deprecated") == Some(&Value::Bool(true));
    flagged(property) || flagged(resolve(property, root))
}

/// Follows a reference into `$defs`; a single branch beside null counts as the thing itself.
fn resolve<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..8 {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            match root.pointer(reference.trim_start_matches('#')) {
                Some(target) => schema = target,
                None => return schema,
            }
            continue;
        }
        let branches = schema
            .get("anyOf")
            .or(schema.get("oneOf"))
            .and_then(Value::as_array);
        let real: Vec<&Value> = branches
            .into_iter()
            .flatten()
            .filter(|branch| branch.get("type").and_then(Value::as_str) != Some("null"))
            .collect();
        match real.as_slice() {
            [single] => schema = single,
            _ => return schema,
        }
    }
    schema
}
