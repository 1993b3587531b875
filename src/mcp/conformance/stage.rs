//! The handler of all others, with the parts that only the suite asks for in front of it.

use std::borrow::Cow;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
    CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, DiscoverResult, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, GetTaskParams, GetTaskResult,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerCapabilities,
    ServerConfig, SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
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

use super::super::handler::Handler;
use super::super::version::{Era, FRESH_FOR, KEPT_BY};
use super::Change;
use super::asks::{self, Step, typed};
use super::reads;
use super::table::Table;

/// The handler that the suite talks to.
pub(super) struct Stage {
    inner: Handler<Table>,
    changes: broadcast::Sender<Change>,
}

type Context = RequestContext<RoleServer>;

impl Stage {
    pub(super) fn new(inner: Handler<Table>, changes: broadcast::Sender<Change>) -> Self {
        Self { inner, changes }
    }

    /// The answer of a tool that does what no tool of Exa's does.
    async fn play(
        &self,
        request: &CallToolRequestParams,
        context: &Context,
    ) -> Result<Option<CallToolResponse>, ErrorData> {
        if let Some(content) = reads::content(&request.name) {
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
            "test_sampling" => asks::sample(argument("prompt"), context).await?,
            "test_elicitation" => {
                let answer = asks::elicit(argument("message"), asks::contact(), context).await?;
                format!("User response: <{answer}>")
            }
            "test_elicitation_sep1034_defaults" => {
                let answer = asks::elicit("Please confirm", asks::defaults(), context).await?;
                format!("Elicitation completed: {answer}")
            }
            "test_elicitation_sep1330_enums" => {
                let answer = asks::elicit("Please choose", asks::choices(), context).await?;
                format!("Elicitation completed: {answer}")
            }
            "test_missing_capability" => {
                require_sampling(context)?;
                "The client can be asked.".to_owned()
            }
            "test_trigger_tool_change" => self.change(Change::Tools),
            "test_trigger_prompt_change" => self.change(Change::Prompts),
            "test_streaming_elicitation" => return ask(request, context).map(Some),
            name if name.starts_with("test_input_required_result_") => {
                return ask(request, context).map(Some);
            }
            _ => return Ok(None),
        };
        complete(json!([{"type": "text", "text": text}]), context).map(Some)
    }

    fn change(&self, change: Change) -> String {
        let _ = self.changes.send(change);
        "The list has changed.".to_owned()
    }
}

fn era(context: &Context) -> Era {
    Era::of(context.protocol_version())
}

/// A result, with what the version wants in all of them.
fn result<T: DeserializeOwned>(mut fields: Value, context: &Context) -> Result<T, ErrorData> {
    let era = era(context);
    if let (true, Value::Object(fields)) = (era.is_stateless(), &mut fields) {
        fields.insert("resultType".to_owned(), json!("complete"));
        fields.insert("_meta".to_owned(), json!(era.result_meta()));
    }
    typed(fields)
}

fn complete(content: Value, context: &Context) -> Result<CallToolResponse, ErrorData> {
    let fields = json!({"content": content, "isError": false});
    result::<CallToolResult>(fields, context).map(Into::into)
}

/// One round of a tool that asks without a session.
fn ask(request: &CallToolRequestParams, context: &Context) -> Result<CallToolResponse, ErrorData> {
    let client = context.client_capabilities().unwrap_or_default();
    match asks::round(request, &client)? {
        Step::Done(text) => complete(json!([{"type": "text", "text": text}]), context),
        Step::Ask(questions) => Ok(CallToolResponse::InputRequired(*questions)),
    }
}

fn require_sampling(context: &Context) -> Result<(), ErrorData> {
    let client = context.client_capabilities().unwrap_or_default();
    if client.sampling.is_some() {
        return Ok(());
    }
    let required = typed(json!({"sampling": {}}))?;
    Err(ErrorData::missing_required_client_capability(required))
}

/// Tells three things to a client that wants to hear them.
#[expect(deprecated)]
async fn log(context: &Context) {
    for words in [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ] {
        if !era(context).is_stateless() {
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(words));
            let _ = context.peer.notify_logging_message(message).await;
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// With what only the suite is told: its lists change.
fn changing(mut capabilities: ServerCapabilities) -> ServerCapabilities {
    let claimed = json!({"listChanged": true});
    capabilities.tools = typed(claimed.clone()).ok();
    capabilities.prompts = typed(claimed).ok();
    capabilities.resources = typed(json!({"subscribe": true})).ok();
    capabilities.completions = Some(rmcp::model::JsonObject::new());
    capabilities
}

/// A list, with the hints of the version that has them.
fn list<T: DeserializeOwned>(name: &str, items: Value, context: &Context) -> Result<T, ErrorData> {
    let mut fields = json!({name: items});
    if let (true, Value::Object(fields)) = (era(context).is_stateless(), &mut fields) {
        fields.insert("ttlMs".to_owned(), json!(FRESH_FOR));
        fields.insert("cacheScope".to_owned(), json!(KEPT_BY));
    }
    result(fields, context)
}

impl ServerHandler for Stage {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.inner.get_info();
        info.capabilities = changing(info.capabilities);
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
        result.capabilities = changing(result.capabilities);
        Ok(result)
    }

    async fn discover(&self, context: Context) -> Result<DiscoverResult, ErrorData> {
        let mut result = self.inner.discover(context).await?;
        result.capabilities = changing(result.capabilities);
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
        match self.play(&request, &context).await? {
            Some(answer) => Ok(answer),
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
        list("resources", reads::resources(), &context)
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        list("resourceTemplates", reads::templates(), &context)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = reads::contents(&request.uri)?;
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
            let told = match change {
                Ok(Change::Tools) => context.sink().notify_tool_list_changed().await,
                Ok(Change::Prompts) => context.sink().notify_prompt_list_changed().await,
                Err(_) => return Ok(()),
            };
            // The sink keeps back what was not asked for.
            let _ = told;
        }
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        list("prompts", reads::prompts(), &context)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let messages = if request.name == "test_input_required_result_prompt" {
            let answers = request.input_responses.unwrap_or_default();
            let Some(answer) = asks::answer(&answers, "user_context") else {
                let question = asks::form("What context should it use?", "context", "string");
                let asked = asks::ask(json!({"user_context": question}), None)?;
                return Ok(GetPromptResponse::InputRequired(asked));
            };
            reads::said(&format!("Use the context {answer}"))
        } else {
            let arguments = request.arguments.unwrap_or_default();
            reads::messages(&request.name, &arguments)?
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
