//! Tells keywords of a document from names that its author chose.
//!
//! A schema may have a property called `description`, `example` or `$ref`; such a key is structure,
//! whereas the same key in a schema is a text, data or a reference.

use serde_json::{Map, Value};

/// Keywords whose children have names chosen by the author.
const NAME_MAPS: &[&str] = &[
    "$defs",
    "callbacks",
    "content",
    "definitions",
    "dependentSchemas",
    "encoding",
    "headers",
    "links",
    "parameters",
    "pathItems",
    "paths",
    "patternProperties",
    "properties",
    "requestBodies",
    "responses",
    "schemas",
    "securitySchemes",
    "variables",
    "webhooks",
];

/// Keywords whose value is data of any form.
const DATA_KEYS: &[&str] = &[
    "const",
    "default",
    "dependentRequired",
    "enum",
    "example",
    "examples",
    "mapping",
    "required",
    "scopes",
    "security",
];

/// The meaning of the keys of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// Its keys are keywords.
    Keywords,
    /// Its keys are names.
    Names,
    /// It is data, in which no key has a meaning.
    Data,
}

impl Position {
    /// Returns the position of the value of `key`.
    pub(super) fn child(self, key: &str, value: &Value) -> Self {
        match self {
            Self::Data => Self::Data,
            Self::Names => Self::Keywords,
            Self::Keywords if DATA_KEYS.contains(&key) || key.starts_with("x-") => Self::Data,
            Self::Keywords if NAME_MAPS.contains(&key) && value.is_object() => Self::Names,
            Self::Keywords => Self::Keywords,
        }
    }
}

/// Calls `visit` with every object of `node` whose keys are keywords.
pub(super) fn visit_objects(node: &Value, visit: &mut impl FnMut(&Map<String, Value>)) {
    visit_at(node, Position::Keywords, visit);
}

fn visit_at(node: &Value, position: Position, visit: &mut impl FnMut(&Map<String, Value>)) {
    match node {
        Value::Object(map) if position != Position::Data => {
            if position == Position::Keywords {
                visit(map);
            }
            for (key, value) in map {
                visit_at(value, position.child(key, value), visit);
            }
        }
        // Entries of a list have the position of the list.
        Value::Array(list) => list.iter().for_each(|v| visit_at(v, position, visit)),
        _ => {}
    }
}
