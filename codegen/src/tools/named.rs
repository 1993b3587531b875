//! Builds tools with flat arguments and presets for one operation.

use std::collections::BTreeSet;

use exa_mcp_model::{ArgumentMapping, NamedToolPlan, ToolDefinition, ToolPlan};
use serde_json::{Map, Value, json};

use super::definitions::{NamedArgument, NamedTool, ToolDefinitions};
use super::presets::check_presets;
use super::{Tool, common_hints};
use crate::error::Findings;
use crate::model::{Model, Operation};
use crate::surface_check::{Place, Report, locate, misfit, schemas_at, validate};

/// Builds a named tool. Omits and reports arguments and values that the operation no longer has.
pub(super) fn named_tool(
    named: &NamedTool,
    definitions: &ToolDefinitions,
    model: &Model,
    findings: &mut Findings,
) -> Option<Tool> {
    let mut report = Report::new(findings, format!("tool {}", named.name));
    let Some(operation) = model.find(&named.operation) else {
        report.omit(format!(
            "`{}` no longer exists; tool omitted",
            named.operation
        ));
        return None;
    };
    let mut named = named.clone();
    let mut operations = vec![operation];
    operations.extend(check_instead(&mut named, model, &mut report));
    check_values(&mut named, operation, definitions, &mut report);
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut moves = Vec::new();
    let taken: BTreeSet<&str> = definitions
        .options
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    for argument in &named.arguments {
        let is_instead = is_given(&named, &argument.name);
        let target = argument.to.as_deref().unwrap_or(&argument.name);
        let found = if is_instead {
            Some(json!({"type": "string"}))
        } else {
            schema_at(operation, target)
        };
        let problem = if found.is_none() {
            Some(format!("`{}` has no argument `{target}`", operation.name))
        } else if properties.contains_key(&argument.name) {
            Some(format!("a second argument is called `{}`", argument.name))
        } else if taken.contains(argument.name.as_str()) && target != argument.name {
            Some(format!("an output option is called `{}`", argument.name))
        } else if named.fixed.contains_key(target) {
            Some(format!("`{target}` is fixed"))
        } else {
            None
        };
        if let Some(problem) = problem {
            report.omit(format!("{problem}; `{}` omitted", argument.name));
            continue;
        }
        let Some(found) = found else { continue };
        let mut argument = argument.clone();
        if !is_instead && !check_argument(&mut argument, operation, target, &mut report) {
            continue;
        }
        let preset = named.defaults.get(target);
        properties.insert(
            argument.name.clone(),
            visible_schema(&argument, found, preset),
        );
        if argument.required {
            required.push(argument.name.clone());
        }
        if !is_instead {
            moves.push(ArgumentMapping {
                from: argument.name.clone(),
                to: target.to_owned(),
                switch: argument.switch.clone(),
                values: argument.values.clone(),
            });
        }
    }
    if let Some(name) = unfilled(operation, &named, &moves) {
        report.omit(format!(
            "`{}` requires `{name}`, which the tool never sends; tool omitted",
            operation.name
        ));
        return None;
    }
    check_texts(&mut named, &properties, &mut report);
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let plan = NamedToolPlan {
        operation: named.operation,
        moves,
        defaults: named.defaults,
        fixed: named.fixed,
        levels: named.levels,
        content_level: named.content_level,
        brief: named.brief,
        suffix: named.suffix,
        category_in_query: named.category_in_query,
        instead: named.instead,
        example: named.example,
    };
    let definition = ToolDefinition {
        name: named.name,
        title: named.title,
        description: named.description.trim().to_owned(),
        input_schema: schema,
        annotations: common_hints(&operations),
    };
    Some(super::new_tool(definition, ToolPlan::Named(Box::new(plan))))
}

fn is_given(named: &NamedTool, argument: &str) -> bool {
    let instead = named.instead.as_ref();
    instead.is_some_and(|other| other.given == argument)
}

/// Returns the alternative operation. If it cannot be called, its argument is removed.
fn check_instead<'a>(
    named: &mut NamedTool,
    model: &'a Model,
    report: &mut Report<'_>,
) -> Option<&'a Operation> {
    let other = named.instead.as_ref()?;
    let found = model.find(&other.operation);
    let problem = match found {
        None => format!("`{}` no longer exists", other.operation),
        Some(found) if !found.has_argument(&other.given) => {
            format!("`{}` has no argument `{}`", found.name, other.given)
        }
        Some(_) if !named.arguments.iter().any(|it| it.name == other.given) => {
            format!("the tool has no argument `{}`", other.given)
        }
        Some(found) => return Some(found),
    };
    report.omit(format!("{problem}; `{}` omitted", other.given));
    let given = other.given.clone();
    named.arguments.retain(|argument| argument.name != given);
    named.instead = None;
    None
}

/// Removes values that do not fit, and levels that do not exist.
fn check_values(
    named: &mut NamedTool,
    operation: &Operation,
    definitions: &ToolDefinitions,
    report: &mut Report<'_>,
) {
    check_presets(&mut named.fixed, operation, "fixed value", report);
    check_presets(&mut named.defaults, operation, "default", report);
    let known = definitions.content_levels();
    named.levels.retain(|level, values| {
        let exists = known.contains(&level.as_str());
        if exists {
            check_presets(
                values,
                operation,
                &format!("value of level `{level}`"),
                report,
            );
        } else {
            report.omit(format!("there is no content level `{level}`; omitted"));
        }
        exists
    });
    named.content_level.take_if(|level| {
        let missing = !known.contains(&level.as_str());
        if missing {
            report.omit(format!("there is no content level `{level}`; omitted"));
        }
        missing
    });
    let fixed = &named.fixed;
    for (values, what) in std::iter::once((&mut named.defaults, "default"))
        .chain(named.levels.values_mut().map(|values| (values, "level")))
    {
        values.retain(|path, _| {
            let twice = fixed.contains_key(path);
            if twice {
                report.omit(format!("`{path}` is fixed; its value as a {what} omitted"));
            }
            !twice
        });
    }
    let has_category = || !schemas_at(&operation.input_schema, "category").is_empty();
    if named.category_in_query && !has_category() {
        report.omit(format!(
            "`{}` has no argument `category`; `categoryInQuery` omitted",
            operation.name
        ));
        named.category_in_query = false;
    }
}

/// Returns whether the argument can be offered. Removes the values of its own schema that do not fit.
fn check_argument(
    argument: &mut NamedArgument,
    operation: &Operation,
    target: &str,
    report: &mut Report<'_>,
) -> bool {
    let root = &operation.input_schema;
    let Place::Declared(fields) = locate(root, target) else {
        return true;
    };
    let name = &argument.name;
    if let Some(switch) = &argument.switch
        && let Some(problem) = misfit(root, &fields, target, switch)
    {
        report.omit(format!("{problem}; `{name}` omitted"));
        return false;
    }
    if argument.switch.is_some() {
        return true;
    }
    let Some(schema) = &mut argument.schema else {
        return true;
    };
    if !jsonschema::meta::is_valid(&Value::Object(schema.clone())) {
        report.omit(format!(
            "the schema of `{name}` is not a JSON Schema; that of the spec is used"
        ));
        argument.schema = None;
        return true;
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        let translated = argument.values.clone();
        values.retain(|value| {
            let meant = value.as_str().and_then(|value| translated.get(value));
            let problem = misfit(root, &fields, target, meant.unwrap_or(value));
            if let Some(problem) = &problem {
                report.omit(format!("{problem}; omitted from `{name}`"));
            }
            problem.is_none()
        });
        if values.is_empty() {
            report.omit(format!("no value of `{name}` is left; omitted"));
            return false;
        }
    }
    true
}

/// Returns a required argument of the operation that the tool never sends.
fn unfilled(operation: &Operation, named: &NamedTool, moves: &[ArgumentMapping]) -> Option<String> {
    let required = operation.input_schema.get("required")?.as_array()?;
    let paths = moves.iter().map(|it| it.to.as_str());
    let paths = paths.chain(
        named
            .fixed
            .keys()
            .chain(named.defaults.keys())
            .map(String::as_str),
    );
    let filled: BTreeSet<&str> = paths.filter_map(|path| path.split('.').next()).collect();
    let mut names = required.iter().filter_map(Value::as_str);
    names.find(|name| !filled.contains(name)).map(str::to_owned)
}

/// Removes arguments from the example that the tool does not have, or texts that do not fit.
fn check_texts(named: &mut NamedTool, properties: &Map<String, Value>, report: &mut Report<'_>) {
    let mut is_known = |name: &String| {
        let known = properties.contains_key(name);
        if !known {
            report.omit(format!(
                "the tool has no argument `{name}`; example omitted"
            ));
        }
        known
    };
    named.example.with.retain(&mut is_known);
    named.example.texts.retain(|name, _| is_known(name));
    named.example.texts.retain(|name, text| {
        let schema = properties.get(name).unwrap_or(&Value::Null);
        let problem = validate(schema, schema, &json!(text));
        if let Some(problem) = &problem {
            report.omit(format!(
                "the example of `{name}` does not fit: {problem}; omitted"
            ));
        }
        problem.is_none()
    });
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
        // What the argument is for says more than what its type is.
        if let (Value::Object(schema), Some(text)) = (&mut schema, found.get("description")) {
            schema.insert("description".to_owned(), text.clone());
        }
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
