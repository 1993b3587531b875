//! The input of the generator.

use serde_json::Value;

/// An operation, with the tool that executes it.
#[derive(Debug, Clone)]
pub struct SdkOperation {
    /// Dotted name, for example `items.list`.
    pub name: String,
    /// The group it belongs to, for example `items`.
    pub domain: String,
    /// The dispatcher tool that executes it.
    pub tool: String,
    /// A one-line summary.
    pub summary: String,
    /// The description of the operation.
    pub description: String,
    /// Whether Exa has deprecated it.
    pub deprecated: bool,
    /// A sentence about polling the job that it starts, if it starts one.
    pub follow: Option<String>,
    /// JSON Schema of the arguments.
    pub input: Value,
    /// JSON Schema of the response.
    pub output: Value,
}
