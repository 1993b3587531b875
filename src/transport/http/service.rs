//! The MCP server, as HTTP sees it.

use std::collections::BTreeMap;
use std::future::{Future, pending, ready};
use std::io;
use std::sync::Arc;

use axum::Router;
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::DuplexStream;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{Answer, Gate, HttpConfig, Introductions, Mcp, Server, Sessions, Shared};
use crate::mcp::request::SharedSessions;
use crate::mcp::{HandlerFactory, TracedHandler};
use crate::telemetry::{Gauges, Metrics};
use crate::transport::Backlog;
use crate::transport::connection::serve_lines;
use exa_mcp_accounts::Requester;
use exa_mcp_exa_client::KeyPool;
use exa_mcp_store::{Store, StoreError};

/// Serves MCP over HTTP until `stop`, then lets running requests finish.
pub async fn serve<R: HandlerFactory>(
    handlers: R,
    store: Arc<dyn Store>,
    listener: TcpListener,
    gate: Gate,
    config: HttpConfig,
    stop: impl Future<Output = ()>,
) {
    let admin = Router::new();
    serve_with_admin(handlers, store, listener, gate, config, admin, stop).await;
}

/// Serves MCP and the `admin` routes over HTTP until `stop`, then lets running requests finish.
pub(crate) async fn serve_with_admin<R: HandlerFactory>(
    handlers: R,
    store: Arc<dyn Store>,
    listener: TcpListener,
    gate: Gate,
    config: HttpConfig,
    admin: Router<Arc<Shared<Service<R>>>>,
    stop: impl Future<Output = ()>,
) {
    Metrics::start();
    let end = CancellationToken::new();
    let sessions = Arc::new(Sessions::new(config.limits, &store));
    let mcp = Service::new(handlers, &config, Arc::clone(&sessions), end.clone());
    let server = Server {
        mcp,
        sessions,
        gate,
        config,
        store,
        admin,
        end,
    };
    server.serve(listener, stop).await;
}

/// The MCP server, as HTTP sees it.
pub(crate) struct Service<R: HandlerFactory> {
    streamable: StreamableHttpService<TracedHandler<R::Handler>, Sessions>,
    /// The sessions, where other servers know them, too.
    shared: Option<Arc<Sessions>>,
    handlers: R,
}

impl<R: HandlerFactory> Clone for Service<R> {
    fn clone(&self) -> Self {
        Self {
            streamable: self.streamable.clone(),
            shared: self.shared.clone(),
            handlers: self.handlers.clone(),
        }
    }
}

impl<R: HandlerFactory> Service<R> {
    fn new(
        handlers: R,
        config: &HttpConfig,
        sessions: Arc<Sessions>,
        end: CancellationToken,
    ) -> Self {
        let maker = handlers.clone();
        let handler = move || -> io::Result<TracedHandler<R::Handler>> {
            Ok(TracedHandler::http(maker.handler()))
        };
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
            handlers,
        }
    }
}

impl<R: HandlerFactory> Mcp for Service<R> {
    async fn answer(&self, mut request: Request<Full<Bytes>>) -> Answer {
        if let Some(sessions) = &self.shared {
            let sessions = SharedSessions(Arc::clone(sessions) as _);
            request.extensions_mut().insert(sessions);
        }
        // Boxed, because every layer before it would hold it, and hand it on, at its full size.
        Box::pin(self.streamable.handle(request)).await
    }

    fn connect(
        &self,
        requester: Requester,
        session: &str,
        stream: DuplexStream,
        backlog: Arc<Backlog>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let handler = TracedHandler::http(self.handlers.handler_for(&requester));
        let handler = handler.with_session(requester.owner, session);
        let handler = handler.with_meter(requester.meter);
        let (input, output) = tokio::io::split(stream);
        async move {
            // How it ended is known at the other end.
            let serve = serve_lines(
                handler,
                input,
                output,
                backlog,
                |_| {},
                pending(),
                ready(()),
            );
            let _ = serve.await;
        }
    }

    fn gauges(&self) -> Gauges {
        self.handlers.gauges()
    }

    fn check_tools(&self, list: &str) -> Result<(), String> {
        self.handlers.check_list(list)
    }

    fn keys(&self) -> Option<KeyPool> {
        self.handlers.keys()
    }

    async fn tasks(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        self.handlers.tasks().await
    }
}
