//! Answers the requests of MCP.

use std::{borrow::Cow, future::Future, sync::Arc};

use http::request::Parts;
use rmcp::{
    RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
        CompleteResult, CustomRequest, CustomResult, DiscoverResult, ErrorCode, ErrorData,
        Extensions, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
        InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
        ReadResourceRequestParams, ReadResourceResponse, ServerConfig, ServerResult,
        SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
// These are gone as of 2026-07-28, but earlier clients rely on them.
#[expect(deprecated)]
use rmcp::model::{SetLevelRequestParams, SubscribeRequestParams};
use serde_json::Value;

use super::{
    calls::Calls,
    client::KnownRoots,
    completion,
    log::SessionLog,
    pages::{PAGE_SIZE, page},
    prompts, request, resources,
    scope::Scope,
    subscriptions::{self, ExpectedWatches, Subscriptions},
    tasks,
    tool_calls::Admitted,
    tools::Tools,
    version::{Era, FRESH_FOR, KEPT_BY},
};
use crate::{
    telemetry::logging::LogListener,
    tools::{ToolError, ToolOutcome},
};
use exa_mcp_accounts::Requester;
use exa_mcp_model::LimitExceeded;

/// The longest name that is repeated in an error, in characters.
pub(super) const LONGEST_NAME: usize = 100;

/// The code of a call beyond a limit.
const LIMITED: i32 = -32001;

/// The MCP server of one connection.
pub struct Handler<T> {
    /// What is offered to a request that does not say who makes it.
    scope: Scope<T>,
    pub(super) calls: Arc<Calls>,
    subscriptions: Subscriptions,
    expected_watches: ExpectedWatches,
    /// What the client hears of its calls.
    log: SessionLog,
    /// What the client said of its folders.
    pub(super) roots: KnownRoots,
}

impl<T: Tools> Handler<T> {
    /// Serves these tools.
    pub(super) fn new(scope: Scope<T>, calls: Arc<Calls>) -> Self {
        Self {
            scope,
            calls,
            subscriptions: Subscriptions::default(),
            expected_watches: ExpectedWatches::default(),
            log: SessionLog::default(),
            roots: KnownRoots::default(),
        }
    }

    /// Who hears what goes on beside the requests of a session.
    pub(super) fn listener(&self) -> LogListener {
        self.log.listener()
    }

    /// What is offered to whoever makes a request; the transport says who that is.
    fn scope(&self, extensions: &Extensions) -> Scope<T> {
        let parts = extensions.get::<Parts>();
        match parts.and_then(|parts| parts.extensions.get::<Requester>()) {
            Some(requester) => self.scope.of(requester),
            None => self.scope.clone(),
        }
    }

    /// The era of a request that only clients with a handshake make; those without do not know it.
    fn legacy_era(
        &self,
        request: &CustomRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<Era, ErrorData> {
        let era = era(context);
        let introduces = request::named_version(request.params.as_ref()).is_some();
        match context.peer.peer_info() {
            Some(_) if !introduces && !era.is_stateless() => Ok(era),
            _ => Err(unknown_method(&request.method)),
        }
    }

    /// A call that asks for a task in a version that knows none: there the rest of it counts.
    async fn call_without_task(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let params = request.params.unwrap_or_default();
        let params: CallToolRequestParams = serde_json::from_value(params).map_err(|error| {
            let text = format!("Invalid params for tools/call: {error}");
            ErrorData::invalid_params(text, None)
        })?;
        let response = ServerResult::from(self.call_tool(params, context).await?);
        let mut value = serde_json::to_value(response).unwrap_or_default();
        if let Value::Object(result) = &mut value {
            result.shift_remove("resultType");
        }
        Ok(CustomResult::new(value))
    }
}

/// Runs something whose messages a client hears.
pub(super) async fn listening<F: Future>(listener: Option<LogListener>, future: F) -> F::Output {
    match listener {
        Some(listener) => listener.scope(future).await,
        None => future.await,
    }
}

/// The era in which a request is made.
pub(super) fn era(context: &RequestContext<RoleServer>) -> Era {
    Era::of(context.protocol_version())
}

/// A limit is reached, where only an error can say so.
pub(super) fn limited(over: &LimitExceeded) -> ErrorData {
    let data = over.detail();
    let data = data
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    let data = Value::Object(data.collect());
    ErrorData::new(ErrorCode(LIMITED), over.message.clone(), Some(data))
}

fn cursor(request: Option<PaginatedRequestParams>) -> Option<String> {
    request.and_then(|request| request.cursor)
}

pub(super) fn unknown_method(method: &str) -> ErrorData {
    let shown: String = method.chars().take(LONGEST_NAME).collect();
    let text = format!("Method not found: {shown}");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None)
}

/// What waits long is boxed throughout: rmcp holds the largest of these futures several times over, on
/// the stack and in the task of every request, however small the request is.
impl<T: Tools> ServerHandler for Handler<T> {
    fn get_info(&self) -> ServerConfig {
        self.scope.describe(&Era::of(Some(ProtocolVersion::LATEST)))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
    }

    /// Agrees on a version. The peer is told what was agreed on, not what was asked for, because rmcp
    /// reads the version of later requests from there.
    async fn initialize(
        &self,
        mut request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let version = self.negotiate_initialize(&request)?.protocol_version;
        request.protocol_version = version.clone();
        context.peer.set_peer_info(request);
        let scope = self.scope(&context.extensions);
        if let Some(resources) = scope.tools.resources() {
            let watch = resources.watch(scope.owner.identity());
            self.subscriptions.prepare(watch);
        }
        let result = scope.describe(&Era::of(Some(version.clone())));
        Ok(result.with_protocol_version(version))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.log.start(context.peer.clone());
        self.subscriptions.start(context.peer);
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        let scope = self.scope(&context.extensions);
        let server = scope.describe(&Era::of(Some(ProtocolVersion::LATEST)));
        let result = DiscoverResult::from_server_info(versions, server);
        Ok(result.with_ttl_ms(FRESH_FOR).with_cache_scope(KEPT_BY))
    }

    #[expect(deprecated)]
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if era(&context).is_stateless() {
            return Err(unknown_method("logging/setLevel"));
        }
        self.log.set_level(request.level);
        Ok(())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let cursor = cursor(request);
        let tools = self.scope(&context.extensions).tools;
        let page = page(tools.definitions(), cursor.as_deref(), PAGE_SIZE)?;
        Ok(era(&context).tool_list(page))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let definitions = self.scope.tools.definitions();
        let definition = definitions.iter().find(|tool| tool.name == name)?;
        Some(Era::of(Some(ProtocolVersion::LATEST)).tool(definition))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let scope = self.scope(&context.extensions);
        if !scope.tools.has(&request.name) {
            scope.count(&request.name, None).await;
            return Err(scope.unknown_tool(&request.name));
        }
        let era = era(&context);
        scope.demand_tasks(&request.name, &context, &era)?;
        let arguments = request.arguments.unwrap_or_default();
        let call = scope.tools.parse(&request.name, arguments);
        let permit = match scope.admit_call(&call).await {
            Ok(permit) => permit,
            Err(over) => {
                tracing::info!(limit = over.limit, "denied: over a limit");
                let error = Box::new(ToolError::LimitExceeded(Box::new(over)));
                let outcome = ToolOutcome::Failure(error);
                scope.count(&request.name, Some(&outcome)).await;
                return Ok(era.call_result(outcome.into_content(&[])).into());
            }
        };
        let admitted = Admitted {
            call,
            state: request.request_state,
            responses: request.input_responses,
            permit,
        };
        let (listener, log) = self.log.of(&context, &era)?;
        let called = Box::pin(self.call(&scope, admitted, &context, &era));
        let called = Box::pin(log.until(listening(listener, called)));
        scope.while_admitted(called).await
    }

    async fn on_custom_request(
        &self,
        mut request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if let Some(method) = request::unmarked(&request.method) {
            request.method = method.to_owned();
        }
        let era = self.legacy_era(&request, &context)?;
        let scope = self.scope(&context.extensions);
        if request.method == "tools/list" {
            let cursor = request
                .params
                .as_ref()
                .and_then(|params| params.get("cursor")?.as_str());
            let page = page(scope.tools.definitions(), cursor, PAGE_SIZE)?;
            return Ok(CustomResult::new(
                era.tool_list_json(page, scope.tasks.is_some()),
            ));
        }
        let method = tasks::Method::named(&request.method);
        if matches!(method, Some(tasks::Method::Call)) && !era.knows_tasks() {
            return Box::pin(self.call_without_task(request, context)).await;
        }
        let (Some(method), Some(tasks), true) = (method, &scope.tasks, era.knows_tasks()) else {
            return Err(unknown_method(&request.method));
        };
        let (listener, _) = self.log.of(&context, &era)?;
        if matches!(method, tasks::Method::Call) {
            let asked = (&context, &era);
            let called = self.call_as_task(&scope, tasks, request.params, asked, listener);
            return Box::pin(called).await;
        }
        let served = Box::pin(tasks.serve(method, scope.owner.identity(), request, &context));
        listening(listener, served).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let scope = self.scope(&context.extensions);
        let tasks = scope
            .tasks_for(&context)
            .ok_or_else(|| unknown_method("tasks/get"))?;
        let record = tasks.get(scope.owner.identity(), &request.task_id).await?;
        Ok(GetTaskResult::new(record.detailed()))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let scope = self.scope(&context.extensions);
        let tasks = scope
            .tasks_for(&context)
            .ok_or_else(|| unknown_method("tasks/update"))?;
        let updated = tasks.update(
            scope.owner.identity(),
            &request.task_id,
            request.input_responses,
        );
        Box::pin(updated).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let scope = self.scope(&context.extensions);
        let tasks = scope
            .tasks_for(&context)
            .ok_or_else(|| unknown_method("tasks/cancel"))?;
        let record = tasks.get(scope.owner.identity(), &request.task_id).await?;
        // There cancelling what has ended is no error.
        match record.is_final() {
            true => Ok(()),
            false => {
                let cancelled = Box::pin(tasks.cancel(scope.owner.identity(), &request.task_id));
                cancelled.await.map(drop)
            }
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let scope = self.scope(&context.extensions);
        let resources = scope.resources("resources/list")?;
        let (owner, cursor) = (scope.owner.identity().clone(), cursor(request));
        resources::list(&resources, &owner, &era(&context), cursor.as_deref()).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let scope = self.scope(&context.extensions);
        let templates = scope.resources("resources/templates/list")?.templates();
        let page = page(templates, cursor(request).as_deref(), PAGE_SIZE)?;
        Ok(era(&context).template_list(page))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let scope = self.scope(&context.extensions);
        let resources = scope.resources("resources/read")?;
        let era = era(&context);
        Box::pin(self.demand_key(&scope, &context, &era, &request.uri)).await?;
        let (listener, log) = self.log.of(&context, &era)?;
        let owner = scope.owner.identity().clone();
        let read =
            Box::pin(async move { resources::read(&resources, &owner, &era, &request.uri).await });
        let read = self
            .calls
            .run(listening(listener, read), context.ct.cancelled());
        Ok(Box::pin(log.until(read)).await??.into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let scope = self.scope(&context.extensions);
        let resources = scope.resources("resources/subscribe")?;
        let address = resources::address(&request.uri)?;
        let parts = context.extensions.get::<Parts>();
        if !parts.is_some_and(request::is_replayed) {
            let known = Box::pin(resources.knows(scope.owner.identity(), &address)).await;
            known.map_err(|error| resources::unread(&request.uri, &error))?;
        }
        self.subscriptions.follow(request.uri.clone(), address)?;
        if let Some(parts) = parts {
            Box::pin(request::share_subscription(parts, &request.uri, true)).await;
        }
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.scope(&context.extensions)
            .resources("resources/unsubscribe")?;
        self.subscriptions.leave(&request.uri);
        if let Some(parts) = context.extensions.get::<Parts>() {
            Box::pin(request::share_subscription(parts, &request.uri, false)).await;
        }
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let resources = self.scope.tools.resources()?;
        self.expected_watches.begin(resources.expect_watch());
        Some(subscriptions::accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let expected = self.expected_watches.take();
        let scope = self.scope(&context.request_context().extensions);
        let resources = scope.resources("subscriptions/listen")?;
        let expected = expected.unwrap_or_else(|| resources.expect_watch());
        let watch = expected.of(scope.owner.identity());
        Box::pin(subscriptions::listen(context, watch)).await;
        Ok(())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let scope = self.scope(&context.extensions);
        scope.resources("prompts/list")?;
        let era = era(&context);
        let prompts = prompts::all(&scope.tools, &era);
        let page = page(prompts, cursor(request).as_deref(), PAGE_SIZE)?;
        Ok(era.prompt_list(page))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let scope = self.scope(&context.extensions);
        scope.resources("prompts/get")?;
        let arguments = request.arguments.unwrap_or_default();
        let (tools, owner, era) = (&scope.tools, scope.owner.identity(), era(&context));
        let result = prompts::get(tools, owner, &era, &request.name, arguments);
        Ok(Box::pin(result).await?.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let scope = self.scope(&context.extensions);
        let resources = scope.resources("completion/complete")?;
        let (tools, owner, era) = (&scope.tools, scope.owner.identity(), era(&context));
        let completed = completion::complete(tools, &resources, owner, &era, request);
        Box::pin(completed).await
    }
}
