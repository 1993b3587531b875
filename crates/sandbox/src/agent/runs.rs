//! Agent runs: queued, running, and then completed, failed or cancelled.

use serde_json::{Value, json};

use super::cost;
use crate::call::{Call, Follow, Outcome, Reply};
use crate::corpus::{Find, Page, capital};
use crate::failure::Failure;
use crate::http::stream;
use crate::search::{grounding, structured};
use crate::state::{Account, Order, Paging, Step, Table};
use crate::time::iso;

/// Token that the effort `max` and stopping a run need.
const BETA: &str = "agent-max-effort-2026-07-27";
/// Steps between start and end, one source each.
const STAGES: u64 = 4;
/// From a stop to the end, in milliseconds at time scale 1.
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
    events: Table<Event>,
    stage: u64,
    stopping: bool,
    created: u64,
    completed: Option<u64>,
}

struct Event {
    id: String,
    name: &'static str,
    data: Value,
    at: u64,
}

impl Event {
    fn to_json(&self) -> Value {
        json!({ "id": self.id, "event": self.name, "data": self.data, "createdAt": iso(self.at) })
    }
}

impl AgentRun {
    fn is_over(&self) -> bool {
        self.completed.is_some()
    }

    fn to_json(&self) -> Value {
        // What a run has used so far is shown, and due, however it ends.
        let has_begun = self.stage > 0 || self.is_over();
        let (usage, cost) =
            cost::bill(&self.request, &self.query, &self.effort, self.stage, STAGES);
        let failed = json!({ "type": "SERVER_ERROR", "code": "RUN_FAILED", "message": "The query asked for a failure" });
        json!({
            "id": self.id,
            "object": "agent_run",
            "status": self.status,
            "stopReason": self.stop_reason,
            "createdAt": iso(self.created),
            "completedAt": self.completed.map(iso),
            "request": self.request,
            "output": self.output,
            "usage": has_begun.then_some(usage),
            "costDollars": has_begun.then_some(cost),
            "error": (self.status == "failed").then_some(failed),
        })
    }

    /// How long the run takes at time scale 1: the more effort, the longer.
    fn span(&self) -> u64 {
        match self.effort.as_str() {
            "minimal" => 1_500,
            "low" => 2_000,
            "high" => 5_000,
            "xhigh" => 8_000,
            "ultra" | "max" => 20_000,
            _ => 3_000,
        }
    }

    fn tell(&mut self, name: &'static str, data: Value, at: u64) {
        let id = format!("{}_{}", self.id, self.events.len() + 1);
        self.events.insert(
            &id,
            Event {
                id: id.clone(),
                name,
                data,
                at,
            },
        );
    }

    /// Ends the run.
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
        let data = self.to_json();
        self.tell(event, data, now);
    }

    /// One step on.
    fn advance(&mut self, now: u64, pages: &[Page]) {
        self.stage += 1;
        if self.stage == 1 {
            self.status = "running";
            let data = self.to_json();
            self.tell("agent_run.started", data, now);
        } else if self.stage <= STAGES && !self.stopping {
            let place = usize::try_from(self.stage).unwrap_or(0).saturating_sub(2);
            if let Some(page) = pages.get(place) {
                self.tell(
                    "source.added",
                    json!({ "source": { "url": page.url, "title": page.title } }),
                    now,
                );
            }
        } else if self.query.contains("sandbox-fail") {
            self.end("failed", Some("error"), "agent_run.failed", now);
        } else {
            self.complete(now, pages);
        }
    }

    fn complete(&mut self, now: u64, pages: &[Page]) {
        let content = self.structured.clone().unwrap_or(Value::Null);
        let points: Vec<String> = pages
            .iter()
            .filter_map(|page| {
                page.sentences()
                    .get(1)
                    .map(|sentence| format!("- {sentence} ({})", page.url))
            })
            .collect();
        let text = format!(
            "{} — a made-up answer.\n\n{}",
            capital(&self.query),
            points.join("\n")
        );
        self.output =
            json!({ "text": text, "structured": content, "grounding": grounding(&content, pages) });
        let item = self.output.clone();
        self.tell("output_item.added", json!({ "item": item }), now);
        let reason = match (self.stopping, &self.structured) {
            (true, _) => Some("stopped"),
            (false, Some(_)) => Some("schema_satisfied"),
            (false, None) => None,
        };
        self.end("completed", reason, "agent_run.completed", now);
    }
}

impl Account {
    pub(crate) fn step_agent_run(&mut self, id: &str) {
        let (now, seed) = (self.now(), self.data_seed());
        let Some(run) = self.agent_runs.get_mut(id).filter(|run| !run.is_over()) else {
            return;
        };
        let pages = Find {
            query: run.query.clone(),
            count: 4,
            ..Find::default()
        }
        .run(seed);
        run.advance(now, &pages);
        let (over, span) = (run.is_over(), run.span());
        if !over {
            let pause = self.span(span / STAGES);
            self.after(pause, Step::AgentRun(id.to_owned()));
        }
    }

    /// Events from the given one on, and whether the run is over.
    pub(crate) fn follow_agent_run(&self, id: &str, from: usize) -> (Vec<String>, bool) {
        let Some(run) = self.agent_runs.get(id) else {
            return (Vec::new(), true);
        };
        let events = run
            .events
            .values()
            .skip(from)
            .map(|event| stream::event(Some(&event.id), event.name, event.data.clone()));
        (events.collect(), run.is_over())
    }

    fn run_of(&mut self, call: &Call) -> Result<&mut AgentRun, Failure> {
        let id = call.text("runId");
        self.agent_runs.get_mut(id).ok_or_else(|| unknown(id))
    }
}

fn unknown(id: &str) -> Failure {
    Failure::new(404, "RUN_NOT_FOUND", format!("Agent run {id} not found"))
}

/// `POST /agent/runs`.
pub(crate) fn create(account: &mut Account, call: &Call) -> Outcome {
    account.need_room(1)?;
    let effort = call.opt_text("effort").unwrap_or("auto");
    if effort == "max" {
        call.need_beta(BETA, "The effort max")?;
    }
    if let Some(previous) = call
        .opt_text("previousRunId")
        .filter(|id| !account.agent_runs.contains(id))
    {
        return Err(unknown(previous));
    }
    let query = call.text("query");
    let structured = structured(call.get("outputSchema"), account.data_seed(), query)?;
    let id = account.id("agent_run");
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
    run.tell("agent_run.created", json.clone(), account.now());
    let pause = account.span(run.span() / 10);
    account.agent_runs.insert(&id, run);
    account.after(pause, Step::AgentRun(id.clone()));
    if call.wants_events {
        return Ok(Reply::Follow(Follow::AgentRun(id)));
    }
    Reply::ok(json)
}

/// `GET /agent/runs/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> Outcome {
    Reply::ok(account.run_of(call)?.to_json())
}

/// `GET /agent/runs`.
pub(crate) fn list(account: &mut Account, call: &Call) -> Outcome {
    let paging = Paging::of(call, 25, 100)?;
    Reply::ok(as_list(paging.page(
        account.agent_runs.placed(),
        Order::NewestFirst,
        AgentRun::to_json,
    )))
}

/// The agent APIs say of a list that it is one.
pub(super) fn as_list(mut page: Value) -> Value {
    if let Value::Object(fields) = &mut page {
        fields.insert("object".into(), "list".into());
    }
    page
}

/// `POST /agent/runs/{id}/cancel`. A run that is over stays as it is.
pub(crate) fn cancel(account: &mut Account, call: &Call) -> Outcome {
    let now = account.now();
    let run = account.run_of(call)?;
    if !run.is_over() {
        run.end("cancelled", Some("cancelled"), "agent_run.cancelled", now);
    }
    Reply::ok(run.to_json())
}

/// `POST /agent/runs/{id}/stop`: the run wraps up and keeps what it has.
pub(crate) fn stop(account: &mut Account, call: &Call) -> Outcome {
    call.need_beta(BETA, "Stopping a run")?;
    let run = account.run_of(call)?;
    if !matches!(run.effort.as_str(), "ultra" | "max") {
        let message = format!(
            "Only runs with effort ultra can be stopped; this one has {}",
            run.effort
        );
        return Err(Failure::new(400, "RUN_NOT_STOPPABLE", message));
    }
    let first = !run.is_over() && !run.stopping;
    run.stopping = first || run.stopping;
    // A stopped run skips to its last step.
    run.stage = if first { run.stage.max(1) } else { run.stage };
    let json = run.to_json();
    if first {
        let step = Step::AgentRun(call.text("runId").to_owned());
        account.unplan(&step);
        let pause = account.span(WRAP_UP);
        account.after(pause, step);
    }
    Reply::ok(json)
}

/// `DELETE /agent/runs/{id}`.
pub(crate) fn delete(account: &mut Account, call: &Call) -> Outcome {
    let id = call.text("runId");
    account.agent_runs.remove(id).ok_or_else(|| unknown(id))?;
    Reply::ok(json!({ "id": id, "object": "agent_run.deleted", "deleted": true }))
}

/// `GET /agent/runs/{id}/events`.
pub(crate) fn list_events(account: &mut Account, call: &Call) -> Outcome {
    let paging = Paging::of(call, 50, 200)?;
    let run = account.run_of(call)?;
    Reply::ok(as_list(paging.page(
        run.events.placed(),
        Order::OldestFirst,
        Event::to_json,
    )))
}
