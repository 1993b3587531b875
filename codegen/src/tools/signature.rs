//! Short signatures, with which a model can call operations without reading their schemas.

use serde_json::Value;

use crate::model::{Location, Operation};

/// Fields nested deeper are not shown.
const MAX_DEPTH: usize = 8;

/// How many optional arguments a signature shows.
#[derive(Debug, Clone, Copy)]
pub struct SignatureDetail {
    /// Maximum number of optional arguments per operation; further ones become `…`.
    pub optional: usize,
    /// Maximum number of optional fields of an object.
    pub fields: usize,
}

/// Returns the signatures of all operations of an API, one line per domain. Those of deprecated operations show
/// required arguments only.
pub fn by_domain(operations: &[&Operation], detail: SignatureDetail) -> String {
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for operation in operations {
        let verb = verb(operation);
        let detail = if operation.deprecated {
            SignatureDetail {
                optional: 0,
                fields: 0,
            }
        } else {
            detail
        };
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

/// Returns the signature of an operation with its full name and all arguments.
pub fn full(operation: &Operation) -> String {
    let detail = SignatureDetail {
        optional: usize::MAX,
        fields: 3,
    };
    format!("{}({})", operation.name, arguments(operation, detail))
}

/// Returns the name without its domain, or the full name if it does not start with the domain.
fn verb(operation: &Operation) -> &str {
    let suffix = operation.name.strip_prefix(&operation.domain);
    suffix
        .and_then(|suffix| suffix.strip_prefix('.'))
        .unwrap_or(&operation.name)
}

fn arguments(operation: &Operation, detail: SignatureDetail) -> String {
    let schema = &operation.input_schema;
    let required_names = names(schema.get("required"));
    let is_header = |name: &str| {
        let mut parameters = operation.parameters.iter();
        parameters.any(|p| p.name == name && p.location == Location::Header)
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let shown = properties
        .into_iter()
        .flatten()
        .filter(|(name, property)| !is_deprecated(property, schema) && !is_header(name));
    let (required, mut optional): (Vec<_>, Vec<_>) =
        shown.partition(|(name, _)| required_names.contains(&name.as_str()));
    let first = &operation.show_first;
    optional.sort_by_key(|(name, _)| {
        first
            .iter()
            .position(|shown| shown == *name)
            .unwrap_or(first.len())
    });
    let mut texts: Vec<String> = required
        .iter()
        .map(|(name, property)| format!("{name}{}", object_fields(property, schema, detail)))
        .collect();
    let more = optional.len() > detail.optional;
    let optional = optional.into_iter().take(detail.optional);
    texts.extend(
        optional
            .map(|(name, property)| format!("{name}{}?", object_fields(property, schema, detail))),
    );
    if more {
        texts.push("…".to_owned());
    }
    texts.join(", ")
}

/// Returns the required fields of an object, which a model would otherwise have to guess.
fn object_fields(property: &Value, root: &Value, detail: SignatureDetail) -> String {
    nested_fields(property, root, detail, &mut Vec::new())
}

/// Returns the fields of an object below those of `parents`, in which it must not occur again.
fn nested_fields<'a>(
    property: &'a Value,
    root: &'a Value,
    detail: SignatureDetail,
    parents: &mut Vec<&'a Value>,
) -> String {
    let property = resolve(property, root);
    let is_recursive = parents.iter().any(|parent| std::ptr::eq(*parent, property));
    if is_recursive || parents.len() > MAX_DEPTH {
        return String::new();
    }
    parents.push(property);
    let text = fields_text(property, root, detail, parents);
    parents.pop();
    text
}

fn fields_text<'a>(
    property: &'a Value,
    root: &'a Value,
    detail: SignatureDetail,
    parents: &mut Vec<&'a Value>,
) -> String {
    if let Some(items) = property.get("items") {
        let text = nested_fields(items, root, detail, parents);
        return if text.is_empty() {
            String::new()
        } else {
            format!("[{text}]")
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
            .map(|field| nested_fields(field, root, detail, parents))
            .unwrap_or_default();
        texts.push(format!("{name}{text}"));
    }
    let optional = properties
        .iter()
        .filter(|(name, field)| !required.contains(&name.as_str()) && !is_deprecated(field, root));
    texts.extend(
        optional
            .take(detail.fields)
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

/// Follows references into `$defs` and unwraps a union of one schema and null.
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
