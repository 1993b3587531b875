//! What the sandbox is told about the API: one [`OperationSpec`] an operation, straight from the
//! project's registry. Nothing about paths or arguments is written down a second time in here.

use exa_mcp_model::{Argument, ArgumentLocation, Operation};
use serde_json::Value;

/// One operation of the API.
#[derive(Clone, Debug)]
pub struct OperationSpec {
    /// Name in the registry, such as `items.list`; hand-written behaviour is found by it.
    pub name: String,
    /// HTTP method in upper case.
    pub method: String,
    /// Path template with the spec's variable names, such as `/websets/v0/websets/{webset}/items`.
    pub path: String,
    /// Where every flat argument travels.
    pub arguments: Vec<Argument>,
    /// JSON Schema (2020-12) of the flat arguments.
    pub input_schema: Value,
    /// JSON Schema (2020-12) of a successful JSON answer.
    pub output_schema: Value,
}

impl From<&Operation> for OperationSpec {
    fn from(operation: &Operation) -> Self {
        let schema = |text: &str| serde_json::from_str(text).unwrap_or_default();
        let mut arguments = operation.arguments.to_vec();
        // The API never sees arguments that the server itself acts on.
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
