//! The interface between the handler and the tools.

use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::JsonObject;

use crate::operations::interaction::ClientHandle;
use crate::spending::{AccountGuard, NoPayer};
use crate::telemetry::Gauges;
use crate::tools::resources::Resources;
use crate::tools::{
    JobHandle, TaskLimits, ToolCall, ToolContext, ToolDefinition, ToolError, ToolExecutor,
    ToolOutcome,
};
use exa_mcp_accounts::{Allowance, CallPermit, KeyPage, Requester};
use exa_mcp_exa_client::{KeyOwner, KeyPool, hold_response_memory};
use exa_mcp_store::Store;

/// A parsed tool call.
pub trait ParsedCall: Send + Sync + 'static {
    /// Returns the name of the tool.
    fn name(&self) -> &str;

    /// Returns the arguments as they were given.
    fn arguments(&self) -> &JsonObject;

    /// Returns the highest cost of a call that starts a long-running job, in millionths of a dollar; `None` for other
    /// calls.
    fn start_cost(&self) -> Option<u64>;

    /// Returns whether the call starts a long-running job.
    fn starts_job(&self) -> bool {
        self.start_cost().is_some()
    }

    /// Returns whether the arguments set how long the call waits.
    fn waits(&self) -> bool {
        false
    }
}

/// A call that is about to become a task.
pub struct PreparedCall<C> {
    /// The call, completed with the client's input.
    pub call: C,
    /// A client that remembers the input, or why the call cannot be made.
    pub client: Result<ClientHandle, Box<ToolError>>,
}

/// A set of tools that an [`McpServer`](super::McpServer) offers.
pub trait Tools: Clone + Send + Sync + 'static {
    /// A parsed call of a tool.
    type Call: ParsedCall;

    /// Returns the tools that a requester may use.
    fn for_requester(&self, _requester: &Requester) -> Self {
        self.clone()
    }

    /// Returns the tools for one call that an account pays for.
    fn paid_by(&self, _allowance: &Allowance, _permit: &CallPermit) -> Self {
        self.clone()
    }

    /// Returns the tools for a task whose account no longer exists.
    fn unpaid(&self) -> Self {
        self.clone()
    }

    /// Returns the key pool, if there is one.
    fn keys(&self) -> Option<KeyPool> {
        None
    }

    /// Returns whether there is an API key.
    fn has_key(&self) -> bool {
        true
    }

    /// Returns the gauges of the keys and of Exa's health.
    fn gauges(&self) -> Gauges {
        Gauges::default()
    }

    /// Returns the tools that others than admins may use.
    fn without_admin_tools(&self) -> Self {
        self.clone()
    }

    /// Checks a list that restricts the tools.
    fn check_list(&self, _list: &str) -> Result<(), String> {
        Ok(())
    }

    /// Returns the instructions for models.
    fn instructions(&self) -> String;

    /// Returns the tools in listing order.
    fn definitions(&self) -> Vec<ToolDefinition>;

    /// Returns whether there is a tool with this name.
    fn has(&self, name: &str) -> bool;

    /// Returns the resources, if there are any.
    fn resources(&self) -> Option<&Resources> {
        None
    }

    /// Describes, for a prompt, how to call an operation with these tools.
    fn route_to(&self, _operation: &str) -> Option<String> {
        None
    }

    /// Returns the store of tasks; without a store, tasks are disabled.
    fn store(&self) -> Option<Arc<dyn Store>> {
        None
    }

    /// Returns the limits of tasks.
    fn task_limits(&self) -> TaskLimits {
        TaskLimits::default()
    }

    /// Returns whether a tool can only run as a task. No tool of this server requires tasks: a client without tasks
    /// gets ordinary results.
    fn needs_tasks(&self, _name: &str) -> bool {
        false
    }

    /// Cancels a job at Exa and returns whether that succeeded; `None` if Exa cannot cancel it.
    fn stop(&self, _job: JobHandle) -> impl Future<Output = Option<bool>> + Send + 'static {
        ready(None)
    }

    /// Returns the timeout of requests to the client, if it is not the default.
    fn input_timeout(&self) -> Option<Duration> {
        None
    }

    /// Returns how long a client is idle before it is pinged, if it is.
    fn ping_interval(&self) -> Option<Duration> {
        None
    }

    /// Returns the page on which the user can enter a missing key, if there is one.
    fn key_page(&self) -> impl Future<Output = Option<KeyPage>> + Send + 'static {
        ready(None)
    }

    /// Parses and validates a call.
    fn parse(&self, name: &str, arguments: JsonObject) -> Self::Call;

    /// Requests the input that a call needs before it becomes a task.
    fn prepare(
        &self,
        call: Self::Call,
        _context: ToolContext,
    ) -> impl Future<Output = PreparedCall<Self::Call>> + Send + 'static {
        let client = Ok(ClientHandle::non_interactive());
        ready(PreparedCall { call, client })
    }

    /// Runs a call.
    fn run(
        &self,
        call: Self::Call,
        context: ToolContext,
    ) -> impl Future<Output = ToolOutcome> + Send + 'static;
}

impl ParsedCall for ToolCall {
    fn name(&self) -> &str {
        self.name()
    }

    fn arguments(&self) -> &JsonObject {
        self.arguments()
    }

    fn start_cost(&self) -> Option<u64> {
        self.start_cost()
    }

    fn waits(&self) -> bool {
        self.waits()
    }
}

impl Tools for ToolExecutor {
    type Call = ToolCall;

    fn for_requester(&self, requester: &Requester) -> Self {
        let own = match &requester.key {
            Some(key) => self.with_key(key.clone()),
            None if requester.key_in_address => self.without_key(KeyOwner::ClientsNotInUrl),
            None => self.clone(),
        };
        let own = if requester.is_admin {
            own
        } else {
            own.without_admin_tools()
        };
        let own = match &requester.allowance {
            Some(allowance) => own.paid_by(allowance, &CallPermit::default()),
            None => own,
        };
        let own = if requester.read_only {
            own.read_only()
        } else {
            own
        };
        // A tool must be in both lists: the token's and the requested one.
        let lists = [&requester.allowed_tools, &requester.tools];
        let lists = lists.into_iter().flatten();
        lists.fold(own, |own, list| own.only(list))
    }

    fn paid_by(&self, allowance: &Allowance, permit: &CallPermit) -> Self {
        let account = allowance.account().for_call(permit.slot());
        self.with_guard(Arc::new(AccountGuard::new(account)))
    }

    fn unpaid(&self) -> Self {
        self.with_guard(Arc::new(NoPayer))
    }

    fn keys(&self) -> Option<KeyPool> {
        Some(self.operation_executor().keys().clone())
    }

    fn has_key(&self) -> bool {
        self.operation_executor().has_key()
    }

    fn gauges(&self) -> Gauges {
        let executor = self.operation_executor();
        Gauges {
            keys: executor.keys().counts(),
            upstream: executor.is_exa_healthy(),
            ..Gauges::default()
        }
    }

    fn without_admin_tools(&self) -> Self {
        self.without_admin_tools()
    }

    fn check_list(&self, list: &str) -> Result<(), String> {
        let narrowed = self.narrow(list).map(drop);
        narrowed.map_err(|error| error.to_string())
    }

    fn instructions(&self) -> String {
        self.registry().instructions()
    }

    fn definitions(&self) -> Vec<ToolDefinition> {
        self.registry().definitions()
    }

    fn has(&self, name: &str) -> bool {
        self.registry().contains(name)
    }

    fn resources(&self) -> Option<&Resources> {
        Some(self.resources())
    }

    fn route_to(&self, operation: &str) -> Option<String> {
        self.registry().route_to(operation)
    }

    fn store(&self) -> Option<Arc<dyn Store>> {
        Some(self.store())
    }

    fn task_limits(&self) -> TaskLimits {
        self.task_limits()
    }

    fn stop(&self, job: JobHandle) -> impl Future<Output = Option<bool>> + Send + 'static {
        let tools = self.clone();
        async move { ToolExecutor::stop(&tools, &job).await }
    }

    fn input_timeout(&self) -> Option<Duration> {
        self.prompt_policy().timeout
    }

    fn ping_interval(&self) -> Option<Duration> {
        self.prompt_policy().ping_interval
    }

    fn key_page(&self) -> impl Future<Output = Option<KeyPage>> + Send + 'static {
        let tools = self.clone();
        Box::pin(async move { ToolExecutor::key_page(&tools).await })
    }

    fn parse(&self, name: &str, arguments: JsonObject) -> ToolCall {
        self.registry().parse(name, arguments)
    }

    fn prepare(
        &self,
        call: ToolCall,
        context: ToolContext,
    ) -> impl Future<Output = PreparedCall<ToolCall>> + Send + 'static {
        let tools = self.clone();
        Box::pin(async move {
            let client = tools.ask_before_task(&call, &context).await;
            PreparedCall { call, client }
        })
    }

    fn run(
        &self,
        call: ToolCall,
        context: ToolContext,
    ) -> impl Future<Output = ToolOutcome> + Send + 'static {
        let tools = self.clone();
        // Boxed, because every wrapper around the future would hold it twice.
        Box::pin(hold_response_memory(async move {
            ToolExecutor::run(&tools, call, &context).await
        }))
    }
}
