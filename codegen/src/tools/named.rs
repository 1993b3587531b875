//! Tools with flat arguments: a view of one operation with presets.

use exa_mcp_model::{ArgumentMapping, NamedToolPlan, ToolDefinition, ToolPlan};
use serde_json::{Map, Value, json};

use super::definitions::{Named, NamedArgument};
use super::{Tool, common_hints, lost};
use crate::error::Notice;
use crate::model::{Model, Operation};
use crate::surface_check::schemas_at;

/// Makes a named tool; an argument that the operation lost is reported and left out.
pub fn tool(named: &Named, model: &Model, notices: &mut Vec<Notice>) -> Option<Tool> {
    let Some(operation) = model.find(&named.operation) else {
        let text = format!(
            "`{}` does not exist any more; the tool was left out",
            named.operation
        );
        notices.push(lost(&named.name, &text));
        return None;
    };
    let mut operations = vec![operation];
    let mut instead = named.instead.clone();
    if let Some(other) = &named.instead {
        match model.find(&other.operation) {
            Some(found) => operations.push(found),
            None => {
                let text = format!(
                    "`{}` does not exist any more; `{}` was left out",
                    other.operation, other.given
                );
                notices.push(lost(&named.name, &text));
                instead = None;
            }
        }
    }
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut moves = Vec::new();
    for argument in &named.arguments {
        let gone = instead.is_none()
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
            at(operation, target)
        };
        let Some(found) = found.filter(|_| !gone) else {
            if !gone {
                let text = format!(
                    "`{}` has no argument `{target}` any more; `{}` was left out",
                    operation.name, argument.name
                );
                notices.push(lost(&named.name, &text));
            }
            continue;
        };
        let sent = named
            .fixed
            .get(target)
            .or_else(|| named.defaults.get(target));
        properties.insert(argument.name.clone(), visible(argument, found, sent));
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
    Some(super::tool(definition, ToolPlan::Named(Box::new(plan))))
}

/// The schema that a model reads: the spec's own, reduced to what fits a flat argument.
fn visible(argument: &NamedArgument, found: Value, sent: Option<&Value>) -> Value {
    let mut schema = match &argument.schema {
        Some(own) => Value::Object(own.clone()),
        None if argument.switch.is_some() => json!({"type": "boolean"}),
        None => found.clone(),
    };
    let text = argument.description.clone().map(Value::String);
    let text = text.or_else(|| found.get("description").cloned());
    if let (Value::Object(schema), Some(text)) = (&mut schema, text) {
        schema.insert("description".to_owned(), text);
    }
    // The spec's default is what Exa takes; the tool may send another value unasked.
    if let (Value::Object(schema), Some(sent)) = (&mut schema, sent)
        && let Some(default) = schema.get_mut("default")
    {
        *default = sent.clone();
    }
    schema
}

/// The schema at a dotted path of an operation's arguments, with references resolved one level.
fn at(operation: &Operation, path: &str) -> Option<Value> {
    let root = &operation.input_schema;
    let found = *schemas_at(root, path).first()?;
    let mut schema = found.clone();
    if let Some(Value::String(reference)) = found.get("$ref") {
        schema = root.pointer(reference.trim_start_matches('#'))?.clone();
    }
    // What still refers to a definition cannot stand alone in a small schema.
    if schema.to_string().contains("\"$ref\"") {
        schema = json!({"description": schema.get("description").cloned().unwrap_or_default()});
    }
    if let Value::Object(map) = &mut schema {
        map.shift_remove("x-aliases");
    }
    Some(schema)
}
