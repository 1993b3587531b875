//! The MCP server of a set of tools, without the transports that carry its messages.

use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServerHandler;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage};

use super::calls::Calls;
use super::handler::Handler;
use super::scope::Scope;
use super::tools::Tools;
use super::traced::Traced;
use crate::telemetry::Gauges;
use exa_mcp_accounts::{Directory, Payers, Requester};
use exa_mcp_exa_client::KeyPool;
use exa_mcp_model::LocalUser;
use exa_mcp_store::StoreError;

/// How many calls run at once, of everybody together; further ones wait for their turn.
const CALLS_AT_ONCE: usize = 4_096;

/// Makes handlers, which share everything that is not of one session.
pub trait Handlers: Clone + Send + Sync + 'static {
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

/// The MCP server of a set of tools.
#[derive(Clone)]
pub struct McpServer<T> {
    scope: Scope<T>,
    calls: Arc<Calls>,
}

impl<T: Tools> McpServer<T> {
    /// The server of whoever started this process.
    pub(crate) fn local(tools: T, user: LocalUser) -> Self {
        Self {
            scope: Scope::local(tools, user),
            calls: Arc::new(Calls::default()),
        }
    }

    /// The server of everybody who makes requests over HTTP.
    pub fn remote(tools: T) -> Self {
        Self {
            scope: Scope::remote(tools),
            calls: Arc::new(Calls::new(CALLS_AT_ONCE)),
        }
    }

    /// Makes tasks depend on those who pay for them and on the tokens of their owners.
    pub(crate) fn govern_tasks(&self, payers: Option<Payers>, tokens: Option<Arc<Directory>>) {
        let Some(tasks) = &self.scope.tasks else {
            return;
        };
        if let Some(payers) = payers {
            tasks.set_payers(payers);
        }
        if let Some(tokens) = tokens {
            tasks.depend_on(tokens);
        }
    }

    /// Takes up the tasks of earlier processes, or waits for their owners where only they have the keys.
    pub(crate) fn resume_tasks(&self) {
        match self.scope.tasks.clone() {
            Some(tasks) if self.scope.tools.has_key() => {
                tokio::spawn(async move { tasks.resume().await });
            }
            Some(tasks) => tasks.resume_on_demand(),
            None => {}
        }
    }

    /// Returns the handler of the only connection, and what must see each message before it is handled. The handler
    /// hears of the tasks of earlier processes, which are taken up.
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
        // rmcp handles a notification beside the requests after it, which must not rely on what it takes back.
        let roots = handler.roots.clone();
        let received = move |message: &ClientJsonRpcMessage| {
            if let JsonRpcMessage::Notification(message) = message
                && let ClientNotification::RootsListChangedNotification(_) = &message.notification
            {
                roots.forget();
            }
        };
        (Traced::piped(handler), received)
    }

    /// Waits until Exa has answered the starts on their way, but not for long.
    pub(crate) async fn settle(&self, patience: Duration) {
        if let Some(tasks) = &self.scope.tasks {
            tasks.settle(patience).await;
        }
    }
}

impl<T: Tools> Handlers for McpServer<T> {
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
