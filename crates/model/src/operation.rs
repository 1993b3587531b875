//! The operations of the Exa API as the generator writes them down.

use crate::{EmbeddedJson, OperationBehavior};

/// One of the APIs behind the operations.
#[derive(Debug)]
pub struct Api {
    /// `search` or `websets`.
    pub name: &'static str,
    /// Scheme and host of the public API.
    pub base_url: &'static str,
    /// Version of the spec.
    pub version: &'static str,
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
    /// HTTP method in capitals.
    pub method: &'static str,
    /// Path from the host's root on.
    pub path: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// What a language model reads.
    pub description: &'static str,
    /// Exa advises against it.
    pub deprecated: bool,
    /// Name and arguments in a line.
    pub signature: &'static str,
    /// All arguments, flat.
    pub arguments: &'static [Argument],
    /// What the request body is made of.
    pub body: RequestBody,
    /// JSON Schema of the arguments.
    pub input_schema: &'static str,
    /// JSON Schema of the answer.
    pub output_schema: &'static str,
    /// How long one attempt may take.
    pub timeout_seconds: u64,
    /// It changes nothing.
    pub read_only: bool,
    /// What the server does for it.
    pub behavior: EmbeddedJson<OperationBehavior>,
}

/// One argument of an operation.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    /// The name callers use.
    pub name: &'static str,
    /// The name on the wire.
    pub wire: &'static str,
    /// Where it goes.
    pub location: ArgumentLocation,
    /// A call without it is refused.
    pub required: bool,
    /// Other names that are accepted.
    pub aliases: &'static [&'static str],
    /// List entries that are sent unasked.
    pub always: &'static [&'static str],
    /// Arguments of which any makes this one, though required, superfluous.
    pub unless: &'static [&'static str],
}

impl Argument {
    /// A path parameter.
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

    /// A query parameter.
    pub const fn query(name: &'static str, wire: &'static str, required: bool) -> Self {
        Self::new(name, wire, ArgumentLocation::Query, required)
    }

    /// A header parameter.
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

    /// A field of the request body.
    pub const fn body(name: &'static str, required: bool) -> Self {
        Self::new(name, name, ArgumentLocation::Body, required)
    }

    /// An argument that this server acts on and Exa never sees.
    pub const fn server(name: &'static str) -> Self {
        Self::new(name, name, ArgumentLocation::Server, false)
    }

    /// The same argument, not needed where one of these is given.
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

/// Where an argument goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentLocation {
    /// Into the path.
    Path,
    /// Into the query string.
    Query,
    /// Into a header.
    Header,
    /// Into the body.
    Body,
    /// Nowhere: this server acts on it.
    Server,
}

impl ArgumentLocation {
    /// The name that OpenAPI gives it in `in`, `server` for our own.
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

/// What the request body is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestBody {
    /// There is none.
    None,
    /// The arguments that go nowhere else.
    Fields {
        /// It is sent even when empty.
        required: bool,
        /// Only known fields are taken.
        closed: bool,
    },
    /// The one argument `body`.
    Whole {
        /// A call without it is refused.
        required: bool,
    },
}
