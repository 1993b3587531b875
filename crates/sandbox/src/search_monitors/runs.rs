//! Runs of search monitors: pending, running, and then completed or failed.

use exa_mcp_model::MicroDollars;
use serde_json::{Value, json};

use crate::call::{ApiResponse, ApiResult, Call};
use crate::state::{Account, Order, Paging, Resource, ScheduledStep};
use crate::time::iso;

/// Duration of a run, in milliseconds at time scale 1.
const DURATION: u64 = 1_500;
/// Maximum number of runs per monitor.
const MAX_RUNS: usize = 200;
/// Price of a run.
const PRICE: MicroDollars = MicroDollars::new(2_000);

/// One run.
pub(super) struct SearchMonitorRun {
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

impl Resource for SearchMonitorRun {
    const NAME: &'static str = "Run";
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

/// Starts a run.
pub(super) fn start(account: &mut Account, id: &str) {
    let now = account.now();
    let run_id = account.new_id("run");
    if let Some(monitor) = account.search_monitors.get_mut(id) {
        let run = SearchMonitorRun::new(&run_id, id, now);
        monitor.runs.insert_bounded(&run_id, run, MAX_RUNS);
        schedule(account, DURATION / 5, id, &run_id);
    }
}

fn schedule(account: &mut Account, ms: u64, monitor: &str, run: &str) {
    let (monitor, run) = (monitor.to_owned(), run.to_owned());
    account.schedule_after(ms, ScheduledStep::SearchMonitorRun { monitor, run });
}

/// Advances a run from pending to running, or from running to completed or failed.
pub(crate) fn advance(account: &mut Account, id: &str, run_id: &str) {
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
            schedule(account, DURATION, id, run_id);
        }
        Some(Ok(output)) => {
            run.status = "completed";
            run.completed = Some(now);
            run.output = output;
            account.charge("monitor run", PRICE);
        }
        Some(Err(_)) => {
            run.status = "failed";
            run.failed = Some(now);
        }
    }
}

/// `GET /monitors/{id}/runs`.
pub(crate) fn list(account: &mut Account, call: &Call) -> ApiResult {
    let paging = Paging::from_call(call, 25, 100)?;
    let runs = &account.search_monitors.find(call.text("monitorId"))?.runs;
    ApiResponse::ok(paging.page(runs.rows(), Order::NewestFirst, SearchMonitorRun::to_json))
}

/// `GET /monitors/{id}/runs/{runId}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> ApiResult {
    let monitor = account.search_monitors.find(call.text("monitorId"))?;
    ApiResponse::ok(monitor.runs.find(call.text("runId"))?.to_json())
}
