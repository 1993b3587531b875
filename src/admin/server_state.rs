//! The admin layer's view of the running server.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use exa_mcp_model::Identity;
use exa_mcp_store::{Store, StoreError};
use http::request::Parts;
use serde_json::Value;

use crate::http_response::HttpRejection;
use crate::telemetry::Gauges;
use exa_mcp_accounts::{Accounts, Token};
use exa_mcp_exa_client::KeyPool;

/// A handle to the running server. The wiring implements it for the HTTP transport.
pub(crate) trait ServerState: Send + Sync + 'static {
    /// The authentication mode: `pool` or `passthrough`.
    fn mode(&self) -> &'static str;

    /// The tokens of the server; `None` if every client uses its own Exa API key.
    fn accounts(&self) -> Option<&Accounts>;

    /// Authenticates a request by its token. Returns `None` if no token is needed.
    ///
    /// # Errors
    /// The response to send instead.
    fn authenticate(&self, parts: &Parts) -> Result<Option<Arc<Token>>, HttpRejection>;

    /// The address of the client that sent a request.
    fn client_address(&self, parts: &Parts) -> IpAddr;

    /// Reads and parses a JSON body within the limits of the server.
    ///
    /// # Errors
    /// The response to send instead.
    fn read_json(
        &self,
        parts: &Parts,
        body: Body,
    ) -> impl Future<Output = Result<Value, HttpRejection>> + Send;

    /// Checks a list of tool names.
    ///
    /// # Errors
    /// The list names unknown tools, or is empty.
    fn check_tools(&self, list: &str) -> Result<(), String>;

    /// The owners of all open sessions, one entry per session.
    fn session_owners(&self) -> Vec<Identity>;

    /// The number of open sessions.
    fn session_count(&self) -> usize;

    /// The number of requests in progress.
    fn request_count(&self) -> usize;

    /// The number of tasks in each state.
    fn tasks(&self) -> impl Future<Output = Result<BTreeMap<String, u64>, StoreError>> + Send;

    /// The Exa keys of the server, if it has a pool of them.
    fn keys(&self) -> Option<KeyPool>;

    /// Current readings of keys and upstream.
    fn gauges(&self) -> Gauges;

    /// The store of the server.
    fn store(&self) -> &dyn Store;

    /// Whether the store responds. The result may be a few seconds old.
    fn is_store_healthy(&self) -> impl Future<Output = bool> + Send;

    /// How long the server has been running.
    fn uptime(&self) -> Duration;

    /// Whether the server is shutting down.
    fn is_draining(&self) -> bool;

    /// Whether a request comes directly from this machine, not through a proxy or a web page.
    fn is_local_request(&self, parts: &Parts) -> bool;

    /// Whether the metrics need no authentication.
    fn has_public_metrics(&self) -> bool;
}
