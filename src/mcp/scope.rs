//! What a request may use: the tools, limits and identity of its requester.

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
    client::ClientFeatures,
    errors::{MAX_NAME, unknown_method},
    tasks::Tasks,
    tools::{ParsedCall, Tools},
    version::McpVersion,
};
use crate::{
    telemetry,
    tools::{
        ToolOutcome,
        resources::{Resources, Subscriber},
    },
};
use exa_mcp_accounts::{
    Allowance, AuthError, CallPermit, ClientAddress, Credential, KeyProof, Requester, daily,
    usage::UsageMeter,
};
use exa_mcp_model::{Identity, LimitExceeded, LocalUser, Owner};

/// The most names that are suggested for an unknown one, and their least similarity.
const MAX_SUGGESTIONS: usize = 3;
const MIN_SIMILARITY: f64 = 0.7;

/// What a request may use.
#[derive(Clone)]
pub(super) struct RequestScope<T> {
    /// The owner of everything that the request creates.
    pub(super) owner: Owner,
    pub(super) tools: T,
    /// Tasks, if there is a store for them.
    pub(super) tasks: Option<Tasks<T>>,
    /// Counts usage, if enabled.
    pub(super) meter: Option<UsageMeter>,
    /// Limits calls, if there are limits.
    allowance: Option<Allowance>,
    /// Records that Exa accepted the requester's own key.
    key_proof: Option<KeyProof>,
    /// The credential of the requester, which may expire while the request runs.
    credential: Option<Credential>,
    /// The address of a requester that has not authenticated.
    guest_address: Option<ClientAddress>,
}

impl<T: Tools> RequestScope<T> {
    /// Returns the scope of the user who started this process.
    pub(super) fn local(tools: T, user: LocalUser) -> Self {
        Self::new(tools, Owner::Local(user))
    }

    /// Returns the scope of HTTP requests without a requester.
    pub(super) fn remote(tools: T) -> Self {
        Self::new(tools, Owner::Remote(Identity::anonymous("unknown")))
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
            guest_address: None,
        }
    }

    /// Returns the scope of a requester over HTTP.
    pub(super) fn for_requester(&self, requester: &Requester) -> Self {
        let tools = self.tools.for_requester(requester);
        let tasks = self.tasks.as_ref();
        Self {
            owner: Owner::Remote(requester.owner.clone()),
            tasks: tasks.map(|tasks| tasks.for_requester(tools.clone(), requester)),
            tools,
            meter: requester.meter.clone(),
            allowance: requester.allowance.clone(),
            key_proof: requester.key_proof.clone(),
            credential: requester.credential.clone(),
            guest_address: requester.guest_address,
        }
    }

    /// Returns the requester as a subscriber to resources.
    pub(super) fn subscriber(&self) -> Subscriber {
        Subscriber {
            owner: self.owner.identity().clone(),
            credential: self.credential.clone(),
            guest_address: self.guest_address,
        }
    }

    /// Runs a future as long as the credential of the request is valid, then drops it, so that nothing more is sent to
    /// Exa.
    pub(super) async fn run_while_valid<R>(
        &self,
        served: impl Future<Output = Result<R, ErrorData>>,
    ) -> Result<R, ErrorData> {
        let Some(credential) = &self.credential else {
            return served.await;
        };
        tokio::select! {
            biased;
            served = served => served,
            reason = credential.wait_until_invalid() => {
                let text = format!("The call was stopped: {}", end_reason(reason));
                Err(ErrorData::invalid_request(text, None))
            }
        }
    }

    /// Admits a call, unless a limit is reached.
    pub(super) async fn admit_call(&self, call: &T::Call) -> Result<CallPermit, LimitExceeded> {
        match &self.allowance {
            Some(allowance) => allowance.start_call(call.start_cost()).await,
            None => Ok(CallPermit::default()),
        }
    }

    /// Returns the tools for an admitted call.
    pub(super) fn tools_for(&self, permit: &CallPermit) -> T {
        match &self.allowance {
            Some(allowance) => self.tools.paid_by(allowance, permit),
            None => self.tools.clone(),
        }
    }

    /// Records the usage of a finished call. It is stored when this returns.
    pub(super) async fn record_usage(&self, tool: &str, outcome: Option<&ToolOutcome>) {
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
            record_outcome(meter, outcome);
        }
        meter.commit().await;
    }

    /// Returns the server info and capabilities for a protocol version.
    pub(super) fn describe(&self, protocol: &McpVersion) -> ServerConfig {
        ServerConfig::new(
            protocol.capabilities(self.tools.resources().is_some(), self.tasks.is_some()),
        )
        .with_server_info(protocol.server_info())
        .with_instructions(self.tools.instructions())
    }

    /// Returns the resources; without any, the resource methods are unknown.
    pub(super) fn resources(&self, method: &str) -> Result<Resources, ErrorData> {
        let resources = self.tools.resources().cloned();
        resources.ok_or_else(|| unknown_method(method))
    }

    /// Returns the tasks, if the client is of 2026-07-28 and supports them.
    pub(super) fn tasks_for(&self, context: &RequestContext<RoleServer>) -> Option<&Tasks<T>> {
        let protocol = McpVersion::new(context.protocol_version());
        let declared = ClientFeatures::from_request(context, &protocol).tasks;
        self.tasks
            .as_ref()
            .filter(|_| declared && protocol.is_stateless())
    }

    /// Rejects a call of 2026-07-28 that can only run as a task if the client does not support tasks.
    pub(super) fn require_task_support(
        &self,
        name: &str,
        context: &RequestContext<RoleServer>,
        protocol: &McpVersion,
    ) -> Result<(), ErrorData> {
        let needs_tasks = protocol.is_stateless() && self.tools.needs_tasks(name);
        if !needs_tasks || self.tasks_for(context).is_some() {
            return Ok(());
        }
        let extension = (TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
        let mut required = ClientCapabilities::default();
        required.extensions = Some([extension].into_iter().collect());
        Err(ErrorData::missing_required_client_capability(required))
    }

    /// Checks that a tool exists and supports tasks.
    pub(super) fn check_task_support(&self, name: &str) -> Result<(), ErrorData> {
        let definitions = self.tools.definitions();
        match definitions.iter().find(|tool| tool.name == name) {
            None => Err(self.unknown_tool(name)),
            Some(tool) if tool.starts_job => Ok(()),
            Some(_) => {
                let text =
                    format!("The tool {name} does not support tasks; call it without `task`");
                Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None))
            }
        }
    }

    /// Returns the error for an unknown tool, with similar names.
    pub(super) fn unknown_tool(&self, name: &str) -> ErrorData {
        let shown: String = name.chars().take(MAX_NAME).collect();
        let definitions = self.tools.definitions();
        let names = definitions.iter().map(|tool| -> &str { &tool.name });
        let mut nearest = similar_names::find_similar(&shown, names, MIN_SIMILARITY);
        nearest.truncate(MAX_SUGGESTIONS);
        let data = (!nearest.is_empty()).then(|| json!({"nearest": nearest}));
        ErrorData::invalid_params(format!("Unknown tool: {shown}"), data)
    }
}

/// Returns why a token is no longer valid.
pub(super) fn end_reason(denied: AuthError) -> &'static str {
    match denied {
        AuthError::Revoked => "its token was revoked",
        AuthError::Expired => "its token has expired",
        AuthError::Unknown | AuthError::NotAdmin | AuthError::Throttled(_) => {
            "its token was replaced or given to another user"
        }
    }
}

/// Records errors, tokens and cache hits of an outcome. The cost is recorded where requests are sent.
pub(super) fn record_outcome(meter: &UsageMeter, outcome: &ToolOutcome) {
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

/// Records metrics and span attributes of a tool call.
pub(super) fn observe(tool: &str, outcome: Option<&ToolOutcome>, took: Duration) {
    if let Some(metrics) = telemetry::metrics() {
        let failed = outcome.is_none_or(ToolOutcome::is_failure);
        metrics.record_mcp_request("tools/call", Some(tool), failed, took);
        if let Some(format) = outcome.and_then(ToolOutcome::format) {
            metrics.record_format(format);
        }
    }
    if let Some(stats) = outcome.and_then(ToolOutcome::stats) {
        telemetry::record_result(stats.tokens, stats.cost.dollars(), stats.cached);
    }
}
