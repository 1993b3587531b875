//! Builds tools with flat arguments and presets for one operation.

use exa_mcp_model::{ArgumentMapping, NamedToolPlan, ToolDefinition, ToolPlan};
use serde_json::{Map, Value, json};

use super::definitions::{NamedArgument, NamedTool};
use super::{Tool, common_hints, tool_notice};
use crate::error::Notice;
use crate::model::{Model, Operation};
use crate::surface_check::schemas_at;

/// Builds a named tool. Omits and reports arguments that the operation no longer has.
pub fn named_tool(named: &NamedTool, model: &Model, notices: &mut Vec<Notice>) -> Option<Tool> {
    let Some(operation) = model.find(&named.operation) else {
        let message = format!("`{}` no longer exists; tool omitted", named.operation);
        notices.push(tool_notice(&named.name, &message));
        return None;
    };
    let mut operations = vec![operation];
    let mut instead = named.instead.clone();
    if let Some(other) = &named.instead {
        match model.find(&other.operation) {
            Some(found) => operations.push(found),
            None => {
                let message = format!(
                    "`{}` no longer exists; `{}` omitted",
                    other.operation, other.given
                );
                notices.push(tool_notice(&named.name, &message));
                instead = None;
            }
        }
    }
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut moves = Vec::new();
    for argument in &named.arguments {
        let is_removed = instead.is_none()
            && named
                .instead
                .as_ref()
                .is_some_and(|other| other.given == argument.name);
        let is_instead = instead
            .as_ref()
            .is_some_and(|other| other.given == argument.name);
        let target = argument.to.as_deref().unwrap_or(&argument.name);
        let found = if is_instead {
            Some(json!({"type": "string"}))
        } else {
            schema_at(operation, target)
        };
        let Some(found) = found.filter(|_| !is_removed) else {
            if !is_removed {
                let message = format!(
                    "`{}` has no argument `{target}`; `{}` omitted",
                    operation.name, argument.name
                );
                notices.push(tool_notice(&named.name, &message));
            }
            continue;
        };
        let preset = named
            .fixed
            .get(target)
            .or_else(|| named.defaults.get(target));
        properties.insert(
            argument.name.clone(),
            visible_schema(argument, found, preset),
        );
        if argument.required {
            required.push(argument.name.clone());
        }
        if !is_instead {
            moves.push(ArgumentMapping {
                from: argument.name.clone(),
                to: target.to_owned(),
                switch: argument.switch.clone(),
            });
        }
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let plan = NamedToolPlan {
        operation: named.operation.clone(),
        moves,
        defaults: named.defaults.clone(),
        fixed: named.fixed.clone(),
        levels: named.levels.clone(),
        content_level: named.content_level.clone(),
        suffix: named.suffix.clone(),
        category_in_query: named.category_in_query,
        instead,
        example: named.example.clone(),
    };
    let definition = ToolDefinition {
        name: named.name.clone(),
        title: named.title.clone(),
        description: named.description.trim().to_owned(),
        input_schema: schema,
        annotations: common_hints(&operations),
    };
    Some(super::new_tool(definition, ToolPlan::Named(Box::new(plan))))
}

/// Returns the schema that a model reads: that of the spec, reduced to a flat argument.
fn visible_schema(argument: &NamedArgument, found: Value, preset: Option<&Value>) -> Value {
    let mut schema = match &argument.schema {
        Some(schema) => Value::Object(schema.clone()),
        None if argument.switch.is_some() => json!({"type": "boolean"}),
        None => found.clone(),
    };
    let text = argument.description.clone().map(Value::String);
    let text = text.or_else(|| found.get("description").cloned());
    if let (Value::Object(schema), Some(text)) = (&mut schema, text) {
        schema.insert("description".to_owned(), text);
    }
    // The spec's default is that of Exa; the tool may send another value by default.
    if let (Value::Object(schema), Some(preset)) = (&mut schema, preset)
        && let Some(default) = schema.get_mut("default")
    {
        *default = preset.clone();
    }
    schema
}

/// Returns the schema at a dotted path of an operation's arguments, with one level of references resolved.
fn schema_at(operation: &Operation, path: &str) -> Option<Value> {
    let root = &operation.input_schema;
    let found = *schemas_at(root, path).first()?;
    let mut schema = found.clone();
    if let Some(Value::String(reference)) = found.get("$ref") {
        schema = root.pointer(reference.trim_start_matches('#'))?.clone();
    }
    // A schema that still refers to definitions cannot be used on its own.
    if schema.to_string().contains("\"$ref\"") {
        schema = json!({"description": schema.get("description").cloned().unwrap_or_default()});
    }
    if let Value::Object(map) = &mut schema {
        map.shift_remove("x-aliases");
    }
    Some(schema)
}
