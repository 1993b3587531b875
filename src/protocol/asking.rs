//! Calls that may ask their client something before they are done.

use std::time::Instant;

use rmcp::{
    Peer, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CreateTaskResult, CustomRequest, ErrorCode,
        ErrorData, JsonObject,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

use super::{
    client::{self, Asked, Conversation, Detected, Ended, Patience},
    era::Era,
    handler::{Handler, era},
    progress::Steps,
    resources,
    scope::{Scope, observe},
    tasks::Watcher,
    tools::Tools,
};
use crate::{
    accounts::{KeyPage, Permit},
    operations::client::{ClientHandle, Powers},
    surface::{Address, Call, Outcome},
    telemetry,
};

/// The user must visit a page first.
const URL_ELICITATION_REQUIRED: i32 = -32042;

impl<T: Tools> Handler<T> {
    /// Calls a tool that exists.
    pub(super) async fn call(
        &self,
        scope: &Scope<T>,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        era: &Era,
        permit: Permit,
    ) -> Result<CallToolResponse, ErrorData> {
        let (name, arguments) = (request.name, request.arguments.unwrap_or_default());
        let asked = Asked {
            owner: &scope.owner,
            tool: &name,
            arguments: &arguments,
            state: request.request_state,
            responses: request.input_responses,
        };
        let (client, conversation) = self.converse(scope, context, era, asked)?;
        if scope.tasks_for(context).is_some()
            && scope.tools.starts_work(&name, &arguments)
            && !scope.tools.waits(&name, &arguments)
        {
            let call = Call::new(scope.owner.clone(), Default::default()).of_client(client);
            let task = (call, conversation, permit);
            let task = self.create_task(scope, &name, arguments, task, context);
            return Box::pin(task).await;
        }
        let (progress, steps) = Steps::of(context);
        let who = Call::new(scope.owner.clone(), progress).of_client(client);
        // A call is large, and is handed through several others.
        let call = Box::pin(telemetry::inherited(
            scope.tools_for(&permit).call(&name, arguments, who),
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
            Ended::Done(outcome) => {
                let mut outcome = outcome?;
                outcome.warn(&permit.warnings);
                Self::answer(scope, outcome, context, era)
            }
        }
    }

    /// Begins a task of 2026-07-28. What it cannot begin without is asked before.
    async fn create_task(
        &self,
        scope: &Scope<T>,
        name: &str,
        arguments: JsonObject,
        (call, conversation, permit): (Call, Conversation, Permit),
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let powers = in_task(call.client.powers());
        let prepared = Box::pin(telemetry::inherited(
            scope.tools.prepare(name, arguments, call),
        ));
        let run = self.calls.run(prepared, context.ct.cancelled());
        let prepared = match conversation.until(run).await? {
            Ended::Asks(question) => return Ok((*question).into()),
            Ended::Done(prepared) => prepared?,
        };
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(outcome) => return Self::answer(scope, *outcome, context, &era(context)),
        };
        let Some(tasks) = &scope.tasks else {
            return Err(ErrorData::internal_error("There are no tasks", None));
        };
        // There progress of tasks is told to those who ask for their state, and in no other way.
        let watcher = Watcher {
            client: prepared.client,
            powers,
            permit,
            ..Watcher::nobody()
        };
        let task = tasks.create(
            scope.owner.identity(),
            name,
            prepared.arguments,
            None,
            watcher,
        );
        let task = task.await;
        scope.count(name, None).await;
        Ok(CreateTaskResult::new(task?.task()).into())
    }

    /// Asks for what a task of 2025-11-25 cannot begin without, and gives a client that knows it and what
    /// the task may ask for itself. What is not given is left for the task to complain about: such a call
    /// must be answered by a task.
    pub(super) async fn prepare_task(
        &self,
        scope: &Scope<T>,
        request: &mut CustomRequest,
        context: &RequestContext<RoleServer>,
        era: &Era,
    ) -> Result<(ClientHandle, Powers), ErrorData> {
        let unasked = || Ok((ClientHandle::mute(), Powers::default()));
        let params = request.params.as_mut().and_then(Value::as_object_mut);
        let Some(params) = params else {
            return unasked();
        };
        let name = params.get("name").and_then(Value::as_str);
        let name = name.unwrap_or_default().to_owned();
        let arguments = match params.get("arguments") {
            Some(Value::Object(arguments)) => arguments.clone(),
            None | Some(Value::Null) => JsonObject::new(),
            // The task itself refuses what are no arguments.
            Some(_) => return unasked(),
        };
        let asked = Asked {
            owner: &scope.owner,
            tool: &name,
            arguments: &arguments,
            state: None,
            responses: None,
        };
        let (client, conversation) = self.converse(scope, context, era, asked)?;
        let powers = in_task(client.powers());
        let call = Call::new(scope.owner.clone(), Default::default()).of_client(client);
        let prepared = Box::pin(telemetry::inherited(
            scope.tools.prepare(&name, arguments, call),
        ));
        let run = self.calls.run(prepared, context.ct.cancelled());
        let Ended::Done(prepared) = conversation.until(run).await? else {
            return unasked();
        };
        match prepared? {
            Ok(prepared) => {
                params.insert("arguments".to_owned(), Value::Object(prepared.arguments));
                Ok((prepared.client, powers))
            }
            Err(outcome) => match Self::must_visit(scope, &outcome, context, era) {
                Some(error) => Err(error),
                None => unasked(),
            },
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
        outcome: Outcome,
        context: &RequestContext<RoleServer>,
        era: &Era,
    ) -> Result<CallToolResponse, ErrorData> {
        match Self::must_visit(scope, &outcome, context, era) {
            Some(error) => Err(error),
            None => Ok(era.call_result(outcome).into()),
        }
    }

    /// The error that says which page the user must visit first, in the version that has it. The client
    /// is told when to try again.
    fn must_visit(
        scope: &Scope<T>,
        outcome: &Outcome,
        context: &RequestContext<RoleServer>,
        era: &Era,
    ) -> Option<ErrorData> {
        if !era.knows_url_errors() || !Detected::of(context, era).elicitation_url {
            return None;
        }
        let error = outcome.structured.get("error")?;
        let is_it = error.get("code")?.as_i64() == Some(URL_ELICITATION_REQUIRED.into());
        let text = |name: &str| error.get(name).filter(|_| is_it)?.as_str();
        let data = elicitation(text("elicitationId")?, text("url")?);
        let (peer, page) = (context.peer.clone(), scope.tools.key_page());
        tokio::spawn(async move {
            if let Some(page) = page.await {
                tell_when_done(&peer, page).await;
            }
        });
        Some(visit_error(&outcome.text, data))
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
fn in_task(powers: Powers) -> Powers {
    let urls = false;
    Powers { urls, ..powers }
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
