//! What the handler needs of the surface.

use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::JsonObject;

use crate::accounts::{Allowance, KeyPage, Permit, Requester};
use crate::operations::Caller;
use crate::operations::client::ClientHandle;
use crate::spending::{AccountGuard, NobodyPays};
use crate::surface::library::Library;
use crate::surface::{Call, Catalogue, Outcome, Prepared, TaskLimits, ToolDefinition, Work};
use crate::telemetry::Gauges;
use exa_mcp_exa_client::{KeyOwner, KeyPool, keep_reserved};
use exa_mcp_store::Store;

/// A set of tools. The server has one, the tests another.
pub(super) trait Tools: Clone + Send + Sync + 'static {
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

    /// The way to Exa, if there is one.
    fn caller(&self) -> Option<Caller> {
        None
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
    fn library(&self) -> Option<&Library> {
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

    /// Whether a call starts work that takes long.
    fn starts_work(&self, _name: &str, _arguments: &JsonObject) -> bool {
        false
    }

    /// What a call can cost that starts work which takes long, in millionths of a dollar; `None` for others.
    fn cost_of_start(&self, name: &str, arguments: &JsonObject) -> Option<u64> {
        self.starts_work(name, arguments).then_some(0)
    }

    /// Whether a tool can be answered by a task alone. None of Exa's is such a tool: who knows no tasks gets
    /// plain answers.
    fn needs_tasks(&self, _name: &str) -> bool {
        false
    }

    /// Whether a call says itself how long it waits.
    fn waits(&self, _name: &str, _arguments: &JsonObject) -> bool {
        false
    }

    /// Stops work at Exa; says whether that was possible, `None` where Exa offers no way.
    fn stop(&self, _work: Work) -> impl Future<Output = Option<bool>> + Send + 'static {
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

    /// Asks for what a call needs before it becomes a task.
    fn prepare(
        &self,
        _name: &str,
        arguments: JsonObject,
        _call: Call,
    ) -> impl Future<Output = Result<Prepared, Box<Outcome>>> + Send + 'static {
        let client = ClientHandle::mute();
        ready(Ok(Prepared { arguments, client }))
    }

    /// Calls a tool that exists.
    fn call(
        &self,
        name: &str,
        arguments: JsonObject,
        call: Call,
    ) -> impl Future<Output = Outcome> + Send + 'static;
}

impl Tools for Catalogue {
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
        let own = match requester.read_only {
            true => own.reading(),
            false => own,
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

    fn caller(&self) -> Option<Caller> {
        Some(Catalogue::caller(self).clone())
    }

    fn keys(&self) -> Option<KeyPool> {
        Some(Catalogue::keys(self).clone())
    }

    fn has_key(&self) -> bool {
        self.has_key()
    }

    fn gauges(&self) -> Gauges {
        Gauges {
            keys: self.keys().counts(),
            upstream: self.is_exa_well(),
            ..Gauges::default()
        }
    }

    fn check_list(&self, list: &str) -> Result<(), String> {
        let narrowed = self.narrowed(list).map(drop);
        narrowed.map_err(|error| error.to_string())
    }

    fn instructions(&self) -> String {
        self.instructions()
    }

    fn definitions(&self) -> Vec<ToolDefinition> {
        self.tools()
    }

    fn has(&self, name: &str) -> bool {
        self.has(name)
    }

    fn library(&self) -> Option<&Library> {
        Some(self.library())
    }

    fn way_to(&self, operation: &str) -> Option<String> {
        self.way_to(operation)
    }

    fn store(&self) -> Option<Arc<dyn Store>> {
        Some(self.store())
    }

    fn task_limits(&self) -> TaskLimits {
        self.task_limits()
    }

    fn starts_work(&self, name: &str, arguments: &JsonObject) -> bool {
        self.starts_work(name, arguments)
    }

    fn cost_of_start(&self, name: &str, arguments: &JsonObject) -> Option<u64> {
        self.cost_of_start(name, arguments)
    }

    fn waits(&self, name: &str, arguments: &JsonObject) -> bool {
        self.waits(name, arguments)
    }

    fn stop(&self, work: Work) -> impl Future<Output = Option<bool>> + Send + 'static {
        let catalogue = self.clone();
        async move { Catalogue::stop(&catalogue, &work).await }
    }

    fn patience(&self) -> Option<Duration> {
        self.manners().patience
    }

    fn key_page(&self) -> impl Future<Output = Option<KeyPage>> + Send + 'static {
        let catalogue = self.clone();
        Box::pin(async move { Catalogue::key_page(&catalogue).await })
    }

    fn prepare(
        &self,
        name: &str,
        arguments: JsonObject,
        call: Call,
    ) -> impl Future<Output = Result<Prepared, Box<Outcome>>> + Send + 'static {
        let (catalogue, name) = (self.clone(), name.to_owned());
        Box::pin(async move { Catalogue::prepare(&catalogue, &name, arguments, &call).await })
    }

    fn call(
        &self,
        name: &str,
        arguments: JsonObject,
        call: Call,
    ) -> impl Future<Output = Outcome> + Send + 'static {
        let (catalogue, name) = (self.clone(), name.to_owned());
        // Every wrapper around a call holds it twice; boxed, it is but a pointer to them.
        Box::pin(keep_reserved(async move {
            catalogue.call(&name, arguments, &call).await
        }))
    }
}
