//! Reports and ignores entries of `surface.yaml` that upstream no longer supports.

use std::collections::BTreeMap;

use exa_mcp_model::{OperationBehavior, Resources};
use serde_json::Value;

use crate::error::Notice;
use crate::model::{Model, Operation, Parameter};
use crate::surface::{OperationEntry, Surface, signature};

/// Checks the surface against the existing operations.
pub fn check(surface: &Surface, operations: &mut [Operation], notices: &mut Vec<Notice>) {
    for entry in &surface.operations {
        let found = operations
            .iter()
            .find(|operation| signature(&operation.method, &operation.path) == entry.signature());
        match found {
            None => notices.push(notice(
                entry,
                "the operation no longer exists; entry ignored",
            )),
            Some(operation) => check_parameters(entry, operation, notices),
        }
    }
    for header in surface.headers.keys() {
        let used = operations
            .iter()
            .flat_map(|operation| &operation.parameters)
            .any(|parameter| parameter.wire_name.eq_ignore_ascii_case(header));
        if !used {
            notices.push(Notice {
                file: "surface.yaml".to_owned(),
                location: format!("header {header}"),
                message: "no operation has this header; entry ignored".to_owned(),
            });
        }
    }
    check_behavior(surface, operations, notices);
}

fn notice(entry: &OperationEntry, message: impl Into<String>) -> Notice {
    Notice {
        file: "surface.yaml".to_owned(),
        location: format!("entry {}", entry.matches),
        message: message.into(),
    }
}

fn check_parameters(entry: &OperationEntry, operation: &Operation, notices: &mut Vec<Notice>) {
    for wire_name in entry.parameters.keys() {
        if !operation
            .parameters
            .iter()
            .any(|parameter| is_named_by(entry, wire_name, parameter, &operation.path))
        {
            let message =
                format!("the operation has no parameter `{wire_name}`; its name is ignored");
            notices.push(notice(entry, message));
        }
    }
    for argument in &entry.server_arguments {
        if !operation
            .server_arguments
            .iter()
            .any(|known| known.name == argument.name)
        {
            let message = format!("upstream now has `{}`; its version is used", argument.name);
            notices.push(notice(entry, message));
        }
    }
    for name in &entry.show_first {
        if !operation.has_argument(name) {
            let message = format!("the operation has no argument `{name}`; it is not shown");
            notices.push(notice(entry, message));
        }
    }
}

/// Returns whether the entry means this parameter with `wire_name`.
fn is_named_by(entry: &OperationEntry, wire_name: &str, parameter: &Parameter, path: &str) -> bool {
    let configured = entry.parameter_name(&parameter.wire_name, path);
    parameter.wire_name == wire_name
        || configured.is_some_and(|name| entry.parameters.get(wire_name) == Some(name))
}

/// Removes the parts of each operation's behavior that need missing arguments, fields or operations.
fn check_behavior(surface: &Surface, operations: &mut [Operation], notices: &mut Vec<Notice>) {
    let output_schemas: OutputSchemas = operations
        .iter()
        .map(|operation| (operation.name.clone(), operation.output_schema.clone()))
        .collect();
    for operation in operations {
        let operation_signature = signature(&operation.method, &operation.path);
        let mut entries = surface.operations.iter();
        let Some(entry) = entries.find(|entry| entry.signature() == operation_signature) else {
            continue;
        };
        let mut behavior = std::mem::take(&mut operation.behavior);
        let mut report = |message: String| notices.push(notice(entry, message));
        check_arguments(&mut behavior, operation, &mut report);
        check_operations(&mut behavior, &output_schemas, &mut report);
        operation.behavior = behavior;
    }
}

/// Response schemas by operation.
type OutputSchemas = BTreeMap<String, Value>;

/// Removes behavior for arguments that the operation no longer has.
fn check_arguments(
    behavior: &mut OperationBehavior,
    operation: &Operation,
    report: &mut impl FnMut(String),
) {
    let mut exists = |name: &str, what: &str| {
        let known = operation.has_argument(name);
        if !known {
            report(format!(
                "the operation has no argument `{name}`; {what} omitted"
            ));
        }
        known
    };
    let example = &mut behavior.example;
    example.with.retain(|name| exists(name, "example"));
    example.texts.retain(|name, _| exists(name, "example"));
    behavior
        .checks
        .retain(|check| check.argument().is_none_or(|name| exists(name, "check")));
    behavior.filters.retain(|_, name| exists(name, "filter"));
    behavior.stream.take_if(|_| !exists("stream", "streaming"));
}

/// Removes behavior that needs operations that no longer exist.
fn check_operations(
    behavior: &mut OperationBehavior,
    output_schemas: &OutputSchemas,
    report: &mut impl FnMut(String),
) {
    let mut is_missing = |name: &str, what: &str| {
        let missing = !output_schemas.contains_key(name);
        if missing {
            report(format!("`{name}` no longer exists; {what} omitted"));
        }
        missing
    };
    if let Some(stream) = &mut behavior.stream {
        stream.get.take_if(|name| is_missing(name, "polling"));
    }
    behavior.upload.take_if(|upload| {
        is_missing(&upload.get, "upload") || is_missing(&upload.delete, "upload")
    });
    let Some(mut marker) = behavior.long_running.take() else {
        return;
    };
    if is_missing(&marker.get, "long-running marker") {
        return;
    }
    marker
        .cancel
        .take_if(|name| is_missing(name, "cancellation"));
    let missing_field = |operation: &str, field: &str| {
        let schema = output_schemas.get(operation);
        let missing = schema.is_some_and(|schema| !has_property(schema, field));
        missing.then(|| format!("the response of `{operation}` has no field `{field}`"))
    };
    if let Some(problem) = missing_field(&marker.get, &marker.status) {
        report(format!("{problem}; long-running marker omitted"));
        return;
    }
    marker.find.take_if(|find| {
        let problem = if output_schemas.contains_key(&find.list) {
            missing_field(&find.list, &find.entries)
        } else {
            Some(format!("`{}` no longer exists", find.list))
        };
        if let Some(problem) = &problem {
            report(format!("{problem}; recovery by listing omitted"));
        }
        problem.is_some()
    });
    behavior.long_running = Some(marker);
}

/// Returns the operations behind resources that exist.
pub fn check_resources(
    resources: &Resources,
    model: &Model,
    notices: &mut Vec<Notice>,
) -> Resources {
    let mut resources = resources.clone();
    let mut is_missing = |name: &str, what: &str| {
        let missing = model.find(name).is_none();
        if missing {
            notices.push(Notice {
                file: "surface.yaml".to_owned(),
                location: "resources".to_owned(),
                message: format!("`{name}` no longer exists; {what} omitted"),
            });
        }
        missing
    };
    resources.websets.take_if(|websets| {
        websets.list.take_if(|list| is_missing(list, "completion"));
        is_missing(&websets.get, "`websets`") || is_missing(&websets.items, "`websets`")
    });
    resources
}

/// Returns whether a response with this schema can have the field. An unrestricted schema can.
pub(crate) fn has_property(schema: &Value, name: &str) -> bool {
    fn search(schema: &Value, root: &Value, name: &str, depth: usize) -> Option<bool> {
        if depth > 16 {
            return None;
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let target = root.pointer(reference.trim_start_matches('#'))?;
            return search(target, root, name, depth + 1);
        }
        let mut known = None;
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            known = Some(properties.contains_key(name));
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for branch in schema
                .get(keyword)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                if let Some(found) = search(branch, root, name, depth + 1) {
                    known = Some(known.unwrap_or(false) || found);
                }
            }
        }
        known
    }
    search(schema, schema, name, 0).unwrap_or(true)
}

/// Returns the schemas of the value at a dotted path, following references and all branches.
pub(crate) fn schemas_at<'a>(schema: &'a Value, path: &str) -> Vec<&'a Value> {
    fn step<'a>(schema: &'a Value, root: &'a Value, name: &str, depth: usize) -> Vec<&'a Value> {
        if depth > 16 {
            return Vec::new();
        }
        let reference = schema.get("$ref").and_then(Value::as_str);
        let target =
            reference.and_then(|reference| root.pointer(reference.trim_start_matches('#')));
        let own = schema.get("properties").and_then(|all| all.get(name));
        let branches = ["allOf", "anyOf", "oneOf"]
            .into_iter()
            .filter_map(|keyword| schema.get(keyword)?.as_array())
            .flatten();
        let below = |schema| step(schema, root, name, depth + 1);
        let found = target.into_iter().flat_map(below).chain(own);
        found.chain(branches.flat_map(below)).collect()
    }
    path.split('.').fold(vec![schema], |schemas, name| {
        let next = schemas
            .into_iter()
            .flat_map(|found| step(found, schema, name, 0));
        next.collect()
    })
}
