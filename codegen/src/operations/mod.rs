//! Stage 4: a document becomes operations with flat arguments.

mod reader;
mod schemas;

use reader::Reader;
use serde_json::Value;

use crate::error::{Error, Notice, Result};
use crate::load::{Document, escape};
use crate::model::{ApiModel, Operation};
use crate::names;
use crate::surface::{Api, Surface};

const METHODS: &[&str] = &[
    "get", "put", "post", "delete", "patch", "head", "options", "trace",
];

/// Reads one API: its description and its operations.
pub fn read(
    document: &Document,
    name: &str,
    api: &Api,
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
        // Extensions stand among the paths, and only paths start with a slash.
        if !path.starts_with('/') {
            continue;
        }
        let item_pointer = format!("/paths/{}", escape(path));
        let (item, item_pointer) = document.resolve(item, &item_pointer)?;
        for (method, node) in item.as_object().into_iter().flatten() {
            if !METHODS.contains(&method.as_str()) {
                continue;
            }
            let reader = Reader {
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

/// Scheme and host of the first server, and the path that stands before every path.
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
    let (scheme, rest) = url.split_once("://").unwrap_or(("https", ""));
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if host.is_empty() || host.contains('{') || !matches!(scheme, "http" | "https") {
        let message = format!("`{url}` is no http(s) address");
        return Err(document.error("/servers/0/url", message));
    }
    let path = path.trim_matches('/');
    let prefix = match path.is_empty() {
        true => String::new(),
        false => format!("/{path}"),
    };
    Ok((format!("{scheme}://{host}"), prefix))
}

/// Sorts operations, checks their names and gives them domain and Rust name.
pub fn finish(apis: &[ApiModel], operations: &mut [Operation]) -> Result<()> {
    operations.sort_by(|a, b| a.name.cmp(&b.name));
    let place = |operation: &Operation| {
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
                first: place(first),
                second: place(second),
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
        operation.function = names::function(&operation.name, &mut taken);
    }
    Ok(())
}

/// The shortest first part of a name that has a verb of its own: `monitors` of
/// `monitors.runs.list`, but `agent.runs` of `agent.runs.list`.
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
                .and_then(|rest| rest.strip_prefix('.'))
                .is_some_and(|verb| !verb.contains('.'))
        });
        if has_verb {
            return prefix;
        }
    }
    match words.split_last() {
        Some((_, [])) | None => api.to_owned(),
        Some((_, rest)) => rest.join("."),
    }
}
