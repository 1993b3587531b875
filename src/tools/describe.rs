//! Descriptions of operations: typed signature, example and hints; the JSON Schema on request.

use serde_json::{Map, Value, json};

use super::discovery::{
    is_same_name, missing_operation, render_json, resolve_name, unknown_operation,
};
use super::outcome::{ToolResult, put};
use super::registry::Tool;
use super::signature::{compact_schema, typed_signature};
use super::{options, toolhost};
use crate::operations::{self, validation};
use exa_mcp_model::{ExampleCall, Operation, ToolhostEntry};
use exa_mcp_text::tokens::estimate;

/// Describes one operation: its schema, an example and hints.
pub(super) fn describe<'a>(
    args: &Value,
    known: impl Iterator<Item = &'a str> + Clone,
    mut corrections: Vec<String>,
) -> ToolResult {
    let requested = ["operation", "name"]
        .iter()
        .find_map(|key| args.get(*key)?.as_str());
    let Some(requested) = requested.or(args.as_str()) else {
        return Err(missing_operation(
            "describe needs args {\"operation\": NAME}.",
            known,
        ));
    };
    let operation = resolve_name("operation", requested, known.clone(), &mut corrections)
        .and_then(|name| operations::find(&name));
    match operation {
        Some(operation) => {
            let described = description(operation, wants_schema(args));
            Ok(render_json(described, corrections))
        }
        None => Err(unknown_operation(requested, known)),
    }
}

/// Maximum tokens of the description of an operation without its JSON Schema.
const MAX_DESCRIPTION_TOKENS: usize = 560;

/// Tokens that a signature gets even beside a long description.
const MIN_SIGNATURE_TOKENS: usize = 120;

/// Names under which callers ask for the JSON Schema.
const SCHEMA_REQUESTS: [&str; 7] = [
    "schema",
    "schemas",
    "inputSchema",
    "outputSchema",
    "jsonSchema",
    "full",
    "verbose",
];

/// Returns whether the JSON Schema is requested.
fn wants_schema(args: &Value) -> bool {
    let is_on = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
    args.as_object().is_some_and(|args| {
        let requests = |name: &String| SCHEMA_REQUESTS.iter().any(|it| is_same_name(it, name));
        args.iter()
            .any(|(name, value)| requests(name) && is_on(value))
    })
}

/// Adds the signature, which gets the tokens that the rest of the description leaves, and drops what is too long.
fn add_signature(described: &mut Value, name: &str, schema: &Value) {
    let shortest = estimate(&json!(typed_signature(name, schema, 0)).to_string());
    let reserved = shortest.max(MIN_SIGNATURE_TOKENS);
    let is_long =
        |described: &Value| estimate(&described.to_string()) + reserved > MAX_DESCRIPTION_TOKENS;
    if is_long(described)
        && let Value::Object(map) = described
        && map.contains_key("summary")
    {
        map.shift_remove("description");
    }
    while is_long(described)
        && let Some(Value::Array(hints)) = described.get_mut("hints")
        && hints.pop().is_some()
    {}
    let used = estimate(&described.to_string());
    let left = MAX_DESCRIPTION_TOKENS.saturating_sub(used);
    put(
        described,
        "signature",
        json!(typed_signature(name, schema, left)),
    );
}

/// Returns the JSON Schema of the response.
fn output_schema(operation: &'static Operation) -> Value {
    serde_json::from_str(operation.output_schema).unwrap_or_default()
}

fn description(operation: &'static Operation, with_schema: bool) -> Map<String, Value> {
    let schema = schema(operation);
    let hints = &operation.behavior.hints;
    let mut described = json!({
        "operation": operation.name,
        "summary": operation.summary,
        "cost": operations::price::cost_in_words(operation),
        "example": {"operation": operation.name, "args": validation::example(&operation.behavior.example, &schema)},
        "description": operation.description,
        "hints": hints,
    });
    if operation.description == operation.summary
        && let Value::Object(map) = &mut described
    {
        map.shift_remove("description");
    }
    if let Some(instead) = &operation.behavior.replaced_by {
        put(&mut described, "replacedBy", json!(instead));
    }
    add_signature(&mut described, operation.name, &schema);
    if with_schema {
        put(&mut described, "inputSchema", schema);
        put(&mut described, "outputSchema", output_schema(operation));
    } else {
        put(&mut described, "more", json!(SCHEMA_HINT));
    }
    super::outcome::as_object(described)
}

/// How to get the JSON Schema.
const SCHEMA_HINT: &str = "add \"schema\": true for the JSON Schemas of arguments and response";

/// Lists the entries of a toolhost with their schemas; `params.operation` selects one of them.
pub(super) fn list_entries(
    entries: &[ToolhostEntry],
    params: &Value,
    mut corrections: Vec<String>,
) -> ToolResult {
    let known = || entries.iter().map(|entry| entry.name.as_str());
    let requested = match params.get("operation").and_then(Value::as_str) {
        None => None,
        Some(name) => match resolve_name("operation", name, known(), &mut corrections) {
            Some(name) => Some(name),
            None => return Err(unknown_operation(name, known())),
        },
    };
    let listed: Vec<Value> = entries
        .iter()
        .filter(|entry| {
            requested
                .as_deref()
                .is_none_or(|requested| requested == entry.name)
        })
        .map(|entry| entry_description(entry, wants_schema(params)))
        .collect();
    let mut listed = Map::from_iter([("operations".to_owned(), json!(listed))]);
    if !wants_schema(params) {
        let hint = format!("{{\"operation\": NAME}} lists one operation; {SCHEMA_HINT}");
        listed.insert("more".to_owned(), json!(hint));
    }
    if requested.is_none() {
        listed.insert("options".to_owned(), json!(options::signature()));
    }
    Ok(render_json(listed, corrections))
}

fn entry_description(entry: &ToolhostEntry, with_schema: bool) -> Value {
    let mut described = json!({"name": entry.name, "description": entry.summary});
    let local = entry.tool.as_deref().and_then(Tool::find);
    let operation = entry.operation.as_deref().and_then(operations::find);
    let (schema, example) = match (operation, &local) {
        (Some(operation), _) => {
            let mut schema = schema(operation);
            let mut example = operations::example(operation);
            rename_properties(entry, &mut schema);
            add_own_properties(entry, &mut schema);
            toolhost::rename_in_example(entry, &mut example);
            (schema, example)
        }
        (None, Some(tool)) => {
            let schema = Value::clone(tool.schema());
            let example = validation::example(&ExampleCall::EMPTY, tool.schema());
            (schema, example)
        }
        (None, None) => {
            put(&mut described, "supported", json!(false));
            put(&mut described, "why", json!(entry.unsupported));
            let schema = plain_schema(&entry.parameters);
            put(&mut described, "inputSchema", schema);
            return described;
        }
    };
    let call = json!({"operation": entry.name, "params": example});
    put(&mut described, "example", call);
    if with_schema {
        let name = &entry.name;
        put(
            &mut described,
            "signature",
            json!(typed_signature(name, &schema, MAX_DESCRIPTION_TOKENS)),
        );
        put(&mut described, "inputSchema", schema);
        if let Some(operation) = operation {
            put(&mut described, "outputSchema", output_schema(operation));
        }
    } else {
        put(&mut described, "inputSchema", compact_schema(&schema));
        add_signature(&mut described, &entry.name, &schema);
    }
    described
}

/// Returns a schema of required strings.
fn plain_schema(parameters: &[String]) -> Value {
    let properties: Map<String, Value> = parameters
        .iter()
        .map(|name| (name.clone(), json!({"type": "string"})))
        .collect();
    json!({"type": "object", "properties": properties, "required": parameters})
}

/// Adds the objects that an entry accepts beside the arguments of its operation.
fn add_own_properties(entry: &ToolhostEntry, schema: &mut Value) {
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

/// Renames properties in the schema; the names of the operation are accepted as well.
fn rename_properties(entry: &ToolhostEntry, schema: &mut Value) {
    for (from, to) in entry.rename.iter().filter(|(_, to)| !to.contains('.')) {
        let Some(Value::Object(properties)) = schema.get_mut("properties") else {
            return;
        };
        if let Some(property) = properties.shift_remove(to) {
            // Values of its own replace those of the operation.
            let own = entry.values.get(from).map(|values| {
                let values: Vec<&String> = values.keys().collect();
                json!({"type": "string", "enum": values})
            });
            properties.insert(from.clone(), own.unwrap_or(property));
        }
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required
                .iter_mut()
                .filter(|name| *name == to)
                .for_each(|name| *name = json!(from));
        }
    }
    // Arguments with a default are not required.
    let defaulted = |name: &Value| {
        let first = |path: &String| path.split('.').next() == name.as_str();
        entry.defaults.keys().any(first)
    };
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| !defaulted(name));
    }
}

/// Returns the input schema without keywords for validators.
fn schema(operation: &'static Operation) -> Value {
    let mut schema = Value::clone(operations::input_schema(operation));
    if let Value::Object(schema) = &mut schema {
        schema.shift_remove("$schema");
    }
    schema
}
