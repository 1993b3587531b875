//! Attributes of spans and metrics. They contain nothing a client can choose freely: no arguments, resource
//! URIs, user names or session ids.

use std::borrow::Cow;

/// The attributes of an MCP request.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestAttributes {
    /// A known method, or [`OTHER`].
    pub method: &'static str,
    /// The name of an existing tool.
    pub tool: Option<String>,
    /// The id of the request.
    pub id: Option<String>,
    /// The protocol version.
    pub version: Option<String>,
    /// Whether the request arrived over HTTP rather than a pipe.
    pub over_http: bool,
}

/// The attributes of a call to the Exa API.
#[derive(Clone, Debug)]
pub(crate) struct CallAttributes {
    /// The name of the operation.
    pub operation: &'static str,
    /// The HTTP method.
    pub method: &'static str,
    /// The path template, with parameter names instead of values.
    pub path: &'static str,
    /// The base URL of the Exa API.
    pub base_url: String,
}

/// The outcome of a request or a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpanOutcome {
    /// The code of a JSON-RPC error, or the HTTP status.
    pub code: Option<i64>,
    /// The class of the error, if there was one.
    pub error: Option<Cow<'static, str>>,
}

/// Replaces unknown names.
pub(crate) const OTHER: &str = "_OTHER";
