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
    let mut lines: Vec<(String, Vec<Shared>)> = Vec::new();
    for operation in operations {
        let detail = if operation.deprecated {
            SignatureDetail {
                optional: 0,
                fields: 0,
            }
        } else if operation.show_first.is_empty() {
            // The space is for operations whose optional arguments matter.
            SignatureDetail {
                optional: 0,
                ..detail
            }
        } else {
            SignatureDetail {
                optional: detail.optional.min(operation.show_first.len()),
                ..detail
            }
        };
        let arguments = arguments(operation, detail);
        let mark = if operation.deprecated {
            " deprecated"
        } else {
            ""
        };
        let line = lines
            .iter_mut()
            .position(|(domain, _)| *domain == operation.domain);
        let line = line.unwrap_or_else(|| {
            lines.push((operation.domain.clone(), Vec::new()));
            lines.len() - 1
        });
        let texts = &mut lines[line].1;
        let text = format!("({arguments}){mark}");
        let verb = verb(operation).to_owned();
        match texts.iter_mut().find(|shared| shared.text == text) {
            Some(shared) => shared.verbs.push(verb),
            None => texts.push(Shared {
                verbs: vec![verb],
                text,
            }),
        }
    }
    let lines: Vec<String> = lines
        .into_iter()
        .map(|(domain, texts)| {
            let texts = texts
                .iter()
                .map(|shared| format!("{}{}", shared.verbs.join("/"), shared.text));
            format!("{domain}: {}", texts.collect::<Vec<_>>().join(" "))
        })
        .collect();
    lines.join("\n")
}

/// Operations of a domain with the same arguments.
struct Shared {
    verbs: Vec<String>,
    text: String,
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
            .position(|shown| shown.split('.').next() == Some(name))
            .unwrap_or(first.len())
    });
    // `contents.text` shows the field of an object, beside those that it requires.
    let shown_fields = |name: &str, property: &Value| {
        let fields = first.iter().filter_map(|shown| shown.split_once('.'));
        let fields = fields.filter(|(argument, _)| *argument == name);
        let required = names(resolve(property, schema).get("required"));
        let optional = fields.map(|(_, field)| field);
        let optional = optional.filter(|field| !required.contains(field));
        let optional: Vec<String> = optional.map(|field| format!("{field}?")).collect();
        let required = required.iter().map(|field| (*field).to_owned());
        let texts: Vec<String> = required.chain(optional.iter().cloned()).collect();
        (!optional.is_empty()).then(|| format!("{{{}}}", texts.join(", ")))
    };
    let fields = |name: &str, property: &Value| {
        let shown = shown_fields(name, property);
        shown.unwrap_or_else(|| object_fields(property, schema, detail))
    };
    let mut texts: Vec<String> = required
        .iter()
        .map(|(name, property)| format!("{name}{}", fields(name, property)))
        .collect();
    let more = optional.len() > detail.optional && detail.optional > 0;
    let optional = optional.into_iter().take(detail.optional);
    texts.extend(optional.map(|(name, property)| format!("{name}{}?", fields(name, property))));
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
    if let Some(values) = enum_text(property) {
        return values;
    }
    if let Some(kinds) = kinds_text(property, root) {
        return kinds;
    }
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
    texts.extend(optional.take(detail.fields).map(|(name, field)| {
        let values = enum_text(resolve(field, root)).unwrap_or_default();
        format!("{name}{values}?")
    }));
    format!("{{{}}}", texts.join(", "))
}

/// Returns the kinds of a union of objects that differ in their `type`.
fn kinds_text(property: &Value, root: &Value) -> Option<String> {
    let branches = property
        .get("oneOf")
        .or(property.get("anyOf"))?
        .as_array()?;
    let kind = |branch: &Value| {
        let kind = resolve(branch, root).get("properties")?.get("type")?;
        let kind = resolve(kind, root);
        let values = kind.get("enum").and_then(Value::as_array);
        let only = kind.get("const").or_else(|| values?.first())?;
        only.as_str().map(str::to_owned)
    };
    let kinds: Option<Vec<String>> = branches.iter().map(kind).collect();
    Some(format!("{{type={}}}", kinds?.join("|")))
}

/// The longest list of values in a signature, in characters.
const MAX_VALUES: usize = 50;

/// Returns the values of an enum, or `=date` for a date.
fn enum_text(property: &Value) -> Option<String> {
    if property.get("format").and_then(Value::as_str) == Some("date-time") {
        return Some("=date".to_owned());
    }
    let values = property.get("enum")?.as_array()?;
    let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
    let mut text = String::new();
    for (count, value) in values.iter().enumerate() {
        if text.len() + value.len() > MAX_VALUES {
            text.push_str(if count > 0 { "|…" } else { "…" });
            break;
        }
        if count > 0 {
            text.push('|');
        }
        text.push_str(value);
    }
    (!text.is_empty()).then(|| format!("={text}"))
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
