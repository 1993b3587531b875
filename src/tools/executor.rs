//! Runs tool calls.

use std::sync::Arc;

use super::call::{Action, ToolCall};
use super::context::ToolContext;
use super::elicitation::{self, PromptPolicy};
use super::error::ToolError;
use super::notes::Notes;
use super::operation_run::OperationRun;
use super::outcome::{ToolOutcome, ToolResult};
use super::registry::{SelectError, ToolRegistry};
use super::resources::Resources;
use super::work::{TaskLimits, Work};
use super::{ResultCache, create_note, suggest};
use crate::operations::OperationExecutor;
use crate::operations::client::ClientHandle;
use crate::operations::spend::SpendGuard;
use exa_mcp_accounts::{KeyPage, KeyPrompt};
use exa_mcp_exa_client::{ApiKey, KeyOwner, KeyPool};
use exa_mcp_model::LocalUser;
use exa_mcp_store::{MemoryStore, Store};

/// The tools of a registry with all that their calls need: the way to Exa, the cache, the store.
#[derive(Clone)]
pub(crate) struct ToolExecutor {
    registry: ToolRegistry,
    caller: OperationExecutor,
    cache: ResultCache,
    resources: Resources,
    store: Arc<dyn Store>,
    task_limits: TaskLimits,
    prompt_policy: PromptPolicy,
    /// Where a missing key is asked for, if anywhere.
    key_desk: Option<KeyPrompt>,
}

impl ToolExecutor {
    /// Creates an executor of the sets and tools in a list, with notes and tasks in memory.
    pub(crate) fn new(
        list: &str,
        caller: OperationExecutor,
        cache: ResultCache,
    ) -> Result<Self, SelectError> {
        Self::with_store(list, caller, cache, Arc::new(MemoryStore::default()))
    }

    /// Creates an executor of the sets and tools in a list, with notes and tasks in this store.
    pub(crate) fn with_store(
        list: &str,
        caller: OperationExecutor,
        cache: ResultCache,
        store: Arc<dyn Store>,
    ) -> Result<Self, SelectError> {
        let registry = ToolRegistry::new(list)?;
        let notes = registry.has_notes().then(|| Notes::new(store.clone()));
        let websets = registry.has_websets();
        Ok(Self {
            resources: Resources::new(caller.clone(), cache.clone(), notes, websets),
            registry,
            caller,
            cache,
            store,
            task_limits: TaskLimits::default(),
            prompt_policy: PromptPolicy::default(),
            key_desk: None,
        })
    }

    /// The same tools with other limits for tasks.
    #[must_use]
    pub(crate) fn with_task_limits(self, task_limits: TaskLimits) -> Self {
        Self {
            task_limits,
            ..self
        }
    }

    /// The same tools with other prompt_policy.
    #[must_use]
    pub(crate) fn with_prompt_policy(self, prompt_policy: PromptPolicy) -> Self {
        Self {
            prompt_policy,
            ..self
        }
    }

    /// The same tools, which ask for a missing key on a page of this machine, where the local user can
    /// see it.
    #[must_use]
    pub(crate) fn with_key_page(self, _user: &LocalUser) -> Self {
        Self {
            key_desk: Some(KeyPrompt::new(self.caller.keys().clone())),
            ..self
        }
    }

    /// The same tools for someone who brings a key.
    #[must_use]
    pub(crate) fn with_key(&self, key: ApiKey) -> Self {
        self.with_caller(self.caller.with_key(key))
    }

    /// The same tools without a key; it would have to come from these.
    #[must_use]
    pub(crate) fn without_key(&self, holder: KeyOwner) -> Self {
        let keys = KeyPool::with_rate_limit([], None, holder);
        self.with_caller(self.caller.with_keys(keys))
    }

    /// The same tools for someone else who pays.
    #[must_use]
    pub(crate) fn with_guard(&self, guard: Arc<dyn SpendGuard>) -> Self {
        self.with_caller(self.caller.with_guard(guard))
    }

    fn with_caller(&self, caller: OperationExecutor) -> Self {
        Self {
            resources: self.resources.with_caller(caller.clone()),
            caller,
            ..self.clone()
        }
    }

    /// Those of the tools that a list of sets and tools names; it adds none.
    pub(crate) fn narrowed(&self, list: &str) -> Result<Self, SelectError> {
        let registry = self.registry.narrowed(list)?;
        Ok(self.with_registry(registry))
    }

    /// Those of the tools that a list names, and none if it names none of them.
    #[must_use]
    pub(crate) fn only(&self, list: &str) -> Self {
        let registry = self.registry.narrowed(list);
        self.with_registry(registry.unwrap_or_else(|_| self.registry.none()))
    }

    fn with_registry(&self, registry: ToolRegistry) -> Self {
        let (notes, websets) = (registry.has_notes(), registry.has_websets());
        Self {
            resources: self.resources.narrowed(notes, websets),
            registry,
            ..self.clone()
        }
    }

    /// The same tools without those that change something; of those that take any operation, what
    /// changes nothing.
    #[must_use]
    pub(crate) fn read_only(&self) -> Self {
        Self {
            registry: self.registry.read_only(),
            ..self.clone()
        }
    }

    /// Returns the tools.
    pub(crate) fn registry(&self) -> &ToolRegistry {
        &self.registry
    }

    /// Returns the way to Exa.
    pub(crate) fn caller(&self) -> &OperationExecutor {
        &self.caller
    }

    /// Returns the cached results.
    pub(super) fn cache(&self) -> &ResultCache {
        &self.cache
    }

    /// Returns what can be read beside calling tools.
    pub(crate) fn resources(&self) -> &Resources {
        &self.resources
    }

    /// Returns where notes and tasks are kept.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// Returns how long tasks live, and how many there may be.
    pub(crate) fn task_limits(&self) -> TaskLimits {
        self.task_limits
    }

    /// Returns how clients are asked.
    pub(crate) fn prompt_policy(&self) -> PromptPolicy {
        self.prompt_policy
    }

    /// Returns where a missing key is asked for, if anywhere.
    pub(super) fn key_desk(&self) -> Option<&KeyPrompt> {
        self.key_desk.as_ref()
    }

    /// Returns the page on which a missing key can be entered; nothing if there is a key, or no page.
    pub(crate) async fn key_page(&self) -> Option<KeyPage> {
        let desk = self.key_desk.as_ref();
        let desk = desk.filter(|_| self.caller.keys().is_empty());
        desk?.page().await.ok()
    }

    /// Runs a call. Arguments that are missing are asked for, where the client can be asked.
    pub(crate) async fn run(&self, call: ToolCall, context: &ToolContext) -> ToolOutcome {
        self.try_run(call, context).await.into()
    }

    async fn try_run(&self, call: ToolCall, context: &ToolContext) -> ToolResult {
        let action = elicitation::complete(&self.registry, call, &context.client).await?;
        match action {
            Action::Show(rendered) => Ok(rendered),
            Action::CreateNote(note) => create_note::run(self, context, note).await,
            Action::Suggest(call) => suggest::run(self, context, call).await,
            Action::Operation(call, source) => {
                OperationRun::new(self, context, &call).run(source).await
            }
        }
    }

    /// Asks for what a call needs before it becomes a task. Returns a client that knows what was answered.
    pub(crate) async fn ask_before_task(
        &self,
        call: &ToolCall,
        context: &ToolContext,
    ) -> Result<ClientHandle, Box<ToolError>> {
        elicitation::ask_before_task(self, call, context).await
    }

    /// Stops work at Exa; says whether that was possible, `None` where Exa offers no way.
    pub(crate) async fn stop(&self, work: &Work) -> Option<bool> {
        let following = work.following()?;
        let stopped = following.cancel(&self.caller).await?;
        Some(stopped.is_ok())
    }
}
