//! What is offered to whoever makes a request.

use std::time::Duration;

use exa_mcp_text::similar_names;
use rmcp::{
    RoleServer,
    model::{
        ClientCapabilities, ErrorCode, ErrorData, JsonObject, ServerConfig, TASKS_EXTENSION_ID,
    },
    service::RequestContext,
};
use serde_json::json;

use super::{
    client::Detected,
    handler::{LONGEST_NAME, unknown_method},
    tasks::Tasks,
    tools::{ParsedCall, Tools},
    version::Era,
};
use crate::{
    telemetry,
    tools::{ToolOutcome, resources::Resources},
};
use exa_mcp_accounts::{
    Allowance, Credential, Denied, KeyProof, Permit, Requester, daily, usage::Meter,
};
use exa_mcp_model::{Identity, LimitExceeded, LocalUser, Owner};

/// How many names are offered for one that is unknown, and how like they must be.
const MOST_NAMES: usize = 3;
const LEAST_LIKENESS: f64 = 0.7;

/// What is offered to whoever makes a request.
#[derive(Clone)]
pub(super) struct Scope<T> {
    /// To whom belongs what the request leaves behind.
    pub(super) owner: Owner,
    pub(super) tools: T,
    /// Calls that go on after they were answered, where there is a store for them.
    pub(super) tasks: Option<Tasks<T>>,
    /// Where requests are counted, if they are.
    pub(super) meter: Option<Meter>,
    /// What limits calls, if anything does.
    allowance: Option<Allowance>,
    /// Notes that Exa has accepted the requester's own key.
    key_proof: Option<KeyProof>,
    /// What ends the request before its time, if anything does.
    credential: Option<Credential>,
}

impl<T: Tools> Scope<T> {
    /// What is offered to whoever started this process.
    pub(super) fn local(tools: T, user: LocalUser) -> Self {
        Self::new(tools, Owner::Local(user))
    }

    /// What is offered over HTTP to a request that does not say who makes it.
    pub(super) fn remote(tools: T) -> Self {
        Self::new(tools, Owner::Remote(Identity::guest("unknown")))
    }

    fn new(tools: T, owner: Owner) -> Self {
        let store = tools.store();
        let user = owner.local_user().cloned();
        let tasks = store.map(|store| Tasks::new(tools.clone(), store, tools.task_limits(), user));
        Self {
            owner,
            tools,
            tasks,
            meter: None,
            allowance: None,
            key_proof: None,
            credential: None,
        }
    }

    /// The same for someone who makes a request over HTTP.
    pub(super) fn of(&self, requester: &Requester) -> Self {
        let tools = self.tools.for_requester(requester);
        let tasks = self.tasks.as_ref();
        Self {
            owner: Owner::Remote(requester.owner.clone()),
            tasks: tasks.map(|tasks| tasks.of(tools.clone(), requester)),
            tools,
            meter: requester.meter.clone(),
            allowance: requester.allowance.clone(),
            key_proof: requester.key_proof.clone(),
            credential: requester.credential.clone(),
        }
    }

    /// Does something for the request as long as its credential is valid; what is not done then is
    /// dropped, so that nothing more is sent to Exa.
    pub(super) async fn while_admitted<R>(
        &self,
        served: impl Future<Output = Result<R, ErrorData>>,
    ) -> Result<R, ErrorData> {
        let Some(credential) = &self.credential else {
            return served.await;
        };
        tokio::select! {
            biased;
            served = served => served,
            why = credential.ended() => {
                let text = format!("The call was stopped: {}", ended(why));
                Err(ErrorData::invalid_request(text, None))
            }
        }
    }

    /// Lets a call begin, unless a limit is reached.
    pub(super) async fn admit_call(&self, call: &T::Call) -> Result<Permit, LimitExceeded> {
        match &self.allowance {
            Some(allowance) => allowance.call(call.start_cost()).await,
            None => Ok(Permit::default()),
        }
    }

    /// The tools for a call that was let in.
    pub(super) fn tools_for(&self, permit: &Permit) -> T {
        match &self.allowance {
            Some(allowance) => self.tools.paid_by(allowance, permit),
            None => self.tools.clone(),
        }
    }

    /// Counts a call that has come to its end. It is in the store when this returns.
    pub(super) async fn count(&self, tool: &str, outcome: Option<&ToolOutcome>) {
        let stats = outcome.and_then(ToolOutcome::stats);
        if let Some(proof) = &self.key_proof
            && stats.is_some_and(|stats| !stats.cost.is_zero())
        {
            proof.accept();
        }
        let Some(meter) = &self.meter else {
            return;
        };
        if self.tools.has(tool) {
            meter.add(format!("tool:{tool}"), 1);
        }
        if let Some(outcome) = outcome {
            note(meter, outcome);
        }
        meter.commit().await;
    }

    /// Describes the server to a client of this era.
    pub(super) fn describe(&self, era: &Era) -> ServerConfig {
        ServerConfig::new(era.capabilities(self.tools.resources().is_some(), self.tasks.is_some()))
            .with_server_info(era.server_info())
            .with_instructions(self.tools.instructions())
    }

    /// What can be read; where nothing can, the methods that read are unknown.
    pub(super) fn resources(&self, method: &str) -> Result<Resources, ErrorData> {
        let resources = self.tools.resources().cloned();
        resources.ok_or_else(|| unknown_method(method))
    }

    /// The tasks, for a client of 2026-07-28 that knows them.
    pub(super) fn tasks_for(&self, context: &RequestContext<RoleServer>) -> Option<&Tasks<T>> {
        let era = Era::of(context.protocol_version());
        let declared = Detected::of(context, &era).tasks;
        self.tasks
            .as_ref()
            .filter(|_| declared && era.is_stateless())
    }

    /// Refuses a call of 2026-07-28 that could only be answered by a task to a client that knows none.
    pub(super) fn demand_tasks(
        &self,
        name: &str,
        context: &RequestContext<RoleServer>,
        era: &Era,
    ) -> Result<(), ErrorData> {
        let demands = era.is_stateless() && self.tools.needs_tasks(name);
        if !demands || self.tasks_for(context).is_some() {
            return Ok(());
        }
        let extension = (TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
        let mut required = ClientCapabilities::default();
        required.extensions = Some([extension].into_iter().collect());
        Err(ErrorData::missing_required_client_capability(required))
    }

    /// Whether a tool takes tasks at all.
    pub(super) fn admit_task(&self, name: &str) -> Result<(), ErrorData> {
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

    /// Refuses a tool that is not offered, with the names of those that may be meant.
    pub(super) fn unknown_tool(&self, name: &str) -> ErrorData {
        let shown: String = name.chars().take(LONGEST_NAME).collect();
        let definitions = self.tools.definitions();
        let names = definitions.iter().map(|tool| -> &str { &tool.name });
        let mut nearest = similar_names::similar(&shown, names, LEAST_LIKENESS);
        nearest.truncate(MOST_NAMES);
        let data = (!nearest.is_empty()).then(|| json!({"nearest": nearest}));
        ErrorData::invalid_params(format!("Unknown tool: {shown}"), data)
    }
}

/// Why a token admits nobody any more.
pub(super) fn ended(why: Denied) -> &'static str {
    match why {
        Denied::Revoked => "its token was revoked",
        Denied::Expired => "its token has expired",
        Denied::Unknown | Denied::NotAdmin | Denied::Throttled(_) => {
            "its token was replaced or given to another user"
        }
    }
}

/// Notes the facts about an answer; money is counted where requests are sent.
pub(super) fn note(meter: &Meter, outcome: &ToolOutcome) {
    if outcome.is_failure() {
        meter.add(daily::ERRORS, 1);
    }
    let Some(stats) = outcome.stats() else {
        return;
    };
    meter.add(format!("operation:{}", stats.operation), 1);
    meter.add(daily::TOKENS, stats.tokens);
    if stats.cached {
        meter.add(daily::CACHE_HITS, 1);
    }
}

/// Lets operators know of a call of a tool that there is.
pub(super) fn observe(tool: &str, outcome: Option<&ToolOutcome>, took: Duration) {
    if let Some(metrics) = telemetry::metrics() {
        let failed = outcome.is_none_or(ToolOutcome::is_failure);
        metrics.record_mcp_request("tools/call", Some(tool), failed, took);
    }
    if let Some(stats) = outcome.and_then(ToolOutcome::stats) {
        telemetry::record_result(stats.tokens, stats.cost.dollars(), stats.cached);
    }
}
