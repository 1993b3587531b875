//! What the conformance suite asks a server for by name, on the HTTP transport and the handler of every release.
//!
//! Tools with plain results go through the same path as the Exa tools; what those never do (images, input
//! requests of all kinds, resources of other schemes) is answered in [`handler`].

mod content;
mod handler;
mod input_requests;
mod task_tools;
mod tools;

use std::error::Error;
use std::future::pending;
use std::process::ExitCode;
use std::sync::Arc;

use exa_mcp_accounts::{KnownKeys, Requester, Secret};
use exa_mcp_server::mcp::{HandlerFactory, McpServer};
use exa_mcp_server::transport::http::{
    self, AllowedHosts, AllowedOrigins, AnonymousAccess, AuthMode, HttpConfig, HttpLimits,
    TrustedProxies,
};
use exa_mcp_store::MemoryStore;
use tokio::net::TcpListener;
use tokio::sync::broadcast;

use self::handler::ConformanceHandler;
use self::tools::ConformanceTools;

/// A list that has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListChange {
    Tools,
    Prompts,
}

/// Makes the handlers of all sessions.
#[derive(Clone)]
struct ConformanceServer {
    inner: McpServer<ConformanceTools>,
    changes: broadcast::Sender<ListChange>,
}

impl HandlerFactory for ConformanceServer {
    type Handler = ConformanceHandler;

    fn handler(&self) -> ConformanceHandler {
        ConformanceHandler::new(self.inner.handler(), self.changes.clone())
    }

    fn handler_for(&self, requester: &Requester) -> ConformanceHandler {
        ConformanceHandler::new(self.inner.handler_for(requester), self.changes.clone())
    }

    fn check_list(&self, list: &str, is_admin: bool) -> Result<(), String> {
        self.inner.check_list(list, is_admin)
    }
}

/// Serves the suite until the process is killed.
async fn serve(address: &str) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address).await?;
    eprintln!("http://{}/mcp", listener.local_addr()?);
    let config = HttpConfig {
        hosts: AllowedHosts::new(None, None)?,
        origins: AllowedOrigins::new(None)?,
        proxies: TrustedProxies::default(),
        public_metrics: false,
        limits: HttpLimits::default(),
    };
    let gate = AuthMode::Passthrough {
        secret: Secret::random()?,
        key_in_url: false,
        anonymous_access: AnonymousAccess::SharedUser,
        known_keys: KnownKeys::default(),
    };
    let store = Arc::new(MemoryStore::default());
    let server = ConformanceServer {
        inner: McpServer::remote(ConformanceTools::new(store.clone())),
        changes: broadcast::channel(16).0,
    };
    http::serve(server, store, listener, gate, config, pending()).await;
    Ok(())
}

#[tokio::main]
async fn main() -> ExitCode {
    let address = std::env::args().nth(1);
    match serve(address.as_deref().unwrap_or("127.0.0.1:0")).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
