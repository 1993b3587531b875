//! Search monitors: a search that repeats at an interval and reports to a webhook. Nothing is sent.

use serde_json::{Value, json};

use crate::call::{Call, Outcome, Reply, texts_of, whole};
use crate::corpus::Find;
use crate::failure::Failure;
use crate::search::{Contents, grounding, results, structured};
use crate::state::{Account, Order, Paging, Step, Table};
use crate::time::{DAY, HOUR, iso};

/// How long a run takes, in milliseconds at time scale 1.
const RUN: u64 = 1_500;
/// Runs kept of one monitor.
const MOST_RUNS: usize = 200;

/// One search monitor.
pub(crate) struct SearchMonitor {
    id: String,
    name: Value,
    status: String,
    search: Value,
    trigger: Value,
    schema: Value,
    metadata: Value,
    webhook: Value,
    next_run: Option<u64>,
    runs: Table<Run>,
    created: u64,
    updated: u64,
}

struct Run {
    id: String,
    monitor: String,
    status: &'static str,
    output: Value,
    started: Option<u64>,
    completed: Option<u64>,
    failed: Option<u64>,
    created: u64,
    updated: u64,
}

impl SearchMonitor {
    pub(crate) fn size(&self) -> usize {
        1 + self.runs.len()
    }

    fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "status": self.status,
            "search": self.search,
            "trigger": self.trigger,
            "outputSchema": self.schema,
            "metadata": self.metadata,
            "webhook": self.webhook,
            "nextRunAt": self.next_run.map(iso),
            "createdAt": iso(self.created),
            "updatedAt": iso(self.updated),
        })
    }

    /// The next scheduled run after a moment; none without a schedule, or while it is not active.
    fn schedule(&mut self, after: u64) -> Option<u64> {
        let period = self
            .trigger
            .get("period")
            .and_then(Value::as_str)
            .and_then(period);
        self.next_run = period
            .filter(|_| self.status == "active")
            .map(|period| after + period);
        self.next_run
    }

    /// What a run finds.
    fn output(&self, seed: u64) -> Result<Value, Failure> {
        let query = self
            .search
            .get("query")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if query.contains("sandbox-fail") {
            return Err(Failure::invalid("The query asked for a failure"));
        }
        let count = self.search.get("numResults").and_then(whole).unwrap_or(10);
        let find = Find {
            query: query.to_owned(),
            count: usize::try_from(count).unwrap_or(10),
            include_domains: texts_of(&self.search, "includeDomains"),
            exclude_domains: texts_of(&self.search, "excludeDomains"),
            ..Find::default()
        };
        let pages = find.run(seed);
        let contents = Contents::new(
            self.search.get("contents").and_then(Value::as_object),
            query,
            seed,
        );
        let content = structured(Some(&self.schema), seed, query)?;
        let content = content.unwrap_or_else(|| {
            format!("Found {} made-up pages about {query}.", pages.len()).into()
        });
        Ok(json!({
            "results": results(&contents, &pages, None),
            "grounding": grounding(&content, &pages),
            "content": content,
        }))
    }
}

impl Run {
    fn to_json(&self) -> Value {
        let ended = self.completed.or(self.failed);
        json!({
            "id": self.id,
            "monitorId": self.monitor,
            "status": self.status,
            "output": self.output,
            "failReason": self.failed.map(|_| "search_failed"),
            "startedAt": self.started.map(iso),
            "completedAt": self.completed.map(iso),
            "failedAt": self.failed.map(iso),
            "cancelledAt": null,
            "durationMs": ended.zip(self.started).map(|(end, start)| end - start),
            "createdAt": iso(self.created),
            "updatedAt": iso(self.updated),
        })
    }
}

/// Milliseconds of a period such as `6h` or `7d`.
fn period(text: &str) -> Option<u64> {
    let number = |digits: &str| {
        digits
            .parse::<u64>()
            .ok()
            .filter(|number| (1..=10_000).contains(number))
    };
    match (text.strip_suffix('h'), text.strip_suffix('d')) {
        (Some(hours), _) => Some(number(hours)? * HOUR),
        (_, Some(days)) => Some(number(days)? * DAY),
        _ => None,
    }
}

/// Checks what a schema cannot say.
fn check(call: &Call) -> Result<(), Failure> {
    if let Some(text) = call
        .get("trigger")
        .and_then(|trigger| trigger.get("period"))
        .and_then(Value::as_str)
        && period(text).is_none()
    {
        return Err(Failure::invalid(format!(
            "trigger.period: '{text}' is not a period such as 6h or 7d, of at least 1h"
        )));
    }
    if let Some(url) = call
        .get("webhook")
        .and_then(|webhook| webhook.get("url"))
        .and_then(Value::as_str)
        && !url.starts_with("https://")
    {
        return Err(Failure::invalid("webhook.url must begin with https://"));
    }
    structured(call.get("outputSchema"), 0, "")?;
    let contents = call
        .get("search")
        .and_then(|search| search.get("contents"))
        .and_then(Value::as_object);
    Contents::new(contents, "", 0).check(call)
}

impl Account {
    /// Time for a scheduled run.
    pub(crate) fn step_search_monitor(&mut self, id: &str) {
        let after = self.target();
        let Some(monitor) = self.search_monitors.get_mut(id) else {
            return;
        };
        if monitor.status != "active" {
            return;
        }
        let next = monitor.schedule(after);
        if self.room() > 0 {
            self.start_run(id);
        }
        if let Some(next) = next {
            self.at(next, Step::SearchMonitor(id.to_owned()));
        }
    }

    fn start_run(&mut self, id: &str) {
        let now = self.now();
        let run_id = self.id("run");
        let Some(monitor) = self.search_monitors.get_mut(id) else {
            return;
        };
        let run = Run {
            id: run_id.clone(),
            monitor: id.to_owned(),
            status: "pending",
            output: Value::Null,
            started: None,
            completed: None,
            failed: None,
            created: now,
            updated: now,
        };
        monitor.runs.insert(&run_id, run);
        monitor.runs.shrink_to(MOST_RUNS);
        let start = self.span(RUN / 5);
        self.after(
            start,
            Step::SearchMonitorRun {
                monitor: id.to_owned(),
                run: run_id,
            },
        );
    }

    /// Moves a run on: pending, running, over.
    pub(crate) fn step_search_monitor_run(&mut self, id: &str, run_id: &str) {
        let (now, seed) = (self.now(), self.data_seed());
        let Some(monitor) = self.search_monitors.get_mut(id) else {
            return;
        };
        let pending = monitor
            .runs
            .get(run_id)
            .is_some_and(|run| run.status == "pending");
        let output = if pending {
            Ok(Value::Null)
        } else {
            monitor.output(seed)
        };
        let Some(run) = monitor.runs.get_mut(run_id) else {
            return;
        };
        run.updated = now;
        match output {
            Ok(_) if pending => {
                run.status = "running";
                run.started = Some(now);
                let rest = self.span(RUN);
                self.after(
                    rest,
                    Step::SearchMonitorRun {
                        monitor: id.to_owned(),
                        run: run_id.to_owned(),
                    },
                );
            }
            Ok(output) => {
                run.status = "completed";
                run.completed = Some(now);
                run.output = output;
            }
            Err(_) => {
                run.status = "failed";
                run.failed = Some(now);
            }
        }
    }

    fn search_monitor_of(&mut self, call: &Call) -> Result<&mut SearchMonitor, Failure> {
        let id = call.text("monitorId");
        self.search_monitors
            .get_mut(id)
            .ok_or_else(|| Failure::not_found("Monitor", id))
    }
}

/// `POST /monitors`.
pub(crate) fn create(account: &mut Account, call: &Call) -> Outcome {
    account.need_room(1)?;
    check(call)?;
    let id = account.id("mon");
    let secret = account.secret();
    let mut monitor = SearchMonitor {
        id: id.clone(),
        name: call.or_null("name"),
        status: "active".to_owned(),
        search: call.or_null("search"),
        trigger: call.or_null("trigger"),
        schema: call.or_null("outputSchema"),
        metadata: call.or_null("metadata"),
        webhook: call.or_null("webhook"),
        next_run: None,
        runs: Table::default(),
        created: account.now(),
        updated: account.now(),
    };
    if let Some(next) = monitor.schedule(account.now()) {
        account.at(next, Step::SearchMonitor(id.clone()));
    }
    let mut json = monitor.to_json();
    if let Value::Object(fields) = &mut json {
        fields.insert("webhookSecret".into(), secret.into());
    }
    account.search_monitors.insert(&id, monitor);
    Reply::ok(json)
}

/// `GET /monitors/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> Outcome {
    Reply::ok(account.search_monitor_of(call)?.to_json())
}

/// `GET /monitors`.
pub(crate) fn list(account: &mut Account, call: &Call) -> Outcome {
    let paging = Paging::of(call, 25, 100)?;
    let status = call.opt_text("status");
    let rows = account
        .search_monitors
        .placed()
        .filter(|(_, monitor)| status.is_none_or(|status| monitor.status == status));
    Reply::ok(paging.page(rows, Order::NewestFirst, SearchMonitor::to_json))
}

/// `PATCH /monitors/{id}`.
pub(crate) fn update(account: &mut Account, call: &Call) -> Outcome {
    check(call)?;
    let now = account.now();
    let monitor = account.search_monitor_of(call)?;
    for (name, field) in [
        ("name", &mut monitor.name),
        ("trigger", &mut monitor.trigger),
        ("outputSchema", &mut monitor.schema),
        ("metadata", &mut monitor.metadata),
        ("webhook", &mut monitor.webhook),
    ] {
        if let Some(value) = call.get(name) {
            *field = value.clone();
        }
    }
    if let (Value::Object(search), Some(Value::Object(changes))) =
        (&mut monitor.search, call.get("search"))
    {
        search.extend(changes.clone());
    }
    if let Some(status) = call.opt_text("status") {
        status.clone_into(&mut monitor.status);
    }
    monitor.updated = now;
    let replan = call.get("trigger").is_some() || call.get("status").is_some();
    let next = if replan { monitor.schedule(now) } else { None };
    let json = monitor.to_json();
    if replan {
        let step = Step::SearchMonitor(call.text("monitorId").to_owned());
        account.unplan(&step);
        if let Some(next) = next {
            account.at(next, step);
        }
    }
    Reply::ok(json)
}

/// `DELETE /monitors/{id}`.
pub(crate) fn delete(account: &mut Account, call: &Call) -> Outcome {
    let id = call.text("monitorId");
    let monitor = account
        .search_monitors
        .remove(id)
        .ok_or_else(|| Failure::not_found("Monitor", id))?;
    account.unplan(&Step::SearchMonitor(id.to_owned()));
    Reply::ok(monitor.to_json())
}

/// `POST /monitors/{id}/trigger`.
pub(crate) fn trigger(account: &mut Account, call: &Call) -> Outcome {
    account.need_room(1)?;
    let on = account.search_monitor_of(call)?.status != "disabled";
    if on {
        account.start_run(call.text("monitorId"));
    }
    Reply::ok(json!({ "triggered": on }))
}

/// `GET /monitors/{id}/runs`.
pub(crate) fn list_runs(account: &mut Account, call: &Call) -> Outcome {
    let paging = Paging::of(call, 25, 100)?;
    let monitor = account.search_monitor_of(call)?;
    Reply::ok(paging.page(monitor.runs.placed(), Order::NewestFirst, Run::to_json))
}

/// `GET /monitors/{id}/runs/{runId}`.
pub(crate) fn get_run(account: &mut Account, call: &Call) -> Outcome {
    let id = call.text("runId");
    let monitor = account.search_monitor_of(call)?;
    let run = monitor
        .runs
        .get(id)
        .ok_or_else(|| Failure::not_found("Run", id))?;
    Reply::ok(run.to_json())
}
