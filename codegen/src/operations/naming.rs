//! Unique names of the operations, and their domains.

use crate::error::Notice;
use crate::model::{ApiModel, Operation};
use crate::names;

/// What dispatchers offer besides the operations.
const RESERVED_NAMES: &[&str] = &["describe", "list_operations"];

/// Methods of the generated clients and functions beside the glue, which an operation must not hide.
const RESERVED_FUNCTIONS: &[&str] = &[
    "api_version",
    "baseurl",
    "call",
    "client",
    "exec",
    "inner",
    "new",
    "new_with_client",
    "post",
    "pre",
    "unknown_operation",
];

/// Sorts operations, makes their names unique and sets their domains and Rust names.
pub fn finish(apis: &[ApiModel], operations: &mut [Operation], notices: &mut Vec<Notice>) {
    rename_duplicates(apis, operations, notices);
    operations.sort_by(|a, b| a.name.cmp(&b.name));
    let all: Vec<String> = operations
        .iter()
        .map(|operation| operation.name.clone())
        .collect();
    let mut taken: Vec<String> = RESERVED_FUNCTIONS
        .iter()
        .map(|name| (*name).to_owned())
        .collect();
    for operation in operations.iter_mut() {
        operation.domain = domain(&operation.name, &operation.api, &all);
        operation.function = names::function_name(&operation.name, &mut taken);
    }
}

/// Gives operations whose name is taken another one. A name from `surface.yaml` takes precedence.
fn rename_duplicates(apis: &[ApiModel], operations: &mut [Operation], notices: &mut Vec<Notice>) {
    let mut taken: Vec<String> = RESERVED_NAMES.iter().map(|it| (*it).to_owned()).collect();
    let mut order: Vec<&mut Operation> = operations.iter_mut().collect();
    order.sort_by_key(|operation| !operation.has_configured_name);
    for operation in order {
        if !taken.contains(&operation.name) {
            taken.push(operation.name.clone());
            continue;
        }
        let file = apis.iter().find(|api| api.name == operation.api);
        let old = std::mem::take(&mut operation.name);
        operation.name = unique_name(&old, operation, &taken);
        taken.push(operation.name.clone());
        notices.push(Notice {
            file: file.map_or("", |api| &api.file).to_owned(),
            location: format!("#{}", operation.pointer),
            message: format!(
                "another operation is named `{old}`; this one becomes `{}`; set its name in surface.yaml",
                operation.name
            ),
        });
    }
}

fn unique_name(old: &str, operation: &Operation, taken: &[String]) -> String {
    let from_path = names::operation_name(None, None, &operation.method, &operation.path);
    let qualified = format!("{}.{old}", operation.api);
    let candidates = [from_path, qualified.clone()].into_iter();
    let numbered = (2..).map(|number| format!("{qualified}{number}"));
    candidates
        .chain(numbered)
        .find(|name| !taken.contains(name))
        .unwrap_or(qualified)
}

/// Returns the shortest prefix of a name that is directly followed by a verb in some operation:
/// `monitors` for `monitors.runs.list`, but `agent.runs` for `agent.runs.list`.
fn domain(name: &str, api: &str, all: &[String]) -> String {
    let words: Vec<&str> = name.split('.').collect();
    for length in 1..words.len() {
        let prefix = words
            .iter()
            .take(length)
            .copied()
            .collect::<Vec<_>>()
            .join(".");
        let has_verb = all.iter().any(|other| {
            other
                .strip_prefix(&prefix)
                .and_then(|suffix| suffix.strip_prefix('.'))
                .is_some_and(|verb| !verb.contains('.'))
        });
        if has_verb {
            return prefix;
        }
    }
    match words.split_last() {
        Some((_, [])) | None => api.to_owned(),
        Some((_, prefix)) => prefix.join("."),
    }
}
