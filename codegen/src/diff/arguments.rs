//! Facts about top-level arguments that are not in their schemas: where an argument is sent, under
//! which name, and its aliases.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::Impact;
use super::keyword_groups::{is_constraint, is_documentation, is_handled};
use super::markdown::{self, code};
use super::normalize::{Resolver, documentation, list};

/// Keys of an argument that are not part of its schema and have rules of their own here.
const HANDLED_KEYS: [&str; 4] = ["aliases", "in", "required", "wire"];

/// The `arguments` of the two versions of an operation.
#[derive(Clone, Copy)]
pub(super) struct Arguments<'a> {
    old: &'a Value,
    new: &'a Value,
}

impl<'a> Arguments<'a> {
    /// No arguments, for comparing responses.
    pub(super) const NONE: Arguments<'static> = Arguments {
        old: &Value::Null,
        new: &Value::Null,
    };

    /// Returns the arguments of two snapshots.
    pub(super) fn of(old: &'a Value, new: &'a Value) -> Self {
        let arguments_of = |snapshot: &'a Value| snapshot.get("arguments").unwrap_or(&Value::Null);
        Self {
            old: arguments_of(old),
            new: arguments_of(new),
        }
    }

    /// Returns whether the new argument still accepts the old name as an alias.
    pub(super) fn accepts_old_name(&self, old: &str, new: &str) -> bool {
        aliases(self.new, new).contains(old)
    }

    /// Returns where the old version sends an argument: `query`, `path`, `header` or `body`.
    pub(super) fn old_location(&self, name: &str) -> Option<&'a str> {
        self.old.get(name)?.get("in")?.as_str()
    }

    /// Returns where the new version sends an argument.
    pub(super) fn new_location(&self, name: &str) -> Option<&'a str> {
        self.new.get(name)?.get("in")?.as_str()
    }

    /// Returns the schema of an argument in the old version, completed with its own documentation.
    pub(super) fn document_old(&self, name: &str, schema: &Value, by: Resolver<'_>) -> Value {
        with_argument_docs(schema, self.old.get(name), by)
    }

    /// Returns the schema of an argument in the new version, completed with its own documentation.
    pub(super) fn document_new(&self, name: &str, schema: &Value, by: Resolver<'_>) -> Value {
        with_argument_docs(schema, self.new.get(name), by)
    }

    /// Returns the changes of an argument apart from its schema. `old_name` is its previous name.
    pub(super) fn changes(&self, old_name: &str, name: &str) -> Vec<(Impact, String)> {
        let mut changes = self.alias_changes(old_name, name);
        let (Some(before), Some(after)) = (self.old.get(old_name), self.new.get(name)) else {
            return changes;
        };
        let mut keys: BTreeSet<&str> = BTreeSet::from(["in", "wire"]);
        for found in [before, after].into_iter().filter_map(Value::as_object) {
            keys.extend(found.keys().map(String::as_str).filter(|key| is_extra(key)));
        }
        for key in keys {
            let (from, to) = (before.get(key), after.get(key));
            // A renamed argument is usually also sent under its new name, so that is not reported.
            let is_rename =
                key == "wire" && from == Some(&json!(old_name)) && to == Some(&json!(name));
            if from == to || is_rename {
                continue;
            }
            let (from, to) = (markdown::optional(from), markdown::optional(to));
            let text = match key {
                "in" => format!("moved from {from} to {to} (no effect on callers)"),
                "wire" => format!("sent as {to} instead of {from} (no effect on callers)"),
                key => format!("{} {from} → {to}", markdown::prose(key)),
            };
            changes.push((Impact::Compatible, text));
        }
        changes
    }

    fn alias_changes(&self, old_name: &str, name: &str) -> Vec<(Impact, String)> {
        let (before, after) = (aliases(self.old, old_name), aliases(self.new, name));
        let mut changes = Vec::new();
        for alias in before.difference(&after).filter(|alias| **alias != name) {
            changes.push((Impact::Breaking, format!("alias removed: {}", code(alias))));
        }
        for alias in after
            .difference(&before)
            .filter(|alias| **alias != old_name)
        {
            changes.push((Impact::Compatible, format!("alias added: {}", code(alias))));
        }
        changes
    }
}

/// Returns the input schema of a snapshot, completed with what only its `arguments` contain.
pub(super) fn input_schema(snapshot: &Value) -> Value {
    let mut schema = match snapshot.get("inputSchema") {
        Some(Value::Object(schema)) => schema.clone(),
        _ => Map::new(),
    };
    // Arguments are always an object, even if the schema does not declare it.
    schema.entry("type").or_insert_with(|| json!("object"));
    match snapshot.get("arguments") {
        Some(Value::Object(arguments)) if !arguments.is_empty() => complete(schema, arguments),
        _ => Value::Object(schema),
    }
}

fn complete(mut schema: Map<String, Value>, arguments: &Map<String, Value>) -> Value {
    let document = Value::Object(schema.clone());
    let known: BTreeSet<String> = {
        let schema = Resolver::new(&document).normalize(&document);
        let branches = schema.branches.into_iter();
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
            bare.retain(|key, _| !HANDLED_KEYS.contains(&key.as_str()) && !is_extra(key));
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

/// Adds the documentation of an argument that neither its schema nor its definition has.
fn with_argument_docs(schema: &Value, argument: Option<&Value>, resolver: Resolver<'_>) -> Value {
    let present = resolver.normalize(schema).all_docs();
    let mut result = schema.clone();
    if let (Value::Object(keywords), Some(Value::Object(argument))) = (&mut result, argument) {
        let documented = documentation(argument).into_iter();
        keywords.extend(documented.filter(|(key, _)| !present.contains_key(key)));
    }
    result
}

fn aliases<'a>(arguments: &'a Value, name: &str) -> BTreeSet<&'a str> {
    let listed = arguments.get(name).and_then(|found| found.get("aliases"));
    let listed = listed.and_then(Value::as_array);
    let names = listed.into_iter().flatten();
    names.filter_map(Value::as_str).collect()
}

/// Returns whether a key of an argument has no rule here and is not a schema keyword.
fn is_extra(key: &str) -> bool {
    !HANDLED_KEYS.contains(&key)
        && !is_documentation(key)
        && !is_handled(key)
        && !is_constraint(key)
}
