//! Monitors: searches that repeat. The first run comes shortly after creation, so that one can be
//! seen; the others keep to the cron expression. Runs missed while the clock jumps are not made up
//! for.

use serde_json::{Value, json};

use super::cron::Cron;
use super::searches::Search;
use super::{SEARCH, Wanted};
use crate::call::{Call, Outcome, Reply};
use crate::failure::Failure;
use crate::state::{Account, Order, Paging, Step, Table};
use crate::time::iso;

/// From creation to the first run, and from a run's creation to its start.
const FIRST_RUN: u64 = 1_000;
const START: u64 = 200;
/// Runs kept of one monitor.
const MOST_RUNS: usize = 500;

/// One monitor.
pub(crate) struct Monitor {
    id: String,
    pub(super) webset: String,
    enabled: bool,
    cadence: Value,
    behavior: Value,
    metadata: Value,
    runs: Table<Run>,
    created: u64,
    updated: u64,
}

struct Run {
    id: String,
    monitor: String,
    status: &'static str,
    completed: Option<u64>,
    failed: Option<(u64, String)>,
    created: u64,
    updated: u64,
}

impl Monitor {
    pub(crate) fn size(&self) -> usize {
        1 + self.runs.len()
    }

    pub(super) fn to_json(&self, now: u64) -> Value {
        json!({
            "id": self.id,
            "object": "monitor",
            "status": if self.enabled { "enabled" } else { "disabled" },
            "websetId": self.webset,
            "cadence": self.cadence,
            "behavior": self.behavior,
            "lastRun": self.runs.values().next_back().map(Run::to_json),
            "nextRunAt": self.next_run(now).map(iso),
            "metadata": self.metadata,
            "createdAt": iso(self.created),
            "updatedAt": iso(self.updated),
        })
    }

    fn next_run(&self, after: u64) -> Option<u64> {
        let cron = self
            .cadence
            .get("cron")
            .and_then(Value::as_str)
            .and_then(Cron::parse)?;
        cron.next(after).filter(|_| self.enabled)
    }

    fn config(&self) -> Value {
        self.behavior.get("config").cloned().unwrap_or_default()
    }
}

impl Run {
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

/// Checks what a schema cannot say, and fills in defaults.
fn cadence(given: &Value) -> Result<Value, Failure> {
    let text = given
        .get("cron")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if Cron::parse(text).is_none() {
        return Err(Failure::invalid(format!(
            "cadence.cron: '{text}' is not a cron expression of five fields"
        )));
    }
    let zone = given
        .get("timezone")
        .and_then(Value::as_str)
        .unwrap_or("Etc/UTC");
    Ok(json!({ "cron": text, "timezone": zone }))
}

fn behavior(given: &Value) -> Value {
    let mut behavior = given.clone();
    if let Some(Value::Object(config)) = behavior.get_mut("config") {
        config.entry("behavior").or_insert_with(|| "append".into());
    }
    behavior
}

impl Account {
    /// Time for a run.
    pub(crate) fn step_monitor(&mut self, id: &str) {
        let now = self.now();
        let run_id = self.id("run");
        let full = self.room() == 0;
        let after = self.target();
        let Some(monitor) = self.monitors.get_mut(id).filter(|monitor| monitor.enabled) else {
            return;
        };
        let next = monitor.next_run(after);
        if !full {
            let run = Run {
                id: run_id.clone(),
                monitor: id.to_owned(),
                status: "created",
                completed: None,
                failed: None,
                created: now,
                updated: now,
            };
            let json = run.to_json();
            monitor.runs.insert(&run_id, run);
            monitor.runs.shrink_to(MOST_RUNS);
            self.record("monitor.run.created", json);
            let start = self.span(START);
            self.after(
                start,
                Step::MonitorRun {
                    monitor: id.to_owned(),
                    run: run_id,
                },
            );
        }
        if let Some(next) = next {
            self.at(next, Step::Monitor(id.to_owned()));
        }
    }

    /// Moves a run on: created, running, over.
    pub(crate) fn step_monitor_run(&mut self, id: &str, run_id: &str) {
        let now = self.now();
        let Some(monitor) = self.monitors.get_mut(id) else {
            return;
        };
        let (webset, config) = (monitor.webset.clone(), monitor.config());
        let Some(run) = monitor.runs.get_mut(run_id) else {
            return;
        };
        run.updated = now;
        if run.status == "created" {
            run.status = "running";
            let started = self.start_search(&webset, &config);
            if let Some(run) = self
                .monitors
                .get_mut(id)
                .and_then(|monitor| monitor.runs.get_mut(run_id))
            {
                match started {
                    Err(failure) => {
                        run.status = "failed";
                        run.failed = Some((now, failure.message));
                    }
                    Ok(()) => {
                        let rest = self.span(SEARCH + START);
                        self.after(
                            rest,
                            Step::MonitorRun {
                                monitor: id.to_owned(),
                                run: run_id.to_owned(),
                            },
                        );
                    }
                }
            }
        } else if run.status == "running" {
            run.status = "completed";
            run.completed = Some(now);
            let json = run.to_json();
            self.record("monitor.run.completed", json);
        }
    }

    /// Plans the next run anew: soon when there was none yet, else by the cron expression.
    fn plan_monitor(&mut self, id: &str) {
        let now = self.now();
        let first = now + self.span(FIRST_RUN);
        self.unplan(&Step::Monitor(id.to_owned()));
        let Some(monitor) = self.monitors.get(id).filter(|monitor| monitor.enabled) else {
            return;
        };
        let due = if monitor.runs.len() == 0 {
            Some(first)
        } else {
            monitor.next_run(now)
        };
        if let Some(due) = due {
            self.at(due, Step::Monitor(id.to_owned()));
        }
    }

    fn start_search(&mut self, webset: &str, config: &Value) -> Result<(), Failure> {
        self.with_webset(webset, |account, webset| {
            let mut wanted = Wanted::of(config, 10);
            if wanted.query.is_empty() {
                // Without a query of its own a monitor repeats the webset's last search.
                wanted.query = webset
                    .searches
                    .values()
                    .next_back()
                    .map(|search| search.wanted.query.clone())
                    .unwrap_or_default();
            }
            if wanted.query.contains("sandbox-fail") {
                return Err(Failure::new(
                    500,
                    "SEARCH_FAILED",
                    "The query asked for a failure",
                ));
            }
            Search::add(account, webset, wanted, config).map(|_| ())
        })
    }

    fn monitor_of(&mut self, call: &Call) -> Result<&mut Monitor, Failure> {
        let id = call.text("monitorId");
        self.monitors
            .get_mut(id)
            .ok_or_else(|| Failure::not_found("Monitor", id))
    }
}

/// `POST /websets/v0/monitors`.
pub(crate) fn create(account: &mut Account, call: &Call) -> Outcome {
    account.need_room(1)?;
    let cadence = cadence(&call.or_null("cadence"))?;
    let webset = account.webset_id(call.text("websetId"))?;
    let id = account.id("monitor");
    let monitor = Monitor {
        webset,
        enabled: true,
        cadence,
        behavior: behavior(&call.or_null("behavior")),
        metadata: call.metadata(),
        runs: Table::default(),
        created: account.now(),
        updated: account.now(),
        id: id.clone(),
    };
    let json = monitor.to_json(account.now());
    account.monitors.insert(&id, monitor);
    account.record("monitor.created", json.clone());
    account.plan_monitor(&id);
    Reply::created(json)
}

/// `GET /websets/v0/monitors/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> Outcome {
    let now = account.now();
    Reply::ok(account.monitor_of(call)?.to_json(now))
}

/// `GET /websets/v0/monitors`.
pub(crate) fn list(account: &mut Account, call: &Call) -> Outcome {
    let paging = Paging::of(call, 25, 200)?;
    // A filter by a webset that does not exist finds nothing.
    let webset = call
        .opt_text("websetId")
        .map(|name| account.webset_id(name).unwrap_or_default());
    let rows = account.monitors.placed().filter(|(_, monitor)| {
        webset
            .as_ref()
            .is_none_or(|webset| monitor.webset == *webset)
    });
    Reply::ok(paging.page(rows, Order::NewestFirst, |monitor| {
        monitor.to_json(account.now())
    }))
}

/// `PATCH /websets/v0/monitors/{id}`.
pub(crate) fn update(account: &mut Account, call: &Call) -> Outcome {
    let now = account.now();
    let given = call.get("cadence").map(cadence).transpose()?;
    let monitor = account.monitor_of(call)?;
    if let Some(status) = call.opt_text("status") {
        monitor.enabled = status == "enabled";
    }
    if let Some(given) = given {
        monitor.cadence = given;
    }
    if let Some(given) = call.get("behavior") {
        monitor.behavior = behavior(given);
    }
    if call.get("metadata").is_some() {
        monitor.metadata = call.metadata();
    }
    monitor.updated = now;
    let json = monitor.to_json(now);
    account.plan_monitor(call.text("monitorId"));
    account.record("monitor.updated", json.clone());
    Reply::ok(json)
}

/// `DELETE /websets/v0/monitors/{id}`.
pub(crate) fn delete(account: &mut Account, call: &Call) -> Outcome {
    let id = call.text("monitorId");
    let monitor = account
        .monitors
        .remove(id)
        .ok_or_else(|| Failure::not_found("Monitor", id))?;
    let json = monitor.to_json(account.now());
    account.unplan(&Step::Monitor(id.to_owned()));
    account.record("monitor.deleted", json.clone());
    Reply::ok(json)
}

/// `GET /websets/v0/monitors/{monitor}/runs`.
pub(crate) fn list_runs(account: &mut Account, call: &Call) -> Outcome {
    let paging = Paging::of(call, 25, 200)?;
    let monitor = account.monitor_of(call)?;
    Reply::ok(paging.page(monitor.runs.placed(), Order::NewestFirst, Run::to_json))
}

/// `GET /websets/v0/monitors/{monitor}/runs/{id}`.
pub(crate) fn get_run(account: &mut Account, call: &Call) -> Outcome {
    let id = call.text("runId");
    let monitor = account.monitor_of(call)?;
    let run = monitor
        .runs
        .get(id)
        .ok_or_else(|| Failure::not_found("Monitor run", id))?;
    Reply::ok(run.to_json())
}
