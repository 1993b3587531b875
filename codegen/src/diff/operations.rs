//! Compares the operations of two versions: added, removed, renamed and changed ones.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::arguments::{Arguments, input_schema};
use super::comparer::SchemaComparer;
use super::markdown::{self, code};
use super::schema_path::Direction;
use super::{ApiChange, Impact, OperationSnapshots, Subject};

/// Keys of a snapshot that have rules of their own, or that repeat its name.
const HANDLED_KEYS: [&str; 14] = [
    "arguments",
    "auth",
    "deprecated",
    "description",
    "host",
    "inputSchema",
    "longRunning",
    "name",
    "outputSchema",
    "path",
    "requestType",
    "responseType",
    "streamSchema",
    "summary",
];

/// Compares two versions of the API.
///
/// The changes are sorted by operation; within an operation come its own changes, then those of its
/// arguments and of its response. The order of keys in the snapshots does not matter.
#[must_use]
pub fn compare(old: &OperationSnapshots, new: &OperationSnapshots) -> Vec<ApiChange> {
    let renames = find_renames(old, new);
    let old_names: BTreeSet<&str> = renames.values().copied().collect();
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let mut changes = Vec::new();
    for name in names {
        match (old.get(name), new.get(name)) {
            (Some(before), Some(after)) => changes.extend(compare_operation(name, before, after)),
            (Some(_), None) if old_names.contains(name.as_str()) => {}
            (Some(before), None) => {
                let text = format!("removed ({})", route(before));
                changes.push(operation_change(Impact::Breaking, name, text));
            }
            (None, Some(after)) => match renames.get(name.as_str()) {
                Some(old_name) => {
                    let text = format!("renamed from {} to {}", code(old_name), code(name));
                    changes.push(operation_change(Impact::Breaking, name, text));
                    if let Some(before) = old.get(*old_name) {
                        changes.extend(compare_operation(name, before, after));
                    }
                }
                None => {
                    let text = format!("added ({})", route(after));
                    changes.push(operation_change(Impact::Compatible, name, text));
                }
            },
            (None, None) => {}
        }
    }
    changes
}

/// Maps new names to old ones where exactly one added and one removed operation share an endpoint.
fn find_renames<'a>(
    old: &'a OperationSnapshots,
    new: &'a OperationSnapshots,
) -> BTreeMap<&'a str, &'a str> {
    let mut by_endpoint: BTreeMap<String, (Vec<&str>, Vec<&str>)> = BTreeMap::new();
    for (name, snapshot) in old.iter().filter(|(name, _)| !new.contains_key(*name)) {
        by_endpoint
            .entry(endpoint(snapshot))
            .or_default()
            .0
            .push(name);
    }
    for (name, snapshot) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
        by_endpoint
            .entry(endpoint(snapshot))
            .or_default()
            .1
            .push(name);
    }
    let unambiguous = |(before, after): &(Vec<&'a str>, Vec<&'a str>)| {
        let ([old_name], [name]) = (before.as_slice(), after.as_slice()) else {
            return None;
        };
        Some((*name, *old_name))
    };
    by_endpoint.values().filter_map(unambiguous).collect()
}

/// Returns the API, method and path of an operation, without the names of path parameters.
fn endpoint(snapshot: &Value) -> String {
    let mut path = String::new();
    let mut in_parameter = false;
    for char in field(snapshot, "path").chars() {
        match char {
            '{' => in_parameter = true,
            '}' => in_parameter = false,
            _ if in_parameter => continue,
            _ => {}
        }
        path.push(char);
    }
    format!(
        "{} {} {path}",
        field(snapshot, "api"),
        field(snapshot, "method")
    )
}

/// Compares two versions of one operation.
fn compare_operation(name: &str, old: &Value, new: &Value) -> Vec<ApiChange> {
    if old == new {
        return Vec::new();
    }
    let mut changes = compare_texts(name, old, new);
    changes.extend(compare_transport(name, old, new));
    changes.extend(compare_settings(name, old, new));
    let (before, after) = (input_schema(old), input_schema(new));
    let comparer = SchemaComparer::new(
        name,
        Direction::Input,
        (&before, &after),
        Arguments::of(old, new),
    );
    changes.extend(comparer.run(&before, &after));
    // A response without a schema can be anything.
    let any = json!(true);
    let output = |snapshot: &Value| match snapshot.get("outputSchema") {
        None | Some(Value::Null) => any.clone(),
        Some(schema) => schema.clone(),
    };
    let (before, after) = (output(old), output(new));
    let comparer = SchemaComparer::new(name, Direction::Output, (&before, &after), Arguments::NONE);
    changes.extend(comparer.run(&before, &after));
    changes.extend(compare_streams(name, old, new));
    changes
}

/// Compares the events of a streamed response.
fn compare_streams(name: &str, old: &Value, new: &Value) -> Vec<ApiChange> {
    let (before, after) = match (old.get("streamSchema"), new.get("streamSchema")) {
        (Some(before), Some(after)) => (before, after),
        // Version 1 of the snapshots has no streams, and neither have operations that never had one.
        (None, None) => return Vec::new(),
        (None, Some(_)) => {
            let text = "the response can be streamed, as the spec now describes".to_owned();
            return vec![operation_change(Impact::Compatible, name, text)];
        }
        (Some(_), None) => {
            let text = "the spec no longer describes a streamed response; streaming calls may fail";
            return vec![operation_change(Impact::Breaking, name, text.to_owned())];
        }
    };
    let comparer = SchemaComparer::new(name, Direction::Output, (before, after), Arguments::NONE);
    let mut changes = comparer.run(before, after);
    for change in &mut changes {
        change.location = change.location.replacen("output", "stream", 1);
    }
    changes
}

/// Compares where and how requests are sent, and how their work is followed.
fn compare_transport(name: &str, old: &Value, new: &Value) -> Vec<ApiChange> {
    let mut changes = Vec::new();
    for (key, impact, what, effect) in [
        (
            "host",
            Impact::Breaking,
            "host",
            "requests and the key go to another host",
        ),
        (
            "auth",
            Impact::Breaking,
            "authentication",
            "the key is sent in another place",
        ),
        (
            "requestType",
            Impact::Compatible,
            "request type",
            "the server sends the body in it",
        ),
        (
            "responseType",
            Impact::Breaking,
            "response type",
            "results have another form",
        ),
    ] {
        // Older snapshots do not have these keys.
        if let (Some(before), Some(after)) = (old.get(key), new.get(key))
            && before != after
        {
            let (before, after) = (markdown::value(before), markdown::value(after));
            let text = format!("{what} {before} → {after}: {effect}");
            changes.push(operation_change(impact, name, text));
        }
    }
    let (before, after) = (old.get("longRunning"), new.get("longRunning"));
    if before != after {
        let change = match (before, after) {
            (Some(_), None) => {
                let text = "no longer marked as long-running: calls return the started work instead of its result";
                operation_change(Impact::Breaking, name, text.to_owned())
            }
            _ => {
                let (before, after) = (markdown::optional(before), markdown::optional(after));
                let text = format!("longRunning {before} → {after}");
                operation_change(Impact::Compatible, name, text)
            }
        };
        changes.push(change);
    }
    changes
}

/// Compares the documentation of an operation.
fn compare_texts(name: &str, old: &Value, new: &Value) -> Vec<ApiChange> {
    let mut changes = Vec::new();
    let deprecated = |snapshot: &Value| snapshot.get("deprecated") == Some(&json!(true));
    let text = match (deprecated(old), deprecated(new)) {
        (false, true) => Some("deprecated"),
        (true, false) => Some("no longer deprecated"),
        _ => None,
    };
    let text = text.map(str::to_owned);
    changes.extend(text.map(|text| operation_change(Impact::Documentation, name, text)));
    for key in ["summary", "description"] {
        let (before, after) = (field(old, key), field(new, key));
        if before != after {
            let text = markdown::text_change(key, before, after);
            changes.push(operation_change(Impact::Documentation, name, text));
        }
    }
    changes
}

/// Compares how an operation is executed, which callers do not see.
fn compare_settings(name: &str, old: &Value, new: &Value) -> Vec<ApiChange> {
    let mut keys = BTreeSet::from(["path"]);
    for snapshot in [old, new].into_iter().filter_map(Value::as_object) {
        let keys_here = snapshot.keys().map(String::as_str);
        keys.extend(keys_here.filter(|key| !HANDLED_KEYS.contains(key)));
    }
    let mut changes = Vec::new();
    for key in keys {
        let (before, after) = (old.get(key), new.get(key));
        if before == after {
            continue;
        }
        let (before, after) = (markdown::optional(before), markdown::optional(after));
        let note = match key {
            "method" | "path" | "api" => " (no effect on callers)",
            _ => "",
        };
        let text = format!("{} {before} → {after}{note}", markdown::prose(key));
        changes.push(operation_change(Impact::Compatible, name, text));
    }
    changes
}

/// Returns a change of the operation itself.
fn operation_change(impact: Impact, operation: &str, text: String) -> ApiChange {
    ApiChange {
        impact,
        subject: Subject::Operation,
        operation: operation.to_owned(),
        location: String::new(),
        definition_path: None,
        text,
    }
}

fn route(snapshot: &Value) -> String {
    code(&format!(
        "{} {}",
        field(snapshot, "method"),
        field(snapshot, "path")
    ))
}

fn field<'a>(snapshot: &'a Value, key: &str) -> &'a str {
    snapshot
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
