//! Stage 6b: the types of responses.
//!
//! Responses are lowered apart from requests: a response type never rejects anything, so what has no better type
//! is read as plain JSON. The types are views; `crates/exa-client/src/typed` has the macros that define them.

mod reader;
mod source;
#[cfg(test)]
mod tests;
mod union;

use std::collections::BTreeMap;

use crate::load::Document;
use crate::model::Operation;

/// The module of an API with its response types.
pub const MODULE: &str = "responses";

/// How a value of a response is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// Any JSON.
    Any,
    /// Text.
    Text,
    /// An integer.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A list.
    List(Box<Shape>),
    /// A map from text.
    Entries(Box<Shape>),
    /// An object with this name.
    Object(String),
    /// An enum with this name.
    Enum(String),
    /// A union with this name.
    Union(String),
}

/// A field of an object.
#[derive(Debug, Clone)]
pub struct Field {
    /// The accessor.
    identifier: String,
    /// The name in the response.
    name: String,
    /// How the field is read.
    shape: Shape,
    /// Its description.
    doc: Option<String>,
}

/// An alternative of a union.
#[derive(Debug, Clone)]
pub struct Variant {
    identifier: String,
    shape: Shape,
    /// The tags that select it.
    tags: Vec<String>,
}

/// A named type.
#[derive(Debug, Clone)]
pub enum Definition {
    /// An object.
    Object(Vec<Field>),
    /// An enum: identifiers and values.
    Enum(Vec<(String, String)>),
    /// A union of objects that differ in a tag.
    Union {
        /// The field with the tag.
        tag: String,
        /// The alternatives.
        variants: Vec<Variant>,
    },
    /// A response that is not an object.
    Value(Shape),
}

/// The response types of an API.
#[derive(Debug, Default)]
pub struct ResponseTypes {
    /// The type of each operation's response, by function. Those without one are plain JSON.
    pub by_function: BTreeMap<String, String>,
    /// The named types, with their descriptions.
    definitions: BTreeMap<String, (Option<String>, Definition)>,
}

/// Collects the types of all responses.
pub fn collect(document: &Document, operations: &[&Operation]) -> ResponseTypes {
    let mut reader = reader::ResponseReader::new(document);
    for operation in operations {
        reader.add(operation);
    }
    reader.finish()
}
