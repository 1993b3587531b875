//! The handler of every release, with what only the suite asks for in front of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use exa_mcp_server::mcp::{HandlerFactory, McpServer};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
    CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, DiscoverResult, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, GetTaskParams, GetTaskResult,
    InitializeRequestParams, InitializeResult, JsonObject, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ServerCapabilities, ServerConfig, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    UpdateTaskParams,
};
#[expect(deprecated)]
use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, SetLevelRequestParams, SubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::time::sleep;

use super::ListChange;
use super::content;
use super::input_requests::{self, Round, from_json};
use super::tools::ConformanceTools;

/// How long a client may cache a list, in milliseconds.
const LIST_TTL: u64 = 300_000;

type InnerHandler = <McpServer<ConformanceTools> as HandlerFactory>::Handler;

/// The handler that the suite talks to.
pub(super) struct ConformanceHandler {
    inner: InnerHandler,
    changes: broadcast::Sender<ListChange>,
}

type Context = RequestContext<RoleServer>;

impl ConformanceHandler {
    /// Puts the fixtures in front of `inner`.
    pub(super) fn new(inner: InnerHandler, changes: broadcast::Sender<ListChange>) -> Self {
        Self { inner, changes }
    }

    /// Calls a tool that does what no Exa tool does; returns `None` for the others.
    async fn call_special_tool(
        &self,
        request: &CallToolRequestParams,
        context: &Context,
    ) -> Result<Option<CallToolResponse>, ErrorData> {
        if let Some(content) = content::tool_content(&request.name) {
            return complete(content, context).map(Some);
        }
        let arguments = request.arguments.clone().unwrap_or_default();
        let argument = |name: &str| {
            arguments
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let text = match &*request.name {
            "test_tool_with_logging" | "test_logging_tool" => {
                log(context).await;
                "Logged three messages.".to_owned()
            }
            "test_sampling" => input_requests::sample(argument("prompt"), context).await?,
            "test_elicitation" => {
                let answer = input_requests::elicit(
                    argument("message"),
                    input_requests::contact_schema(),
                    context,
                )
                .await?;
                format!("User response: <{answer}>")
            }
            "test_elicitation_sep1034_defaults" => {
                let answer = input_requests::elicit(
                    "Please confirm",
                    input_requests::defaults_schema(),
                    context,
                )
                .await?;
                format!("Elicitation completed: {answer}")
            }
            "test_elicitation_sep1330_enums" => {
                let answer = input_requests::elicit(
                    "Please choose",
                    input_requests::enums_schema(),
                    context,
                )
                .await?;
                format!("Elicitation completed: {answer}")
            }
            "test_missing_capability" => {
                require_sampling(context)?;
                "The client can be asked.".to_owned()
            }
            "test_trigger_tool_change" => self.announce(ListChange::Tools),
            "test_trigger_prompt_change" => self.announce(ListChange::Prompts),
            "test_streaming_elicitation" => return run_round(request, context).map(Some),
            name if name.starts_with("test_input_required_result_") => {
                return run_round(request, context).map(Some);
            }
            _ => return Ok(None),
        };
        complete(json!([{"type": "text", "text": text}]), context).map(Some)
    }

    fn announce(&self, change: ListChange) -> String {
        let _ = self.changes.send(change);
        "The list has changed.".to_owned()
    }
}

/// Returns whether the request is of a version without sessions.
fn is_stateless(context: &Context) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Returns a result, with the fields that the version has in every result.
fn result<T: DeserializeOwned>(mut fields: Value, context: &Context) -> Result<T, ErrorData> {
    if let (true, Value::Object(fields)) = (is_stateless(context), &mut fields) {
        let server = json!({"name": "conformance", "version": env!("CARGO_PKG_VERSION")});
        let meta = json!({"io.modelcontextprotocol/serverInfo": server});
        fields.insert("resultType".to_owned(), json!("complete"));
        fields.insert("_meta".to_owned(), meta);
    }
    from_json(fields)
}

fn complete(content: Value, context: &Context) -> Result<CallToolResponse, ErrorData> {
    let fields = json!({"content": content, "isError": false});
    result::<CallToolResult>(fields, context).map(Into::into)
}

/// Runs one round of a tool that asks its client without a session.
fn run_round(
    request: &CallToolRequestParams,
    context: &Context,
) -> Result<CallToolResponse, ErrorData> {
    let client = context.client_capabilities().unwrap_or_default();
    match input_requests::run_round(request, &client)? {
        Round::Done(text) => complete(json!([{"type": "text", "text": text}]), context),
        Round::InputRequired(result) => Ok(CallToolResponse::InputRequired(*result)),
    }
}

fn require_sampling(context: &Context) -> Result<(), ErrorData> {
    let client = context.client_capabilities().unwrap_or_default();
    if client.sampling.is_some() {
        return Ok(());
    }
    let required = from_json(json!({"sampling": {}}))?;
    Err(ErrorData::missing_required_client_capability(required))
}

/// Sends three log messages to a client with a session.
#[expect(deprecated)]
async fn log(context: &Context) {
    for message in [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ] {
        if !is_stateless(context) {
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(message));
            let _ = context.peer.notify_logging_message(message).await;
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Adds what only the suite relies on: its lists change.
fn extended(mut capabilities: ServerCapabilities) -> ServerCapabilities {
    let list_changed = json!({"listChanged": true});
    capabilities.tools = from_json(list_changed.clone()).ok();
    capabilities.prompts = from_json(list_changed).ok();
    capabilities.resources = from_json(json!({"subscribe": true})).ok();
    capabilities.completions = Some(rmcp::model::JsonObject::new());
    // The handler announces skills together with resources, which are fixtures here.
    let skills = from_json(json!({"io.modelcontextprotocol/skills": {"directoryRead": true}}));
    let extensions = capabilities.extensions.get_or_insert_default();
    extensions.extend::<BTreeMap<String, JsonObject>>(skills.unwrap_or_default());
    capabilities
}

/// Returns a list, with the caching hints of the version that has them.
fn list<T: DeserializeOwned>(name: &str, items: Value, context: &Context) -> Result<T, ErrorData> {
    let mut fields = json!({name: items});
    if let (true, Value::Object(fields)) = (is_stateless(context), &mut fields) {
        fields.insert("ttlMs".to_owned(), json!(LIST_TTL));
        fields.insert("cacheScope".to_owned(), json!("private"));
    }
    result(fields, context)
}

impl ServerHandler for ConformanceHandler {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.inner.get_info();
        info.capabilities = extended(info.capabilities);
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.inner.supported_protocol_versions()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: Context,
    ) -> Result<InitializeResult, ErrorData> {
        let mut result = self.inner.initialize(request, context).await?;
        result.capabilities = extended(result.capabilities);
        Ok(result)
    }

    async fn discover(&self, context: Context) -> Result<DiscoverResult, ErrorData> {
        let mut result = self.inner.discover(context).await?;
        result.capabilities = extended(result.capabilities);
        Ok(result)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.inner.on_initialized(context).await;
    }

    #[expect(deprecated)]
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        self.inner.set_level(request, context).await
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        self.inner.list_tools(request, context).await
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.inner.get_tool(name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        match self.call_special_tool(&request, &context).await? {
            Some(response) => Ok(response),
            None => self.inner.call_tool(request, context).await,
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: Context,
    ) -> Result<CustomResult, ErrorData> {
        self.inner.on_custom_request(request, context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: Context,
    ) -> Result<GetTaskResult, ErrorData> {
        self.inner.get_task(request, context).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        self.inner.update_task(request, context).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        self.inner.cancel_task(request, context).await
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut resources = content::resources();
        let listed = CustomRequest::new("skills/list".to_owned(), None);
        let listed = self
            .inner
            .on_custom_request(listed, context.clone())
            .await?;
        // The product lists the manifests itself; here, its resources are replaced by fixtures.
        let skills = listed.0.get("skills").and_then(Value::as_array).cloned();
        if let Value::Array(resources) = &mut resources {
            resources.extend(skills.into_iter().flatten().map(|skill| {
                let field = |path: &str| skill.pointer(path).cloned();
                json!({
                    "uri": field("/uri"), "name": field("/frontmatter/name"),
                    "description": field("/frontmatter/description"), "mimeType": "text/markdown",
                })
            }));
        }
        list("resources", resources, &context)
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        list("resourceTemplates", content::resource_templates(), &context)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if request.uri.starts_with("skill://") {
            return self.inner.read_resource(request, context).await;
        }
        let contents = content::resource_contents(&request.uri)?;
        list::<ReadResourceResult>("contents", contents, &context).map(Into::into)
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: Context,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: Context,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.subscribe();
        loop {
            let change = tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = changes.recv() => change,
            };
            let sent = match change {
                Ok(ListChange::Tools) => context.sink().notify_tool_list_changed().await,
                Ok(ListChange::Prompts) => context.sink().notify_prompt_list_changed().await,
                Err(_) => return Ok(()),
            };
            // The sink drops what the client did not subscribe to.
            let _ = sent;
        }
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        list("prompts", content::prompts(), &context)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let messages = if request.name == "test_input_required_result_prompt" {
            let responses = request.input_responses.unwrap_or_default();
            let Some(response) = input_requests::response(&responses, "user_context") else {
                let form = input_requests::form("What context should it use?", "context", "string");
                let requests = json!({"user_context": form});
                let result = input_requests::input_required_result(requests, None)?;
                return Ok(GetPromptResponse::InputRequired(result));
            };
            content::user_message(&format!("Use the context {response}"))
        } else {
            let arguments = request.arguments.unwrap_or_default();
            content::prompt_messages(&request.name, &arguments)?
        };
        let fields = json!({"messages": messages});
        result::<GetPromptResult>(fields, &context).map(Into::into)
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        context: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let values = json!({"values": ["paris", "park", "party"], "total": 3, "hasMore": false});
        result(json!({"completion": values}), &context)
    }
}
