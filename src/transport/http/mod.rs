//! MCP over HTTP: Streamable HTTP at `/mcp`, HTTP+SSE of protocol 2024-11-05 at `/sse`, and operator
//! endpoints.
//!
//! ```text
//! connection ▶ guard (host, origin) ▶ admission ▶ message_check ▶ rmcp ▶ response
//!                                                         └▶ session_requests ▶┘
//! ```

mod admission;
mod allow_lists;
mod auth;
mod body;
mod body_json;
mod body_memory;
mod config;
mod event_log;
mod fair_slots;
mod guard;
mod legacy_sse;
mod listener;
mod memory;
mod message_check;
mod peer;
mod replay_buffer;
mod request_ids;
mod request_metrics;
mod request_stream;
mod response;
mod server_handle;
mod service;
mod session_requests;
mod session_restore;
mod session_store;
mod sessions;
mod shared_replay;
mod standalone_stream;
mod state;
mod store_health;
mod store_watch;
mod streamable;
mod unread_body;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{any, get, post};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use tokio::io::DuplexStream;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tower_http::compression::CompressionLayer;

pub(crate) use allow_lists::{AllowListError, HOSTS_VARIABLE, ORIGINS_VARIABLE, PROXIES_VARIABLE};
pub use allow_lists::{AllowedHosts, AllowedOrigins, TrustedProxies};
pub use auth::{AnonymousAccess, AuthMode};
pub use config::{HttpConfig, HttpLimits};
use fair_slots::{AddressLimitPolicy, FairSlots};
pub(crate) use response::McpResponse;
pub use service::serve;
pub(crate) use service::serve_with_admin;
use session_restore::InitializeParamsStore;
pub(crate) use sessions::Sessions;
pub(crate) use state::HttpState;
use state::InFlight;

use crate::telemetry::Gauges;
use crate::transport::Backlog;
use exa_mcp_accounts::Requester;
use exa_mcp_exa_client::KeyPool;
use exa_mcp_store::{Store, StoreError};

/// How long connections may take to close after the last request.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The MCP server behind the HTTP transport.
pub(crate) trait McpBackend: Clone + Send + Sync + 'static {
    /// Handles a Streamable HTTP request, whose extensions hold the [`Requester`].
    fn handle(&self, request: Request<Full<Bytes>>) -> impl Future<Output = McpResponse> + Send;

    /// Serves a line-delimited connection until it ends. `session` is its id, and `backlog` counts its
    /// pending work.
    fn serve_connection(
        &self,
        requester: Requester,
        session: &str,
        stream: DuplexStream,
        backlog: Arc<Backlog>,
    ) -> impl Future<Output = ()> + Send + 'static;

    /// Returns the current numbers of tasks and keys.
    fn gauges(&self) -> Gauges;

    /// Checks a list of tool names. Tools for admins do not exist for others.
    fn check_tools(&self, list: &str, is_admin: bool) -> Result<(), String>;

    /// Returns the pool of Exa API keys, if there is one.
    fn keys(&self) -> Option<KeyPool>;

    /// Returns the number of tasks in each state.
    fn tasks(&self) -> impl Future<Output = Result<BTreeMap<String, u64>, StoreError>> + Send;
}

/// An HTTP server before it starts.
pub(crate) struct HttpServer<M> {
    pub(crate) mcp: M,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) auth_mode: AuthMode,
    pub(crate) config: HttpConfig,
    pub(crate) store: Arc<dyn Store>,
    /// Routes other than those of MCP.
    pub(crate) admin: Router<Arc<HttpState<M>>>,
    /// Closes all rmcp streams when cancelled.
    pub(crate) end: CancellationToken,
}

impl<M: McpBackend> HttpServer<M> {
    /// Serves until `stop` resolves, then waits for running requests.
    pub(crate) async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let (config, end) = (self.config.clone(), self.end.clone());
        let sessions = Arc::clone(&self.sessions);
        let in_flight = Arc::new(InFlight::default());
        let draining = CancellationToken::new();
        let state = Arc::new(HttpState {
            mcp: self.mcp,
            auth_mode: self.auth_mode,
            config: self.config,
            sessions: self.sessions,
            sse_connections: Arc::default(),
            anonymous_streams: anonymous_streams(&config.limits),
            body_memory: body_memory::BodyMemory::new(config.limits.body),
            store: self.store,
            store_health: store_health::StoreHealth::default(),
            started: Instant::now(),
            in_flight: Arc::clone(&in_flight),
            request_ids: Arc::default(),
            draining: draining.clone(),
        });
        let sweeper = tokio::spawn(Arc::clone(&sessions).sweep());
        let change_watcher = tokio::spawn(session_restore::watch_changes(Arc::clone(&state)));
        let store_watcher = tokio::spawn(store_watch::watch(Arc::clone(&state)));
        let routes = router(Arc::clone(&state), self.admin);
        let accepting = listener::accept(listener, routes, &config, &draining);
        let stopping = async {
            stop.await;
            draining.cancel();
        };
        let (connections, ()) = tokio::join!(accepting, stopping);
        drain(connections, &in_flight, config.limits.drain, || async {
            end.cancel();
            sessions.close_all().await;
        })
        .await;
        sweeper.abort();
        change_watcher.abort();
        store_watcher.abort();
        if let AuthMode::Pool(accounts) = &state.auth_mode {
            let _ = timeout(CLOSE_TIMEOUT, accounts.audit.flush()).await;
        }
    }
}

/// Slots for streams of anonymous clients. Each stream occupies a connection, so some connections are
/// reserved for short requests.
fn anonymous_streams(limits: &HttpLimits) -> Arc<FairSlots> {
    let max = (limits.connections / 4 * 3).max(1);
    let per_address = limits.streams_per_address;
    Arc::new(FairSlots::new(
        max,
        per_address,
        AddressLimitPolicy::ReplaceIdle,
    ))
}

/// Waits for running requests, then closes the remaining connections.
async fn drain<F: Future<Output = ()>>(
    mut connections: JoinSet<()>,
    in_flight: &InFlight,
    drain_timeout: Duration,
    end: impl FnOnce() -> F,
) {
    if timeout(drain_timeout, in_flight.wait_until_idle())
        .await
        .is_err()
    {
        tracing::warn!("aborting requests that did not finish before the drain timeout");
    }
    end().await;
    let all_closed = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(CLOSE_TIMEOUT, all_closed).await;
}

fn router<M: McpBackend>(state: Arc<HttpState<M>>, admin: Router<Arc<HttpState<M>>>) -> Router {
    Router::new()
        .route("/mcp", any(streamable::serve::<M>))
        .merge(admin)
        .route("/sse", get(legacy_sse::connect::<M>))
        .route("/messages", post(legacy_sse::post::<M>))
        .fallback(|| async { (StatusCode::NOT_FOUND, "Not found") })
        .method_not_allowed_fallback(|| async {
            (StatusCode::METHOD_NOT_ALLOWED, "Method not allowed")
        })
        // Event streams are not compressed: events must not wait in the compression buffer.
        .layer(CompressionLayer::new())
        .layer(from_fn_with_state(Arc::clone(&state), guard::guard::<M>))
        .layer(from_fn(request_metrics::observe))
        .with_state(state)
}
