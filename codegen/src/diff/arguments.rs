//! What a snapshot says of top-level arguments besides their schemas: where they are sent, under
//! which name, and which further names are accepted.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::Class;
use super::markdown::{self, code};
use super::normalise::{Resolver, documentation, list};
use super::vocabulary::{is_documentation, is_keyword, is_resolved};

/// Keys of an argument that are compared here and are no part of its schema.
const OWN: [&str; 4] = ["aliases", "in", "required", "wire"];

/// The `arguments` of the two versions of an operation.
#[derive(Clone, Copy)]
pub(super) struct Arguments<'a> {
    old: &'a Value,
    new: &'a Value,
}

impl<'a> Arguments<'a> {
    /// No arguments at all, for answers.
    pub(super) const NONE: Arguments<'static> = Arguments {
        old: &Value::Null,
        new: &Value::Null,
    };

    /// The arguments of two snapshots.
    pub(super) fn of(old: &'a Value, new: &'a Value) -> Self {
        let found = |snapshot: &'a Value| snapshot.get("arguments").unwrap_or(&Value::Null);
        Self {
            old: found(old),
            new: found(new),
        }
    }

    /// Whether the new argument still accepts the old name.
    pub(super) fn keeps(&self, old: &str, new: &str) -> bool {
        aliases(self.new, new).contains(old)
    }

    /// Where the old version sends an argument: `query`, `path`, `header` or `body`.
    pub(super) fn old_place(&self, name: &str) -> Option<&'a str> {
        self.old.get(name)?.get("in")?.as_str()
    }

    /// Where the new version sends an argument.
    pub(super) fn new_place(&self, name: &str) -> Option<&'a str> {
        self.new.get(name)?.get("in")?.as_str()
    }

    /// The schema of an argument in the old version, with what only its entry here says.
    pub(super) fn described_old(&self, name: &str, schema: &Value, by: Resolver<'_>) -> Value {
        described(schema, self.old.get(name), by)
    }

    /// The schema of an argument in the new version, with what only its entry here says.
    pub(super) fn described_new(&self, name: &str, schema: &Value, by: Resolver<'_>) -> Value {
        described(schema, self.new.get(name), by)
    }

    /// What changed about an argument, apart from its schema. `was` is its name before.
    pub(super) fn changes(&self, was: &str, name: &str) -> Vec<(Class, String)> {
        let mut changes = self.alias_changes(was, name);
        let (Some(before), Some(after)) = (self.old.get(was), self.new.get(name)) else {
            return changes;
        };
        let mut keys: BTreeSet<&str> = BTreeSet::from(["in", "wire"]);
        for found in [before, after].into_iter().filter_map(Value::as_object) {
            keys.extend(found.keys().map(String::as_str).filter(|key| is_extra(key)));
        }
        for key in keys {
            let (from, to) = (before.get(key), after.get(key));
            // A renamed argument is usually sent under its new name, which says nothing new.
            let follows = key == "wire" && from == Some(&json!(was)) && to == Some(&json!(name));
            if from == to || follows {
                continue;
            }
            let (from, to) = (markdown::optional(from), markdown::optional(to));
            let text = match key {
                "in" => format!("moved from {from} to {to} (callers notice nothing)"),
                "wire" => format!("sent as {to} instead of {from} (callers notice nothing)"),
                key => format!("{} {from} → {to}", markdown::prose(key)),
            };
            changes.push((Class::Compatible, text));
        }
        changes
    }

    fn alias_changes(&self, was: &str, name: &str) -> Vec<(Class, String)> {
        let (before, after) = (aliases(self.old, was), aliases(self.new, name));
        let mut changes = Vec::new();
        for alias in before.difference(&after).filter(|alias| **alias != name) {
            changes.push((Class::Breaking, format!("alias removed: {}", code(alias))));
        }
        for alias in after.difference(&before).filter(|alias| **alias != was) {
            changes.push((Class::Compatible, format!("alias added: {}", code(alias))));
        }
        changes
    }
}

/// The input schema of a snapshot, with the arguments and demands that only `arguments` tells.
pub(super) fn input_schema(snapshot: &Value) -> Value {
    let mut schema = match snapshot.get("inputSchema") {
        Some(Value::Object(schema)) => schema.clone(),
        _ => Map::new(),
    };
    // Arguments are always an object, whether or not the schema says so.
    schema.entry("type").or_insert_with(|| json!("object"));
    match snapshot.get("arguments") {
        Some(Value::Object(arguments)) if !arguments.is_empty() => completed(schema, arguments),
        _ => Value::Object(schema),
    }
}

fn completed(mut schema: Map<String, Value>, arguments: &Map<String, Value>) -> Value {
    let document = Value::Object(schema.clone());
    let known: BTreeSet<String> = {
        let site = Resolver::new(&document).site(&document);
        let branches = site.branches.into_iter();
        branches
            .flat_map(|branch| branch.properties.into_keys())
            .collect()
    };
    let mut properties = match schema.get("properties") {
        Some(Value::Object(found)) => found.clone(),
        _ => Map::new(),
    };
    let mut required = list(&schema, "required").to_vec();
    for (name, argument) in arguments {
        let Some(argument) = argument.as_object() else {
            continue;
        };
        if !known.contains(name) {
            let mut bare = argument.clone();
            bare.retain(|key, _| !OWN.contains(&key.as_str()) && !is_extra(key));
            properties.insert(name.clone(), Value::Object(bare));
        }
        if argument.get("required") == Some(&json!(true)) && !required.contains(&json!(name)) {
            required.push(json!(name));
        }
    }
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("required".to_owned(), Value::Array(required));
    Value::Object(schema)
}

/// The schema of an argument, with the words that neither it nor its definition says.
fn described(schema: &Value, argument: Option<&Value>, resolver: Resolver<'_>) -> Value {
    let said = resolver.site(schema).all_docs();
    let mut result = schema.clone();
    if let (Value::Object(keywords), Some(Value::Object(argument))) = (&mut result, argument) {
        let unsaid = documentation(argument).into_iter();
        keywords.extend(unsaid.filter(|(key, _)| !said.contains_key(key)));
    }
    result
}

fn aliases<'a>(arguments: &'a Value, name: &str) -> BTreeSet<&'a str> {
    let listed = arguments.get(name).and_then(|found| found.get("aliases"));
    let listed = listed.and_then(Value::as_array);
    let names = listed.into_iter().flatten();
    names.filter_map(Value::as_str).collect()
}

/// Whether a key of an argument is neither compared by name nor a keyword of its schema.
fn is_extra(key: &str) -> bool {
    !OWN.contains(&key) && !is_documentation(key) && !is_resolved(key) && !is_keyword(key)
}
