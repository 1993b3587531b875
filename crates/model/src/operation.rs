//! The operations of the Exa API, as the generator writes them.

use crate::{EmbeddedJson, KeyKind, OperationBehavior};

/// An API of Exa.
#[derive(Debug)]
pub struct Api {
    /// Its name in `surface.yaml`, for example `search`.
    pub name: &'static str,
    /// Scheme and host of the public API.
    pub base_url: &'static str,
    /// The version of the spec.
    pub version: &'static str,
    /// The kind of key that it takes.
    pub key: KeyKind,
    /// Whether only the local user and admins may see and call its operations.
    pub admin_only: bool,
}

/// One operation of the Exa API.
#[derive(Debug)]
pub struct Operation {
    /// Dotted name, for example `items.list`.
    pub name: &'static str,
    /// The API it belongs to.
    pub api: &'static Api,
    /// The group it belongs to, for example `items`.
    pub domain: &'static str,
    /// The HTTP method in upper case.
    pub method: &'static str,
    /// The path, relative to the host.
    pub path: &'static str,
    /// A one-line summary.
    pub summary: &'static str,
    /// The description for language models.
    pub description: &'static str,
    /// Whether Exa has deprecated it.
    pub deprecated: bool,
    /// Its name and arguments in one line.
    pub signature: &'static str,
    /// All arguments, regardless of their location.
    pub arguments: &'static [Argument],
    /// How the request body is built.
    pub body: RequestBody,
    /// JSON Schema of the arguments.
    pub input_schema: &'static str,
    /// JSON Schema of the response.
    pub output_schema: &'static str,
    /// The time limit of one attempt, in seconds.
    pub timeout_seconds: u64,
    /// Whether it changes nothing.
    pub read_only: bool,
    /// Its behavior beyond the spec.
    pub behavior: EmbeddedJson<OperationBehavior>,
}

/// One argument of an operation.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    /// The name for callers.
    pub name: &'static str,
    /// The name in the HTTP request.
    pub wire: &'static str,
    /// Its location in the HTTP request.
    pub location: ArgumentLocation,
    /// Whether a call without it is rejected.
    pub required: bool,
    /// Other accepted names.
    pub aliases: &'static [&'static str],
    /// List items that are always sent.
    pub always: &'static [&'static str],
    /// Arguments each of which replaces this one if it is required.
    pub unless: &'static [&'static str],
}

impl Argument {
    /// Creates a path parameter.
    pub const fn path(
        name: &'static str,
        wire: &'static str,
        aliases: &'static [&'static str],
    ) -> Self {
        Self {
            aliases,
            ..Self::new(name, wire, ArgumentLocation::Path, true)
        }
    }

    /// Creates a query parameter.
    pub const fn query(name: &'static str, wire: &'static str, required: bool) -> Self {
        Self::new(name, wire, ArgumentLocation::Query, required)
    }

    /// Creates a header parameter.
    pub const fn header(
        name: &'static str,
        wire: &'static str,
        required: bool,
        always: &'static [&'static str],
    ) -> Self {
        Self {
            always,
            ..Self::new(name, wire, ArgumentLocation::Header, required)
        }
    }

    /// Creates a field of the request body.
    pub const fn body(name: &'static str, required: bool) -> Self {
        Self::new(name, name, ArgumentLocation::Body, required)
    }

    /// Creates an argument that this server handles and never sends to Exa.
    pub const fn server(name: &'static str) -> Self {
        Self::new(name, name, ArgumentLocation::Server, false)
    }

    /// Makes the argument optional if one of these is given.
    pub const fn unless(self, others: &'static [&'static str]) -> Self {
        Self {
            unless: others,
            ..self
        }
    }

    const fn new(
        name: &'static str,
        wire: &'static str,
        location: ArgumentLocation,
        required: bool,
    ) -> Self {
        Self {
            name,
            wire,
            location,
            required,
            aliases: &[],
            always: &[],
            unless: &[],
        }
    }
}

/// The location of an argument in the HTTP request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentLocation {
    /// The path.
    Path,
    /// The query string.
    Query,
    /// A header.
    Header,
    /// The body.
    Body,
    /// None: this server handles it.
    Server,
}

impl ArgumentLocation {
    /// Returns the value of `in` in OpenAPI, or `server`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Body => "body",
            Self::Server => "server",
        }
    }
}

/// How the request body is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestBody {
    /// There is no body.
    None,
    /// From the arguments with the location `body`.
    Fields {
        /// Whether it is sent even if empty.
        required: bool,
        /// Whether unknown fields are rejected.
        closed: bool,
    },
    /// From the single argument `body`.
    Whole {
        /// Whether a call without it is rejected.
        required: bool,
    },
}
