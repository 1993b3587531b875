//! Entries of `surface.yaml` that upstream no longer supports are reported and left out.

use std::collections::BTreeMap;

use exa_mcp_model::{OperationBehavior, Resources};
use serde_json::Value;

use crate::error::Notice;
use crate::model::{Model, Operation};
use crate::surface::{Entry, Surface, signature};

/// Compares the surface with the operations that exist.
pub fn check(surface: &Surface, operations: &mut [Operation], notices: &mut Vec<Notice>) {
    for entry in &surface.operations {
        let found = operations
            .iter()
            .find(|operation| signature(&operation.method, &operation.path) == entry.signature());
        match found {
            None => notices.push(notice(
                entry,
                "no such operation any more; the entry was left out",
            )),
            Some(operation) => check_parameters(entry, operation, notices),
        }
    }
    for header in surface.headers.keys() {
        let used = operations
            .iter()
            .flat_map(|operation| &operation.parameters)
            .any(|parameter| parameter.wire.eq_ignore_ascii_case(header));
        if !used {
            notices.push(Notice {
                file: "surface.yaml".to_owned(),
                place: format!("header {header}"),
                text: "no operation has this header any more; the entry was left out".to_owned(),
            });
        }
    }
    check_behavior(surface, operations, notices);
}

fn notice(entry: &Entry, text: impl Into<String>) -> Notice {
    Notice {
        file: "surface.yaml".to_owned(),
        place: format!("entry {}", entry.matches),
        text: text.into(),
    }
}

fn check_parameters(entry: &Entry, operation: &Operation, notices: &mut Vec<Notice>) {
    for wire in entry.parameters.keys() {
        if !operation
            .parameters
            .iter()
            .any(|parameter| parameter.wire == *wire)
        {
            let text =
                format!("the operation has no parameter `{wire}` any more; its name was left out");
            notices.push(notice(entry, text));
        }
    }
    for own in &entry.own {
        if !operation.own.iter().any(|kept| kept.name == own.name) {
            let text = format!("upstream now has `{}`; its version is used", own.name);
            notices.push(notice(entry, text));
        }
    }
    for name in &entry.show {
        if !operation.has_argument(name) {
            let text = format!("the operation has no argument `{name}` any more; it is not shown");
            notices.push(notice(entry, text));
        }
    }
}

/// What the server does for an operation is kept as far as the arguments, fields and operations that
/// it names exist.
fn check_behavior(surface: &Surface, operations: &mut [Operation], notices: &mut Vec<Notice>) {
    let known: Known = operations
        .iter()
        .map(|operation| (operation.name.clone(), operation.output_schema.clone()))
        .collect();
    for operation in operations {
        let own = signature(&operation.method, &operation.path);
        let mut entries = surface.operations.iter();
        let Some(entry) = entries.find(|entry| entry.signature() == own) else {
            continue;
        };
        let mut behavior = std::mem::take(&mut operation.behavior);
        let mut report = |text: String| notices.push(notice(entry, text));
        check_arguments(&mut behavior, operation, &mut report);
        check_operations(&mut behavior, &known, &mut report);
        operation.behavior = behavior;
    }
}

/// Schemas of responses by operation.
type Known = BTreeMap<String, Value>;

/// Leaves out what is said about arguments that the operation does not have any more.
fn check_arguments(
    behavior: &mut OperationBehavior,
    operation: &Operation,
    report: &mut impl FnMut(String),
) {
    let mut keep = |name: &str, what: &str| {
        let known = operation.has_argument(name);
        if !known {
            report(format!(
                "the operation has no argument `{name}` any more; {what} was left out"
            ));
        }
        known
    };
    let example = &mut behavior.example;
    example.with.retain(|name| keep(name, "its example"));
    example.texts.retain(|name, _| keep(name, "its example"));
    behavior
        .checks
        .retain(|check| check.argument().is_none_or(|name| keep(name, "its check")));
    behavior.filters.retain(|_, name| keep(name, "its filter"));
    behavior.stream.take_if(|_| !keep("stream", "streaming"));
}

/// Leaves out what needs operations that do not exist any more.
fn check_operations(
    behavior: &mut OperationBehavior,
    known: &Known,
    report: &mut impl FnMut(String),
) {
    let mut gone = |name: &str, what: &str| {
        let gone = !known.contains_key(name);
        if gone {
            report(format!(
                "`{name}` does not exist any more; {what} was left out"
            ));
        }
        gone
    };
    if let Some(stream) = &mut behavior.stream {
        stream.get.take_if(|name| gone(name, "following"));
    }
    behavior
        .upload
        .take_if(|upload| gone(&upload.get, "the upload") || gone(&upload.delete, "the upload"));
    let Some(mut marker) = behavior.long_running.take() else {
        return;
    };
    if gone(&marker.get, "the marker") {
        return;
    }
    marker.cancel.take_if(|name| gone(name, "cancelling"));
    let lacks = |operation: &str, field: &str| {
        let schema = known.get(operation);
        let lacks = schema.is_some_and(|schema| !has_property(schema, field));
        lacks.then(|| format!("the answer of `{operation}` has no field `{field}` any more"))
    };
    if let Some(problem) = lacks(&marker.get, &marker.status) {
        report(format!("{problem}; the marker was left out"));
        return;
    }
    marker.find.take_if(|find| {
        let problem = if known.contains_key(&find.list) {
            lacks(&find.list, &find.entries)
        } else {
            Some(format!("`{}` does not exist any more", find.list))
        };
        if let Some(problem) = &problem {
            report(format!("{problem}; finding was left out"));
        }
        problem.is_some()
    });
    behavior.long_running = Some(marker);
}

/// The operations behind resources, as far as they exist.
pub fn resources(resources: &Resources, model: &Model, notices: &mut Vec<Notice>) -> Resources {
    let mut resources = resources.clone();
    let mut gone = |name: &str, what: &str| {
        let gone = model.find(name).is_none();
        if gone {
            notices.push(Notice {
                file: "surface.yaml".to_owned(),
                place: "resources".to_owned(),
                text: format!("`{name}` does not exist any more; {what} was left out"),
            });
        }
        gone
    };
    resources.websets.take_if(|websets| {
        websets.list.take_if(|list| gone(list, "completion"));
        gone(&websets.get, "`websets`") || gone(&websets.items, "`websets`")
    });
    resources
}

/// Whether an answer of this schema can have the field; a schema that says nothing can.
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

/// The schemas of the value at a dotted path, looked for behind references and in every branch.
pub(crate) fn schemas_at<'a>(schema: &'a Value, path: &str) -> Vec<&'a Value> {
    fn step<'a>(schema: &'a Value, root: &'a Value, name: &str, depth: usize) -> Vec<&'a Value> {
        if depth > 16 {
            return Vec::new();
        }
        let reference = schema.get("$ref").and_then(Value::as_str);
        let target = reference.and_then(|it| root.pointer(it.trim_start_matches('#')));
        let own = schema.get("properties").and_then(|all| all.get(name));
        let branches = ["allOf", "anyOf", "oneOf"]
            .into_iter()
            .filter_map(|keyword| schema.get(keyword)?.as_array())
            .flatten();
        let below = |schema| step(schema, root, name, depth + 1);
        let found = target.into_iter().flat_map(below).chain(own);
        found.chain(branches.flat_map(below)).collect()
    }
    path.split('.').fold(vec![schema], |found, name| {
        let next = found.into_iter().flat_map(|it| step(it, schema, name, 0));
        next.collect()
    })
}
