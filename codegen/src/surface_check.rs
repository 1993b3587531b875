//! Entries of `surface.yaml` that upstream no longer supports are reported and left out.

use serde_json::Value;

use crate::error::Notice;
use crate::model::Operation;
use crate::surface::{Entry, Find, Surface, signature};

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
    check_long_running(surface, operations, notices);
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
    let properties = operation.input_schema.get("properties");
    for name in &entry.show {
        if properties
            .and_then(|properties| properties.get(name))
            .is_none()
        {
            let text = format!("the operation has no argument `{name}` any more; it is not shown");
            notices.push(notice(entry, text));
        }
    }
}

/// A marker is kept only while its state can be read and the operations it names exist.
fn check_long_running(surface: &Surface, operations: &mut [Operation], notices: &mut Vec<Notice>) {
    let known: Vec<(String, Value)> = operations
        .iter()
        .map(|operation| (operation.name.clone(), operation.output_schema.clone()))
        .collect();
    let exists = |name: &str| known.iter().any(|(known, _)| known == name);
    for operation in operations {
        let Some(marker) = operation.long_running.clone() else {
            continue;
        };
        let own = signature(&operation.method, &operation.path);
        let Some(entry) = surface
            .operations
            .iter()
            .find(|entry| entry.signature() == own)
        else {
            continue;
        };
        let answer = known
            .iter()
            .find(|(name, _)| *name == marker.get)
            .map(|(_, schema)| schema);
        let Some(answer) = answer else {
            let text = format!(
                "`{}` does not exist any more; the marker was left out",
                marker.get
            );
            notices.push(notice(entry, text));
            operation.long_running = None;
            continue;
        };
        if !has_property(answer, &marker.status) {
            let text = format!(
                "the answer of `{}` has no field `{}` any more; the marker was left out",
                marker.get, marker.status
            );
            notices.push(notice(entry, text));
            operation.long_running = None;
            continue;
        }
        let mut marker = marker;
        if let Some(cancel) = marker.cancel.take_if(|name| !exists(name)) {
            let text = format!("`{cancel}` does not exist any more; cancelling was left out");
            notices.push(notice(entry, text));
        }
        if let Some(problem) = marker.find.as_ref().and_then(|find| lost(find, &known)) {
            notices.push(notice(entry, format!("{problem}; finding was left out")));
            marker.find = None;
        }
        operation.long_running = Some(marker);
    }
}

/// Why work cannot be found any more.
fn lost(find: &Find, known: &[(String, Value)]) -> Option<String> {
    let list = &find.list;
    let Some((_, answer)) = known.iter().find(|(name, _)| name == list) else {
        return Some(format!("`{list}` does not exist any more"));
    };
    let entries = &find.entries;
    (!has_property(answer, entries))
        .then(|| format!("the answer of `{list}` has no field `{entries}` any more"))
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
