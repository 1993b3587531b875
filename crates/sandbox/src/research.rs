//! Research tasks: pending, running, completed.

use serde_json::{Value, json};

use crate::call::{Call, Follow, Outcome, Reply};
use crate::corpus::{Find, Page};
use crate::failure::Failure;
use crate::http::stream;
use crate::search::structured;
use crate::state::{Account, Order, Paging, Step};

/// How long a task takes, in milliseconds at time scale 1.
const SPAN: u64 = 3_000;
/// Steps of a task after its start.
const STAGES: u64 = 5;

/// Sentences of a page that go into a report.
const REPORTED: usize = 20;

/// One research task.
pub(crate) struct Research {
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

impl Research {
    fn to_json(&self, with_events: bool, seed: u64) -> Value {
        let mut task = json!({
            "researchId": self.id,
            "status": self.status,
            "createdAt": self.created,
            "model": self.model,
            "instructions": self.instructions,
            "outputSchema": self.schema,
        });
        let Value::Object(fields) = &mut task else {
            return task;
        };
        if let Some(finished) = self.finished {
            fields.insert("finishedAt".into(), finished.into());
        }
        if self.status == "completed" {
            fields.insert("output".into(), self.output(seed));
            fields.insert(
                "costDollars".into(),
                json!({ "total": 0.12, "numSearches": 4, "numPages": 9, "reasoningTokens": 5200 }),
            );
        }
        if self.status == "failed" {
            fields.insert(
                "error".into(),
                "The instructions asked for a failure".into(),
            );
        }
        if with_events {
            fields.insert("events".into(), self.events.clone().into());
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
        let pages = Find {
            query: self.instructions.clone(),
            count: 4,
            ..Find::default()
        }
        .run(seed);
        let part = |page: &Page| {
            let first: Vec<&str> = page.sentences().into_iter().take(REPORTED).collect();
            format!(
                "## {}\n\n{}\n\nSource: {}\n\n",
                page.title,
                first.join(" "),
                page.url
            )
        };
        let parts: String = pages.iter().map(part).collect();
        format!("# Report (made up)\n\n{}\n\n{parts}", self.instructions)
    }

    fn is_over(&self) -> bool {
        self.finished.is_some()
    }

    fn tell(&mut self, kind: &str, now: u64, details: Value) {
        let mut event = json!({ "eventType": kind, "createdAt": now, "researchId": self.id });
        if let (Value::Object(fields), Value::Object(more)) = (&mut event, details) {
            fields.extend(more);
        }
        self.events.push(event);
    }

    /// One step on; true while there are more.
    fn advance(&mut self, now: u64, seed: u64) -> bool {
        self.stage += 1;
        match self.stage {
            1 => {
                self.status = "running";
                self.tell("plan-definition", now, json!({ "planId": "plan_1" }));
            }
            2 => {
                self.tell("plan-operation", now, json!({ "planId": "plan_1", "operationId": "op_1", "data": { "type": "think", "content": "Deciding what to look up." } }));
                self.tell("plan-output", now, json!({ "planId": "plan_1", "output": { "outputType": "tasks", "tasksInstructions": [self.instructions] } }));
            }
            3 => self.tell("task-definition", now, json!({ "planId": "plan_1", "taskId": "task_1", "instructions": self.instructions })),
            4 => self.tell("task-operation", now, json!({ "planId": "plan_1", "taskId": "task_1", "operationId": "op_2", "data": { "type": "search", "query": self.instructions } })),
            _ if self.instructions.contains("sandbox-fail") => self.finish("failed", now, json!({ "outputType": "failed", "error": "The instructions asked for a failure" })),
            _ => {
                self.tell("task-output", now, json!({ "planId": "plan_1", "taskId": "task_1", "output": { "outputType": "completed", "content": "Done." } }));
                let output = self.output(seed);
                self.finish("completed", now, json!({ "outputType": "completed", "content": output.get("content") }));
            }
        }
        !self.is_over()
    }

    fn finish(&mut self, status: &'static str, now: u64, output: Value) {
        self.status = status;
        self.finished = Some(now);
        self.tell("research-output", now, json!({ "output": output }));
    }
}

impl Account {
    pub(crate) fn step_research(&mut self, id: &str) {
        let (now, seed) = (self.now(), self.data_seed());
        let Some(task) = self.research.get_mut(id) else {
            return;
        };
        if task.advance(now, seed) {
            let pause = self.span(SPAN / STAGES);
            self.after(pause, Step::Research(id.to_owned()));
        }
    }

    /// Events from the given one on, and whether the task is over.
    pub(crate) fn follow_research(&self, id: &str, from: usize) -> (Vec<String>, bool) {
        let Some(task) = self.research.get(id) else {
            return (Vec::new(), true);
        };
        let name = |event: &Value| {
            event
                .get("eventType")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let events = task
            .events
            .iter()
            .skip(from)
            .map(|event| stream::event(None, &name(event), event.clone()));
        (events.collect(), task.is_over())
    }
}

/// `POST /research/v1`.
pub(crate) fn create(account: &mut Account, call: &Call) -> Outcome {
    account.need_room(1)?;
    let instructions = call.text("instructions");
    if instructions.trim().is_empty() {
        return Err(Failure::invalid("instructions must say something"));
    }
    let parsed = structured(call.get("outputSchema"), account.data_seed(), instructions)?;
    let id = account.id("research");
    let mut task = Research {
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
    task.tell(
        "research-definition",
        account.now(),
        json!({ "instructions": instructions }),
    );
    let json = task.to_json(false, account.data_seed());
    account.research.insert(&id, task);
    let pause = account.span(SPAN / STAGES);
    account.after(pause, Step::Research(id));
    Reply::ok(json)
}

/// `GET /research/v1/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> Outcome {
    let id = call.text("researchId");
    let task = account
        .research
        .get(id)
        .ok_or_else(|| Failure::not_found("Research task", id))?;
    if call.flag("stream") {
        return Ok(Reply::Follow(Follow::Research(id.to_owned())));
    }
    Reply::ok(task.to_json(call.flag("events"), account.data_seed()))
}

/// `GET /research/v1`.
pub(crate) fn list(account: &mut Account, call: &Call) -> Outcome {
    let paging = Paging::of(call, 10, 50)?;
    let seed = account.data_seed();
    Reply::ok(
        paging.page(account.research.placed(), Order::NewestFirst, |task| {
            task.to_json(false, seed)
        }),
    )
}
