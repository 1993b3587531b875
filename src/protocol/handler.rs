//! Answers the requests of MCP.

use std::{borrow::Cow, future::Future};

use rmcp::{
    RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
        CompleteResult, CustomRequest, CustomResult, DiscoverResult, ErrorCode, ErrorData,
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
use serde_json::{Value, json};
use strsim::jaro_winkler;

use super::{
    calls::{CALLS_AT_ONCE, Calls},
    client::{Detected, KnownRoots},
    completion,
    era::{Era, FRESH_FOR, KEPT_BY},
    log::SessionLog,
    pages::{PAGE_SIZE, page},
    progress::Steps,
    prompts, resources,
    subscriptions::{self, Subscriptions},
    tasks::{self, Tasks, Watcher},
    tools::Tools,
};
use crate::{
    accounts::Identity, logging::Listener, operations::client::ClientHandle,
    surface::library::Library, transport::introduces,
};

/// How many names are offered for one that is unknown, and how like they must be.
const MOST_NAMES: usize = 3;
const LEAST_LIKENESS: f64 = 0.7;

/// The longest name that is repeated in an error, in characters.
const LONGEST_NAME: usize = 100;

/// The MCP server of one connection.
pub(super) struct Handler<T> {
    pub(super) tools: T,
    /// To whom belongs what the client's calls leave behind.
    pub(super) owner: Identity,
    pub(super) calls: Calls,
    /// Calls that go on after they were answered, where there is a store for them.
    pub(super) tasks: Option<Tasks<T>>,
    subscriptions: Subscriptions,
    /// What the client hears of its calls.
    log: SessionLog,
    /// What the client said of its folders.
    pub(super) roots: KnownRoots,
}

impl<T: Tools> Handler<T> {
    /// Serves these tools.
    pub(super) fn new(tools: T, tasks: Option<Tasks<T>>) -> Self {
        Self {
            tools,
            tasks,
            owner: Identity::local(),
            calls: Calls::new(CALLS_AT_ONCE),
            subscriptions: Subscriptions::default(),
            log: SessionLog::default(),
            roots: KnownRoots::default(),
        }
    }

    /// Describes the server to a client of this era.
    fn describe(&self, era: &Era) -> ServerConfig {
        ServerConfig::new(era.capabilities(self.tools.library().is_some(), self.tasks.is_some()))
            .with_server_info(era.server_info())
            .with_instructions(self.tools.instructions())
    }

    /// What can be read; where nothing can, the methods that read are unknown.
    fn library(&self, method: &str) -> Result<Library, ErrorData> {
        let library = self.tools.library().cloned();
        library.ok_or_else(|| unknown_method(method))
    }

    /// The tasks, for a client of 2026-07-28 that knows them.
    pub(super) fn tasks_for(&self, context: &RequestContext<RoleServer>) -> Option<&Tasks<T>> {
        let era = era(context);
        let declared = Detected::of(context, &era).tasks;
        self.tasks
            .as_ref()
            .filter(|_| declared && era.is_stateless())
    }

    /// The era of a request that only clients with a handshake make; those without do not know it.
    fn legacy_era(
        &self,
        request: &CustomRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<Era, ErrorData> {
        let introduces = introduces(request.params.as_ref());
        match context.peer.peer_info() {
            Some(_) if !introduces => Ok(era(context)),
            _ => Err(unknown_method(&request.method)),
        }
    }

    /// Whether a tool takes tasks at all.
    fn admit_task(&self, request: &CustomRequest) -> Result<(), ErrorData> {
        let name = request
            .params
            .as_ref()
            .and_then(|params| params.get("name")?.as_str());
        let Some(name) = name else {
            return Err(ErrorData::invalid_params(
                "Invalid params for tools/call: name must be a string",
                None,
            ));
        };
        let definitions = self.tools.definitions();
        match definitions.iter().find(|tool| tool.name == name) {
            None => Err(self.unknown_tool(name)),
            Some(tool) if tool.starts_work => Ok(()),
            Some(_) => {
                let text = format!("The tool {name} does not take tasks; call it without `task`");
                Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None))
            }
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

    fn unknown_tool(&self, name: &str) -> ErrorData {
        let shown: String = name.chars().take(LONGEST_NAME).collect();
        let definitions = self.tools.definitions();
        let names = definitions.iter().map(|tool| -> &str { &tool.name });
        let mut names: Vec<_> = names
            .map(|known| (jaro_winkler(&shown, known), known))
            .filter(|(likeness, _)| *likeness >= LEAST_LIKENESS)
            .collect();
        names.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let nearest: Vec<_> = names
            .iter()
            .take(MOST_NAMES)
            .map(|(_, name)| name)
            .collect();
        let data = (!nearest.is_empty()).then(|| json!({"nearest": nearest}));
        ErrorData::invalid_params(format!("Unknown tool: {shown}"), data)
    }
}

/// Runs something whose messages a client hears.
async fn listening<F: Future>(listener: Option<Listener>, future: F) -> F::Output {
    match listener {
        Some(listener) => listener.during(future).await,
        None => future.await,
    }
}

/// The client that made a task is told how it goes.
fn watcher(context: &RequestContext<RoleServer>, client: ClientHandle) -> Watcher {
    let (progress, steps) = Steps::of(context);
    Watcher {
        peer: Some(context.peer.clone()),
        progress,
        steps,
        client,
    }
}

fn era(context: &RequestContext<RoleServer>) -> Era {
    Era::of(context.protocol_version())
}

fn cursor(request: Option<PaginatedRequestParams>) -> Option<String> {
    request.and_then(|request| request.cursor)
}

fn unknown_method(method: &str) -> ErrorData {
    let shown: String = method.chars().take(LONGEST_NAME).collect();
    let text = format!("Method not found: {shown}");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None)
}

impl<T: Tools> ServerHandler for Handler<T> {
    fn get_info(&self) -> ServerConfig {
        self.describe(&Era::of(Some(ProtocolVersion::LATEST)))
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
        if let Some(library) = self.tools.library() {
            let watch = library.watch(&self.owner);
            self.subscriptions.prepare(watch);
        }
        let result = self.describe(&Era::of(Some(version.clone())));
        Ok(result.with_protocol_version(version))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.log.start(context.peer.clone());
        self.subscriptions.start(context.peer);
    }

    async fn on_roots_list_changed(&self, _context: NotificationContext<RoleServer>) {
        self.roots.forget();
    }

    async fn discover(
        &self,
        _context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        let server = self.describe(&Era::of(Some(ProtocolVersion::LATEST)));
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
        let page = page(self.tools.definitions(), cursor.as_deref(), PAGE_SIZE)?;
        Ok(era(&context).tool_list(page))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let definitions = self.tools.definitions();
        let definition = definitions.iter().find(|tool| tool.name == name)?;
        Some(Era::of(Some(ProtocolVersion::LATEST)).tool(definition))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !self.tools.has(&request.name) {
            return Err(self.unknown_tool(&request.name));
        }
        let era = era(&context);
        let (listener, log) = self.log.of(&context, &era)?;
        let called = listening(listener, Box::pin(self.call(request, &context, &era)));
        log.until(called).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let era = self.legacy_era(&request, &context)?;
        if request.method == "tools/list" {
            let cursor = request
                .params
                .as_ref()
                .and_then(|params| params.get("cursor")?.as_str());
            let page = page(self.tools.definitions(), cursor, PAGE_SIZE)?;
            return Ok(CustomResult::new(
                era.tool_list_json(page, self.tasks.is_some()),
            ));
        }
        let method = tasks::Method::named(&request.method);
        if matches!(method, Some(tasks::Method::Call)) && !era.knows_tasks() {
            return self.call_without_task(request, context).await;
        }
        let (Some(method), Some(tasks), true) = (method, &self.tasks, era.knows_tasks()) else {
            return Err(unknown_method(&request.method));
        };
        let mut request = request;
        let mut client = ClientHandle::mute();
        let (listener, _) = self.log.of(&context, &era)?;
        if matches!(method, tasks::Method::Call) {
            self.admit_task(&request)?;
            let prepared = Box::pin(self.prepare_task(&mut request, &context, &era));
            client = listening(listener.clone(), prepared).await?;
        }
        let watcher = watcher(&context, client);
        let served = Box::pin(tasks.serve(method, &self.owner, request, &context, watcher));
        listening(listener, served).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let tasks = self
            .tasks_for(&context)
            .ok_or_else(|| unknown_method("tasks/get"))?;
        let record = tasks.get(&self.owner, &request.task_id).await?;
        Ok(GetTaskResult::new(record.detailed()))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let tasks = self
            .tasks_for(&context)
            .ok_or_else(|| unknown_method("tasks/update"))?;
        // No task asks for anything yet, so there is nothing that an answer could belong to.
        tasks.get(&self.owner, &request.task_id).await.map(drop)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let tasks = self
            .tasks_for(&context)
            .ok_or_else(|| unknown_method("tasks/cancel"))?;
        let record = tasks.get(&self.owner, &request.task_id).await?;
        // There cancelling what has ended is no error.
        match record.is_final() {
            true => Ok(()),
            false => tasks.cancel(&self.owner, &request.task_id).await.map(drop),
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let library = self.library("resources/list")?;
        let (owner, cursor) = (self.owner.clone(), cursor(request));
        resources::list(&library, &owner, &era(&context), cursor.as_deref()).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = self.library("resources/templates/list")?.templates();
        let page = page(templates, cursor(request).as_deref(), PAGE_SIZE)?;
        Ok(era(&context).template_list(page))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let library = self.library("resources/read")?;
        let (owner, era) = (self.owner.clone(), era(&context));
        self.demand_key(&context, &era, &request.uri).await?;
        let (listener, log) = self.log.of(&context, &era)?;
        let read =
            Box::pin(async move { resources::read(&library, &owner, &era, &request.uri).await });
        let read = self
            .calls
            .run(listening(listener, read), context.ct.cancelled());
        Ok(log.until(read).await??.into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let library = self.library("resources/subscribe")?;
        let address = resources::address(&request.uri)?;
        let known = library.knows(&self.owner, &address).await;
        known.map_err(|error| resources::unread(&request.uri, &error))?;
        self.subscriptions.follow(request.uri, address)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.library("resources/unsubscribe")?;
        self.subscriptions.leave(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.tools
            .library()
            .map(|_| subscriptions::accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let library = self.library("subscriptions/listen")?;
        subscriptions::listen(context, library.watch(&self.owner)).await;
        Ok(())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.library("prompts/list")?;
        let era = era(&context);
        let prompts = prompts::all(&self.tools, &era);
        let page = page(prompts, cursor(request).as_deref(), PAGE_SIZE)?;
        Ok(era.prompt_list(page))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.library("prompts/get")?;
        let arguments = request.arguments.unwrap_or_default();
        let (tools, owner, era) = (&self.tools, &self.owner, era(&context));
        let result = prompts::get(tools, owner, &era, &request.name, arguments).await?;
        Ok(result.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let library = self.library("completion/complete")?;
        completion::complete(&self.tools, &library, &self.owner, &era(&context), request).await
    }
}
