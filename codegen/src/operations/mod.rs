//! Stage 4: reads the operations of a document, with flat arguments.

mod assertions;
mod content;
mod keys;
mod naming;
mod reader;
mod schemas;
mod security;
mod servers;

use std::collections::BTreeMap;

use reader::OperationReader;
use serde_json::Value;

use crate::error::{Error, Findings, Notice, Result};
use crate::load::{Document, escape};
use crate::model::{ApiModel, Operation};
use crate::surface::{ApiEntry, Surface, signature};

pub use assertions::ASSERTIONS;
pub use keys::omit_misdirected;
pub use naming::finish;

const METHODS: &[&str] = &["get", "put", "post", "delete", "patch"];

/// Methods that are no operations: clients and proxies use them, or HTTP does not have them yet.
const SKIPPED_METHODS: &[&str] = &["head", "options", "trace", "query", "additionalOperations"];

/// Reads one API with its operations. Those that cannot be read are left out.
pub fn read(
    document: &Document,
    name: &str,
    api: &ApiEntry,
    surface: &Surface,
    findings: &mut Findings,
) -> (ApiModel, Vec<Operation>) {
    let text = |pointer: &str| match document.root.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    };
    let default = &surface.defaults.base_url;
    let server = servers::find(document, &[(&document.root, "")], default);
    let model = ApiModel {
        name: name.to_owned(),
        file: document.file.clone(),
        title: text("/info/title"),
        version: text("/info/version"),
        base_url: server.map_or_else(|_| default.clone(), |server| server.base_url),
        key: api.key,
        set: api.set.clone(),
    };
    let mut operations = Vec::new();
    let mut known = BTreeMap::new();
    for (place, pointer) in places(document, findings) {
        let read = read_operation(document, name, api, surface, &place, &pointer, findings);
        let omitted = |error: Error, findings: &mut Findings| {
            let what = format!("`{}` omitted", place.text());
            findings.omit(&document.file, format!("#{pointer}"), &what, error);
        };
        let operation = match read {
            Ok(operation) => operation,
            Err(error) => {
                omitted(error, findings);
                continue;
            }
        };
        let key = signature(&operation.method, &operation.path);
        if let Some(first) = known.get(&key) {
            findings.notices.push(Notice {
                file: document.file.clone(),
                location: format!("#{pointer}"),
                message: format!("the same path as `#{first}`, which is used"),
            });
            continue;
        }
        known.insert(key, pointer);
        operations.push(operation);
    }
    (model, operations)
}

/// The path and method of an operation.
struct Place<'a> {
    path: &'a str,
    method: &'a str,
    item: &'a Value,
    node: &'a Value,
}

impl Place<'_> {
    fn text(&self) -> String {
        format!("{} {}", self.method.to_uppercase(), self.path)
    }
}

/// Returns the operations of a document with their JSON pointers.
fn places<'a>(document: &'a Document, findings: &mut Findings) -> Vec<(Place<'a>, String)> {
    let mut places = Vec::new();
    let paths = document.root.get("paths").and_then(Value::as_object);
    for (path, item) in paths.into_iter().flatten() {
        // `paths` may contain extensions; only paths start with a slash.
        let pointer = format!("/paths/{}", escape(path));
        if !path.starts_with('/') {
            if !path.starts_with("x-") {
                findings.notices.push(Notice {
                    file: document.file.clone(),
                    location: format!("#{pointer}"),
                    message: "a path starts with `/`; omitted".to_owned(),
                });
            }
            continue;
        }
        let (item, item_pointer) = match document.resolve(item, &pointer) {
            Ok(found) => found,
            Err(error) => {
                let what = format!("`{path}` omitted");
                findings.omit(&document.file, format!("#{pointer}"), &what, error);
                continue;
            }
        };
        for (method, node) in item.as_object().into_iter().flatten() {
            let pointer = format!("{item_pointer}/{method}");
            if SKIPPED_METHODS.contains(&method.as_str()) {
                findings.notices.push(Notice {
                    file: document.file.clone(),
                    location: format!("#{pointer}"),
                    message: format!("{} is not an operation; omitted", in_capitals(method)),
                });
            }
            if METHODS.contains(&method.as_str()) && !node.is_object() {
                let what = format!("`{} {path}` omitted", method.to_uppercase());
                let error = document.error(&pointer, "an operation must be an object".to_owned());
                findings.omit(&document.file, format!("#{pointer}"), &what, error);
            } else if METHODS.contains(&method.as_str()) {
                let place = Place {
                    path,
                    method,
                    item,
                    node,
                };
                places.push((place, pointer));
            }
        }
    }
    places
}

/// Returns a method as it is written in messages; the name of a map of other methods stays.
fn in_capitals(method: &str) -> String {
    if method == "additionalOperations" {
        format!("`{method}`")
    } else {
        method.to_uppercase()
    }
}

fn read_operation(
    document: &Document,
    api_name: &str,
    api: &ApiEntry,
    surface: &Surface,
    place: &Place<'_>,
    pointer: &str,
    findings: &mut Findings,
) -> Result<Operation> {
    let item_pointer = pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
    let nodes = [
        (place.node, pointer),
        (place.item, item_pointer),
        (&document.root, ""),
    ];
    let server = servers::find(document, &nodes, &surface.defaults.base_url)?;
    let reader = OperationReader {
        document,
        surface,
        api_name,
        api,
        base_url: server.base_url,
        path: format!("{}{}", server.prefix, place.path),
        method: place.method,
        item: place.item,
        node: place.node,
        pointer: pointer.to_owned(),
    };
    reader.read(&mut findings.notices)
}
