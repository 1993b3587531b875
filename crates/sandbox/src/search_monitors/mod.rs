//! Search monitors: searches that repeat at an interval. Webhooks are stored but never called.

pub(crate) mod batch;
mod filter;
pub(crate) mod runs;

use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::call::{ApiResponse, ApiResult, Call};
use crate::corpus::PageQuery;
use crate::json::{count, opt_text, set, text, texts};
use crate::search::{ContentsOptions, grounding, results, structured};
use crate::state::{Account, Order, Paging, Resource, ScheduledStep, Table};
use crate::time::{iso, parse_period};
use filter::MonitorFilter;
use runs::SearchMonitorRun;

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

impl Resource for SearchMonitor {
    const NAME: &'static str = "Monitor";

    fn size(&self) -> usize {
        1 + self.runs.len()
    }
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
        runs::start(account, id);
    }
    if let Some(next) = next {
        account.schedule_at(next, ScheduledStep::SearchMonitor(id.to_owned()));
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
    ApiResponse::created(json)
}

/// `GET /monitors/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> ApiResult {
    let monitor = account.search_monitors.find(call.text("monitorId"))?;
    ApiResponse::ok(monitor.to_json())
}

/// `GET /monitors`.
pub(crate) fn list(account: &mut Account, call: &Call) -> ApiResult {
    let paging = Paging::from_call(call, 50, 100)?;
    let filter = Value::Object(call.args.clone());
    let filter = MonitorFilter::new(&filter);
    let rows = account.search_monitors.rows();
    let rows = rows.filter(|(_, monitor)| filter.matches(monitor));
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
    if call.get("trigger").is_some() || call.get("status").is_some() {
        reschedule(account, id);
    }
    get(account, call)
}

/// Schedules the next run anew, after a change of trigger or status.
fn reschedule(account: &mut Account, id: &str) {
    let now = account.now();
    let step = ScheduledStep::SearchMonitor(id.to_owned());
    account.cancel_step(&step);
    let monitor = account.search_monitors.get_mut(id);
    if let Some(next) = monitor.and_then(|monitor| monitor.plan_next_run(now)) {
        account.schedule_at(next, step);
    }
}

/// Deletes a monitor, with its runs.
fn remove(account: &mut Account, id: &str) -> Result<SearchMonitor, ApiError> {
    let monitor = account.search_monitors.delete(id)?;
    account.cancel_step(&ScheduledStep::SearchMonitor(id.to_owned()));
    Ok(monitor)
}

/// `DELETE /monitors/{id}`.
pub(crate) fn delete(account: &mut Account, call: &Call) -> ApiResult {
    ApiResponse::ok(remove(account, call.text("monitorId"))?.to_json())
}

/// `POST /monitors/{id}/trigger`.
pub(crate) fn trigger(account: &mut Account, call: &Call) -> ApiResult {
    account.ensure_capacity(1)?;
    let id = call.text("monitorId");
    let enabled = account.search_monitors.find(id)?.status != "disabled";
    if enabled {
        runs::start(account, id);
    }
    ApiResponse::ok(json!({ "triggered": enabled }))
}
