//! Stage 9: snapshots for reviewing API changes.

use std::collections::BTreeMap;
use std::fmt::Write;

use exa_mcp_model::KeyKind;
use exa_mcp_model::price::Price;
use serde_json::{Map, Value, json};

use crate::Design;
use crate::error::Notice;
use crate::model::{ApiModel, Body, BodyContent, KeyPlacement, Model, Operation};

/// Schema keywords that a snapshot contains in addition to an argument's type.
const ARGUMENT_KEYWORDS: &[&str] = &[
    "enum",
    "const",
    "default",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "deprecated",
    "description",
];

/// Returns the snapshots of all operations, by operation name.
pub fn operations(design: &Design) -> BTreeMap<String, Value> {
    let operations = design.model.operations.iter();
    operations
        .map(|operation| {
            let price = design.prices.operations.get(&operation.name);
            let mut apis = design.model.apis.iter();
            let api = apis.find(|api| api.name == operation.api);
            (operation.name.clone(), snapshot(operation, api, price))
        })
        .collect()
}

/// Sorts the keys of every object in a value.
pub fn sort_keys(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<&String, Value> = map
                .iter()
                .map(|(key, value)| (key, sort_keys(value)))
                .collect();
            sorted
                .into_iter()
                .map(|(key, value)| (key.clone(), value))
                .collect::<Map<_, _>>()
                .into()
        }
        Value::Array(list) => list.iter().map(sort_keys).collect(),
        other => other.clone(),
    }
}

fn snapshot(operation: &Operation, api: Option<&ApiModel>, price: Option<&Price>) -> Value {
    let mut snapshot = json!({
        "name": operation.name,
        "api": operation.api,
        "domain": operation.domain,
        "method": operation.method.to_uppercase(),
        "path": operation.path,
        "host": operation.base_url,
        "auth": auth(operation),
        "responseType": operation.response_type.as_deref().unwrap_or("application/json"),
        "summary": operation.summary,
        "description": operation.description,
        "timeoutSeconds": operation.timeout_seconds,
        "arguments": arguments(operation),
        "inputSchema": operation.input_schema,
        "outputSchema": operation.output_schema,
    });
    if operation.deprecated {
        snapshot["deprecated"] = json!(true);
    }
    if let Some((content, _)) = operation.body.content() {
        snapshot["requestType"] = json!(media_type(content));
    }
    if let Some(schema) = &operation.stream_schema {
        snapshot["streamSchema"] = schema.clone();
    }
    if let Some(api) = api.filter(|api| api.key != KeyKind::Api) {
        snapshot["key"] = json!(api.key);
    }
    if let Some(set) = api.and_then(|api| api.set.as_ref()) {
        snapshot["set"] = json!(set);
    }
    if let (Value::Object(snapshot), Value::Object(behavior)) =
        (&mut snapshot, json!(operation.behavior))
    {
        snapshot.extend(behavior);
    }
    if let Some(price) = price {
        snapshot["price"] = json!(price);
    }
    snapshot
}

/// Returns where the key is sent.
fn auth(operation: &Operation) -> String {
    match &operation.key_placement {
        None => "header x-api-key".to_owned(),
        Some(KeyPlacement::Header(name)) => format!("header {name}"),
        Some(KeyPlacement::Bearer) => "bearer token".to_owned(),
        Some(KeyPlacement::Query(name)) => format!("query {name}"),
    }
}

fn media_type(content: &BodyContent) -> &str {
    match content {
        BodyContent::Json(media) => media.as_deref().unwrap_or("application/json"),
        BodyContent::Form => "application/x-www-form-urlencoded",
        BodyContent::Multipart(_) => "multipart/form-data",
        BodyContent::Text(media) | BodyContent::Binary(media) => media,
    }
}

fn arguments(operation: &Operation) -> Value {
    let mut arguments = Map::new();
    let required = operation
        .input_schema
        .get("required")
        .and_then(Value::as_array);
    let properties = operation
        .input_schema
        .get("properties")
        .and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        let is_required = required.is_some_and(|list| list.iter().any(|entry| entry == name));
        let mut argument =
            json!({"required": is_required, "type": type_text(schema, &operation.input_schema)});
        let definition = resolve(schema, &operation.input_schema);
        for key in ARGUMENT_KEYWORDS {
            if let Some(value) = schema.get(*key).or_else(|| definition.get(*key)) {
                argument[*key] = value.clone();
            }
        }
        match operation
            .parameters
            .iter()
            .find(|parameter| parameter.name == *name)
        {
            None if operation
                .server_arguments
                .iter()
                .any(|argument| argument.name == *name) =>
            {
                argument["in"] = json!("server");
                argument["wire"] = json!(name);
            }
            None => {
                argument["in"] = json!("body");
                argument["wire"] = json!(name);
            }
            Some(parameter) => {
                argument["in"] = json!(parameter.location.as_str());
                argument["wire"] = json!(parameter.wire_name);
                for (key, list) in [
                    ("aliases", &parameter.aliases),
                    ("always", &parameter.always_sent),
                ] {
                    if !list.is_empty() {
                        argument[key] = json!(list);
                    }
                }
                if !parameter.sent_with.is_empty() {
                    argument["with"] = json!(parameter.sent_with);
                }
            }
        }
        arguments.insert(name.clone(), argument);
    }
    Value::Object(arguments)
}

fn resolve<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let target = reference.and_then(|reference| root.pointer(reference.trim_start_matches('#')));
    target.unwrap_or(schema)
}

/// Returns a type as text: `string or null`, `array of string`, or the name of a definition.
pub fn type_text(schema: &Value, root: &Value) -> String {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next().unwrap_or_default();
        // Only the outermost type is shown, so that recursive definitions terminate.
        return match resolve(schema, root).get("type").and_then(Value::as_str) {
            Some("object") | None => name.to_owned(),
            Some(simple) => format!("{name} ({simple})"),
        };
    }
    for keyword in ["oneOf", "anyOf"] {
        if let Some(Value::Array(branches)) = schema.get(keyword) {
            let mut texts: Vec<String> = Vec::new();
            for text in branches.iter().map(|branch| type_text(branch, root)) {
                if !texts.contains(&text) {
                    texts.push(text);
                }
            }
            return texts.join(" or ");
        }
    }
    let names: Vec<&str> = match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ if schema.get("properties").is_some() || schema.get("allOf").is_some() => vec!["object"],
        _ => return "any".to_owned(),
    };
    let texts: Vec<String> = names
        .into_iter()
        .map(|name| match (name, schema.get("items")) {
            ("array", Some(items)) => format!("array of {}", type_text(items, root)),
            (other, _) => other.to_owned(),
        })
        .collect();
    texts.join(" or ")
}

/// Returns `SURFACE.md`: the notices and a table of the operations.
pub fn surface(model: &Model, notices: &[Notice]) -> String {
    let mut text = String::from("# Operations\n\nWritten by `cargo build --features codegen`.\n\n");
    let _ = writeln!(text, "| API | version | operations |\n|---|---|---|");
    for api in &model.apis {
        let count = model
            .operations
            .iter()
            .filter(|o| o.api == api.name)
            .count();
        let _ = writeln!(text, "| {} | {} | {count} |", api.name, api.version);
    }
    let _ = writeln!(text, "| all | | {} |", model.operations.len());
    let _ = writeln!(text, "\n## Notices\n");
    if notices.is_empty() {
        let _ = writeln!(
            text,
            "None: every overlay action and every surface entry found its place."
        );
    }
    for notice in notices {
        let _ = writeln!(text, "- {}", escape_cell(&notice.to_string()));
    }
    for api in &model.apis {
        let _ = writeln!(text, "\n## {}\n", api.name);
        let _ = writeln!(
            text,
            "| operation | request | arguments | summary |\n|---|---|---|---|"
        );
        for operation in model.operations.iter().filter(|o| o.api == api.name) {
            let request = format!("{} {}", operation.method.to_uppercase(), operation.path);
            let _ = writeln!(
                text,
                "| `{}` | `{request}` | {} | {}{} |",
                operation.name,
                escape_cell(&argument_list(operation)),
                escape_cell(&operation.summary),
                if operation.deprecated {
                    " (deprecated)"
                } else {
                    ""
                },
            );
        }
    }
    text.push_str("\nRequired arguments are bold; `…` means that the body takes further fields.\n");
    text
}

fn argument_list(operation: &Operation) -> String {
    let required = operation
        .input_schema
        .get("required")
        .and_then(Value::as_array);
    let properties = operation
        .input_schema
        .get("properties")
        .and_then(Value::as_object);
    let mut names: Vec<String> = properties
        .into_iter()
        .flatten()
        .map(|(name, _)| {
            if required.is_some_and(|list| list.iter().any(|entry| entry == name)) {
                format!("**{name}**")
            } else {
                name.clone()
            }
        })
        .collect();
    if matches!(operation.body, Body::Fields { closed: false, .. }) {
        names.push("…".to_owned());
    }
    names.join(", ")
}

fn escape_cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}
