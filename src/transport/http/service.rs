//! Connects rmcp's Streamable HTTP service to the HTTP server.

use std::collections::BTreeMap;
use std::future::{Future, ready};
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

use super::{
    AuthMode, HttpConfig, HttpServer, HttpState, InitializeParamsStore, McpBackend, McpResponse,
    Sessions,
};
use crate::mcp::request::SharedSessions;
use crate::mcp::{ClientConnection, HandlerFactory, TracedHandler};
use crate::telemetry::{Gauges, Metrics};
use crate::transport::Backlog;
use crate::transport::connection::serve_lines;
use exa_mcp_accounts::Requester;
use exa_mcp_exa_client::KeyPool;
use exa_mcp_store::{Store, StoreError};

/// Serves MCP over HTTP until `stop` resolves, then waits for running requests.
pub async fn serve<R: HandlerFactory>(
    handlers: R,
    store: Arc<dyn Store>,
    listener: TcpListener,
    auth_mode: AuthMode,
    config: HttpConfig,
    stop: impl Future<Output = ()>,
) {
    let admin = Router::new();
    serve_with_admin(handlers, store, listener, auth_mode, config, admin, stop).await;
}

/// Serves MCP and the `admin` routes over HTTP until `stop` resolves, then waits for running requests.
pub(crate) async fn serve_with_admin<R: HandlerFactory>(
    handlers: R,
    store: Arc<dyn Store>,
    listener: TcpListener,
    auth_mode: AuthMode,
    config: HttpConfig,
    admin: Router<Arc<HttpState<RmcpService<R>>>>,
    stop: impl Future<Output = ()>,
) {
    Metrics::start();
    let end = CancellationToken::new();
    let sessions = Arc::new(Sessions::new(config.limits, &store));
    let mcp = RmcpService::new(handlers, &config, Arc::clone(&sessions), end.clone());
    let server = HttpServer {
        mcp,
        sessions,
        auth_mode,
        config,
        store,
        admin,
        end,
    };
    server.serve(listener, stop).await;
}

/// The MCP server behind the HTTP transport, based on rmcp.
pub(crate) struct RmcpService<R: HandlerFactory> {
    streamable: StreamableHttpService<TracedHandler<R::Handler>, Sessions>,
    /// The sessions, if they are shared with other servers.
    shared: Option<Arc<Sessions>>,
    handlers: R,
}

impl<R: HandlerFactory> Clone for RmcpService<R> {
    fn clone(&self) -> Self {
        Self {
            streamable: self.streamable.clone(),
            shared: self.shared.clone(),
            handlers: self.handlers.clone(),
        }
    }
}

impl<R: HandlerFactory> RmcpService<R> {
    fn new(
        handlers: R,
        config: &HttpConfig,
        sessions: Arc<Sessions>,
        end: CancellationToken,
    ) -> Self {
        let maker = handlers.clone();
        let handler = move || -> io::Result<TracedHandler<R::Handler>> {
            let handler = TracedHandler::http(maker.handler());
            Ok(handler.with_pings(maker.ping_policy()))
        };
        // Hosts, origins and sizes are checked before rmcp sees a request.
        let mut settings = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_max_request_body_bytes(usize::MAX)
            .with_json_response(true)
            .with_sse_keep_alive(Some(config.limits.keep_alive))
            // Only some clients accept priming events, so sessions send them.
            .with_sse_retry(None)
            .with_cancellation_token(end);
        if sessions.are_shared() {
            settings.session_store = Some(Arc::new(InitializeParamsStore(Arc::clone(&sessions))));
        }
        let shared = sessions.are_shared().then(|| Arc::clone(&sessions));
        Self {
            streamable: StreamableHttpService::new(handler, sessions, settings),
            shared,
            handlers,
        }
    }
}

/// The stream of a client of the legacy HTTP+SSE transport.
struct SseStream(CancellationToken);

impl ClientConnection for SseStream {
    fn is_open(&self) -> bool {
        true
    }

    fn close(&self) {
        self.0.cancel();
    }
}

impl<R: HandlerFactory> McpBackend for RmcpService<R> {
    async fn handle(&self, mut request: Request<Full<Bytes>>) -> McpResponse {
        if let Some(sessions) = &self.shared {
            let sessions = SharedSessions(Arc::clone(sessions) as _);
            request.extensions_mut().insert(sessions);
        }
        // Boxed, because every enclosing future would otherwise contain it at full size.
        Box::pin(self.streamable.handle(request)).await
    }

    fn serve_connection(
        &self,
        requester: Requester,
        session: &str,
        stream: DuplexStream,
        backlog: Arc<Backlog>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let handler = TracedHandler::http(self.handlers.handler_for(&requester));
        let handler = handler.with_session(requester.owner, session);
        let handler = handler.with_meter(requester.meter);
        let handler = handler.with_pings(self.handlers.ping_policy());
        let end = CancellationToken::new();
        let handler = handler.with_connection(Arc::new(SseStream(end.clone())));
        let (input, output) = tokio::io::split(stream);
        async move {
            // The other end of the stream observes the result.
            let serve = serve_lines(
                handler,
                input,
                output,
                backlog,
                |_| {},
                end.cancelled_owned(),
                ready(()),
            );
            let _ = serve.await;
        }
    }

    fn gauges(&self) -> Gauges {
        self.handlers.gauges()
    }

    fn check_tools(&self, list: &str, is_admin: bool) -> Result<(), String> {
        self.handlers.check_list(list, is_admin)
    }

    fn keys(&self) -> Option<KeyPool> {
        self.handlers.keys()
    }

    async fn tasks(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        self.handlers.tasks().await
    }
}
