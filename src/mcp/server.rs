//! The MCP server of a set of tools, independent of transports.

use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServerHandler;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage};

use super::call_limiter::CallLimiter;
use super::client::InputTimeouts;
use super::handler::Handler;
use super::idle::PingPolicy;
use super::scope::RequestScope;
use super::tools::Tools;
use super::traced_handler::TracedHandler;
use crate::telemetry::Gauges;
use exa_mcp_accounts::{PayerLookup, Requester, TokenDirectory};
use exa_mcp_exa_client::KeyPool;
use exa_mcp_model::LocalUser;
use exa_mcp_store::StoreError;

/// The limit of concurrent calls of all users together; further ones wait.
const MAX_CONCURRENT_CALLS: usize = 4_096;

/// Creates handlers, which share everything except the state of a session.
pub trait HandlerFactory: Clone + Send + Sync + 'static {
    /// The handler of a session or a request.
    type Handler: ServerHandler;

    /// Creates a handler for requests that carry their requester.
    fn handler(&self) -> Self::Handler;

    /// Creates a handler for all requests of one client.
    fn handler_for(&self, requester: &Requester) -> Self::Handler;

    /// Checks a list of tools.
    fn check_list(&self, list: &str, is_admin: bool) -> Result<(), String>;

    /// Returns the gauges of tasks and keys.
    fn gauges(&self) -> Gauges {
        Gauges::default()
    }

    /// Returns when clients are pinged, if they are.
    fn ping_policy(&self) -> Option<PingPolicy> {
        None
    }

    /// Returns the key pool, if there is one.
    fn keys(&self) -> Option<KeyPool> {
        None
    }

    /// Returns the number of tasks by status.
    fn tasks(&self) -> impl Future<Output = Result<BTreeMap<String, u64>, StoreError>> + Send {
        ready(Ok(BTreeMap::new()))
    }
}

/// The MCP server of a set of tools.
#[derive(Clone)]
pub struct McpServer<T> {
    scope: RequestScope<T>,
    limiter: Arc<CallLimiter>,
}

impl<T: Tools> McpServer<T> {
    /// Creates the server of the user who started this process.
    pub(crate) fn local(tools: T, user: LocalUser) -> Self {
        Self {
            scope: RequestScope::local(tools, user),
            limiter: Arc::new(CallLimiter::default()),
        }
    }

    /// Creates the server of all HTTP clients.
    pub fn remote(tools: T) -> Self {
        Self {
            scope: RequestScope::remote(tools),
            limiter: Arc::new(CallLimiter::new(MAX_CONCURRENT_CALLS)),
        }
    }

    /// Sets the accounts that pay for tasks, and the tokens that their owners need.
    pub(crate) fn govern_tasks(
        &self,
        payers: Option<PayerLookup>,
        tokens: Option<Arc<TokenDirectory>>,
    ) {
        let Some(tasks) = &self.scope.tasks else {
            return;
        };
        if let Some(payers) = payers {
            tasks.set_payers(payers);
        }
        if let Some(tokens) = tokens {
            tasks.require_tokens(tokens);
        }
    }

    /// Resumes the tasks of earlier processes, or waits for their owners if only they have the keys.
    pub(crate) fn resume_tasks(&self) {
        match self.scope.tasks.clone() {
            Some(tasks) if self.scope.tools.has_key() => {
                tokio::spawn(async move { tasks.resume().await });
            }
            Some(tasks) => tasks.resume_on_demand(),
            None => {}
        }
    }

    /// Returns the handler of the only connection, and a callback for each message before it is handled. Resumes the
    /// tasks of earlier processes, whose log messages go to this connection.
    pub(crate) fn only_handler(
        &self,
    ) -> (
        impl ServerHandler,
        impl Fn(&ClientJsonRpcMessage) + Send + 'static,
    ) {
        let handler = self.handler();
        if let Some(tasks) = self.scope.tasks.clone() {
            let resume = async move { tasks.resume().await };
            tokio::spawn(handler.listener().scope(resume));
        }
        // rmcp handles a notification concurrently with later requests, which must not use outdated roots.
        let roots = handler.roots.clone();
        let received = move |message: &ClientJsonRpcMessage| {
            if let JsonRpcMessage::Notification(message) = message
                && let ClientNotification::RootsListChangedNotification(_) = &message.notification
            {
                roots.invalidate();
            }
        };
        let handler = TracedHandler::stdio(handler).with_pings(self.ping_policy());
        (handler, received)
    }

    /// Waits until Exa has responded to pending starts, but not longer than `timeout`.
    pub(crate) async fn settle(&self, timeout: Duration) {
        if let Some(tasks) = &self.scope.tasks {
            tasks.settle(timeout).await;
        }
    }
}

impl<T: Tools> HandlerFactory for McpServer<T> {
    type Handler = Handler<T>;

    fn handler(&self) -> Handler<T> {
        Handler::new(self.scope.clone(), Arc::clone(&self.limiter))
    }

    fn handler_for(&self, requester: &Requester) -> Handler<T> {
        Handler::new(
            self.scope.for_requester(requester),
            Arc::clone(&self.limiter),
        )
    }

    fn check_list(&self, list: &str, is_admin: bool) -> Result<(), String> {
        let tools = &self.scope.tools;
        if is_admin {
            tools.check_list(list)
        } else {
            tools.without_admin_tools().check_list(list)
        }
    }

    fn gauges(&self) -> Gauges {
        let tasks = self.scope.tasks.as_ref();
        Gauges {
            tasks: tasks.map_or(0, |tasks| tasks.count()),
            ..self.scope.tools.gauges()
        }
    }

    fn ping_policy(&self) -> Option<PingPolicy> {
        let tools = &self.scope.tools;
        let timeouts = InputTimeouts::new(tools.input_timeout());
        let interval = tools.ping_interval()?;
        Some(PingPolicy {
            interval,
            timeout: timeouts.for_ping(),
        })
    }

    fn keys(&self) -> Option<KeyPool> {
        self.scope.tools.keys()
    }

    async fn tasks(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        match &self.scope.tasks {
            Some(tasks) => tasks.count_by_status().await,
            None => Ok(BTreeMap::new()),
        }
    }
}
