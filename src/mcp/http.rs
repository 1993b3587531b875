//! Runs the server over HTTP.

use std::collections::BTreeMap;
use std::future::{Future, pending, ready};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::DuplexStream;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::calls::Calls;
use super::client::share_key;
use super::handler::Handler;
use super::request::SharedSessions;
use super::scope::Scope;
use super::serve::{close, connection};
use super::tools::Tools;
use super::traced::Traced;
use crate::accounts::{Requester, kept_secret};
use crate::spending::follow_runs;
use crate::telemetry::{Gauges, Metrics};
use crate::tools::ToolExecutor;
use crate::transport::http::{Answer, Gate, HttpConfig, Introductions, Mcp, Server, Sessions};
use crate::transport::stdio::StdioTransport;
use exa_mcp_exa_client::KeyPool;
use exa_mcp_store::{Store, StoreError};

/// How many calls run at once, of everybody together; further ones wait for their turn.
const CALLS_AT_ONCE: usize = 4_096;

/// How long starts on their way may take to be answered at the end.
const SETTLING: Duration = Duration::from_secs(5);

/// Serves MCP over HTTP until `stop`, then lets running requests finish.
pub async fn serve_http(
    executor: ToolExecutor,
    listener: TcpListener,
    gate: Gate,
    config: HttpConfig,
    stop: impl Future<Output = ()>,
) {
    let store = executor.store();
    serve(executor, Arc::clone(&store), listener, gate, config, stop).await;
    close(&*store).await;
}

pub(super) async fn serve<T: Tools>(
    tools: T,
    store: Arc<dyn Store>,
    listener: TcpListener,
    gate: Gate,
    config: HttpConfig,
    stop: impl Future<Output = ()>,
) {
    if store.is_remote()
        && let Ok(secret) = kept_secret(&*store).await
    {
        share_key(&secret);
    }
    if let Some(resources) = tools.resources() {
        resources.replicate(&store);
    }
    let ledger = match &gate {
        Gate::Pool(pool) => Some(Arc::clone(&pool.ledger)),
        Gate::Passthrough { .. } => None,
    };
    if let (Some(ledger), Some(caller)) = (&ledger, tools.caller()) {
        tokio::spawn(follow_runs(Arc::clone(ledger), caller));
    }
    let room = Everybody::new(tools);
    let scope = &room.scope;
    let tasks = scope.tasks.clone();
    if let (Gate::Pool(pool), Some(tasks)) = (&gate, &tasks) {
        tasks.set_payers(pool.payers());
    }
    if let (Some(tasks), Some(tokens)) = (&tasks, gate.tokens()) {
        tasks.depend_on(tokens);
    }
    match tasks.clone() {
        Some(tasks) if scope.tools.has_key() => {
            tokio::spawn(async move { tasks.resume().await });
        }
        Some(tasks) => tasks.resume_on_demand(),
        None => {}
    }
    serve_room(room, store, listener, gate, config, stop).await;
    if let Some(tasks) = tasks {
        tasks.settle(SETTLING).await;
    }
    if let Some(ledger) = ledger {
        ledger.drain(SETTLING).await;
    }
}

/// Serves what a room offers.
pub(super) async fn serve_room<R: Room>(
    room: R,
    store: Arc<dyn Store>,
    listener: TcpListener,
    gate: Gate,
    config: HttpConfig,
    stop: impl Future<Output = ()>,
) {
    Metrics::start();
    let end = CancellationToken::new();
    let sessions = Arc::new(Sessions::new(config.limits, &store));
    let mcp = Service::new(room, &config, Arc::clone(&sessions), end.clone());
    let server = Server {
        mcp,
        sessions,
        gate,
        config,
        store,
        admin: crate::admin::routes(),
        end,
    };
    server.serve(listener, stop).await;
}

/// Makes handlers, which share everything that is not of one session.
pub(super) trait Room: Clone + Send + Sync + 'static {
    /// What serves one session, or one request.
    type Handler: ServerHandler;

    /// A handler for requests that say who makes them.
    fn handler(&self) -> Self::Handler;

    /// A handler for all requests of one client.
    fn handler_for(&self, requester: &Requester) -> Self::Handler;

    /// Says why a list of tools cannot be used.
    fn check_list(&self, list: &str) -> Result<(), String>;

    /// How tasks and keys stand.
    fn gauges(&self) -> Gauges {
        Gauges::default()
    }

    /// The keys with which Exa is called, if there is a pool of them.
    fn keys(&self) -> Option<KeyPool> {
        None
    }

    /// How many tasks there are in each state.
    fn tasks(&self) -> impl Future<Output = Result<BTreeMap<String, u64>, StoreError>> + Send {
        ready(Ok(BTreeMap::new()))
    }
}

/// The room in which everybody is served.
#[derive(Clone)]
pub(super) struct Everybody<T> {
    scope: Scope<T>,
    calls: Arc<Calls>,
}

impl<T: Tools> Everybody<T> {
    pub(super) fn new(tools: T) -> Self {
        Self {
            scope: Scope::remote(tools),
            calls: Arc::new(Calls::new(CALLS_AT_ONCE)),
        }
    }
}

impl<T: Tools> Room for Everybody<T> {
    type Handler = Handler<T>;

    fn handler(&self) -> Handler<T> {
        Handler::new(self.scope.clone(), Arc::clone(&self.calls))
    }

    fn handler_for(&self, requester: &Requester) -> Handler<T> {
        Handler::new(self.scope.of(requester), Arc::clone(&self.calls))
    }

    fn check_list(&self, list: &str) -> Result<(), String> {
        self.scope.tools.check_list(list)
    }

    fn gauges(&self) -> Gauges {
        let tasks = self.scope.tasks.as_ref();
        Gauges {
            tasks: tasks.map_or(0, |tasks| tasks.count()),
            ..self.scope.tools.gauges()
        }
    }

    fn keys(&self) -> Option<KeyPool> {
        self.scope.tools.keys()
    }

    async fn tasks(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        match &self.scope.tasks {
            Some(tasks) => tasks.census().await,
            None => Ok(BTreeMap::new()),
        }
    }
}

/// The protocol room, as HTTP sees it.
struct Service<R: Room> {
    streamable: StreamableHttpService<Traced<R::Handler>, Sessions>,
    /// The sessions, where other servers know them, too.
    shared: Option<Arc<Sessions>>,
    room: R,
}

impl<R: Room> Clone for Service<R> {
    fn clone(&self) -> Self {
        Self {
            streamable: self.streamable.clone(),
            shared: self.shared.clone(),
            room: self.room.clone(),
        }
    }
}

impl<R: Room> Service<R> {
    fn new(room: R, config: &HttpConfig, sessions: Arc<Sessions>, end: CancellationToken) -> Self {
        let maker = room.clone();
        let handler =
            move || -> io::Result<Traced<R::Handler>> { Ok(Traced::over_http(maker.handler())) };
        // Hosts, origins and sizes are looked at before rmcp sees anything.
        let mut settings = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_max_request_body_bytes(usize::MAX)
            .with_json_response(true)
            .with_sse_keep_alive(Some(config.limits.keep_alive))
            // Not every client can read an event without a message; sessions know which can.
            .with_sse_retry(None)
            .with_cancellation_token(end);
        if sessions.are_shared() {
            settings.session_store = Some(Arc::new(Introductions(Arc::clone(&sessions))));
        }
        let shared = sessions.are_shared().then(|| Arc::clone(&sessions));
        Self {
            streamable: StreamableHttpService::new(handler, sessions, settings),
            shared,
            room,
        }
    }
}

impl<R: Room> Mcp for Service<R> {
    async fn answer(&self, mut request: Request<Full<Bytes>>) -> Answer {
        if let Some(sessions) = &self.shared {
            let sessions = SharedSessions(Arc::clone(sessions) as _);
            request.extensions_mut().insert(sessions);
        }
        // Boxed, because every room before it would hold it, and hand it on, at its full size.
        Box::pin(self.streamable.handle(request)).await
    }

    fn connect(
        &self,
        requester: Requester,
        session: &str,
        stream: DuplexStream,
    ) -> impl Future<Output = ()> + Send + 'static {
        let handler = Traced::over_http(self.room.handler_for(&requester));
        let handler = handler.of_session(requester.owner, session);
        let handler = handler.counted(requester.meter);
        let (input, output) = tokio::io::split(stream);
        async move {
            // How it ended is known at the other end.
            let (transport, written) = StdioTransport::new(input, output);
            let _ = connection(handler, transport, written, pending(), ready(())).await;
        }
    }

    fn gauges(&self) -> Gauges {
        self.room.gauges()
    }

    fn check_tools(&self, list: &str) -> Result<(), String> {
        self.room.check_list(list)
    }

    fn keys(&self) -> Option<KeyPool> {
        self.room.keys()
    }

    async fn tasks(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        self.room.tasks().await
    }
}
