//! What the handler needs of the tools.

use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::JsonObject;

use crate::operations::client::ClientHandle;
use crate::spending::{AccountGuard, NobodyPays};
use crate::telemetry::Gauges;
use crate::tools::resources::Resources;
use crate::tools::{
    TaskLimits, ToolCall, ToolContext, ToolDefinition, ToolError, ToolExecutor, ToolOutcome,
    WorkHandle,
};
use exa_mcp_accounts::{Allowance, KeyPage, Permit, Requester};
use exa_mcp_exa_client::{KeyOwner, KeyPool, keep_reserved};
use exa_mcp_store::Store;

/// A parsed call, which says what it will do.
pub trait ParsedCall: Send + Sync + 'static {
    /// Returns the name of the tool.
    fn name(&self) -> &str;

    /// Returns the arguments as they were given.
    fn arguments(&self) -> &JsonObject;

    /// Returns what the call can cost if it starts work that takes long, in millionths of a dollar;
    /// `None` for other calls.
    fn start_cost(&self) -> Option<u64>;

    /// Returns whether the call starts work that takes long.
    fn starts_work(&self) -> bool {
        self.start_cost().is_some()
    }

    /// Returns whether the call says itself how long it waits.
    fn waits(&self) -> bool {
        false
    }
}

/// A call that is about to become a task.
pub struct Prepared<C> {
    /// The call, with what was answered.
    pub call: C,
    /// A client that knows what was answered, or why the call cannot be made.
    pub client: Result<ClientHandle, Box<ToolError>>,
}

/// A set of tools that an [`McpServer`](super::McpServer) offers.
pub trait Tools: Clone + Send + Sync + 'static {
    /// A parsed call of a tool.
    type Call: ParsedCall;

    /// The tools as this requester may use them.
    fn for_requester(&self, _requester: &Requester) -> Self {
        self.clone()
    }

    /// The same tools for one call, which the holder of a token pays for.
    fn paid_by(&self, _allowance: &Allowance, _permit: &Permit) -> Self {
        self.clone()
    }

    /// The same tools for work that nobody pays for any more.
    fn unpaid(&self) -> Self {
        self.clone()
    }

    /// The keys with which Exa is called, if there is a pool of them.
    fn keys(&self) -> Option<KeyPool> {
        None
    }

    /// Whether there is a key to call Exa with.
    fn has_key(&self) -> bool {
        true
    }

    /// How the keys stand, and whether Exa answers.
    fn gauges(&self) -> Gauges {
        Gauges::default()
    }

    /// Says why a list that narrows the tools down cannot be used.
    fn check_list(&self, _list: &str) -> Result<(), String> {
        Ok(())
    }

    /// What a model should know before it uses the tools.
    fn instructions(&self) -> String;

    /// The tools in the order in which they are listed.
    fn definitions(&self) -> Vec<ToolDefinition>;

    /// Says whether there is a tool of this name.
    fn has(&self, name: &str) -> bool;

    /// What can be read beside calling tools, if anything.
    fn resources(&self) -> Option<&Resources> {
        None
    }

    /// How to call an operation of Exa with these tools, in the words of a prompt.
    fn way_to(&self, _operation: &str) -> Option<String> {
        None
    }

    /// Where tasks are kept; without a store there are none.
    fn store(&self) -> Option<Arc<dyn Store>> {
        None
    }

    /// How long tasks live, and how many there may be.
    fn task_limits(&self) -> TaskLimits {
        TaskLimits::default()
    }

    /// Whether a tool can be answered by a task alone. None of Exa's is such a tool: who knows no tasks gets
    /// plain answers.
    fn needs_tasks(&self, _name: &str) -> bool {
        false
    }

    /// Stops work at Exa; says whether that was possible, `None` where Exa offers no way.
    fn stop(&self, _work: WorkHandle) -> impl Future<Output = Option<bool>> + Send + 'static {
        ready(None)
    }

    /// How long a client may take to answer a question, if not as long as usual.
    fn patience(&self) -> Option<Duration> {
        None
    }

    /// The page on which a missing key can be entered, if there is one.
    fn key_page(&self) -> impl Future<Output = Option<KeyPage>> + Send + 'static {
        ready(None)
    }

    /// Parses and validates a call.
    fn parse(&self, name: &str, arguments: JsonObject) -> Self::Call;

    /// Asks for what a call needs before it becomes a task.
    fn prepare(
        &self,
        call: Self::Call,
        _context: ToolContext,
    ) -> impl Future<Output = Prepared<Self::Call>> + Send + 'static {
        let client = Ok(ClientHandle::mute());
        ready(Prepared { call, client })
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
            None if requester.key_in_address => self.without_key(KeyOwner::ClientsNotByAddress),
            None => self.clone(),
        };
        let own = match &requester.allowance {
            Some(allowance) => own.paid_by(allowance, &Permit::default()),
            None => own,
        };
        let own = if requester.read_only {
            own.read_only()
        } else {
            own
        };
        // What a token allows and what its holder asks for: both must name a tool.
        let lists = [&requester.allowed, &requester.tools];
        let lists = lists.into_iter().flatten();
        lists.fold(own, |own, list| own.only(list))
    }

    fn paid_by(&self, allowance: &Allowance, permit: &Permit) -> Self {
        let account = allowance.account().of_call(permit.slot());
        self.with_guard(Arc::new(AccountGuard::new(account)))
    }

    fn unpaid(&self) -> Self {
        self.with_guard(Arc::new(NobodyPays))
    }

    fn keys(&self) -> Option<KeyPool> {
        Some(self.caller().keys().clone())
    }

    fn has_key(&self) -> bool {
        self.caller().has_key()
    }

    fn gauges(&self) -> Gauges {
        let caller = self.caller();
        Gauges {
            keys: caller.keys().counts(),
            upstream: caller.is_exa_well(),
            ..Gauges::default()
        }
    }

    fn check_list(&self, list: &str) -> Result<(), String> {
        let narrowed = self.narrowed(list).map(drop);
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

    fn way_to(&self, operation: &str) -> Option<String> {
        self.registry().route_to(operation)
    }

    fn store(&self) -> Option<Arc<dyn Store>> {
        Some(self.store())
    }

    fn task_limits(&self) -> TaskLimits {
        self.task_limits()
    }

    fn stop(&self, work: WorkHandle) -> impl Future<Output = Option<bool>> + Send + 'static {
        let tools = self.clone();
        async move { ToolExecutor::stop(&tools, &work).await }
    }

    fn patience(&self) -> Option<Duration> {
        self.prompt_policy().patience
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
    ) -> impl Future<Output = Prepared<ToolCall>> + Send + 'static {
        let tools = self.clone();
        Box::pin(async move {
            let client = tools.ask_before_task(&call, &context).await;
            Prepared { call, client }
        })
    }

    fn run(
        &self,
        call: ToolCall,
        context: ToolContext,
    ) -> impl Future<Output = ToolOutcome> + Send + 'static {
        let tools = self.clone();
        // Every wrapper around a call holds it twice; boxed, it is but a pointer to them.
        Box::pin(keep_reserved(async move {
            ToolExecutor::run(&tools, call, &context).await
        }))
    }
}
