//! What spans and numbers tell of requests and calls. Nothing in here is what a client wrote freely: no
//! arguments, no addresses of resources, no names of users or sessions.

use std::borrow::Cow;

/// A request of MCP.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// A method that is known, or [`OTHER`].
    pub method: &'static str,
    /// A tool that there is.
    pub tool: Option<String>,
    /// The id of the request.
    pub id: Option<String>,
    /// The version of the protocol.
    pub version: Option<String>,
    /// It came over HTTP, not through a pipe.
    pub over_http: bool,
}

/// A call of Exa.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    /// The name of the operation.
    pub operation: &'static str,
    /// The HTTP method.
    pub method: &'static str,
    /// The path, with the names of its variables instead of their values.
    pub path: &'static str,
    /// Where Exa is.
    pub base_url: String,
}

/// How a request or a call ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ended {
    /// The code of a JSON-RPC error, or the HTTP status.
    pub code: Option<i64>,
    /// The class of the error, if there was one.
    pub error: Option<Cow<'static, str>>,
}

/// Stands for names that are not known here.
pub(crate) const OTHER: &str = "_OTHER";
