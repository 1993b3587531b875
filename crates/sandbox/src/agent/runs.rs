//! Agent runs: queued, running, and then completed, failed or cancelled.

use serde_json::{Value, json};

use super::{cost, list_response};
use crate::api_error::ApiError;
use crate::call::{ApiResponse, ApiResult, Call, LiveStream};
use crate::corpus::{Page, PageQuery, capitalize};
use crate::http::stream;
use crate::search::{grounding, structured};
use crate::state::{Account, Order, Paging, Resource, ScheduledStep, Table};
use crate::time::iso;

/// Beta token for the effort `max` and for stopping a run.
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
    events: Table<RunEvent>,
    stage: u64,
    stopping: bool,
    created: u64,
    completed: Option<u64>,
}

struct RunEvent {
    id: String,
    name: &'static str,
    data: Value,
    at: u64,
}

impl RunEvent {
    fn to_json(&self) -> Value {
        json!({ "id": self.id, "event": self.name, "data": self.data, "createdAt": iso(self.at) })
    }
}

impl Resource for AgentRun {
    const NAME: &'static str = "Agent run";
    const NOT_FOUND_TAG: &'static str = "RUN_NOT_FOUND";
}

impl AgentRun {
    fn has_ended(&self) -> bool {
        self.completed.is_some()
    }

    fn to_json(&self) -> Value {
        // Usage and cost are reported from the start, however the run ends.
        let has_started = self.stage > 0 || self.has_ended();
        let (usage, cost) =
            cost::usage_and_cost(&self.request, &self.query, &self.effort, self.stage, STAGES);
        let error = json!({ "type": "SERVER_ERROR", "code": "RUN_FAILED", "message": "The query asked for a failure" });
        json!({
            "id": self.id,
            "object": "agent_run",
            "status": self.status,
            "stopReason": self.stop_reason,
            "createdAt": iso(self.created),
            "completedAt": self.completed.map(iso),
            "request": self.request,
            "output": self.output,
            "usage": has_started.then_some(usage),
            "costDollars": has_started.then_some(cost),
            "error": (self.status == "failed").then_some(error),
        })
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

    fn add_event(&mut self, name: &'static str, data: Value, at: u64) {
        let id = format!("{}_{}", self.id, self.events.len() + 1);
        let event = RunEvent {
            id: id.clone(),
            name,
            data,
            at,
        };
        self.events.insert(&id, event);
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
        self.add_event(event, self.to_json(), now);
    }

    /// Advances the run by one stage.
    fn advance(&mut self, now: u64, pages: &[Page]) {
        self.stage += 1;
        if self.stage == 1 {
            self.status = "running";
            self.add_event("agent_run.started", self.to_json(), now);
        } else if self.stage <= STAGES && !self.stopping {
            let index = usize::try_from(self.stage).unwrap_or(0).saturating_sub(2);
            if let Some(page) = pages.get(index) {
                let source = json!({ "source": { "url": page.url, "title": page.title } });
                self.add_event("source.added", source, now);
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
        self.add_event("output_item.added", json!({ "item": item }), now);
        let reason = match (self.stopping, &self.structured) {
            (true, _) => Some("stopped"),
            (false, Some(_)) => Some("schema_satisfied"),
            (false, None) => None,
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
    if !run.has_ended() {
        let pause = run.duration() / STAGES;
        account.schedule_after(pause, ScheduledStep::AgentRun(id.to_owned()));
    }
}

/// Returns the events after the first `skip`, and whether the run has ended.
pub(crate) fn live_events(account: &Account, id: &str, skip: usize) -> (Vec<String>, bool) {
    let Some(run) = account.agent_runs.get(id) else {
        return (Vec::new(), true);
    };
    let events = run.events.values().skip(skip);
    let events = events.map(|event| stream::event(Some(&event.id), event.name, event.data.clone()));
    (events.collect(), run.has_ended())
}

/// `POST /agent/runs`.
pub(crate) fn create(account: &mut Account, call: &Call) -> ApiResult {
    account.ensure_capacity(1)?;
    let effort = call.opt_text("effort").unwrap_or("auto");
    if effort == "max" {
        call.require_beta(BETA, "The effort max")?;
    }
    if let Some(previous) = call.opt_text("previousRunId") {
        account.agent_runs.find(previous)?;
    }
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
        output: Value::Null,
        events: Table::default(),
        stage: 0,
        stopping: false,
        created: account.now(),
        completed: None,
    };
    let json = run.to_json();
    run.add_event("agent_run.created", json.clone(), account.now());
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
    if !run.has_ended() {
        run.end("cancelled", Some("cancelled"), "agent_run.cancelled", now);
    }
    ApiResponse::ok(run.to_json())
}

/// `POST /agent/runs/{id}/stop`: the run ends early with the results it has.
pub(crate) fn stop(account: &mut Account, call: &Call) -> ApiResult {
    call.require_beta(BETA, "Stopping a run")?;
    let id = call.text("runId");
    let run = account.agent_runs.find_mut(id)?;
    if !matches!(run.effort.as_str(), "ultra" | "max") {
        let message = format!(
            "Only runs with effort ultra can be stopped; this one has {}",
            run.effort
        );
        return Err(ApiError::new(400, "RUN_NOT_STOPPABLE", message));
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

/// `GET /agent/runs/{id}/events`.
pub(crate) fn list_events(account: &mut Account, call: &Call) -> ApiResult {
    let paging = Paging::from_call(call, 50, 200)?;
    let run = account.agent_runs.find(call.text("runId"))?;
    list_response(paging.page(run.events.rows(), Order::OldestFirst, RunEvent::to_json))
}
