//! Runs tool calls, which may request input from their client, and creates tasks.

use std::time::Instant;

use rmcp::{
    RoleServer,
    model::{
        CallToolResponse, CreateTaskResult, CustomResult, ErrorCode, ErrorData, InputResponses,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

use super::{
    client::{
        self, ClientFeatures, ClientPeer, InputChannel, InputTimeouts, InteractiveCall,
        RoundOutcome,
    },
    errors::limit_error,
    handler::{Handler, request_version, with_listener},
    progress::ProgressForwarder,
    resources,
    scope::{RequestScope, observe},
    tasks::{TaskObserver, TaskParams, Tasks},
    tools::{ParsedCall, PreparedCall, Tools},
    version::McpVersion,
};
use crate::{
    operations::interaction::{ClientCapabilities, ClientHandle, UrlRequest},
    telemetry,
    telemetry::logging::LogListener,
    tools::{ResourceUri, ToolContext, ToolError, ToolOutcome},
};
use exa_mcp_accounts::{CallPermit, KeyPage};

/// JSON-RPC error code: the user must open a page first.
const URL_ELICITATION_REQUIRED: i32 = -32042;

/// An admitted call, with the client's input.
pub(super) struct AdmittedCall<C> {
    pub(super) call: C,
    /// The request state that the client sent back.
    pub(super) state: Option<String>,
    /// The client's responses to input requests.
    pub(super) responses: Option<InputResponses>,
    pub(super) permit: CallPermit,
}

impl<T: Tools> Handler<T> {
    /// Runs an admitted call, or creates a task for it.
    pub(super) async fn call(
        &self,
        scope: &RequestScope<T>,
        admitted: AdmittedCall<T::Call>,
        context: &RequestContext<RoleServer>,
        protocol: &McpVersion,
    ) -> Result<CallToolResponse, ErrorData> {
        let AdmittedCall {
            call,
            state,
            responses,
            permit,
        } = admitted;
        let interactive = InteractiveCall {
            owner: &scope.owner,
            tool: call.name(),
            arguments: call.arguments(),
            state,
            responses,
        };
        let (client, channel) = self.open_channel(scope, context, protocol, interactive)?;
        if scope.tasks_for(context).is_some() && call.starts_job() && !call.waits() {
            let tool_context =
                ToolContext::new(scope.owner.clone(), Default::default()).with_client(client);
            let task = self.create_task(scope, call, (tool_context, channel, permit), context);
            return Box::pin(task).await;
        }
        let name = call.name().to_owned();
        let (progress, forwarder) =
            ProgressForwarder::for_request(context, self.client_peer(context));
        let tool_context = ToolContext::new(scope.owner.clone(), progress).with_client(client);
        // The future is large, and several others wrap it.
        let call = Box::pin(telemetry::inherit_context(
            scope.tools_for(&permit).run(call, tool_context),
        ));
        let run =
            Box::pin(forwarder.forward_during(self.limiter.run(call, context.ct.cancelled())));
        let started = Instant::now();
        let result = channel.run(run).await;
        let outcome = match &result {
            Ok(RoundOutcome::Done(Ok(outcome))) => Some(outcome),
            _ => None,
        };
        observe(&name, outcome, started.elapsed());
        scope.record_usage(&name, outcome).await;
        match result? {
            RoundOutcome::InputRequired(request) => Ok((*request).into()),
            RoundOutcome::Done(outcome) => {
                self.respond(scope, outcome?, &permit.warnings, (context, protocol))
            }
        }
    }

    /// Creates a task of 2026-07-28. Requests the input that it needs first.
    async fn create_task(
        &self,
        scope: &RequestScope<T>,
        call: T::Call,
        (tool_context, channel, permit): (ToolContext, InputChannel, CallPermit),
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let capabilities = task_capabilities(tool_context.client.capabilities());
        let prepared = Box::pin(telemetry::inherit_context(
            scope.tools.prepare(call, tool_context),
        ));
        let run = self.limiter.run(prepared, context.ct.cancelled());
        let PreparedCall { call, client } = match channel.run(run).await? {
            RoundOutcome::InputRequired(request) => return Ok((*request).into()),
            RoundOutcome::Done(prepared) => prepared?,
        };
        let client = match client {
            Ok(client) => client,
            Err(error) => {
                return self.respond(
                    scope,
                    error.into(),
                    &[],
                    (context, &request_version(context)),
                );
            }
        };
        let Some(tasks) = &scope.tasks else {
            return Err(ErrorData::internal_error("Tasks are not available", None));
        };
        // In this version, clients learn the progress of a task only by polling its state.
        let observer = TaskObserver {
            client,
            capabilities,
            permit,
            ..TaskObserver::none()
        };
        let name = call.name().to_owned();
        let task = tasks.create(scope.owner.identity(), call, None, observer);
        let task = task.await;
        scope.record_usage(&name, None).await;
        Ok(CreateTaskResult::new(task?.task()).into())
    }

    /// Runs a call of 2025-11-25 with `task`.
    pub(super) async fn call_as_task(
        &self,
        scope: &RequestScope<T>,
        tasks: &Tasks<T>,
        params: Option<Value>,
        (context, protocol): (&RequestContext<RoleServer>, &McpVersion),
        listener: Option<LogListener>,
    ) -> Result<CustomResult, ErrorData> {
        let name = params.as_ref().and_then(|params| params.get("name"));
        let name = name.and_then(Value::as_str).unwrap_or_default();
        scope.record_usage(name, None).await;
        let TaskParams {
            tool,
            arguments,
            ttl,
        } = TaskParams::parse(params, |tool| scope.check_task_support(tool))?;
        let call = scope.tools.parse(&tool, arguments);
        let permit = scope.admit_call(&call).await.map_err(|exceeded| {
            tracing::info!(limit = exceeded.limit, "denied: limit exceeded");
            limit_error(&exceeded)
        })?;
        let peer = self.client_peer(context);
        let (progress, forwarder) = ProgressForwarder::for_request(context, peer.clone());
        let served = Box::pin(async {
            let (call, client, capabilities) =
                self.prepare_task(scope, call, context, protocol).await?;
            let observer = TaskObserver {
                peer: Some(peer),
                progress,
                forwarder,
                client,
                capabilities,
                permit,
            };
            let task = tasks.create(scope.owner.identity(), call, ttl, observer);
            Ok(CustomResult::new(json!({"task": task.await?.legacy()})))
        });
        with_listener(listener, served).await
    }

    /// Requests the input that a task of 2025-11-25 needs. Returns a client that remembers the input, and the
    /// capabilities that the task may use itself. If input is missing, the task itself fails: the response to such a
    /// call must be a task.
    async fn prepare_task(
        &self,
        scope: &RequestScope<T>,
        call: T::Call,
        context: &RequestContext<RoleServer>,
        protocol: &McpVersion,
    ) -> Result<(T::Call, ClientHandle, ClientCapabilities), ErrorData> {
        let interactive = InteractiveCall {
            owner: &scope.owner,
            tool: call.name(),
            arguments: call.arguments(),
            state: None,
            responses: None,
        };
        let (client, channel) = self.open_channel(scope, context, protocol, interactive)?;
        let capabilities = task_capabilities(client.capabilities());
        let tool_context =
            ToolContext::new(scope.owner.clone(), Default::default()).with_client(client);
        let prepared = Box::pin(telemetry::inherit_context(
            scope.tools.prepare(call, tool_context),
        ));
        let run = self.limiter.run(prepared, context.ct.cancelled());
        let RoundOutcome::Done(prepared) = channel.run(run).await? else {
            let text = "Input requests in results require protocol version 2026-07-28";
            return Err(ErrorData::internal_error(text, None));
        };
        let PreparedCall { call, client } = prepared?;
        match client.map_err(|error| *error) {
            Ok(client) => Ok((call, client, capabilities)),
            Err(ToolError::KeyRequired(page)) => {
                let content = ToolOutcome::InputRequired(page.clone()).into_content(&[]);
                match self.url_required(scope, &page, &content.text, (context, protocol)) {
                    Some(error) => Err(error),
                    None => Ok((
                        call,
                        ClientHandle::non_interactive(),
                        ClientCapabilities::default(),
                    )),
                }
            }
            Err(_) => Ok((
                call,
                ClientHandle::non_interactive(),
                ClientCapabilities::default(),
            )),
        }
    }

    fn open_channel(
        &self,
        scope: &RequestScope<T>,
        context: &RequestContext<RoleServer>,
        protocol: &McpVersion,
        call: InteractiveCall<'_>,
    ) -> Result<(ClientHandle, InputChannel), ErrorData> {
        let timeouts = InputTimeouts::new(scope.tools.input_timeout());
        let client = (context, self.client_peer(context));
        client::open_channel(client, protocol, &self.roots, timeouts, call)
    }

    /// Returns the client of a request.
    fn client_peer(&self, context: &RequestContext<RoleServer>) -> ClientPeer {
        ClientPeer::new(context, &self.readiness)
    }

    /// Returns the response to a call.
    fn respond(
        &self,
        scope: &RequestScope<T>,
        outcome: ToolOutcome,
        warnings: &[String],
        (context, protocol): (&RequestContext<RoleServer>, &McpVersion),
    ) -> Result<CallToolResponse, ErrorData> {
        let page = match &outcome {
            ToolOutcome::InputRequired(page) => Some(page.clone()),
            ToolOutcome::Success(_) | ToolOutcome::Failure(_) => None,
        };
        let content = outcome.into_content(warnings);
        if let Some(page) = page
            && let Some(error) = self.url_required(scope, &page, &content.text, (context, protocol))
        {
            return Err(error);
        }
        Ok(protocol.call_result(content).into())
    }

    /// Returns the error that asks the user to open a page first, in the version that has it. The client is notified
    /// when it can try again.
    fn url_required(
        &self,
        scope: &RequestScope<T>,
        page: &UrlRequest,
        message: &str,
        (context, protocol): (&RequestContext<RoleServer>, &McpVersion),
    ) -> Option<ErrorData> {
        if !protocol.supports_url_errors()
            || !ClientFeatures::from_request(context, protocol).elicitation_url
        {
            return None;
        }
        let (peer, key_page) = (self.client_peer(context), scope.tools.key_page());
        tokio::spawn(async move {
            if let Some(key_page) = key_page.await {
                notify_when_done(&peer, key_page).await;
            }
        });
        Some(url_error(message, elicitation(&page.id, &page.url)))
    }

    /// Checks that there is a key before a webset is read. `resources/read` cannot request input, but in one version
    /// its error can name the page on which the user enters the key.
    pub(super) async fn require_key(
        &self,
        scope: &RequestScope<T>,
        context: &RequestContext<RoleServer>,
        protocol: &McpVersion,
        uri: &str,
    ) -> Result<(), ErrorData> {
        let needs_key = matches!(
            resources::parse_address(uri),
            Ok(ResourceUri::Webset(_) | ResourceUri::WebsetItems(_))
        );
        let supports_urls = protocol.supports_url_errors()
            && ClientFeatures::from_request(context, protocol).elicitation_url;
        if !needs_key || !supports_urls {
            return Ok(());
        }
        let Some(page) = scope.tools.key_page().await else {
            return Ok(());
        };
        let error = url_error(KEY_REQUIRED, elicitation(&page.id, &page.url));
        let peer = self.client_peer(context);
        tokio::spawn(async move { notify_when_done(&peer, page).await });
        Err(error)
    }
}

/// Returns the capabilities that a task may use itself. URLs are excluded: a page disappears with its process, and
/// its URL would be stored.
fn task_capabilities(capabilities: ClientCapabilities) -> ClientCapabilities {
    ClientCapabilities {
        urls: false,
        ..capabilities
    }
}

const KEY_REQUIRED: &str =
    "The server needs an Exa API key first; the user enters it on a page of this computer";

/// Notifies the client when it can try again.
async fn notify_when_done(peer: &ClientPeer, page: KeyPage) {
    if page.wait().await {
        client::notify_url_completed(peer, page.id).await;
    }
}

fn elicitation(id: &str, url: &str) -> Value {
    let page = json!({"mode": "url", "elicitationId": id, "url": url, "message": KEY_REQUIRED});
    json!({"elicitations": [page]})
}

fn url_error(message: &str, data: Value) -> ErrorData {
    let code = ErrorCode(URL_ELICITATION_REQUIRED);
    ErrorData::new(code, message.to_owned(), Some(data))
}
