//! Research tasks: pending, running, completed or failed. Exa has retired this API, so a sandbox serves it
//! only on request.

use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::call::{ApiResponse, ApiResult, Call, LiveStream};
use crate::corpus::{Page, PageQuery};
use crate::http::stream;
use crate::json::{set, text};
use crate::search::structured;
use crate::state::{Account, Order, Paging, Resource, ScheduledStep};

/// Duration of a task, in milliseconds at time scale 1.
const DURATION: u64 = 3_000;
/// Number of steps of a task after its start.
const STAGES: u64 = 5;

/// Number of sentences of a page that a report quotes.
const QUOTED_SENTENCES: usize = 20;

/// One research task.
pub(crate) struct ResearchTask {
    id: String,
    status: &'static str,
    stage: u64,
    model: String,
    instructions: String,
    schema: Value,
    parsed: Option<Value>,
    events: Vec<Value>,
    created: u64,
    finished: Option<u64>,
}

impl Resource for ResearchTask {
    const NAME: &'static str = "Research task";
}

impl ResearchTask {
    fn to_json(&self, with_events: bool, seed: u64) -> Value {
        let mut task = json!({
            "researchId": self.id,
            "status": self.status,
            "createdAt": self.created,
            "model": self.model,
            "instructions": self.instructions,
            "outputSchema": self.schema,
        });
        if let Some(finished) = self.finished {
            set(&mut task, "finishedAt", finished);
        }
        if self.status == "completed" {
            set(&mut task, "output", self.output(seed));
            set(
                &mut task,
                "costDollars",
                json!({ "total": 0.12, "numSearches": 4, "numPages": 9, "reasoningTokens": 5200 }),
            );
        }
        if self.status == "failed" {
            set(&mut task, "error", "The instructions asked for a failure");
        }
        if with_events {
            set(&mut task, "events", self.events.clone());
        }
        task
    }

    fn output(&self, seed: u64) -> Value {
        match &self.parsed {
            Some(parsed) => json!({ "content": parsed.to_string(), "parsed": parsed }),
            None => json!({ "content": self.report(seed) }),
        }
    }

    fn report(&self, seed: u64) -> String {
        let section = |page: &Page| {
            let sentences = page.sentences();
            let quoted = sentences.get(..QUOTED_SENTENCES).unwrap_or(&sentences);
            format!(
                "## {}\n\n{}\n\nSource: {}\n\n",
                page.title,
                quoted.join(" "),
                page.url
            )
        };
        let pages = PageQuery::new(&self.instructions, 4).run(seed);
        let sections: String = pages.iter().map(section).collect();
        format!("# Report (made up)\n\n{}\n\n{sections}", self.instructions)
    }

    fn is_finished(&self) -> bool {
        self.finished.is_some()
    }

    fn add_event(&mut self, kind: &str, now: u64, details: Value) {
        let mut event = json!({ "eventType": kind, "createdAt": now, "researchId": self.id });
        if let (Value::Object(fields), Value::Object(details)) = (&mut event, details) {
            fields.extend(details);
        }
        self.events.push(event);
    }

    fn advance(&mut self, now: u64, seed: u64) {
        self.stage += 1;
        match self.stage {
            1 => {
                self.status = "running";
                self.add_event("plan-definition", now, json!({ "planId": "plan_1" }));
            }
            2 => {
                self.add_event("plan-operation", now, json!({ "planId": "plan_1", "operationId": "op_1", "data": { "type": "think", "content": "Deciding what to look up." } }));
                self.add_event("plan-output", now, json!({ "planId": "plan_1", "output": { "outputType": "tasks", "tasksInstructions": [self.instructions] } }));
            }
            3 => self.add_event("task-definition", now, json!({ "planId": "plan_1", "taskId": "task_1", "instructions": self.instructions })),
            4 => self.add_event("task-operation", now, json!({ "planId": "plan_1", "taskId": "task_1", "operationId": "op_2", "data": { "type": "search", "query": self.instructions } })),
            _ if self.instructions.contains("sandbox-fail") => self.finish("failed", now, json!({ "outputType": "failed", "error": "The instructions asked for a failure" })),
            _ => {
                self.add_event("task-output", now, json!({ "planId": "plan_1", "taskId": "task_1", "output": { "outputType": "completed", "content": "Done." } }));
                let output = self.output(seed);
                self.finish("completed", now, json!({ "outputType": "completed", "content": output.get("content") }));
            }
        }
    }

    fn finish(&mut self, status: &'static str, now: u64, output: Value) {
        self.status = status;
        self.finished = Some(now);
        self.add_event("research-output", now, json!({ "output": output }));
    }
}

/// The error of every request to the retired API.
pub(crate) fn retired() -> ApiError {
    let message = "The research API is retired. Use agent runs, or search with type deep.";
    ApiError::new(410, "RESEARCH_RETIRED", message)
}

/// Advances a task by one stage.
pub(crate) fn advance(account: &mut Account, id: &str) {
    let (now, seed) = (account.now(), account.data_seed());
    let Some(task) = account.research.get_mut(id) else {
        return;
    };
    task.advance(now, seed);
    if !task.is_finished() {
        account.schedule_after(DURATION / STAGES, ScheduledStep::Research(id.to_owned()));
    }
}

/// Returns the events after the first `skip`, and whether the task has finished.
pub(crate) fn live_events(account: &Account, id: &str, skip: usize) -> (Vec<String>, bool) {
    let Some(task) = account.research.get(id) else {
        return (Vec::new(), true);
    };
    let events = task.events.iter().skip(skip);
    let events = events.map(|event| stream::event(None, text(event, "eventType"), event.clone()));
    (events.collect(), task.is_finished())
}

/// `POST /research/v1`.
pub(crate) fn create(account: &mut Account, call: &Call) -> ApiResult {
    account.ensure_capacity(1)?;
    let instructions = call.text("instructions");
    if instructions.trim().is_empty() {
        return Err(ApiError::invalid("instructions must say something"));
    }
    let parsed = structured(call.get("outputSchema"), account.data_seed(), instructions)?;
    let id = account.new_id("research");
    let mut task = ResearchTask {
        id: id.clone(),
        status: "pending",
        stage: 0,
        model: call.opt_text("model").unwrap_or("exa-research").to_owned(),
        instructions: instructions.to_owned(),
        schema: call.or_null("outputSchema"),
        parsed,
        events: Vec::new(),
        created: account.now(),
        finished: None,
    };
    let definition = json!({ "instructions": instructions });
    task.add_event("research-definition", account.now(), definition);
    let json = task.to_json(false, account.data_seed());
    account.research.insert(&id, task);
    account.schedule_after(DURATION / STAGES, ScheduledStep::Research(id));
    ApiResponse::ok(json)
}

/// `GET /research/v1/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> ApiResult {
    let id = call.text("researchId");
    let task = account.research.find(id)?;
    if call.flag("stream") {
        return Ok(ApiResponse::Live(LiveStream::Research(id.to_owned())));
    }
    ApiResponse::ok(task.to_json(call.flag("events"), account.data_seed()))
}

/// `GET /research/v1`.
pub(crate) fn list(account: &mut Account, call: &Call) -> ApiResult {
    let paging = Paging::from_call(call, 10, 50)?;
    let to_json = |task: &ResearchTask| task.to_json(false, account.data_seed());
    ApiResponse::ok(paging.page(account.research.rows(), Order::NewestFirst, to_json))
}
