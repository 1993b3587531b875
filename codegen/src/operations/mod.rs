//! Stage 4: reads the operations of a document, with flat arguments.

mod reader;
mod schemas;

use reader::OperationReader;
use serde_json::Value;

use crate::error::{Error, Notice, Result};
use crate::load::{Document, escape};
use crate::model::{ApiModel, Operation};
use crate::names;
use crate::surface::{ApiEntry, Surface};

const METHODS: &[&str] = &[
    "get", "put", "post", "delete", "patch", "head", "options", "trace",
];

/// Reads one API with its operations.
pub fn read(
    document: &Document,
    name: &str,
    api: &ApiEntry,
    surface: &Surface,
    notices: &mut Vec<Notice>,
) -> Result<(ApiModel, Vec<Operation>)> {
    let (base_url, prefix) = server(document, &surface.defaults.base_url)?;
    let text = |pointer: &str| match document.root.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    };
    let model = ApiModel {
        name: name.to_owned(),
        file: document.file.clone(),
        title: text("/info/title"),
        version: text("/info/version"),
        base_url,
    };
    let mut operations = Vec::new();
    let paths = document.root.get("paths").and_then(Value::as_object);
    for (path, item) in paths.into_iter().flatten() {
        // `paths` may contain extensions; only paths start with a slash.
        if !path.starts_with('/') {
            continue;
        }
        let item_pointer = format!("/paths/{}", escape(path));
        let (item, item_pointer) = document.resolve(item, &item_pointer)?;
        for (method, node) in item.as_object().into_iter().flatten() {
            if !METHODS.contains(&method.as_str()) {
                continue;
            }
            let reader = OperationReader {
                document,
                surface,
                api_name: name,
                api,
                path: format!("{prefix}{path}"),
                method,
                item,
                node,
                pointer: format!("{item_pointer}/{method}"),
            };
            operations.push(reader.read(notices)?);
        }
    }
    Ok((model, operations))
}

/// Returns scheme and host of the first server, and the path prefix of all operations.
fn server(document: &Document, default: &str) -> Result<(String, String)> {
    let server = document.root.pointer("/servers/0");
    let mut url = server
        .and_then(|server| server.get("url")?.as_str())
        .unwrap_or(default)
        .to_owned();
    let variables = server.and_then(|server| server.get("variables")?.as_object());
    for (name, variable) in variables.into_iter().flatten() {
        let value = variable
            .get("default")
            .and_then(Value::as_str)
            .unwrap_or_default();
        url = url.replace(&format!("{{{name}}}"), value);
    }
    if !url.contains("://") {
        url = format!(
            "{}/{}",
            default.trim_end_matches('/'),
            url.trim_start_matches('/')
        );
    }
    let (scheme, address) = url.split_once("://").unwrap_or(("https", ""));
    let (host, path) = address.split_once('/').unwrap_or((address, ""));
    if host.is_empty() || host.contains('{') || !matches!(scheme, "http" | "https") {
        let message = format!("`{url}` is not an HTTP(S) address");
        return Err(document.error("/servers/0/url", message));
    }
    let path = path.trim_matches('/');
    let prefix = if path.is_empty() {
        String::new()
    } else {
        format!("/{path}")
    };
    Ok((format!("{scheme}://{host}"), prefix))
}

/// Sorts operations, checks their names and sets their domains and Rust names.
pub fn finish(apis: &[ApiModel], operations: &mut [Operation]) -> Result<()> {
    operations.sort_by(|a, b| a.name.cmp(&b.name));
    let location = |operation: &Operation| {
        let file = apis
            .iter()
            .find(|api| api.name == operation.api)
            .map_or("", |api| &api.file);
        format!("{file}#{}", operation.pointer)
    };
    for pair in operations.windows(2) {
        if let [first, second] = pair
            && first.name == second.name
        {
            return Err(Error::DuplicateName {
                name: first.name.clone(),
                first: location(first),
                second: location(second),
            });
        }
    }
    let all: Vec<String> = operations
        .iter()
        .map(|operation| operation.name.clone())
        .collect();
    let mut taken = Vec::new();
    for operation in operations.iter_mut() {
        operation.domain = domain(&operation.name, &operation.api, &all);
        operation.function = names::function_name(&operation.name, &mut taken);
    }
    Ok(())
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
