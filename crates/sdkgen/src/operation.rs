//! The operations that a tree is generated from.

use serde_json::Value;

/// An operation, with the tool that carries it out.
#[derive(Debug, Clone)]
pub struct SdkOperation {
    /// Dotted name, for example `items.list`.
    pub name: String,
    /// The group it belongs to, for example `items`.
    pub domain: String,
    /// The dispatcher that takes it.
    pub tool: String,
    /// One line for lists.
    pub summary: String,
    /// The description of the operation.
    pub description: String,
    /// Exa advises against it.
    pub deprecated: bool,
    /// How to follow the work that it starts, as a sentence.
    pub follow: Option<String>,
    /// JSON Schema of the arguments.
    pub input: Value,
    /// JSON Schema of the response.
    pub output: Value,
}
