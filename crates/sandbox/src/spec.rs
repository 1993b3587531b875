//! What the sandbox is told about the API: one [`OperationSpec`] an operation, straight from the
//! project's registry. Nothing about paths or arguments is written down a second time in here.

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
    pub arguments: Vec<ArgumentSpec>,
    /// JSON Schema (2020-12) of the flat arguments.
    pub input_schema: Value,
    /// JSON Schema (2020-12) of a successful JSON answer.
    pub output_schema: Value,
}

/// One argument of an operation.
#[derive(Clone, Debug)]
pub struct ArgumentSpec {
    /// Name among the flat arguments, such as `websetId`.
    pub name: String,
    /// Name on the wire: path variable, query key, header or body field.
    pub wire: String,
    /// Part of the request that carries it.
    pub place: Place,
    /// Whether a request without it is refused.
    pub required: bool,
}

/// Part of a request that carries an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A variable of the path template.
    Path,
    /// A query parameter.
    Query,
    /// A request header.
    Header,
    /// A top-level field of the JSON body.
    Body,
}

impl Place {
    /// The word used in error messages.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Place::Path => "path",
            Place::Query => "query",
            Place::Header => "header",
            Place::Body => "body",
        }
    }
}
