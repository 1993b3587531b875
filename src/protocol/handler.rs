//! Answers the requests of MCP.

use std::{
    borrow::Cow,
    sync::{Mutex, PoisonError},
};

use rmcp::{
    RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
        CustomRequest, CustomResult, DiscoverResult, ErrorCode, ErrorData, GetPromptRequestParams,
        GetPromptResponse, InitializeRequestParams, InitializeResult, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
        SubscriptionFilter, Tool, UnsubscribeRequestParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
// These are gone as of 2026-07-28, but earlier clients rely on them.
#[expect(deprecated)]
use rmcp::model::{LoggingLevel, SetLevelRequestParams, SubscribeRequestParams};
use serde_json::json;
use strsim::jaro_winkler;

use super::{
    calls::{CALLS_AT_ONCE, Calls},
    completion,
    era::{Era, FRESH_FOR, KEPT_BY},
    pages::{PAGE_SIZE, page},
    progress::Steps,
    prompts, resources,
    subscriptions::{self, Subscriptions},
    tools::Tools,
};
use crate::{
    accounts::Identity,
    surface::{Call, library::Library},
};

/// How many names are offered for one that is unknown, and how like they must be.
const MOST_NAMES: usize = 3;
const LEAST_LIKENESS: f64 = 0.7;

/// The longest name that is repeated in an error, in characters.
const LONGEST_NAME: usize = 100;

/// The MCP server of one connection.
pub(super) struct Handler<T> {
    tools: T,
    /// To whom belongs what the client's calls leave behind.
    owner: Identity,
    calls: Calls,
    subscriptions: Subscriptions,
    /// The least severe log message that the client wants.
    #[expect(deprecated)]
    log_level: Mutex<LoggingLevel>,
}

impl<T: Tools> Handler<T> {
    /// Serves these tools.
    #[expect(deprecated)]
    pub(super) fn new(tools: T) -> Self {
        Self {
            tools,
            owner: Identity::local(),
            calls: Calls::new(CALLS_AT_ONCE),
            subscriptions: Subscriptions::default(),
            log_level: Mutex::new(LoggingLevel::Info),
        }
    }

    /// Describes the server to a client of this era.
    fn describe(&self, era: &Era) -> ServerConfig {
        ServerConfig::new(era.capabilities(self.tools.library().is_some()))
            .with_server_info(era.server_info())
            .with_instructions(self.tools.instructions())
    }

    /// What can be read; where nothing can, the methods that read are unknown.
    fn library(&self, method: &str) -> Result<Library, ErrorData> {
        let library = self.tools.library().cloned();
        library.ok_or_else(|| unknown_method(method))
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
        self.describe(&Era::of(None))
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
        self.subscriptions.start(context.peer);
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
        let level = self.log_level.lock();
        *level.unwrap_or_else(PoisonError::into_inner) = request.level;
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
        let arguments = request.arguments.unwrap_or_default();
        let (progress, steps) = Steps::of(&context);
        let who = Call {
            owner: self.owner.clone(),
            progress,
        };
        let call = self.tools.call(&request.name, arguments, who);
        let outcome = steps
            .until(self.calls.run(call, context.ct.cancelled()))
            .await?;
        Ok(era(&context).call_result(outcome).into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unknown_method(&request.method))
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
        let read = async move { resources::read(&library, &owner, &era, &request.uri).await };
        let result = self.calls.run(read, context.ct.cancelled()).await??;
        Ok(result.into())
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
