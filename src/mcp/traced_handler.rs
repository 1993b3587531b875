//! Wraps every request in a trace, a span and its log context.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use exa_mcp_text::sanitize::clean;
use http::request::Parts;
use rmcp::{
    RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam,
        CompleteRequestParams, CompleteResult, CustomNotification, CustomRequest, CustomResult,
        DiscoverResult, ErrorData, GetPromptRequestParams, GetPromptResponse, GetTaskParams,
        GetTaskResult, InitializeRequestParams, InitializeResult, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, NumberOrString,
        PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
        ServerConfig, SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
// These are gone as of 2026-07-28, but earlier clients rely on them.
#[expect(deprecated)]
use rmcp::model::{SetLevelRequestParams, SubscribeRequestParams};
use serde_json::Value;
use tracing::Instrument;

use super::idle::{
    ClientActivity, ClientConnection, PendingRequest, PingPolicy, StandardStreams, ping_when_idle,
};
use super::request::{
    ClientRequestId, REQUEST_ID_HEADER, SESSION_HEADER, SessionConnection, strip_prefix,
};
use crate::{
    telemetry::logging::{RequestFields, loggable_rpc_id, session_digest},
    telemetry::{OTHER, RequestAttributes, Span, SpanOutcome, TraceContext},
};
use exa_mcp_accounts::{Requester, daily, usage::UsageMeter};
use exa_mcp_model::{Identity, lock};

/// Maximum characters of the reason for a cancellation in the log.
const MAX_REASON: usize = 200;

/// The longest request id that is logged.
const MAX_ID: usize = 64;

/// Methods that reach the handler as custom requests.
const CUSTOM_METHODS: [&str; 9] = [
    "tools/call",
    "tools/list",
    "tasks/get",
    "tasks/result",
    "tasks/list",
    "tasks/cancel",
    "skills/list",
    "skills/get",
    "resources/directory/read",
];

/// A handler that traces its requests.
pub(crate) struct TracedHandler<H> {
    /// Boxed, because rmcp holds the handler several times in the task of each session.
    handler: Box<H>,
    over_http: bool,
    /// Counts requests that do not carry their requester.
    meter: Option<UsageMeter>,
    /// The owner and the session digest of a connection with a single client.
    session: Option<(Identity, String)>,
    activity: Arc<ClientActivity>,
    /// When to ping the client, until that has started.
    pings: Mutex<Option<PingPolicy>>,
    /// The connection, if all requests come over the same one.
    connection: Option<Arc<dyn ClientConnection>>,
}

/// The span of a running request.
struct RequestSpan {
    span: Span,
    trace: Option<TraceContext>,
    meter: Option<UsageMeter>,
    /// The context of its log lines.
    log: tracing::Span,
    pending: PendingRequest,
}

impl<H: ServerHandler> TracedHandler<H> {
    /// Wraps a handler of requests over stdio.
    pub(crate) fn stdio(handler: H) -> Self {
        Self {
            connection: Some(Arc::new(StandardStreams)),
            ..Self::new(handler, false)
        }
    }

    /// Wraps a handler of requests over HTTP.
    pub(crate) fn http(handler: H) -> Self {
        Self::new(handler, true)
    }

    fn new(handler: H, over_http: bool) -> Self {
        Self {
            handler: Box::new(handler),
            over_http,
            meter: None,
            session: None,
            activity: Arc::default(),
            pings: Mutex::default(),
            connection: None,
        }
    }

    /// Pings the client when it is idle.
    pub(crate) fn with_pings(self, policy: Option<PingPolicy>) -> Self {
        *lock(&self.pings) = policy;
        self
    }

    /// Sets the connection of all requests.
    pub(crate) fn with_connection(self, connection: Arc<dyn ClientConnection>) -> Self {
        let connection = Some(connection);
        Self { connection, ..self }
    }

    /// Sets the meter for all requests of one client.
    pub(crate) fn with_meter(self, meter: Option<UsageMeter>) -> Self {
        Self { meter, ..self }
    }

    /// Sets the owner and session of all requests.
    pub(crate) fn with_session(self, owner: Identity, session: &str) -> Self {
        let session = Some((owner, session_digest(session)));
        Self { session, ..self }
    }

    /// Returns the log context of a request: its user, session and ids. If the transport has already entered a context,
    /// this one is empty.
    fn log_span(&self, parts: Option<&Parts>, rpc_id: &str) -> tracing::Span {
        if !tracing::Span::current().is_none() {
            return tracing::Span::none();
        }
        if !self.over_http {
            return tracing::debug_span!("request", user = Identity::local().as_str(), rpc_id);
        }
        let header = |name: &str| parts.and_then(|parts| parts.headers.get(name)?.to_str().ok());
        let requester = parts.and_then(|parts| parts.extensions.get::<Requester>());
        let own = self.session.as_ref();
        let user = requester.map(|requester| &requester.owner);
        let user = user.or(own.map(|(owner, _)| owner));
        let session = header(SESSION_HEADER).map(session_digest);
        let session = session
            .as_deref()
            .or(own.map(|(_, digest)| digest.as_str()));
        let fields = RequestFields {
            id: header(REQUEST_ID_HEADER.as_str()),
            user: user.map(Identity::as_str),
            session,
            rpc_id: Some(rpc_id),
        };
        fields.span()
    }

    fn start_span(
        &self,
        method: &'static str,
        tool: Option<&str>,
        context: &RequestContext<RoleServer>,
    ) -> RequestSpan {
        let id = plain(&context.id);
        let parts = context.extensions.get::<Parts>();
        let own = context.extensions.get::<ClientRequestId>();
        let shown = own.map(|ClientRequestId(id)| loggable_rpc_id(id));
        let shown = shown.or_else(|| id.clone()).unwrap_or("-".to_owned());
        let log = self.log_span(parts, &shown);
        log.in_scope(|| tracing::debug!(method, id = shown, "request received"));
        let trace = TraceContext::from_request(&context.meta, parts.map(|parts| &parts.headers));
        let attributes = || RequestAttributes {
            method,
            // Unknown names are arbitrary text of the client.
            tool: tool
                .filter(|name| self.handler.get_tool(name).is_some())
                .map(str::to_owned),
            id,
            version: context
                .protocol_version()
                .map(|version| version.as_str().to_owned()),
            over_http: self.over_http,
        };
        let span = Span::for_request(attributes, trace.as_ref());
        let trace = span.trace().or(trace);
        let requester = parts.and_then(|parts| parts.extensions.get::<Requester>());
        let meter = requester.map_or(&self.meter, |requester| &requester.meter);
        RequestSpan {
            span,
            trace,
            meter: meter.clone(),
            log,
            pending: self.activity.start_request(),
        }
    }

    /// Starts to ping a client that has completed the handshake.
    fn start_pings(&self, context: &NotificationContext<RoleServer>) {
        let parts = context.extensions.get::<Parts>();
        let own = parts.and_then(|parts| parts.extensions.get::<SessionConnection>());
        let own = own.map(|SessionConnection(connection)| Arc::clone(connection));
        let Some(connection) = self.connection.clone().or(own) else {
            return;
        };
        if let Some(policy) = lock(&self.pings).take() {
            let activity = Arc::downgrade(&self.activity);
            let peer = context.peer.clone();
            tokio::spawn(ping_when_idle(activity, peer, policy, connection));
        }
    }
}

impl RequestSpan {
    /// Runs a request to its end. It is boxed, because rmcp holds the largest of these futures several times.
    async fn during<A>(
        self,
        request: Pin<Box<impl Future<Output = Result<A, ErrorData>>>>,
        is_failure: fn(&A) -> bool,
    ) -> Result<A, ErrorData> {
        let served = TraceContext::scope(self.trace, request).instrument(self.log);
        let result = served.await;
        count_error(self.meter, &result).await;
        self.span.end(|| span_outcome(&result, is_failure));
        result
    }
}

/// Counts a request that ends with a protocol error; failed tool calls are counted elsewhere.
async fn count_error<A>(meter: Option<UsageMeter>, result: &Result<A, ErrorData>) {
    if let (Some(meter), Err(_)) = (meter, result) {
        meter.add(daily::ERRORS, 1);
        meter.commit().await;
    }
}

/// Returns an id that can be logged: a number, or a short name.
fn plain(id: &NumberOrString) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    match id {
        NumberOrString::Number(number) => Some(number.to_string()),
        NumberOrString::String(text) => {
            let shown = text.len() <= MAX_ID && text.bytes().all(is_plain);
            shown.then(|| text.to_string())
        }
    }
}

fn span_outcome<A>(result: &Result<A, ErrorData>, is_failure: fn(&A) -> bool) -> SpanOutcome {
    match result {
        Ok(result) => SpanOutcome {
            code: None,
            error: is_failure(result).then_some(Cow::Borrowed("tool_error")),
        },
        Err(error) => SpanOutcome {
            code: Some(error.code.0.into()),
            error: Some(error.code.0.to_string().into()),
        },
    }
}

fn never<A>(_: &A) -> bool {
    false
}

fn is_failed_call(response: &CallToolResponse) -> bool {
    matches!(response, CallToolResponse::Complete(result) if result.is_error == Some(true))
}

fn is_failed_custom(result: &CustomResult) -> bool {
    result.0.get("isError") == Some(&Value::Bool(true))
}

/// Requests whose span has only the method.
macro_rules! requests {
    ($($name:ident($($params:ident: $type:ty)?) -> $answer:ty = $method:literal;)*) => {$(
        async fn $name(
            &self,
            $($params: $type,)?
            context: RequestContext<RoleServer>,
        ) -> Result<$answer, ErrorData> {
            let span = self.start_span($method, None, &context);
            let served = Box::pin(self.handler.$name($($params,)? context));
            span.during(served, never).await
        }
    )*};
}

#[expect(deprecated)]
impl<H: ServerHandler> ServerHandler for TracedHandler<H> {
    fn get_info(&self) -> ServerConfig {
        self.handler.get_info()
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.handler.supported_protocol_versions()
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.handler.get_tool(name)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.handler.accepted_subscription_filter(requested)
    }

    requests! {
        ping() -> () = "ping";
        initialize(request: InitializeRequestParams) -> InitializeResult = "initialize";
        discover() -> DiscoverResult = "server/discover";
        complete(request: CompleteRequestParams) -> CompleteResult = "completion/complete";
        set_level(request: SetLevelRequestParams) -> () = "logging/setLevel";
        list_prompts(request: Option<PaginatedRequestParams>) -> ListPromptsResult = "prompts/list";
        list_resources(request: Option<PaginatedRequestParams>) -> ListResourcesResult
            = "resources/list";
        list_resource_templates(request: Option<PaginatedRequestParams>)
            -> ListResourceTemplatesResult = "resources/templates/list";
        read_resource(request: ReadResourceRequestParams) -> ReadResourceResponse = "resources/read";
        subscribe(request: SubscribeRequestParams) -> () = "resources/subscribe";
        unsubscribe(request: UnsubscribeRequestParams) -> () = "resources/unsubscribe";
        list_tools(request: Option<PaginatedRequestParams>) -> ListToolsResult = "tools/list";
        get_task(request: GetTaskParams) -> GetTaskResult = "tasks/get";
        update_task(request: UpdateTaskParams) -> () = "tasks/update";
        cancel_task(request: CancelTaskParams) -> () = "tasks/cancel";
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let span = self.start_span("tools/call", Some(&request.name), &context);
        let served = Box::pin(self.handler.call_tool(request, context));
        span.during(served, is_failed_call).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = strip_prefix(&request.method).unwrap_or(&request.method);
        let known = CUSTOM_METHODS.into_iter().find(|known| *known == method);
        let name = request
            .params
            .as_ref()
            .and_then(|params| params.get("name"));
        let tool = name.filter(|_| method == "tools/call");
        let tool = tool.and_then(Value::as_str);
        let span = self.start_span(known.unwrap_or(OTHER), tool, &context);
        let served = Box::pin(self.handler.on_custom_request(request, context));
        span.during(served, is_failed_custom).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let RequestSpan {
            mut span,
            trace,
            meter,
            log,
            pending: _pending,
        } = self.start_span("prompts/get", None, &context);
        let name = request.name.clone();
        let served = Box::pin(self.handler.get_prompt(request, context));
        let result = TraceContext::scope(trace, served).instrument(log).await;
        count_error(meter, &result).await;
        // Unknown names are arbitrary text of the client.
        if result.is_ok() {
            span.set_prompt_name(&name);
        }
        span.end(|| span_outcome(&result, never));
        result
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let request = context.request_context();
        let span = self.start_span("subscriptions/listen", None, request);
        let served = Box::pin(self.handler.listen(context));
        span.during(served, never).await
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.activity.record();
        self.start_pings(&context);
        self.handler.on_initialized(context).await;
    }

    async fn on_cancelled(
        &self,
        notification: CancelledNotificationParam,
        _context: NotificationContext<RoleServer>,
    ) {
        self.activity.record();
        let request = notification.request_id.map(|id| id.to_string());
        let reason = notification.reason.unwrap_or_default();
        let reason: String = clean(&reason).chars().take(MAX_REASON).collect();
        tracing::info!(request, ?reason, "the client cancelled a request");
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        context: NotificationContext<RoleServer>,
    ) {
        self.activity.record();
        self.handler
            .on_custom_notification(notification, context)
            .await;
    }
}
