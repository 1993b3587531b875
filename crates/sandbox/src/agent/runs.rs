//! Agent runs: queued, running, and then completed, failed or cancelled.

use serde_json::{Value, json};

use super::cost::{self, RunCost};
use super::run_events::RunEvents;
use crate::api_error::ApiError;
use crate::call::{ApiResponse, ApiResult, Call, LiveStream, list_response};
use crate::corpus::{Page, PageQuery, capitalize};
use crate::json::{set, text};
use crate::search::{grounding, structured};
use crate::state::{Account, Order, Paging, Resource, ScheduledStep};
use crate::time::iso;

/// Beta token for the effort `max`.
const BETA: &str = "agent-max-effort-2026-07-27";
/// Number of steps between start and end; each adds one source.
const STAGES: u64 = 4;
/// Time from a stop request to the end, in milliseconds at time scale 1.
const WRAP_UP: u64 = 300;

/// One run.
pub(crate) struct AgentRun {
    id: String,
    status: &'static str,
    stop_reason: Option<&'static str>,
    request: Value,
    query: String,
    effort: String,
    structured: Option<Value>,
    output: Value,
    pub(super) events: RunEvents,
    stage: u64,
    stopping: bool,
    created: u64,
    completed: Option<u64>,
}

impl Resource for AgentRun {
    const NAME: &'static str = "Agent run";
    const NOT_FOUND_TAG: &'static str = "RUN_NOT_FOUND";
}

impl AgentRun {
    pub(crate) fn has_ended(&self) -> bool {
        self.completed.is_some()
    }

    fn cost(&self) -> RunCost {
        cost::of_run(&self.request, &self.query, &self.effort, self.stage, STAGES)
    }

    fn error(&self) -> Option<Value> {
        let message = "The query asked for a failure";
        let error = json!({ "type": "SERVER_ERROR", "code": "SERVER_ERROR", "message": message });
        (self.status == "failed").then_some(error)
    }

    /// Returns the run as the result of a batch item.
    pub(crate) fn result(&self) -> Result<Value, ApiError> {
        if self.status == "completed" {
            return Ok(self.to_json());
        }
        let message = format!("The run {} is {}", self.id, self.status);
        Err(ApiError::new(500, "SERVER_ERROR", message))
    }

    fn to_json(&self) -> Value {
        // Usage and cost are reported from the start, however the run ends.
        let cost = self.cost();
        let mut run = json!({
            "id": self.id,
            "object": "agent_run",
            "status": self.status,
            "stopReason": self.stop_reason,
            "createdAt": iso(self.created),
            "completedAt": self.completed.map(iso),
            "request": self.request,
            "output": self.output,
            "usage": cost.usage(),
            "costDollars": cost.dollars(),
        });
        if let Some(error) = self.error() {
            set(&mut run, "error", error);
        }
        run
    }

    /// Returns the duration at time scale 1, which grows with the effort.
    fn duration(&self) -> u64 {
        match self.effort.as_str() {
            "minimal" => 1_500,
            "low" => 2_000,
            "high" => 5_000,
            "xhigh" => 8_000,
            "ultra" | "max" => 20_000,
            _ => 3_000,
        }
    }

    fn end(
        &mut self,
        status: &'static str,
        reason: Option<&'static str>,
        event: &'static str,
        now: u64,
    ) {
        self.status = status;
        self.stop_reason = reason;
        self.completed = Some(now);
        self.events.add(&self.id, event, self.to_json(), now);
    }

    /// Advances the run by one stage.
    fn advance(&mut self, now: u64, pages: &[Page]) {
        self.stage += 1;
        if self.stage == 1 {
            self.status = "running";
            self.events
                .add(&self.id, "agent_run.started", self.to_json(), now);
        } else if self.stage <= STAGES && !self.stopping {
            let index = usize::try_from(self.stage).unwrap_or(0).saturating_sub(2);
            if let Some(page) = pages.get(index) {
                let source = json!({ "source": { "url": page.url, "title": page.title } });
                self.events
                    .add(&self.id, "agent_run.source.added", source, now);
            }
        } else if self.query.contains("sandbox-fail") {
            self.end("failed", Some("error"), "agent_run.failed", now);
        } else {
            self.complete(now, pages);
        }
    }

    fn complete(&mut self, now: u64, pages: &[Page]) {
        let content = self.structured.clone().unwrap_or(Value::Null);
        let point = |page: &Page| {
            let sentence = *page.sentences().get(1)?;
            Some(format!("- {sentence} ({})", page.url))
        };
        let points: Vec<String> = pages.iter().filter_map(point).collect();
        let text = format!(
            "{} — a made-up answer.\n\n{}",
            capitalize(&self.query),
            points.join("\n")
        );
        self.output =
            json!({ "text": text, "structured": content, "grounding": grounding(&content, pages) });
        let item = self.output.clone();
        let item = json!({ "item": item });
        self.events
            .add(&self.id, "agent_run.output_item.added", item, now);
        let reason = match &self.structured {
            _ if self.stopping => Some("stopped"),
            _ if self.cost().reached_budget => Some("budget_reached"),
            Some(_) => Some("schema_satisfied"),
            None => None,
        };
        self.end("completed", reason, "agent_run.completed", now);
    }
}

/// Advances a run by one stage, unless it has ended.
pub(crate) fn advance(account: &mut Account, id: &str) {
    let (now, seed) = (account.now(), account.data_seed());
    let run = account.agent_runs.get_mut(id);
    let Some(run) = run.filter(|run| !run.has_ended()) else {
        return;
    };
    let pages = PageQuery::new(&run.query, 4).run(seed);
    run.advance(now, &pages);
    if run.has_ended() {
        let cost = run.cost().total;
        account.charge("agent run", cost);
    } else {
        let pause = run.duration() / STAGES;
        account.schedule_after(pause, ScheduledStep::AgentRun(id.to_owned()));
    }
}

/// Rejects combinations of arguments that the input schema cannot express.
fn validate(account: &Account, call: &Call, effort: &str) -> Result<(), ApiError> {
    if effort == "max" {
        call.require_beta(BETA, "The effort max")?;
    }
    let budget = |name: &str| call.get("budget").and_then(|budget| budget.get(name));
    if budget("maxCostDollars").is_some() && !cost::is_metered(effort) {
        let message = format!("budget.maxCostDollars: the effort {effort} has a fixed price");
        return Err(ApiError::invalid(message));
    }
    if budget("maxDurationSeconds").is_some() && effort != "ultra" {
        let message = "budget.maxDurationSeconds: only the effort ultra takes a time limit";
        return Err(ApiError::invalid(message));
    }
    let mut providers = call
        .list("dataSources")
        .iter()
        .map(|source| text(source, "provider"));
    if let Some(unknown) = providers.find(|provider| !cost::is_provider(provider)) {
        let message = format!("dataSources: there is no provider {unknown}");
        return Err(ApiError::new(400, "INVALID_DATA_SOURCE", message));
    }
    let Some(previous) = call.opt_text("previousRunId") else {
        return Ok(());
    };
    match account.agent_runs.get(previous) {
        None => {
            let message = format!("Agent run {previous} not found");
            Err(ApiError::new(404, "PREVIOUS_RUN_NOT_FOUND", message))
        }
        Some(run) if run.status != "completed" => {
            let message = format!("Agent run {previous} is {}", run.status);
            Err(ApiError::new(400, "PREVIOUS_RUN_NOT_COMPLETED", message))
        }
        Some(_) => Ok(()),
    }
}

/// `POST /agent/runs`.
pub(crate) fn create(account: &mut Account, call: &Call) -> ApiResult {
    account.ensure_capacity(1)?;
    let effort = call.opt_text("effort").unwrap_or("auto");
    validate(account, call, effort)?;
    let query = call.text("query");
    let structured = structured(call.get("outputSchema"), account.data_seed(), query)?;
    let id = account.new_id("agent_run");
    let mut request = call.args.clone();
    request.remove("betas");
    let mut run = AgentRun {
        id: id.clone(),
        status: "queued",
        stop_reason: None,
        request: Value::Object(request),
        query: query.to_owned(),
        effort: effort.to_owned(),
        structured,
        output: json!({ "text": "", "structured": null, "grounding": [] }),
        events: RunEvents::default(),
        stage: 0,
        stopping: false,
        created: account.now(),
        completed: None,
    };
    let json = run.to_json();
    run.events
        .add(&id, "agent_run.created", json.clone(), account.now());
    let pause = run.duration() / 10;
    account.agent_runs.insert(&id, run);
    account.schedule_after(pause, ScheduledStep::AgentRun(id.clone()));
    if call.wants_events {
        return Ok(ApiResponse::Live(LiveStream::AgentRun(id)));
    }
    ApiResponse::ok(json)
}

/// `GET /agent/runs/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> ApiResult {
    ApiResponse::ok(account.agent_runs.find(call.text("runId"))?.to_json())
}

/// `GET /agent/runs`.
pub(crate) fn list(account: &mut Account, call: &Call) -> ApiResult {
    let paging = Paging::from_call(call, 25, 100)?;
    let runs = account.agent_runs.rows();
    list_response(paging.page(runs, Order::NewestFirst, AgentRun::to_json))
}

/// `POST /agent/runs/{id}/cancel`. A run that has ended does not change.
pub(crate) fn cancel(account: &mut Account, call: &Call) -> ApiResult {
    let now = account.now();
    let run = account.agent_runs.find_mut(call.text("runId"))?;
    let was_running = !run.has_ended();
    if was_running {
        run.end("cancelled", Some("cancelled"), "agent_run.cancelled", now);
    }
    let (json, cost) = (run.to_json(), run.cost().total);
    if was_running {
        account.charge("agent run", cost);
    }
    ApiResponse::ok(json)
}

/// `POST /agent/runs/{id}/stop`: the run ends early with the results it has.
pub(crate) fn stop(account: &mut Account, call: &Call) -> ApiResult {
    let id = call.text("runId");
    let run = account.agent_runs.find_mut(id)?;
    match run.effort.as_str() {
        "ultra" => {}
        "max" => call.require_beta(BETA, "Stopping a run with effort max")?,
        effort => {
            let message = format!("Only runs with effort ultra can be stopped, not {effort}");
            return Err(ApiError::invalid(message));
        }
    }
    if run.has_ended() || run.stopping {
        return ApiResponse::ok(run.to_json());
    }
    run.stopping = true;
    // A stopped run continues with its last step.
    run.stage = run.stage.max(1);
    let json = run.to_json();
    let step = ScheduledStep::AgentRun(id.to_owned());
    account.cancel_step(&step);
    account.schedule_after(WRAP_UP, step);
    ApiResponse::ok(json)
}

/// `DELETE /agent/runs/{id}`.
pub(crate) fn delete(account: &mut Account, call: &Call) -> ApiResult {
    let id = call.text("runId");
    account.agent_runs.delete(id)?;
    ApiResponse::ok(json!({ "id": id, "object": "agent_run.deleted", "deleted": true }))
}
