//! MCP over HTTP: Streamable HTTP at `/mcp`, the transport of 2024-11-05 at `/sse`, and what an
//! operator wants to know.
//!
//! ```text
//! connection ▶ guard (host, origin) ▶ gate (who) ▶ incoming (checked) ▶ rmcp ▶ outgoing
//!                                                                  └▶ in_session ▶┘
//! ```

mod admission;
mod allowed;
mod body;
mod body_memory;
mod config;
mod event_log;
mod fair_places;
mod gate;
mod guard;
mod in_session;
mod incoming;
mod kept_sessions;
mod legacy;
mod listener;
mod mcp;
mod memory;
mod observe;
mod outgoing;
mod parsing;
mod peer;
mod replay_buffer;
mod request_ids;
mod request_stream;
mod restoring;
mod server_handle;
mod service;
mod sessions;
mod shared_replay;
mod standalone_stream;
mod state;
mod store_health;
mod store_watch;
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

pub(crate) use allowed::{AllowedError, HOSTS_VARIABLE, ORIGINS_VARIABLE, PROXIES_VARIABLE};
pub use allowed::{Hosts, Origins, Proxies};
pub use config::{HttpConfig, HttpLimits};
use fair_places::{FairPlaces, WhenAddressIsFull};
pub use gate::{Gate, Guests};
pub(crate) use outgoing::Answer;
use restoring::Introductions;
pub use service::serve;
pub(crate) use service::serve_with_admin;
pub(crate) use sessions::Sessions;
use state::Flights;
pub(crate) use state::Shared;

use crate::telemetry::Gauges;
use crate::transport::Backlog;
use exa_mcp_accounts::Requester;
use exa_mcp_exa_client::KeyPool;
use exa_mcp_store::{Store, StoreError};

/// How long connections may take to end once nothing is under way any more.
const CLOSING: Duration = Duration::from_secs(1);

/// The protocol room, as far as HTTP needs it.
pub(crate) trait Mcp: Clone + Send + Sync + 'static {
    /// Answers a request of Streamable HTTP; its extensions hold the [`Requester`].
    fn answer(&self, request: Request<Full<Bytes>>) -> impl Future<Output = Answer> + Send;

    /// Serves a connection of one message a line until it ends; `session` is its id, and `backlog` counts
    /// what is waiting on it.
    fn connect(
        &self,
        requester: Requester,
        session: &str,
        stream: DuplexStream,
        backlog: Arc<Backlog>,
    ) -> impl Future<Output = ()> + Send + 'static;

    /// How tasks and keys stand.
    fn gauges(&self) -> Gauges;

    /// Says why a list of tools cannot be used.
    fn check_tools(&self, list: &str) -> Result<(), String>;

    /// The keys with which Exa is called, if there is a pool of them.
    fn keys(&self) -> Option<KeyPool>;

    /// How many tasks there are in each state.
    fn tasks(&self) -> impl Future<Output = Result<BTreeMap<String, u64>, StoreError>> + Send;
}

/// What is served, and to whom.
pub(crate) struct Server<M> {
    pub(crate) mcp: M,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) gate: Gate,
    pub(crate) config: HttpConfig,
    pub(crate) store: Arc<dyn Store>,
    /// The routes beside those of MCP.
    pub(crate) admin: Router<Arc<Shared<M>>>,
    /// Ends everything that rmcp has open.
    pub(crate) end: CancellationToken,
}

impl<M: Mcp> Server<M> {
    /// Serves until `stop`, then lets what is under way finish.
    pub(crate) async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let (config, end) = (self.config.clone(), self.end.clone());
        let sessions = Arc::clone(&self.sessions);
        let flights = Arc::new(Flights::default());
        let draining = CancellationToken::new();
        let shared = Arc::new(Shared {
            mcp: self.mcp,
            gate: self.gate,
            config: self.config,
            sessions: self.sessions,
            streams: Arc::default(),
            guest_streams: guest_streams(&config.limits),
            body_memory: body_memory::BodyMemory::new(config.limits.body),
            store: self.store,
            store_health: store_health::StoreHealth::default(),
            started: Instant::now(),
            flights: Arc::clone(&flights),
            request_ids: Arc::default(),
            draining: draining.clone(),
        });
        let sweeper = tokio::spawn(Arc::clone(&sessions).sweep());
        let follower = tokio::spawn(restoring::follow_others(Arc::clone(&shared)));
        let watcher = tokio::spawn(store_watch::watch(Arc::clone(&shared)));
        let routes = router(Arc::clone(&shared), self.admin);
        let accepting = listener::accept(listener, routes, &config, &draining);
        let stopping = async {
            stop.await;
            draining.cancel();
        };
        let (connections, ()) = tokio::join!(accepting, stopping);
        drain(connections, &flights, config.limits.drain, || async {
            end.cancel();
            sessions.close_all().await;
        })
        .await;
        sweeper.abort();
        follower.abort();
        watcher.abort();
        if let Gate::Pool(pool) = &shared.gate {
            let _ = timeout(CLOSING, pool.audit.flush()).await;
        }
    }
}

/// Places for the streams of guests: each takes a connection, of which some are left to short requests.
fn guest_streams(limits: &HttpLimits) -> Arc<FairPlaces> {
    let most = (limits.connections / 4 * 3).max(1);
    let per_address = limits.streams_per_address;
    Arc::new(FairPlaces::new(
        most,
        per_address,
        WhenAddressIsFull::ReplaceIdle,
    ))
}

/// Lets requests finish, then ends what is left.
async fn drain<F: Future<Output = ()>>(
    mut connections: JoinSet<()>,
    flights: &Flights,
    patience: Duration,
    end: impl FnOnce() -> F,
) {
    if timeout(patience, flights.all_landed()).await.is_err() {
        tracing::warn!("requests that did not finish in time are cut");
    }
    end().await;
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(CLOSING, all).await;
}

fn router<M: Mcp>(shared: Arc<Shared<M>>, admin: Router<Arc<Shared<M>>>) -> Router {
    Router::new()
        .route("/mcp", any(mcp::serve::<M>))
        .merge(admin)
        .route("/sse", get(legacy::connect::<M>))
        .route("/messages", post(legacy::post::<M>))
        .fallback(|| async { (StatusCode::NOT_FOUND, "Not found") })
        .method_not_allowed_fallback(|| async {
            (StatusCode::METHOD_NOT_ALLOWED, "Method not allowed")
        })
        // Streams of events are left alone: they must not wait until there is enough to compress.
        .layer(CompressionLayer::new())
        .layer(from_fn_with_state(Arc::clone(&shared), guard::guard::<M>))
        .layer(from_fn(observe::observed))
        .with_state(shared)
}
