//! Search monitors: searches that repeat at an interval. Webhooks are stored but never called.

use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::call::{ApiResponse, ApiResult, Call};
use crate::corpus::PageQuery;
use crate::json::{count, opt_text, set, text, texts};
use crate::search::{ContentsOptions, grounding, results, structured};
use crate::state::{Account, Order, Paging, Resource, ScheduledStep, Table};
use crate::time::{iso, parse_period};

/// Duration of a run, in milliseconds at time scale 1.
const RUN_DURATION: u64 = 1_500;
/// Maximum number of runs per monitor.
const MAX_RUNS: usize = 200;

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
    runs: Table<SearchMonitorRun>,
    created: u64,
    updated: u64,
}

struct SearchMonitorRun {
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

impl Resource for SearchMonitor {
    const NAME: &'static str = "Monitor";

    fn size(&self) -> usize {
        1 + self.runs.len()
    }
}

impl Resource for SearchMonitorRun {
    const NAME: &'static str = "Run";
}

impl SearchMonitor {
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

    /// Sets the time of the next run; there is none without a period or while the monitor is not
    /// active.
    fn plan_next_run(&mut self, after: u64) -> Option<u64> {
        let period = opt_text(&self.trigger, "period").and_then(parse_period);
        let period = period.filter(|_| self.status == "active");
        self.next_run = period.map(|period| after + period);
        self.next_run
    }

    /// Executes the search.
    fn search(&self, seed: u64) -> Result<Value, ApiError> {
        let query = text(&self.search, "query");
        if query.contains("sandbox-fail") {
            return Err(ApiError::invalid("The query asked for a failure"));
        }
        let count = self.search.get("numResults").and_then(count).unwrap_or(10);
        let pages = PageQuery {
            include_domains: texts(&self.search, "includeDomains"),
            exclude_domains: texts(&self.search, "excludeDomains"),
            ..PageQuery::new(query, usize::try_from(count).unwrap_or(10))
        }
        .run(seed);
        let contents = ContentsOptions::new(self.search.get("contents"), query, seed);
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

impl SearchMonitorRun {
    fn new(id: &str, monitor: &str, now: u64) -> Self {
        SearchMonitorRun {
            id: id.to_owned(),
            monitor: monitor.to_owned(),
            status: "pending",
            output: Value::Null,
            started: None,
            completed: None,
            failed: None,
            created: now,
            updated: now,
        }
    }

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

/// Validates what the input schema cannot express.
fn validate(call: &Call) -> Result<(), ApiError> {
    let period = call.get("trigger").and_then(|it| opt_text(it, "period"));
    if let Some(text) = period.filter(|text| parse_period(text).is_none()) {
        return Err(ApiError::invalid(format!(
            "trigger.period: '{text}' is not a period such as 6h or 7d, of at least 1h"
        )));
    }
    let url = call.get("webhook").and_then(|it| opt_text(it, "url"));
    if url.is_some_and(|url| !url.starts_with("https://")) {
        return Err(ApiError::invalid("webhook.url must begin with https://"));
    }
    structured(call.get("outputSchema"), 0, "")?;
    let contents = call.get("search").and_then(|it| it.get("contents"));
    ContentsOptions::new(contents, "", 0).validate(call)
}

/// Starts a run and schedules the next one.
pub(crate) fn run_on_schedule(account: &mut Account, id: &str) {
    let after = account.request_time();
    let Some(monitor) = account.search_monitors.get_mut(id) else {
        return;
    };
    if monitor.status != "active" {
        return;
    }
    let next = monitor.plan_next_run(after);
    if account.remaining_capacity() > 0 {
        start_run(account, id);
    }
    if let Some(next) = next {
        account.schedule_at(next, ScheduledStep::SearchMonitor(id.to_owned()));
    }
}

fn start_run(account: &mut Account, id: &str) {
    let now = account.now();
    let run_id = account.new_id("run");
    if let Some(monitor) = account.search_monitors.get_mut(id) {
        let run = SearchMonitorRun::new(&run_id, id, now);
        monitor.runs.insert_bounded(&run_id, run, MAX_RUNS);
        schedule_run(account, RUN_DURATION / 5, id, &run_id);
    }
}

fn schedule_run(account: &mut Account, ms: u64, monitor: &str, run: &str) {
    let (monitor, run) = (monitor.to_owned(), run.to_owned());
    account.schedule_after(ms, ScheduledStep::SearchMonitorRun { monitor, run });
}

/// Advances a run from pending to running, or from running to completed or failed.
pub(crate) fn advance_run(account: &mut Account, id: &str, run_id: &str) {
    let (now, seed) = (account.now(), account.data_seed());
    let Some(monitor) = account.search_monitors.get_mut(id) else {
        return;
    };
    let run = monitor.runs.get(run_id);
    let is_pending = run.is_some_and(|run| run.status == "pending");
    let output = (!is_pending).then(|| monitor.search(seed));
    let Some(run) = monitor.runs.get_mut(run_id) else {
        return;
    };
    run.updated = now;
    match output {
        None => {
            run.status = "running";
            run.started = Some(now);
            schedule_run(account, RUN_DURATION, id, run_id);
        }
        Some(Ok(output)) => {
            run.status = "completed";
            run.completed = Some(now);
            run.output = output;
        }
        Some(Err(_)) => {
            run.status = "failed";
            run.failed = Some(now);
        }
    }
}

/// `POST /monitors`.
pub(crate) fn create(account: &mut Account, call: &Call) -> ApiResult {
    account.ensure_capacity(1)?;
    validate(call)?;
    let id = account.new_id("mon");
    let secret = account.new_secret();
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
    if let Some(next) = monitor.plan_next_run(account.now()) {
        account.schedule_at(next, ScheduledStep::SearchMonitor(id.clone()));
    }
    let mut json = monitor.to_json();
    set(&mut json, "webhookSecret", secret);
    account.search_monitors.insert(&id, monitor);
    ApiResponse::ok(json)
}

/// `GET /monitors/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> ApiResult {
    let monitor = account.search_monitors.find(call.text("monitorId"))?;
    ApiResponse::ok(monitor.to_json())
}

/// `GET /monitors`.
pub(crate) fn list(account: &mut Account, call: &Call) -> ApiResult {
    let paging = Paging::from_call(call, 25, 100)?;
    let status = call.opt_text("status");
    let rows = account
        .search_monitors
        .rows()
        .filter(|(_, monitor)| status.is_none_or(|status| monitor.status == status));
    ApiResponse::ok(paging.page(rows, Order::NewestFirst, SearchMonitor::to_json))
}

/// `PATCH /monitors/{id}`.
pub(crate) fn update(account: &mut Account, call: &Call) -> ApiResult {
    validate(call)?;
    let now = account.now();
    let id = call.text("monitorId");
    let monitor = account.search_monitors.find_mut(id)?;
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
    if call.get("trigger").is_none() && call.get("status").is_none() {
        return ApiResponse::ok(monitor.to_json());
    }
    let next = monitor.plan_next_run(now);
    let json = monitor.to_json();
    let step = ScheduledStep::SearchMonitor(id.to_owned());
    account.cancel_step(&step);
    if let Some(next) = next {
        account.schedule_at(next, step);
    }
    ApiResponse::ok(json)
}

/// `DELETE /monitors/{id}`.
pub(crate) fn delete(account: &mut Account, call: &Call) -> ApiResult {
    let id = call.text("monitorId");
    let monitor = account.search_monitors.delete(id)?;
    account.cancel_step(&ScheduledStep::SearchMonitor(id.to_owned()));
    ApiResponse::ok(monitor.to_json())
}

/// `POST /monitors/{id}/trigger`.
pub(crate) fn trigger(account: &mut Account, call: &Call) -> ApiResult {
    account.ensure_capacity(1)?;
    let id = call.text("monitorId");
    let enabled = account.search_monitors.find(id)?.status != "disabled";
    if enabled {
        start_run(account, id);
    }
    ApiResponse::ok(json!({ "triggered": enabled }))
}

/// `GET /monitors/{id}/runs`.
pub(crate) fn list_runs(account: &mut Account, call: &Call) -> ApiResult {
    let paging = Paging::from_call(call, 25, 100)?;
    let runs = &account.search_monitors.find(call.text("monitorId"))?.runs;
    ApiResponse::ok(paging.page(runs.rows(), Order::NewestFirst, SearchMonitorRun::to_json))
}

/// `GET /monitors/{id}/runs/{runId}`.
pub(crate) fn get_run(account: &mut Account, call: &Call) -> ApiResult {
    let monitor = account.search_monitors.find(call.text("monitorId"))?;
    ApiResponse::ok(monitor.runs.find(call.text("runId"))?.to_json())
}
