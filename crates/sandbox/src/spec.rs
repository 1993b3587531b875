//! The description of the API: one [`OperationSpec`] per operation, taken from the project's registry.
//! The sandbox itself defines no paths or arguments.

use exa_mcp_model::{Argument, ArgumentLocation, Operation};
use serde_json::Value;

/// One operation of the API.
#[derive(Clone, Debug)]
pub struct OperationSpec {
    /// Name in the registry, such as `items.list`, which selects the handler.
    pub name: String,
    /// HTTP method in upper case.
    pub method: String,
    /// Path template with the spec's variable names, such as `/websets/v0/websets/{webset}/items`.
    pub path: String,
    /// The flat arguments and the part of the request that carries each of them.
    pub arguments: Vec<Argument>,
    /// JSON Schema (2020-12) of the flat arguments.
    pub input_schema: Value,
    /// JSON Schema (2020-12) of a successful JSON response.
    pub output_schema: Value,
}

impl From<&Operation> for OperationSpec {
    fn from(operation: &Operation) -> Self {
        let schema = |text: &str| serde_json::from_str(text).unwrap_or_default();
        let mut arguments = operation.arguments.to_vec();
        // The server handles its own arguments and does not send them.
        arguments.retain(|argument| argument.location != ArgumentLocation::Server);
        Self {
            name: operation.name.to_owned(),
            method: operation.method.to_owned(),
            path: operation.path.to_owned(),
            arguments,
            input_schema: schema(operation.input_schema),
            output_schema: schema(operation.output_schema),
        }
    }
}
