//! The operations of two catalogues: those that came, went, were renamed or changed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::arguments::{Arguments, input_schema};
use super::markdown::{self, code};
use super::spot::Side;
use super::walker::Walker;
use super::{Catalogue, Change, Class};

/// Keys of a snapshot that are compared in their own way, or that only repeat its name.
const OWN: [&str; 8] = [
    "arguments",
    "deprecated",
    "description",
    "inputSchema",
    "name",
    "outputSchema",
    "path",
    "summary",
];

/// Compares two catalogues.
///
/// The changes are in order of operation, and within one from the operation itself through its
/// arguments to its answer. The order of keys in the snapshots has no influence.
#[must_use]
pub fn compare(old: &Catalogue, new: &Catalogue) -> Vec<Change> {
    let renames = renames(old, new);
    let gone: BTreeSet<&str> = renames.values().copied().collect();
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let mut changes = Vec::new();
    for name in names {
        match (old.get(name), new.get(name)) {
            (Some(before), Some(after)) => changes.extend(operation(name, before, after)),
            (Some(_), None) if gone.contains(name.as_str()) => {}
            (Some(before), None) => {
                let text = format!("removed ({})", route(before));
                changes.push(change(Class::Breaking, name, text));
            }
            (None, Some(after)) => match renames.get(name.as_str()) {
                Some(was) => {
                    let text = format!("renamed from {} to {}", code(was), code(name));
                    changes.push(change(Class::Breaking, name, text));
                    if let Some(before) = old.get(*was) {
                        changes.extend(operation(name, before, after));
                    }
                }
                None => {
                    let text = format!("added ({})", route(after));
                    changes.push(change(Class::Compatible, name, text));
                }
            },
            (None, None) => {}
        }
    }
    changes
}

/// New names and the old names they replace, where one new operation does what one old one did.
fn renames<'a>(old: &'a Catalogue, new: &'a Catalogue) -> BTreeMap<&'a str, &'a str> {
    let mut alike: BTreeMap<String, (Vec<&str>, Vec<&str>)> = BTreeMap::new();
    for (name, snapshot) in old.iter().filter(|(name, _)| !new.contains_key(*name)) {
        alike.entry(endpoint(snapshot)).or_default().0.push(name);
    }
    for (name, snapshot) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
        alike.entry(endpoint(snapshot)).or_default().1.push(name);
    }
    let unambiguous = |(before, after): &(Vec<&'a str>, Vec<&'a str>)| {
        let ([was], [name]) = (before.as_slice(), after.as_slice()) else {
            return None;
        };
        Some((*name, *was))
    };
    alike.values().filter_map(unambiguous).collect()
}

/// What an operation calls, whatever its parameters are named.
fn endpoint(snapshot: &Value) -> String {
    let mut shape = String::new();
    let mut inside = false;
    for letter in field(snapshot, "path").chars() {
        match letter {
            '{' => inside = true,
            '}' => inside = false,
            _ if inside => continue,
            _ => {}
        }
        shape.push(letter);
    }
    format!(
        "{} {} {shape}",
        field(snapshot, "api"),
        field(snapshot, "method")
    )
}

/// Compares two versions of one operation.
fn operation(name: &str, old: &Value, new: &Value) -> Vec<Change> {
    if old == new {
        return Vec::new();
    }
    let mut changes = texts(name, old, new);
    changes.extend(settings(name, old, new));
    let (before, after) = (input_schema(old), input_schema(new));
    let walker = Walker::new(
        name,
        Side::Argument,
        (&before, &after),
        Arguments::of(old, new),
    );
    changes.extend(walker.run(&before, &after));
    // An answer that is not described can be anything.
    let any = json!(true);
    let output = |snapshot: &Value| match snapshot.get("outputSchema") {
        None | Some(Value::Null) => any.clone(),
        Some(schema) => schema.clone(),
    };
    let (before, after) = (output(old), output(new));
    let walker = Walker::new(name, Side::Output, (&before, &after), Arguments::NONE);
    changes.extend(walker.run(&before, &after));
    changes
}

/// Compares what people read about an operation.
fn texts(name: &str, old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    let deprecated = |snapshot: &Value| snapshot.get("deprecated") == Some(&json!(true));
    let text = match (deprecated(old), deprecated(new)) {
        (false, true) => Some("deprecated"),
        (true, false) => Some("no longer deprecated"),
        _ => None,
    };
    let text = text.map(str::to_owned);
    changes.extend(text.map(|text| change(Class::Documentation, name, text)));
    for key in ["summary", "description"] {
        let (before, after) = (field(old, key), field(new, key));
        if before != after {
            let text = markdown::text_change(key, before, after);
            changes.push(change(Class::Documentation, name, text));
        }
    }
    changes
}

/// Compares how an operation is carried out, which callers do not see.
fn settings(name: &str, old: &Value, new: &Value) -> Vec<Change> {
    let mut keys = BTreeSet::from(["path"]);
    for snapshot in [old, new].into_iter().filter_map(Value::as_object) {
        let keys_here = snapshot.keys().map(String::as_str);
        keys.extend(keys_here.filter(|key| !OWN.contains(key)));
    }
    let mut changes = Vec::new();
    for key in keys {
        let (before, after) = (old.get(key), new.get(key));
        if before == after {
            continue;
        }
        let (before, after) = (markdown::optional(before), markdown::optional(after));
        let note = match key {
            "method" | "path" | "api" => " (callers notice nothing)",
            _ => "",
        };
        let text = format!("{} {before} → {after}{note}", markdown::prose(key));
        changes.push(change(Class::Compatible, name, text));
    }
    changes
}

/// A change of an operation as a whole.
fn change(class: Class, operation: &str, text: String) -> Change {
    Change {
        class,
        operation: operation.to_owned(),
        place: String::new(),
        shared: None,
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
