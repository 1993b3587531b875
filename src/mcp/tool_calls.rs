//! Calls that may ask their client something before they are done.

use std::time::Instant;

use rmcp::{
    Peer, RoleServer,
    model::{
        CallToolResponse, CreateTaskResult, CustomResult, ErrorCode, ErrorData, InputResponses,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

use super::{
    client::{self, Asked, Conversation, Detected, Ended, Patience},
    handler::{Handler, era, limited, listening},
    progress::Steps,
    resources,
    scope::{Scope, observe},
    tasks::{TaskParams, Tasks, Watcher},
    tools::{ParsedCall, Prepared, Tools},
    version::Era,
};
use crate::{
    operations::client::{ClientCapabilities, ClientHandle, Visit},
    telemetry,
    telemetry::logging::LogListener,
    tools::{Address, ToolContext, ToolError, ToolOutcome},
};
use exa_mcp_accounts::{KeyPage, Permit};

/// The user must visit a page first.
const URL_ELICITATION_REQUIRED: i32 = -32042;

/// A call that was let in, and what the client sent with it.
pub(super) struct Admitted<C> {
    pub(super) call: C,
    /// What the client carried back.
    pub(super) state: Option<String>,
    /// What the client answers.
    pub(super) responses: Option<InputResponses>,
    pub(super) permit: Permit,
}

impl<T: Tools> Handler<T> {
    /// Runs a call that was let in, or begins a task for it.
    pub(super) async fn call(
        &self,
        scope: &Scope<T>,
        admitted: Admitted<T::Call>,
        context: &RequestContext<RoleServer>,
        era: &Era,
    ) -> Result<CallToolResponse, ErrorData> {
        let Admitted {
            call,
            state,
            responses,
            permit,
        } = admitted;
        let asked = Asked {
            owner: &scope.owner,
            tool: call.name(),
            arguments: call.arguments(),
            state,
            responses,
        };
        let (client, conversation) = self.converse(scope, context, era, asked)?;
        if scope.tasks_for(context).is_some() && call.starts_work() && !call.waits() {
            let who = ToolContext::new(scope.owner.clone(), Default::default()).of_client(client);
            let task = self.create_task(scope, call, (who, conversation, permit), context);
            return Box::pin(task).await;
        }
        let name = call.name().to_owned();
        let (progress, steps) = Steps::of(context);
        let who = ToolContext::new(scope.owner.clone(), progress).of_client(client);
        // A call is large, and is handed through several others.
        let call = Box::pin(telemetry::inherit_context(
            scope.tools_for(&permit).run(call, who),
        ));
        let run = Box::pin(steps.until(self.calls.run(call, context.ct.cancelled())));
        let started = Instant::now();
        let ended = conversation.until(run).await;
        let outcome = match &ended {
            Ok(Ended::Done(Ok(outcome))) => Some(outcome),
            _ => None,
        };
        observe(&name, outcome, started.elapsed());
        scope.count(&name, outcome).await;
        match ended? {
            Ended::Asks(question) => Ok((*question).into()),
            Ended::Done(outcome) => Self::answer(scope, outcome?, &permit.warnings, (context, era)),
        }
    }

    /// Begins a task of 2026-07-28. What it cannot begin without is asked before.
    async fn create_task(
        &self,
        scope: &Scope<T>,
        call: T::Call,
        (who, conversation, permit): (ToolContext, Conversation, Permit),
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let capabilities = in_task(who.client.capabilities());
        let prepared = Box::pin(telemetry::inherit_context(scope.tools.prepare(call, who)));
        let run = self.calls.run(prepared, context.ct.cancelled());
        let Prepared { call, client } = match conversation.until(run).await? {
            Ended::Asks(question) => return Ok((*question).into()),
            Ended::Done(prepared) => prepared?,
        };
        let client = match client {
            Ok(client) => client,
            Err(error) => return Self::answer(scope, error.into(), &[], (context, &era(context))),
        };
        let Some(tasks) = &scope.tasks else {
            return Err(ErrorData::internal_error("There are no tasks", None));
        };
        // There progress of tasks is told to those who ask for their state, and in no other way.
        let watcher = Watcher {
            client,
            capabilities,
            permit,
            ..Watcher::nobody()
        };
        let name = call.name().to_owned();
        let task = tasks.create(scope.owner.identity(), call, None, watcher);
        let task = task.await;
        scope.count(&name, None).await;
        Ok(CreateTaskResult::new(task?.task()).into())
    }

    /// Answers a call of 2025-11-25 that asks for a task.
    pub(super) async fn call_as_task(
        &self,
        scope: &Scope<T>,
        tasks: &Tasks<T>,
        params: Option<Value>,
        (context, era): (&RequestContext<RoleServer>, &Era),
        listener: Option<LogListener>,
    ) -> Result<CustomResult, ErrorData> {
        let name = params.as_ref().and_then(|params| params.get("name"));
        let name = name.and_then(Value::as_str).unwrap_or_default();
        scope.count(name, None).await;
        let TaskParams {
            tool,
            arguments,
            ttl,
        } = TaskParams::read(params, |tool| scope.admit_task(tool))?;
        let call = scope.tools.parse(&tool, arguments);
        let permit = scope.admit_call(&call).await.map_err(|over| {
            tracing::info!(limit = over.limit, "denied: over a limit");
            limited(&over)
        })?;
        let (progress, steps) = Steps::of(context);
        let served = Box::pin(async {
            let (call, client, capabilities) = self.prepare_task(scope, call, context, era).await?;
            let watcher = Watcher {
                peer: Some(context.peer.clone()),
                progress,
                steps,
                client,
                capabilities,
                permit,
            };
            let task = tasks.create(scope.owner.identity(), call, ttl, watcher);
            Ok(CustomResult::new(json!({"task": task.await?.legacy()})))
        });
        listening(listener, served).await
    }

    /// Asks for what a task of 2025-11-25 cannot begin without, and gives a client that knows it and what
    /// the task may ask for itself. What is not given is left for the task to complain about: such a call
    /// must be answered by a task.
    async fn prepare_task(
        &self,
        scope: &Scope<T>,
        call: T::Call,
        context: &RequestContext<RoleServer>,
        era: &Era,
    ) -> Result<(T::Call, ClientHandle, ClientCapabilities), ErrorData> {
        let asked = Asked {
            owner: &scope.owner,
            tool: call.name(),
            arguments: call.arguments(),
            state: None,
            responses: None,
        };
        let (client, conversation) = self.converse(scope, context, era, asked)?;
        let capabilities = in_task(client.capabilities());
        let who = ToolContext::new(scope.owner.clone(), Default::default()).of_client(client);
        let prepared = Box::pin(telemetry::inherit_context(scope.tools.prepare(call, who)));
        let run = self.calls.run(prepared, context.ct.cancelled());
        let Ended::Done(prepared) = conversation.until(run).await? else {
            let text = "A call with a handshake cannot ask by its answer";
            return Err(ErrorData::internal_error(text, None));
        };
        let Prepared { call, client } = prepared?;
        match client.map_err(|error| *error) {
            Ok(client) => Ok((call, client, capabilities)),
            Err(ToolError::KeyRequired(visit)) => {
                let content = ToolOutcome::InputRequired(visit.clone()).into_content(&[]);
                match Self::must_visit(scope, &visit, &content.text, (context, era)) {
                    Some(error) => Err(error),
                    None => Ok((call, ClientHandle::mute(), ClientCapabilities::default())),
                }
            }
            Err(_) => Ok((call, ClientHandle::mute(), ClientCapabilities::default())),
        }
    }

    fn converse(
        &self,
        scope: &Scope<T>,
        context: &RequestContext<RoleServer>,
        era: &Era,
        asked: Asked<'_>,
    ) -> Result<(ClientHandle, Conversation), ErrorData> {
        let patience = Patience::of(scope.tools.patience());
        client::converse(context, era, &self.roots, patience, asked)
    }

    /// The answer to a call.
    fn answer(
        scope: &Scope<T>,
        outcome: ToolOutcome,
        warnings: &[String],
        (context, era): (&RequestContext<RoleServer>, &Era),
    ) -> Result<CallToolResponse, ErrorData> {
        let visit = match &outcome {
            ToolOutcome::InputRequired(visit) => Some(visit.clone()),
            ToolOutcome::Success(_) | ToolOutcome::Failure(_) => None,
        };
        let content = outcome.into_content(warnings);
        if let Some(visit) = visit
            && let Some(error) = Self::must_visit(scope, &visit, &content.text, (context, era))
        {
            return Err(error);
        }
        Ok(era.call_result(content).into())
    }

    /// The error that says which page the user must visit first, in the version that has it. The client
    /// is told when to try again.
    fn must_visit(
        scope: &Scope<T>,
        visit: &Visit,
        message: &str,
        (context, era): (&RequestContext<RoleServer>, &Era),
    ) -> Option<ErrorData> {
        if !era.knows_url_errors() || !Detected::of(context, era).elicitation_url {
            return None;
        }
        let (peer, page) = (context.peer.clone(), scope.tools.key_page());
        tokio::spawn(async move {
            if let Some(page) = page.await {
                tell_when_done(&peer, page).await;
            }
        });
        Some(visit_error(message, elicitation(&visit.id, &visit.url)))
    }

    /// Reading a webset needs a key. Such a request cannot ask, but in one version say where to go first.
    pub(super) async fn demand_key(
        &self,
        scope: &Scope<T>,
        context: &RequestContext<RoleServer>,
        era: &Era,
        uri: &str,
    ) -> Result<(), ErrorData> {
        let lives_at_exa = matches!(
            resources::address(uri),
            Ok(Address::Webset(_) | Address::WebsetItems(_))
        );
        let able = era.knows_url_errors() && Detected::of(context, era).elicitation_url;
        if !lives_at_exa || !able {
            return Ok(());
        }
        let Some(page) = scope.tools.key_page().await else {
            return Ok(());
        };
        let error = visit_error(KEY_FIRST, elicitation(&page.id, &page.url));
        let peer = context.peer.clone();
        tokio::spawn(async move { tell_when_done(&peer, page).await });
        Err(error)
    }
}

/// What a task may ask for itself. A page is none of it: it is gone with the process that offers it, and
/// its address would be kept in the store.
fn in_task(capabilities: ClientCapabilities) -> ClientCapabilities {
    let urls = false;
    ClientCapabilities {
        urls,
        ..capabilities
    }
}

const KEY_FIRST: &str =
    "The server needs an Exa API key first; the user enters it on a page of this computer";

/// Tells the client that it can try again.
async fn tell_when_done(peer: &Peer<RoleServer>, page: KeyPage) {
    if page.is_done().await {
        client::tell_visited(peer, page.id).await;
    }
}

fn elicitation(id: &str, url: &str) -> Value {
    let visit = json!({"mode": "url", "elicitationId": id, "url": url, "message": KEY_FIRST});
    json!({"elicitations": [visit]})
}

fn visit_error(message: &str, data: Value) -> ErrorData {
    let code = ErrorCode(URL_ELICITATION_REQUIRED);
    ErrorData::new(code, message.to_owned(), Some(data))
}
