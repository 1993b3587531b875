//! The operations as the later stages see them.

use exa_mcp_model::{KeyKind, OperationBehavior};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::surface::ServerArgument;

/// All APIs and operations, from the specs and `surface.yaml`.
#[derive(Debug)]
pub struct Model {
    /// The APIs in the order of their names.
    pub apis: Vec<ApiModel>,
    /// All operations, sorted by name.
    pub operations: Vec<Operation>,
}

impl Model {
    /// Returns the operation with this name.
    pub fn find(&self, name: &str) -> Option<&Operation> {
        self.operations
            .iter()
            .find(|operation| operation.name == name)
    }

    /// Returns the tool set to which an operation is confined, if it is.
    pub fn only_set(&self, operation: &Operation) -> Option<&str> {
        let api = self.apis.iter().find(|api| api.name == operation.api)?;
        api.set.as_deref()
    }
}

/// One spec with its overlay applied.
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
    /// The kind of key that it takes.
    pub key: KeyKind,
    /// The only set with the tools of its operations.
    pub set: Option<String>,
}

/// One operation.
#[derive(Debug)]
pub struct Operation {
    /// Dotted name, for example `items.list`.
    pub name: String,
    /// The name comes from `surface.yaml`.
    pub has_configured_name: bool,
    /// The group the operation belongs to, for example `items`.
    pub domain: String,
    /// Name of the API.
    pub api: String,
    /// Rust function in the generated client and in `operations.rs`.
    pub function: String,
    /// HTTP method in lower case.
    pub method: String,
    /// Scheme and host.
    pub base_url: String,
    /// Full path on the host, with the spec's variable names.
    pub path: String,
    /// JSON pointer of the operation in its spec.
    pub pointer: String,
    /// One line for listings.
    pub summary: String,
    /// Description for language models.
    pub description: String,
    /// The spec marks it as deprecated.
    pub deprecated: bool,
    /// Path, query and header parameters.
    pub parameters: Vec<Parameter>,
    /// The request body.
    pub body: Body,
    /// Where the key is sent, if not in `x-api-key`.
    pub key_placement: Option<KeyPlacement>,
    /// Media type of the response, if it is not JSON.
    pub response_type: Option<String>,
    /// Published schema of the flat arguments.
    pub input_schema: Value,
    /// Published schema of the response.
    pub output_schema: Value,
    /// Schema of the events of a streamed response, if the response can be JSON as well.
    pub stream_schema: Option<Value>,
    /// Time limit of one attempt.
    pub timeout_seconds: u64,
    /// Behavior of the server that the spec does not describe.
    pub behavior: OperationBehavior,
    /// It is read-only although it is not a GET.
    pub read_only: bool,
    /// It accesses the web.
    pub open_world: bool,
    /// Optional arguments that a short signature shows first.
    pub show_first: Vec<String>,
    /// Arguments that the server itself handles.
    pub server_arguments: Vec<ServerArgument>,
}

impl Operation {
    /// Returns whether it has an argument with this name.
    pub fn has_argument(&self, name: &str) -> bool {
        let properties = self.input_schema.get("properties");
        properties.is_some_and(|properties| properties.get(name).is_some())
    }

    /// Returns the server arguments that replace a required argument of the spec.
    pub fn replacements(&self, name: &str) -> Vec<&str> {
        self.server_arguments
            .iter()
            .filter(|argument| argument.replaces.iter().any(|replaced| replaced == name))
            .map(|argument| argument.name.as_str())
            .collect()
    }
}

/// Where a parameter is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// In the path.
    Path,
    /// In the query string.
    Query,
    /// In a header.
    Header,
}

impl Location {
    /// Returns the value of `in` in the spec.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
        }
    }
}

/// How a parameter's value is serialized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As text; numbers and booleans are converted.
    Text,
    /// As a number.
    Number,
    /// As `true` or `false`.
    Boolean,
    /// A list, with the key repeated for each entry.
    Repeated,
    /// A list in one value, with this separator.
    Joined(char),
    /// As JSON in one value.
    Json,
    /// An object in one value, as `a,1,b,2`, or as `a=1,b=2` if true.
    ObjectText(bool),
    /// Pairs of the query string, by a variant of `QueryStyle` in the client.
    Pairs(&'static str),
}

impl Encoding {
    /// Returns whether only the call context can send it.
    pub fn needs_context(self) -> bool {
        matches!(self, Self::Pairs(_) | Self::ObjectText(_))
    }
}

/// A path, query or header parameter.
#[derive(Debug)]
pub struct Parameter {
    /// Argument name.
    pub name: String,
    /// Name in the request.
    pub wire_name: String,
    /// Where it is sent.
    pub location: Location,
    /// Whether a call without it is rejected.
    pub required: bool,
    /// Other accepted names.
    pub aliases: Vec<String>,
    /// How the value is serialized.
    pub encoding: Encoding,
    /// List entries that every request sends.
    pub always_sent: Vec<String>,
    /// List entries that requests with other arguments send.
    pub sent_with: Vec<SentWith>,
    /// Name in the document for the client generator.
    pub client_name: String,
    /// The generated client cannot take it, so it is sent through the call context.
    pub via_context: bool,
}

/// A list entry that a request sends because of another argument, such as the token of a beta feature.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentWith {
    /// The list entry.
    pub send: String,
    /// Dotted path of a body field that causes it, unless it is null or false.
    pub given: String,
    /// The value that causes it; without one, any does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is: Option<String>,
}

/// The request body.
#[derive(Debug)]
pub enum Body {
    /// No body.
    None,
    /// An object whose fields are arguments.
    Fields {
        /// A call without fields sends an empty object.
        required: bool,
        /// Unknown fields are rejected.
        closed: bool,
        /// The known fields, with whether each is required.
        fields: Map<String, Value>,
        /// The schema in the spec.
        schema: Value,
        /// JSON pointer of the schema.
        pointer: String,
        /// How it is sent.
        content: BodyContent,
    },
    /// Any other body, given as one argument.
    Whole {
        /// Argument name.
        name: String,
        /// Whether a call without it is rejected.
        required: bool,
        /// How it is sent.
        content: BodyContent,
    },
}

impl Body {
    /// Returns how the body is sent, and whether it is required.
    pub fn content(&self) -> Option<(&BodyContent, bool)> {
        match self {
            Self::None => None,
            Self::Fields {
                content, required, ..
            }
            | Self::Whole {
                content, required, ..
            } => Some((content, *required)),
        }
    }

    /// Returns whether the generated client takes the body.
    pub fn is_typed(&self) -> bool {
        matches!(self.content(), Some((BodyContent::Json(_), _)))
    }
}

/// Where the key is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPlacement {
    /// In this header.
    Header(String),
    /// In the header `authorization`, as a bearer token.
    Bearer,
    /// In this parameter of the query string.
    Query(String),
}

/// The media type of a request body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyContent {
    /// JSON, with its media type if it is not `application/json`.
    Json(Option<String>),
    /// `application/x-www-form-urlencoded`.
    Form,
    /// `multipart/form-data`, with the fields that are files.
    Multipart(Vec<String>),
    /// Text of this media type.
    Text(String),
    /// Bytes of this media type, given as base64.
    Binary(String),
}
