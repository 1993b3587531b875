//! Around every request: the trace that it belongs to, and the span that operators see of it.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;

use http::request::Parts;
use rmcp::{
    RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
        CompleteResult, CustomNotification, CustomRequest, CustomResult, DiscoverResult, ErrorData,
        GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
        InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, NumberOrString, PaginatedRequestParams,
        ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
        SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
// These are gone as of 2026-07-28, but earlier clients rely on them.
#[expect(deprecated)]
use rmcp::model::{SetLevelRequestParams, SubscribeRequestParams};
use serde_json::Value;
use tracing::Instrument;

use super::request::{ClientRequestId, REQUEST_ID_HEADER, SESSION_HEADER, unmarked};
use crate::{
    telemetry::logging::{RequestFields, loggable_rpc_id, session_digest},
    telemetry::{OTHER, RequestAttributes, Span, SpanOutcome, TraceContext},
};
use exa_mcp_accounts::{Requester, daily, usage::Meter};
use exa_mcp_model::Identity;

/// The longest id of a request that is told.
const LONGEST_ID: usize = 64;

/// Methods that reach a handler as custom ones.
const CUSTOM_METHODS: [&str; 6] = [
    "tools/call",
    "tools/list",
    "tasks/get",
    "tasks/result",
    "tasks/list",
    "tasks/cancel",
];

/// A handler whose requests are part of traces.
pub(crate) struct Traced<H> {
    handler: H,
    over_http: bool,
    /// Where requests are counted that do not say themselves who makes them.
    meter: Option<Meter>,
    /// Who makes the requests of a connection that has one client, and the digest of its session.
    session: Option<(Identity, String)>,
}

/// A request that has begun.
struct Begun {
    span: Span,
    trace: Option<TraceContext>,
    meter: Option<Meter>,
    /// What marks its log lines.
    log: tracing::Span,
}

impl<H: ServerHandler> Traced<H> {
    /// A handler of requests that come through a pipe.
    pub(crate) fn piped(handler: H) -> Self {
        Self {
            handler,
            over_http: false,
            meter: None,
            session: None,
        }
    }

    /// A handler of requests that come over HTTP.
    pub(crate) fn over_http(handler: H) -> Self {
        Self {
            handler,
            over_http: true,
            meter: None,
            session: None,
        }
    }

    /// The same with a meter for all requests of one client.
    pub(crate) fn counted(self, meter: Option<Meter>) -> Self {
        Self { meter, ..self }
    }

    /// The same for all requests of one client in one session.
    pub(crate) fn of_session(self, owner: Identity, session: &str) -> Self {
        let session = Some((owner, session_digest(session)));
        Self { session, ..self }
    }

    /// What marks the log lines of a request: who makes it, in which session, and its ids. Where the task
    /// that took it from the network serves it, its lines are marked already.
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

    fn begin(
        &self,
        method: &'static str,
        tool: Option<&str>,
        context: &RequestContext<RoleServer>,
    ) -> Begun {
        let id = plain(&context.id);
        let parts = context.extensions.get::<Parts>();
        let own = context.extensions.get::<ClientRequestId>();
        let shown = own.map(|ClientRequestId(id)| loggable_rpc_id(id));
        let shown = shown.or_else(|| id.clone()).unwrap_or("-".to_owned());
        let log = self.log_span(parts, &shown);
        log.in_scope(|| tracing::debug!(method, id = shown, "asked"));
        let trace = TraceContext::from_request(&context.meta, parts.map(|parts| &parts.headers));
        let asked = || RequestAttributes {
            method,
            // What is no tool is what a client made up.
            tool: tool
                .filter(|name| self.handler.get_tool(name).is_some())
                .map(str::to_owned),
            id,
            version: context
                .protocol_version()
                .map(|version| version.as_str().to_owned()),
            over_http: self.over_http,
        };
        let span = Span::for_request(asked, trace.as_ref());
        let trace = span.trace().or(trace);
        let requester = parts.and_then(|parts| parts.extensions.get::<Requester>());
        let meter = requester.map_or(&self.meter, |requester| &requester.meter);
        Begun {
            span,
            trace,
            meter: meter.clone(),
            log,
        }
    }
}

impl Begun {
    /// Runs a request to its end. It is boxed, because rmcp holds the largest of these futures several
    /// times over.
    async fn during<A>(
        self,
        request: Pin<Box<impl Future<Output = Result<A, ErrorData>>>>,
        fails: fn(&A) -> bool,
    ) -> Result<A, ErrorData> {
        let served = TraceContext::scope(self.trace, request).instrument(self.log);
        let answer = served.await;
        count(self.meter, &answer).await;
        self.span.end(|| ended(&answer, fails));
        answer
    }
}

/// Counts a request that is answered by an error; calls that fail otherwise count themselves.
async fn count<A>(meter: Option<Meter>, answer: &Result<A, ErrorData>) {
    if let (Some(meter), Err(_)) = (meter, answer) {
        meter.add(daily::ERRORS, 1);
        meter.commit().await;
    }
}

/// An id that can be shown: a number, or a short name.
fn plain(id: &NumberOrString) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    match id {
        NumberOrString::Number(number) => Some(number.to_string()),
        NumberOrString::String(text) => {
            let shown = text.len() <= LONGEST_ID && text.bytes().all(is_plain);
            shown.then(|| text.to_string())
        }
    }
}

fn ended<A>(answer: &Result<A, ErrorData>, fails: fn(&A) -> bool) -> SpanOutcome {
    match answer {
        Ok(answer) => SpanOutcome {
            code: None,
            error: fails(answer).then_some(Cow::Borrowed("tool_error")),
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

fn is_failed_call(answer: &CallToolResponse) -> bool {
    matches!(answer, CallToolResponse::Complete(result) if result.is_error == Some(true))
}

fn is_failed_custom(answer: &CustomResult) -> bool {
    answer.0.get("isError") == Some(&Value::Bool(true))
}

/// Requests of which only the method is told.
macro_rules! requests {
    ($($name:ident($($params:ident: $type:ty)?) -> $answer:ty = $method:literal;)*) => {$(
        async fn $name(
            &self,
            $($params: $type,)?
            context: RequestContext<RoleServer>,
        ) -> Result<$answer, ErrorData> {
            let begun = self.begin($method, None, &context);
            let served = Box::pin(self.handler.$name($($params,)? context));
            begun.during(served, never).await
        }
    )*};
}

#[expect(deprecated)]
impl<H: ServerHandler> ServerHandler for Traced<H> {
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
        let begun = self.begin("tools/call", Some(&request.name), &context);
        let called = Box::pin(self.handler.call_tool(request, context));
        begun.during(called, is_failed_call).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = unmarked(&request.method).unwrap_or(&request.method);
        let known = CUSTOM_METHODS.into_iter().find(|known| *known == method);
        let name = request
            .params
            .as_ref()
            .and_then(|params| params.get("name"));
        let tool = name.filter(|_| method == "tools/call");
        let tool = tool.and_then(Value::as_str);
        let begun = self.begin(known.unwrap_or(OTHER), tool, &context);
        let served = Box::pin(self.handler.on_custom_request(request, context));
        begun.during(served, is_failed_custom).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let Begun {
            mut span,
            trace,
            meter,
            log,
        } = self.begin("prompts/get", None, &context);
        let name = request.name.clone();
        let got = Box::pin(self.handler.get_prompt(request, context));
        let answer = TraceContext::scope(trace, got).instrument(log).await;
        count(meter, &answer).await;
        // Only now it is known that there is such a prompt.
        if answer.is_ok() {
            span.set_prompt_name(&name);
        }
        span.end(|| ended(&answer, never));
        answer
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let request = context.request_context();
        let begun = self.begin("subscriptions/listen", None, request);
        let heard = Box::pin(self.handler.listen(context));
        begun.during(heard, never).await
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.handler.on_initialized(context).await;
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        context: NotificationContext<RoleServer>,
    ) {
        let told = self.handler.on_custom_notification(notification, context);
        told.await;
    }
}
