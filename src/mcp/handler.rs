//! Handles MCP requests.

use std::{borrow::Cow, future::Future, sync::Arc};

use http::request::Parts;
use rmcp::{
    RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
        CompleteResult, CustomRequest, CustomResult, DiscoverResult, ErrorData, Extensions,
        GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
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
    call_limiter::CallLimiter,
    client::{ClientPeer, KnownRoots, Readiness},
    client_log::SessionLog,
    completion,
    errors::unknown_method,
    pagination::{PAGE_SIZE, page},
    prompts, request, resources,
    scope::RequestScope,
    skills::{self, SkillMethod},
    subscriptions::{ExpectedWatches, Subscriptions},
    tasks,
    tool_calls::AdmittedCall,
    tools::Tools,
    version::{CACHE_SCOPE, CACHE_TTL_MS, McpVersion},
};
use crate::{
    telemetry::logging::LogListener,
    tools::{ToolError, ToolOutcome},
};
use exa_mcp_accounts::Requester;

/// The MCP server of one connection.
pub struct Handler<T> {
    /// The scope of requests without a requester.
    pub(super) scope: RequestScope<T>,
    pub(super) limiter: Arc<CallLimiter>,
    pub(super) subscriptions: Subscriptions,
    pub(super) expected_watches: ExpectedWatches,
    /// Whether the client has completed the handshake.
    pub(super) readiness: Readiness,
    /// Log messages for the client.
    log: SessionLog,
    /// The roots of the client.
    pub(super) roots: KnownRoots,
}

impl<T: Tools> Handler<T> {
    /// Creates a handler.
    pub(super) fn new(scope: RequestScope<T>, limiter: Arc<CallLimiter>) -> Self {
        Self {
            scope,
            limiter,
            subscriptions: Subscriptions::default(),
            expected_watches: ExpectedWatches::default(),
            readiness: Readiness::default(),
            log: SessionLog::default(),
            roots: KnownRoots::default(),
        }
    }

    /// Returns the log listener for work outside of requests.
    pub(super) fn listener(&self) -> LogListener {
        self.log.listener()
    }

    /// Returns the scope of a request; the transport attaches the requester.
    pub(super) fn scope(&self, extensions: &Extensions) -> RequestScope<T> {
        let parts = extensions.get::<Parts>();
        match parts.and_then(|parts| parts.extensions.get::<Requester>()) {
            Some(requester) => self.scope.for_requester(requester),
            None => self.scope.clone(),
        }
    }

    /// Returns the version of a request that only clients with a handshake may send.
    fn legacy_version(
        &self,
        request: &CustomRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<McpVersion, ErrorData> {
        let protocol = request_version(context);
        let is_stateless = request::declared_version(request.params.as_ref()).is_some();
        match context.peer.peer_info() {
            Some(_) if !is_stateless && !protocol.is_stateless() => Ok(protocol),
            _ => Err(unknown_method(&request.method)),
        }
    }

    /// Runs a call with `task` in a version without tasks, which ignores that parameter.
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

/// Runs a future whose log messages go to a listener.
pub(super) async fn with_listener<F: Future>(
    listener: Option<LogListener>,
    future: F,
) -> F::Output {
    match listener {
        Some(listener) => listener.scope(future).await,
        None => future.await,
    }
}

/// Returns the protocol version of a request.
pub(super) fn request_version(context: &RequestContext<RoleServer>) -> McpVersion {
    McpVersion::new(context.protocol_version())
}

fn cursor(request: Option<PaginatedRequestParams>) -> Option<String> {
    request.and_then(|request| request.cursor)
}

/// Long-running futures are boxed throughout: rmcp holds the largest of these futures several times, on the stack and
/// in the task of every request, however small the request is.
impl<T: Tools> ServerHandler for Handler<T> {
    fn get_info(&self) -> ServerConfig {
        self.scope
            .describe(&McpVersion::new(Some(ProtocolVersion::LATEST)))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
    }

    /// Negotiates a version. The peer info gets the negotiated version instead of the requested one, because rmcp reads
    /// the version of later requests from there.
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
        let result = scope.describe(&McpVersion::new(Some(version.clone())));
        Ok(result.with_protocol_version(version))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.readiness.set();
        self.log.start(context.peer.clone());
        self.subscriptions.start(context.peer);
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        let scope = self.scope(&context.extensions);
        let server = scope.describe(&McpVersion::new(Some(ProtocolVersion::LATEST)));
        let result = DiscoverResult::from_server_info(versions, server);
        Ok(result
            .with_ttl_ms(CACHE_TTL_MS)
            .with_cache_scope(CACHE_SCOPE))
    }

    #[expect(deprecated)]
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if request_version(&context).is_stateless() {
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
        Ok(request_version(&context).tool_list(page))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let definitions = self.scope.tools.definitions();
        let definition = definitions.iter().find(|tool| tool.name == name)?;
        Some(McpVersion::new(Some(ProtocolVersion::LATEST)).tool(definition))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let scope = self.scope(&context.extensions);
        if !scope.tools.has(&request.name) {
            scope.record_usage(&request.name, None).await;
            return Err(scope.unknown_tool(&request.name));
        }
        let protocol = request_version(&context);
        scope.require_task_support(&request.name, &context, &protocol)?;
        let arguments = request.arguments.unwrap_or_default();
        let call = scope.tools.parse(&request.name, arguments);
        let permit = match scope.admit_call(&call).await {
            Ok(permit) => permit,
            Err(exceeded) => {
                tracing::info!(limit = exceeded.limit, "denied: limit exceeded");
                let error = Box::new(ToolError::LimitExceeded(Box::new(exceeded)));
                let outcome = ToolOutcome::Failure(error.into());
                scope.record_usage(&request.name, Some(&outcome)).await;
                return Ok(protocol.call_result(outcome.into_content(&[])).into());
            }
        };
        let admitted = AdmittedCall {
            call,
            state: request.request_state,
            responses: request.input_responses,
            permit,
        };
        let (listener, log) = self.log.for_request(&context, &protocol)?;
        let called = Box::pin(self.call(&scope, admitted, &context, &protocol));
        let called = Box::pin(log.forward_during(with_listener(listener, called)));
        scope.run_while_valid(called).await
    }

    async fn on_custom_request(
        &self,
        mut request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if let Some(method) = request::strip_prefix(&request.method) {
            request.method = method.to_owned();
        }
        if let Some(method) = SkillMethod::from_name(&request.method) {
            let params = request.params.as_ref();
            let protocol = McpVersion::declared(params).unwrap_or(request_version(&context));
            return method.serve(&protocol, params).map(CustomResult::new);
        }
        let protocol = self.legacy_version(&request, &context)?;
        let scope = self.scope(&context.extensions);
        if request.method == "tools/list" {
            let cursor = request
                .params
                .as_ref()
                .and_then(|params| params.get("cursor")?.as_str());
            let page = page(scope.tools.definitions(), cursor, PAGE_SIZE)?;
            return Ok(CustomResult::new(
                protocol.tool_list_json(page, scope.tasks.is_some()),
            ));
        }
        let method = tasks::TaskMethod::from_name(&request.method);
        if matches!(method, Some(tasks::TaskMethod::Call)) && !protocol.supports_tasks() {
            return Box::pin(self.call_without_task(request, context)).await;
        }
        let (Some(method), Some(tasks), true) = (method, &scope.tasks, protocol.supports_tasks())
        else {
            return Err(unknown_method(&request.method));
        };
        let (listener, _) = self.log.for_request(&context, &protocol)?;
        if matches!(method, tasks::TaskMethod::Call) {
            let version = (&context, &protocol);
            let called = self.call_as_task(&scope, tasks, request.params, version, listener);
            return Box::pin(called).await;
        }
        let client = ClientPeer::new(&context, &self.readiness);
        let methods = tasks::TaskMethods::new(tasks, scope.owner.identity(), client);
        with_listener(listener, Box::pin(methods.serve(method, request, &context))).await
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
        Ok(GetTaskResult::new(record.to_detailed_task()))
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
        // In this version, cancelling a finished task is not an error.
        if record.is_final() {
            return Ok(());
        }
        let cancelled = Box::pin(tasks.cancel(scope.owner.identity(), &request.task_id));
        cancelled.await.map(drop)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.resource_list(cursor(request), &context).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let scope = self.scope(&context.extensions);
        let templates = scope.resources("resources/templates/list")?.templates();
        let page = page(templates, cursor(request).as_deref(), PAGE_SIZE)?;
        Ok(resources::template_list(&request_version(&context), page))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let protocol = request_version(&context);
        if skills::is_skill_uri(&request.uri) {
            return skills::read(&protocol, &request.uri).map(Into::into);
        }
        let scope = self.scope(&context.extensions);
        let resources = scope.resources("resources/read")?;
        Box::pin(self.require_key(&scope, &context, &protocol, &request.uri)).await?;
        let (listener, log) = self.log.for_request(&context, &protocol)?;
        let owner = scope.owner.identity().clone();
        let read =
            Box::pin(
                async move { resources::read(&resources, &owner, &protocol, &request.uri).await },
            );
        let read = self
            .limiter
            .run(with_listener(listener, read), context.ct.cancelled());
        Ok(Box::pin(log.forward_during(read)).await??.into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscribe_to(request.uri, &context).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.unsubscribe_from(&request.uri, &context).await
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.accept_subscriptions(requested)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.listen_for_changes(context).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let scope = self.scope(&context.extensions);
        scope.resources("prompts/list")?;
        let protocol = request_version(&context);
        let prompts = prompts::all(&scope.tools, &protocol);
        let page = page(prompts, cursor(request).as_deref(), PAGE_SIZE)?;
        Ok(prompts::prompt_list(&protocol, page))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let scope = self.scope(&context.extensions);
        scope.resources("prompts/get")?;
        let arguments = request.arguments.unwrap_or_default();
        let (tools, owner, protocol) = (
            &scope.tools,
            scope.owner.identity(),
            request_version(&context),
        );
        let result = prompts::get(tools, owner, &protocol, &request.name, arguments);
        Ok(Box::pin(result).await?.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let scope = self.scope(&context.extensions);
        let resources = scope.resources("completion/complete")?;
        let (tools, owner, protocol) = (
            &scope.tools,
            scope.owner.identity(),
            request_version(&context),
        );
        let completed = completion::complete(tools, &resources, owner, &protocol, request);
        Box::pin(completed).await
    }
}
