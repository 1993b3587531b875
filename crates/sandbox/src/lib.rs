//! A stateful stand-in for the Exa HTTP API.
//!
//! It is built from the same operation specs as the server: routing, argument checks and error
//! forms come from them, so a request the sandbox accepts is a request the spec allows. Answers are
//! made up, deterministic and marked: every JSON object carries a `sandbox` field and every response
//! the header `x-sandbox: synthetic`. Nothing is ever sent anywhere.
//!
//! ```text
//! request ▶ log ▶ faults ▶ route ▶ key ▶ arguments ▶ behaviour ▶ answer
//! ```
//!
//! * `http/` is the way in and out: routing, argument checks, faults, the request log, streams.
//! * `state/` is what is remembered: a clock, a schedule of coming steps, one account a key.
//! * `corpus/` makes up pages, companies, people and values; `sample` fills any JSON Schema.
//! * `search/`, `websets/`, `agent/`, `research` and `search_monitors` are the domains.
//!
//! An operation without hand-written behaviour is answered by a sample of its output schema, and
//! behaviour whose operation has gone from the spec is not mounted.
//!
//! Work that takes time at Exa takes time here too, on the sandbox's own clock: see
//! `POST /sandbox/clock`. Text that contains `sandbox-fail` makes agent runs, research tasks and
//! monitor runs end as failed.

mod agent;
mod behaviour;
mod call;
mod corpus;
mod failure;
mod http;
mod ids;
mod percent;
mod random;
mod research;
mod sample;
mod search;
mod search_monitors;
mod spec;
mod state;
mod time;
mod websets;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

pub use spec::OperationSpec;

use http::Shared;

/// Value of the `sandbox` field that every JSON object answer carries.
pub const MARKER: &str = "synthetic: made up by the exa-mcp-server sandbox";

/// How a sandbox behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether `x-api-key` or `Authorization: Bearer` must be there and not empty.
    pub require_key: bool,
    /// How fast asynchronous work progresses: at 1.0 a search completes in about 3 s, at 10.0 in
    /// 0.3 s.
    pub time_scale: f64,
    /// Seed of all made-up data and ids.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            require_key: true,
            time_scale: 1.0,
            seed: 0,
        }
    }
}

/// Why a sandbox could not be built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// `time_scale` is zero, negative or not a number.
    TimeScale,
    /// An operation's input schema is not a JSON Schema.
    Schema {
        /// Name of the operation.
        operation: String,
        /// What is wrong with it.
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
            Error::TimeScale => write!(f, "time_scale must be a number above 0"),
            Error::Schema { operation, message } => {
                write!(
                    f,
                    "the input schema of {operation} cannot be used: {message}"
                )
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
    shared: Arc<Shared>,
}

impl Sandbox {
    /// Builds a sandbox that answers the given operations.
    ///
    /// # Errors
    /// When the options make no sense, an input schema does not compile, or two operations share
    /// method and path.
    pub fn new(operations: Vec<OperationSpec>, options: Options) -> Result<Self, Error> {
        if !(options.time_scale.is_finite() && options.time_scale > 0.0) {
            return Err(Error::TimeScale);
        }
        Ok(Sandbox {
            shared: Arc::new(Shared::new(operations, options)?),
        })
    }

    /// The sandbox as a router, to be mounted or called without a socket. All routers of one
    /// sandbox share its state. Only [`Sandbox::serve`] can close a connection without an answer;
    /// a bare router answers such a fault with a body that breaks off.
    pub fn router(&self) -> axum::Router {
        http::router(Arc::clone(&self.shared))
    }

    /// Serves until `shutdown` completes; open requests then get two seconds to finish.
    ///
    /// # Errors
    /// When the listener fails.
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
        // The state holds API keys, so it is not shown.
        f.debug_struct("Sandbox").finish_non_exhaustive()
    }
}
