//! Answers the requests of MCP.

use std::{
    borrow::Cow,
    sync::{Mutex, PoisonError},
};

use rmcp::{
    RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
        CustomRequest, CustomResult, DiscoverResult, ErrorCode, ErrorData, InitializeRequestParams,
        InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
        ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerConfig, Tool,
    },
    service::RequestContext,
};
// Logging is deprecated as of 2026-07-28, but earlier clients rely on it.
#[expect(deprecated)]
use rmcp::model::{LoggingLevel, SetLevelRequestParams};
use serde_json::json;
use strsim::jaro_winkler;

use super::{
    calls::{CALLS_AT_ONCE, Calls},
    era::{Era, FRESH_FOR, KEPT_BY},
    pages::{PAGE_SIZE, page},
    progress::Steps,
    tools::Tools,
};
use crate::{accounts::Identity, surface::Call};

/// How many names are offered for one that is unknown, and how like they must be.
const MOST_NAMES: usize = 3;
const LEAST_LIKENESS: f64 = 0.7;

/// The longest name that is repeated in an error, in characters.
const LONGEST_NAME: usize = 100;

/// The MCP server of one connection.
pub(super) struct Handler<T> {
    tools: T,
    calls: Calls,
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
            calls: Calls::new(CALLS_AT_ONCE),
            log_level: Mutex::new(LoggingLevel::Info),
        }
    }

    /// Describes the server to a client of this era.
    fn describe(&self, era: &Era) -> ServerConfig {
        ServerConfig::new(era.capabilities())
            .with_server_info(era.server_info())
            .with_instructions(self.tools.instructions())
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
        let result = self.describe(&Era::of(Some(version.clone())));
        Ok(result.with_protocol_version(version))
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
        let cursor = request.and_then(|request| request.cursor);
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
            owner: Identity::local(),
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

    // rmcp answers the following with empty lists; a server without the capability must not know them.

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(unknown_method("prompts/list"))
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(unknown_method("resources/list"))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(unknown_method("resources/templates/list"))
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(unknown_method("completion/complete"))
    }
}
