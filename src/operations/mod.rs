//! The operations of the Exa API: what they are called, what they take, how they are called.
//!
//! The table itself is generated; nothing here names a single operation.

mod arguments;
mod call_arguments;
mod call_log;
mod caller;
pub mod client;
mod follow;
mod import;
mod pages;
pub mod price;
mod progress;
mod registry;
pub mod roots;
pub mod spend;
mod stream;
pub mod validation;

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::unwrap_used)]
mod several_keys_tests;

use std::future::Future;
use std::pin::Pin;

use exa_mcp_model::{Behavior, EmbeddedJson};
pub use exa_mcp_model::{FindWork, LongRunning};
use serde_json::Value;

pub use arguments::{ArgumentsError, Parts, split};
pub(crate) use caller::Exchanged;
pub use caller::{Called, Caller, Refusal};
pub use follow::{Followed, Following, Found, State, Undecided};
pub use import::{Folders, IMPORT_DIR_VARIABLE};
pub use pages::{Paged, Stopped, is_paged};
pub use progress::{Progress, Step};
pub use registry::{all, closest, find, input_schema, nearest};

use exa_mcp_exa_client::{CallContext, ExaError, ExaResponse};
use exa_mcp_model::LimitExceeded;

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
    pub body: Body,
    /// JSON Schema of the arguments.
    pub input_schema: &'static str,
    /// JSON Schema of the answer.
    pub output_schema: &'static str,
    /// How long one attempt may take.
    pub timeout_seconds: u64,
    /// It changes nothing.
    pub read_only: bool,
    /// What the server does for it.
    pub behavior: EmbeddedJson<Behavior>,
    /// The glue that calls the generated client.
    pub call: fn(CallContext, Parts) -> CallFuture,
}

impl Operation {
    /// A minimal call that would be accepted.
    pub fn example(&'static self) -> Value {
        validation::example(&self.behavior.example, input_schema(self))
    }
}

/// One argument of an operation.
#[derive(Debug)]
pub struct Argument {
    /// The name callers use.
    pub name: &'static str,
    /// The name on the wire.
    pub wire: &'static str,
    /// Where it goes.
    pub place: Place,
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
            ..Self::new(name, wire, Place::Path, true)
        }
    }

    /// A query parameter.
    pub const fn query(name: &'static str, wire: &'static str, required: bool) -> Self {
        Self::new(name, wire, Place::Query, required)
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
            ..Self::new(name, wire, Place::Header, required)
        }
    }

    /// A field of the request body.
    pub const fn body(name: &'static str, required: bool) -> Self {
        Self::new(name, name, Place::Body, required)
    }

    /// An argument that this server acts on and Exa never sees.
    pub const fn own(name: &'static str) -> Self {
        Self::new(name, name, Place::Own, false)
    }

    /// The same argument, not needed where one of these is given.
    pub const fn unless(self, others: &'static [&'static str]) -> Self {
        Self {
            unless: others,
            ..self
        }
    }

    const fn new(name: &'static str, wire: &'static str, place: Place, required: bool) -> Self {
        Self {
            name,
            wire,
            place,
            required,
            aliases: &[],
            always: &[],
            unless: &[],
        }
    }
}

/// Where an argument goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Into the path.
    Path,
    /// Into the query string.
    Query,
    /// Into a header.
    Header,
    /// Into the body.
    Body,
    /// Nowhere: this server acts on it.
    Own,
}

/// What the request body is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
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

/// What a call comes to.
pub type CallFuture = Pin<Box<dyn Future<Output = Result<ExaResponse, CallError>> + Send>>;

/// Why a call gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The arguments do not fit; nothing was sent.
    #[error(transparent)]
    Arguments(#[from] ArgumentsError),
    /// The API or the way to it failed.
    #[error(transparent)]
    Exa(#[from] ExaError),
    /// A limit of whoever pays does not allow it; nothing was sent.
    #[error("{0}")]
    Limit(Box<LimitExceeded>),
}

impl<E> From<progenitor_client::Error<E>> for CallError {
    fn from(error: progenitor_client::Error<E>) -> Self {
        Self::Exa(error.into())
    }
}

impl CallError {
    /// The HTTP status with which Exa refused the call, if it did.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Exa(error) => error.status,
            Self::Arguments(_) | Self::Limit(_) => None,
        }
    }
}
