//! A stateful stand-in for the Exa HTTP API.
//!
//! The sandbox is built from the same operation specs as the server. Routing, argument validation and
//! error formats come from the specs, so a request that the sandbox accepts is a request that the spec
//! allows. Responses are generated, deterministic and marked: every JSON object carries a `sandbox`
//! field and every response the header `x-sandbox: synthetic`. The sandbox sends no requests of its own.
//!
//! ```text
//! request ▶ log ▶ faults ▶ route ▶ key ▶ arguments ▶ handler ▶ response
//! ```
//!
//! * `http/` handles requests: routing, argument validation, faults, the request log, streams.
//! * `state/` holds the state: a clock, a schedule of future steps, one account per API key.
//! * `corpus/` generates pages, companies, people and values; `sample` generates a value for any JSON
//!   Schema.
//! * `search/`, `websets/`, `agent/`, `search_monitors/`, `batches/`, `team_keys/` and `research` implement
//!   the operations; `handlers` maps operation names to them.
//!
//! An operation without a handler returns a sample of its output schema. A handler whose operation is
//! no longer in the spec is not reachable.
//!
//! Work that takes time at Exa takes time here too, on the sandbox's own clock, which
//! `POST /sandbox/clock` can advance or freeze. Text that contains `sandbox-fail` makes agent runs,
//! monitor runs, webset searches, enrichments and items of batches fail.
//!
//! # Example
//!
//! ```
//! use exa_mcp_model::Argument;
//! use exa_mcp_sandbox::{OperationSpec, Options, Sandbox};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let search = OperationSpec {
//!     name: "search".into(),
//!     method: "POST".into(),
//!     path: "/search".into(),
//!     arguments: vec![Argument::body("query", true)],
//!     input_schema: json!({ "type": "object", "properties": { "query": { "type": "string" } } }),
//!     output_schema: json!({ "type": "object" }),
//! };
//! let options = Options { time_scale: 10.0, ..Options::default() };
//! let sandbox = Sandbox::new(vec![search], options)?;
//!
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! let shutdown = async { /* such as tokio::signal::ctrl_c() */ };
//! sandbox.serve(listener, shutdown).await?;
//! # Ok(())
//! # }
//! ```

mod agent;
mod api_error;
mod batches;
mod call;
mod corpus;
mod error_tags;
mod handlers;
mod http;
mod ids;
mod json;
mod percent;
mod research;
mod rng;
mod sample;
mod search;
mod search_monitors;
mod spec;
mod state;
mod team_keys;
mod time;
mod websets;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

pub use spec::OperationSpec;

use http::ServerContext;

/// Value of the `sandbox` field in every JSON object that the sandbox returns.
pub const MARKER: &str = "synthetic: made up by the exa-mcp-server sandbox";

/// Settings of a sandbox.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether requests need a non-empty `x-api-key` or `Authorization: Bearer` header.
    pub require_key: bool,
    /// Speed of asynchronous work: at 1.0 a webset search completes in about 3 s, at 10.0 in 0.3 s.
    pub time_scale: f64,
    /// Seed of all generated data and ids.
    pub seed: u64,
    /// Whether the research API is served. Exa has retired it: without this, it returns 410.
    pub with_research: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            require_key: true,
            time_scale: 1.0,
            seed: 0,
            with_research: false,
        }
    }
}

/// The reason why a sandbox cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// `time_scale` is zero, negative or not a number.
    TimeScale,
    /// The input schema of an operation is not a valid JSON Schema.
    Schema {
        /// Name of the operation.
        operation: String,
        /// The error that the schema compiler reports.
        message: String,
    },
    /// Two operations share method and path.
    Duplicate {
        /// Name of the later operation.
        operation: String,
        /// Name of the earlier one.
        other: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TimeScale => write!(f, "time_scale must be a finite number above 0"),
            Error::Schema { operation, message } => {
                write!(f, "invalid input schema of {operation}: {message}")
            }
            Error::Duplicate { operation, other } => {
                write!(f, "{operation} has the same method and path as {other}")
            }
        }
    }
}

impl std::error::Error for Error {}

/// A stand-in for the Exa API, ready to be served.
#[derive(Clone)]
pub struct Sandbox {
    context: Arc<ServerContext>,
}

impl Sandbox {
    /// Builds a sandbox that serves the given operations.
    ///
    /// # Errors
    /// Returns an error if an option is out of range, an input schema does not compile, or two
    /// operations share method and path.
    pub fn new(operations: Vec<OperationSpec>, options: Options) -> Result<Self, Error> {
        if !(options.time_scale.is_finite() && options.time_scale > 0.0) {
            return Err(Error::TimeScale);
        }
        Ok(Sandbox {
            context: Arc::new(ServerContext::new(operations, options)?),
        })
    }

    /// Returns a router, to be mounted in another server or called without a socket. All routers of
    /// a sandbox share its state. Only [`Sandbox::serve`] can close a connection without a response;
    /// a bare router simulates such a fault with a body that fails.
    pub fn router(&self) -> axum::Router {
        http::router(Arc::clone(&self.context))
    }

    /// Repeats the requests that a file has, at the times when they were made, and appends further ones to it. A sandbox
    /// with the same operations and options then continues with the state of an earlier process.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub async fn with_journal(&self, path: &std::path::Path) -> std::io::Result<()> {
        http::journal::open(&self.context, path).await
    }

    /// Serves requests until `shutdown` completes. Open requests then have two seconds to finish.
    ///
    /// # Errors
    /// Returns an error if the listener fails.
    pub async fn serve(
        self,
        listener: tokio::net::TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> std::io::Result<()> {
        http::serve(self.router(), listener, shutdown).await
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The state contains API keys.
        f.debug_struct("Sandbox").finish_non_exhaustive()
    }
}
