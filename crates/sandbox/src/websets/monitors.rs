//! Monitors: searches that repeat. The first run starts shortly after the creation; the others
//! follow the cron expression. Runs that the clock jumps over are skipped.

use serde_json::{Value, json};

use super::cron::Cron;
use super::searches::WebsetSearch;
use super::{SEARCH_DURATION, SearchSpec, events};
use crate::api_error::ApiError;
use crate::call::{ApiResponse, ApiResult, Call};
use crate::json::{opt_text, text};
use crate::state::{Account, Order, Paging, Resource, ScheduledStep, Table};
use crate::time::iso;

/// From the creation to the first run, in milliseconds at time scale 1.
const FIRST_RUN: u64 = 1_000;
/// From the creation of a run to its start.
const RUN_START: u64 = 200;
/// Maximum number of runs per monitor.
const MAX_RUNS: usize = 500;

/// One monitor.
pub(crate) struct WebsetMonitor {
    id: String,
    pub(super) webset: String,
    enabled: bool,
    cadence: Value,
    behavior: Value,
    metadata: Value,
    runs: Table<MonitorRun>,
    created: u64,
    updated: u64,
}

struct MonitorRun {
    id: String,
    monitor: String,
    status: &'static str,
    completed: Option<u64>,
    failed: Option<(u64, String)>,
    created: u64,
    updated: u64,
}

impl Resource for WebsetMonitor {
    const NAME: &'static str = "Monitor";

    fn size(&self) -> usize {
        1 + self.runs.len()
    }
}

impl Resource for MonitorRun {
    const NAME: &'static str = "Monitor run";
}

impl WebsetMonitor {
    pub(super) fn to_json(&self, now: u64) -> Value {
        json!({
            "id": self.id,
            "object": "monitor",
            "status": if self.enabled { "enabled" } else { "disabled" },
            "websetId": self.webset,
            "cadence": self.cadence,
            "behavior": self.behavior,
            "lastRun": self.runs.values().next_back().map(MonitorRun::to_json),
            "nextRunAt": self.next_run(now).map(iso),
            "metadata": self.metadata,
            "createdAt": iso(self.created),
            "updatedAt": iso(self.updated),
        })
    }

    fn next_run(&self, after: u64) -> Option<u64> {
        let cron = Cron::parse(text(&self.cadence, "cron"))?;
        cron.next(after).filter(|_| self.enabled)
    }
}

impl MonitorRun {
    fn new(id: &str, monitor: &str, now: u64) -> Self {
        MonitorRun {
            id: id.to_owned(),
            monitor: monitor.to_owned(),
            status: "created",
            completed: None,
            failed: None,
            created: now,
            updated: now,
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "object": "monitor_run",
            "status": self.status,
            "monitorId": self.monitor,
            "type": "search",
            "completedAt": self.completed.map(iso),
            "failedAt": self.failed.as_ref().map(|(at, _)| iso(*at)),
            "failedReason": self.failed.as_ref().map(|(_, reason)| reason),
            "canceledAt": null,
            "createdAt": iso(self.created),
            "updatedAt": iso(self.updated),
        })
    }
}

/// Validates the cron expression and adds the default time zone.
fn parse_cadence(given: &Value) -> Result<Value, ApiError> {
    let cron = text(given, "cron");
    if Cron::parse(cron).is_none() {
        return Err(ApiError::invalid(format!(
            "cadence.cron: '{cron}' is not a cron expression of five fields"
        )));
    }
    let zone = opt_text(given, "timezone").unwrap_or("Etc/UTC");
    Ok(json!({ "cron": cron, "timezone": zone }))
}

/// Adds the default of `config.behavior`.
fn with_default_behavior(given: &Value) -> Value {
    let mut behavior = given.clone();
    if let Some(Value::Object(config)) = behavior.get_mut("config") {
        config.entry("behavior").or_insert_with(|| "append".into());
    }
    behavior
}

/// Creates a run and schedules the next one.
pub(crate) fn start_run(account: &mut Account, id: &str) {
    let now = account.now();
    let run_id = account.new_id("run");
    let has_capacity = account.remaining_capacity() > 0;
    let after = account.request_time();
    let monitor = account.monitors.get_mut(id);
    let Some(monitor) = monitor.filter(|monitor| monitor.enabled) else {
        return;
    };
    let next = monitor.next_run(after);
    if has_capacity {
        let run = MonitorRun::new(&run_id, id, now);
        let json = run.to_json();
        monitor.runs.insert_bounded(&run_id, run, MAX_RUNS);
        events::record(account, "monitor.run.created", json);
        schedule_run(account, RUN_START, id, &run_id);
    }
    if let Some(next) = next {
        account.schedule_at(next, ScheduledStep::Monitor(id.to_owned()));
    }
}

fn schedule_run(account: &mut Account, ms: u64, monitor: &str, run: &str) {
    let (monitor, run) = (monitor.to_owned(), run.to_owned());
    account.schedule_after(ms, ScheduledStep::MonitorRun { monitor, run });
}

/// Advances a run from created to running or failed, or from running to completed.
pub(crate) fn advance_run(account: &mut Account, id: &str, run_id: &str) {
    let now = account.now();
    let Some(monitor) = account.monitors.get_mut(id) else {
        return;
    };
    let config = monitor.behavior.get("config").cloned().unwrap_or_default();
    let webset = monitor.webset.clone();
    let Some(run) = monitor.runs.get_mut(run_id) else {
        return;
    };
    run.updated = now;
    if run.status == "created" {
        run.status = "running";
        match start_search(account, &webset, &config) {
            Ok(()) => schedule_run(account, SEARCH_DURATION + RUN_START, id, run_id),
            Err(error) => {
                let monitor = account.monitors.get_mut(id);
                if let Some(run) = monitor.and_then(|monitor| monitor.runs.get_mut(run_id)) {
                    run.status = "failed";
                    run.failed = Some((now, error.message));
                }
            }
        }
    } else if run.status == "running" {
        run.status = "completed";
        run.completed = Some(now);
        let json = run.to_json();
        events::record(account, "monitor.run.completed", json);
    }
}

fn start_search(account: &mut Account, webset: &str, config: &Value) -> Result<(), ApiError> {
    account.with_webset(webset, |account, webset| {
        let mut spec = SearchSpec::from_request(config);
        if spec.query.is_empty() {
            // Without a query of its own, a monitor repeats the last search of the webset.
            let last = webset.searches.values().next_back();
            spec.query = last
                .map(|search| search.spec.query.clone())
                .unwrap_or_default();
        }
        if spec.query.contains("sandbox-fail") {
            let message = "The query asked for a failure";
            return Err(ApiError::new(500, "SEARCH_FAILED", message));
        }
        WebsetSearch::add(account, webset, spec, config).map(|_| ())
    })
}

/// Reschedules the next run: shortly if there was no run yet, otherwise by the cron expression.
fn reschedule(account: &mut Account, id: &str) {
    let now = account.now();
    let step = ScheduledStep::Monitor(id.to_owned());
    account.cancel_step(&step);
    let monitor = account.monitors.get(id);
    let Some(monitor) = monitor.filter(|monitor| monitor.enabled) else {
        return;
    };
    if monitor.runs.len() == 0 {
        account.schedule_after(FIRST_RUN, step);
    } else if let Some(due) = monitor.next_run(now) {
        account.schedule_at(due, step);
    }
}

/// `POST /websets/v0/monitors`.
pub(crate) fn create(account: &mut Account, call: &Call) -> ApiResult {
    account.ensure_capacity(1)?;
    let cadence = parse_cadence(&call.or_null("cadence"))?;
    let webset = account.webset_id(call.text("websetId"))?;
    let id = account.new_id("monitor");
    let monitor = WebsetMonitor {
        webset,
        enabled: true,
        cadence,
        behavior: with_default_behavior(&call.or_null("behavior")),
        metadata: call.metadata(),
        runs: Table::default(),
        created: account.now(),
        updated: account.now(),
        id: id.clone(),
    };
    let json = monitor.to_json(account.now());
    account.monitors.insert(&id, monitor);
    events::record(account, "monitor.created", json.clone());
    reschedule(account, &id);
    ApiResponse::created(json)
}

/// `GET /websets/v0/monitors/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> ApiResult {
    let monitor = account.monitors.find(call.text("monitorId"))?;
    ApiResponse::ok(monitor.to_json(account.now()))
}

/// `GET /websets/v0/monitors`.
pub(crate) fn list(account: &mut Account, call: &Call) -> ApiResult {
    let paging = Paging::from_call(call, 25, 200)?;
    // A filter by an unknown webset matches nothing.
    let webset = call
        .opt_text("websetId")
        .map(|name| account.webset_id(name).unwrap_or_default());
    let rows = account.monitors.rows().filter(|(_, monitor)| {
        webset
            .as_ref()
            .is_none_or(|webset| monitor.webset == *webset)
    });
    ApiResponse::ok(paging.page(rows, Order::NewestFirst, |monitor| {
        monitor.to_json(account.now())
    }))
}

/// `PATCH /websets/v0/monitors/{id}`.
pub(crate) fn update(account: &mut Account, call: &Call) -> ApiResult {
    let now = account.now();
    let id = call.text("monitorId");
    let cadence = call.get("cadence").map(parse_cadence).transpose()?;
    let monitor = account.monitors.find_mut(id)?;
    if let Some(status) = call.opt_text("status") {
        monitor.enabled = status == "enabled";
    }
    if let Some(cadence) = cadence {
        monitor.cadence = cadence;
    }
    if let Some(behavior) = call.get("behavior") {
        monitor.behavior = with_default_behavior(behavior);
    }
    call.update_metadata(&mut monitor.metadata);
    monitor.updated = now;
    let json = monitor.to_json(now);
    reschedule(account, id);
    events::record(account, "monitor.updated", json.clone());
    ApiResponse::ok(json)
}

/// `DELETE /websets/v0/monitors/{id}`.
pub(crate) fn delete(account: &mut Account, call: &Call) -> ApiResult {
    let id = call.text("monitorId");
    let json = account.monitors.delete(id)?.to_json(account.now());
    account.cancel_step(&ScheduledStep::Monitor(id.to_owned()));
    events::record(account, "monitor.deleted", json.clone());
    ApiResponse::ok(json)
}

/// `GET /websets/v0/monitors/{monitor}/runs`.
pub(crate) fn list_runs(account: &mut Account, call: &Call) -> ApiResult {
    let paging = Paging::from_call(call, 25, 200)?;
    let runs = &account.monitors.find(call.text("monitorId"))?.runs;
    ApiResponse::ok(paging.page(runs.rows(), Order::NewestFirst, MonitorRun::to_json))
}

/// `GET /websets/v0/monitors/{monitor}/runs/{id}`.
pub(crate) fn get_run(account: &mut Account, call: &Call) -> ApiResult {
    let monitor = account.monitors.find(call.text("monitorId"))?;
    ApiResponse::ok(monitor.runs.find(call.text("runId"))?.to_json())
}
