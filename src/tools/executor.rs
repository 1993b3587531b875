//! Runs tool calls.

use std::sync::Arc;
use std::time::Duration;

use super::call::{Action, ToolCall};
use super::context::ToolContext;
use super::elicitation::{self, PromptPolicy};
use super::enrichment_titles::EnrichmentTitles;
use super::error::ToolError;
use super::notes::Notes;
use super::operation_runner::OperationRunner;
use super::outcome::{ToolOutcome, ToolResult};
use super::registry::{SelectError, ToolRegistry};
use super::resources::Resources;
use super::task_call::{JobHandle, TaskLimits};
use super::{ResultCache, create_note, suggest};
use crate::operations::OperationExecutor;
use crate::operations::interaction::ClientHandle;
use crate::operations::spend::SpendGuard;
use crate::render::StructuredContent;
use exa_mcp_accounts::{KeyPage, KeyPrompt, KeyUse};
use exa_mcp_exa_client::{ApiKey, KeyOwner, KeyPool};
use exa_mcp_model::LocalUser;
use exa_mcp_store::{MemoryStore, Store};

/// The tools of a registry with what their calls need: access to Exa, the cache, the store.
#[derive(Clone)]
pub(crate) struct ToolExecutor {
    registry: ToolRegistry,
    executor: OperationExecutor,
    cache: ResultCache,
    resources: Resources,
    store: Arc<dyn Store>,
    task_limits: TaskLimits,
    prompt_policy: PromptPolicy,
    structured: StructuredContent,
    /// Asks the local user for a missing key, if enabled.
    key_prompt: Option<KeyPrompt>,
    enrichment_titles: Arc<EnrichmentTitles>,
}

impl ToolExecutor {
    /// Creates an executor of the sets and tools in a list, with notes and tasks in memory.
    pub(crate) fn new(
        list: &str,
        executor: OperationExecutor,
        cache: ResultCache,
    ) -> Result<Self, SelectError> {
        Self::with_store(list, executor, cache, Arc::new(MemoryStore::default()))
    }

    /// Creates an executor of the sets and tools in a list, with notes and tasks in this store.
    pub(crate) fn with_store(
        list: &str,
        executor: OperationExecutor,
        cache: ResultCache,
        store: Arc<dyn Store>,
    ) -> Result<Self, SelectError> {
        let registry = ToolRegistry::new(list)?;
        let notes = registry.has_notes().then(|| Notes::new(store.clone()));
        let websets = registry.has_websets();
        Ok(Self {
            resources: Resources::new(executor.clone(), cache.clone(), notes, websets),
            registry,
            executor,
            cache,
            store,
            task_limits: TaskLimits::default(),
            prompt_policy: PromptPolicy::default(),
            structured: StructuredContent::default(),
            key_prompt: None,
            enrichment_titles: Arc::default(),
        })
    }

    /// Sets the limits of tasks.
    #[must_use]
    pub(crate) fn with_task_limits(self, task_limits: TaskLimits) -> Self {
        Self {
            task_limits,
            ..self
        }
    }

    /// Sets how often subscribed websets are polled, if they are.
    #[must_use]
    pub(crate) fn with_poll_interval(self, poll_interval: Option<Duration>) -> Self {
        Self {
            resources: self.resources.with_poll_interval(poll_interval),
            ..self
        }
    }

    /// Sets when and how clients are prompted.
    #[must_use]
    pub(crate) fn with_prompt_policy(self, prompt_policy: PromptPolicy) -> Self {
        Self {
            prompt_policy,
            ..self
        }
    }

    /// Sets how much structured content results have.
    #[must_use]
    pub(crate) fn with_structured_content(self, structured: StructuredContent) -> Self {
        Self { structured, ..self }
    }

    /// Asks for a missing key on a page of this machine, which the local user can open.
    #[must_use]
    pub(crate) fn with_key_page(self, _user: &LocalUser) -> Self {
        Self {
            key_prompt: Some(KeyPrompt::new(
                self.executor.keys().clone(),
                KeyUse::Session,
            )),
            ..self
        }
    }

    /// Returns the tools with the key of the caller, who is not the one who manages the team.
    #[must_use]
    pub(crate) fn with_key(&self, key: ApiKey) -> Self {
        let executor = self.executor.with_service_key(None);
        self.with_executor(executor.with_key(key))
    }

    /// Returns the tools that others than admins may use, without the service key.
    #[must_use]
    pub(crate) fn without_admin_tools(&self) -> Self {
        if !self.registry.has_admin_tools() && self.executor.service_key().is_err() {
            return self.clone();
        }
        let tools = self.with_executor(self.executor.with_service_key(None));
        tools.with_registry(self.registry.without_admin_tools())
    }

    /// Returns the tools without a key; the owner would have to supply it.
    #[must_use]
    pub(crate) fn without_key(&self, owner: KeyOwner) -> Self {
        let keys = KeyPool::with_rate_limit([], None, owner);
        let executor = self.executor.with_service_key(None);
        self.with_executor(executor.with_keys(keys))
    }

    /// Returns the tools with another spend guard.
    #[must_use]
    pub(crate) fn with_guard(&self, guard: Arc<dyn SpendGuard>) -> Self {
        self.with_executor(self.executor.with_guard(guard))
    }

    fn with_executor(&self, executor: OperationExecutor) -> Self {
        Self {
            resources: self.resources.with_executor(executor.clone()),
            executor,
            ..self.clone()
        }
    }

    /// Returns the enabled tools that are in a list of sets and tools.
    pub(crate) fn narrow(&self, list: &str) -> Result<Self, SelectError> {
        let registry = self.registry.narrow(list)?;
        Ok(self.with_registry(registry))
    }

    /// Returns the enabled tools that are in a list, or no tools if the list is invalid.
    #[must_use]
    pub(crate) fn only(&self, list: &str) -> Self {
        let registry = self.registry.narrow(list);
        self.with_registry(registry.unwrap_or_else(|_| self.registry.empty()))
    }

    fn with_registry(&self, registry: ToolRegistry) -> Self {
        let (notes, websets) = (registry.has_notes(), registry.has_websets());
        Self {
            resources: self.resources.narrow(notes, websets),
            registry,
            ..self.clone()
        }
    }

    /// Returns the read-only tools, and dispatchers limited to read-only operations.
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

    /// Returns the executor of operations.
    pub(crate) fn operation_executor(&self) -> &OperationExecutor {
        &self.executor
    }

    /// Returns the titles of enrichments that are known.
    pub(super) fn enrichment_titles(&self) -> &EnrichmentTitles {
        &self.enrichment_titles
    }

    /// Returns the cached results.
    pub(super) fn cache(&self) -> &ResultCache {
        &self.cache
    }

    /// Returns the resources.
    pub(crate) fn resources(&self) -> &Resources {
        &self.resources
    }

    /// Returns the store of notes and tasks.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// Returns the limits of tasks.
    pub(crate) fn task_limits(&self) -> TaskLimits {
        self.task_limits
    }

    /// Returns when and how clients are prompted.
    pub(crate) fn prompt_policy(&self) -> PromptPolicy {
        self.prompt_policy
    }

    /// Returns the prompt for a missing key, if enabled.
    pub(super) fn key_prompt(&self) -> Option<&KeyPrompt> {
        self.key_prompt.as_ref()
    }

    /// Opens the page for a missing key; `None` if there is a key or no page can be opened.
    pub(crate) async fn key_page(&self) -> Option<KeyPage> {
        let prompt = self.key_prompt.as_ref();
        let prompt = prompt.filter(|_| self.executor.keys().is_empty());
        prompt?.page().await.ok()
    }

    /// Runs a call. Missing arguments are requested from the client, if it supports that.
    pub(crate) async fn run(&self, call: ToolCall, context: &ToolContext) -> ToolOutcome {
        let form = call.error_form.clone().with_mode(self.structured);
        let mut result = self.try_run(call, context).await;
        if let Ok(rendered) = &mut result {
            let structured = std::mem::take(&mut rendered.structured);
            let (text, format) = (&rendered.text, rendered.format);
            rendered.structured = self.structured.apply(structured, text, format);
        }
        ToolOutcome::from_result(result, form)
    }

    async fn try_run(&self, call: ToolCall, context: &ToolContext) -> ToolResult {
        let action = elicitation::complete(&self.registry, call, &context.client).await?;
        match action {
            Action::Show(rendered) => Ok(rendered),
            Action::CreateNote(note) => create_note::run(self, context, note).await,
            Action::Suggest(call) => suggest::run(self, context, call).await,
            Action::Operation(call, source) => {
                OperationRunner::new(self, context, &call).run(source).await
            }
        }
    }

    /// Requests what a call needs before it becomes a task. Returns a client that replays the replies.
    pub(crate) async fn ask_before_task(
        &self,
        call: &ToolCall,
        context: &ToolContext,
    ) -> Result<ClientHandle, Box<ToolError>> {
        elicitation::ask_before_task(self, call, context).await
    }

    /// Cancels a job at Exa. Returns whether that succeeded; `None` if Exa cannot cancel it.
    pub(crate) async fn stop(&self, job: &JobHandle) -> Option<bool> {
        let stopped = job.to_job()?.cancel(&self.executor).await?;
        Some(stopped.is_ok())
    }
}
