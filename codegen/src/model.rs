//! What the later stages know about an operation.

use exa_mcp_model::OperationBehavior;
use serde_json::{Map, Value};

use crate::surface::OwnArgument;

/// Everything that the specs and the surface say, read once.
#[derive(Debug)]
pub struct Model {
    /// The APIs in the order of their names.
    pub apis: Vec<ApiModel>,
    /// All operations, sorted by name.
    pub operations: Vec<Operation>,
}

impl Model {
    /// The operation of this name.
    pub fn find(&self, name: &str) -> Option<&Operation> {
        self.operations.iter().find(|it| it.name == name)
    }
}

/// One spec after its overlay.
#[derive(Debug)]
pub struct ApiModel {
    /// Name of the API and of its generated client module.
    pub name: String,
    /// File name of the spec, for messages.
    pub file: String,
    /// Title of the spec.
    pub title: String,
    /// Version of the spec.
    pub version: String,
    /// Scheme and host of the first server.
    pub base_url: String,
}

/// One operation.
#[derive(Debug)]
pub struct Operation {
    /// Dotted name, for example `items.list`.
    pub name: String,
    /// The group the operation belongs to, for example `items`.
    pub domain: String,
    /// Name of the API.
    pub api: String,
    /// Rust function of the generated client and of the glue.
    pub function: String,
    /// HTTP method in lower case.
    pub method: String,
    /// Path from the host's root on, with the spec's variable names.
    pub path: String,
    /// JSON pointer of the operation in its spec.
    pub pointer: String,
    /// One line for lists.
    pub summary: String,
    /// What a language model reads.
    pub description: String,
    /// Upstream advises against it.
    pub deprecated: bool,
    /// Path, query and header parameters.
    pub parameters: Vec<Parameter>,
    /// The request body.
    pub body: Body,
    /// Published schema of the flat arguments.
    pub input_schema: Value,
    /// Published schema of the answer.
    pub output_schema: Value,
    /// How long one attempt may take.
    pub timeout_seconds: u64,
    /// What the server does for it.
    pub behavior: OperationBehavior,
    /// It changes nothing, though it is no GET.
    pub read_only: bool,
    /// It reaches out to the web.
    pub open_world: bool,
    /// Optional arguments that a short signature shows first.
    pub show: Vec<String>,
    /// Arguments that the server itself acts on.
    pub own: Vec<OwnArgument>,
}

impl Operation {
    /// Whether it has an argument of this name.
    pub fn has_argument(&self, name: &str) -> bool {
        let properties = self.input_schema.get("properties");
        properties.is_some_and(|it| it.get(name).is_some())
    }

    /// The arguments that stand in for one that the spec requires.
    pub fn replacements(&self, name: &str) -> Vec<&str> {
        self.own
            .iter()
            .filter(|own| own.replaces.iter().any(|replaced| replaced == name))
            .map(|own| own.name.as_str())
            .collect()
    }
}

/// Where an argument goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// Into the path.
    Path,
    /// Into the query string.
    Query,
    /// Into a header.
    Header,
}

impl Location {
    /// The word of the spec.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
        }
    }
}

/// How a parameter's value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As text; numbers and booleans are written out.
    Text,
    /// As a number.
    Number,
    /// As `true` or `false`.
    Boolean,
    /// A list with one key each.
    Repeated,
    /// A list in one value.
    Joined(char),
    /// JSON in one value.
    Json,
}

/// A path, query or header parameter.
#[derive(Debug)]
pub struct Parameter {
    /// Argument name.
    pub name: String,
    /// Name on the wire.
    pub wire: String,
    /// Where it goes.
    pub location: Location,
    /// Whether a call without it is refused.
    pub required: bool,
    /// Other names that are accepted.
    pub aliases: Vec<String>,
    /// How the value is written.
    pub encoding: Encoding,
    /// List entries that are sent unasked.
    pub always: Vec<String>,
    /// The client generator has no place for it; it travels with the call.
    pub carried: bool,
}

/// The request body.
#[derive(Debug)]
pub enum Body {
    /// The operation takes none.
    None,
    /// An object whose fields are arguments.
    Fields {
        /// A call without any field still sends an object.
        required: bool,
        /// Unknown fields are refused.
        closed: bool,
        /// Known fields and whether each is required.
        fields: Map<String, Value>,
        /// The schema in the spec.
        schema: Value,
        /// Where the schema stands.
        pointer: String,
    },
    /// Anything else, given as one argument.
    Whole {
        /// Argument name.
        name: String,
        /// Whether a call without it is refused.
        required: bool,
    },
}
