//! Batches (beta): many requests in one. Items run a few at a time; the results are a file of JSON lines
//! behind a link of limited lifetime.

mod item;

use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::call::{ApiResponse, ApiResult, BodyParser, Call, list_response};
use crate::json::text;
use crate::state::{Account, LinkTarget, Order, Paging, Resource, ScheduledStep};
use crate::time::{DAY, HOUR, iso};
use item::BatchItem;

/// Beta token of all requests.
const BETA: &str = "batches-2026-06-06";
/// Time between two steps, in milliseconds at time scale 1.
const INTERVAL: u64 = 500;
/// Number of steps in which all items are started.
const STEPS: usize = 4;
/// How long results are kept after the end.
const RETENTION: u64 = 29 * DAY;
/// Lifetime of a link to the results; a newer one is given out in the second half.
const LINK_LIFETIME: u64 = HOUR;

/// One batch.
pub(crate) struct Batch {
    id: String,
    items: Vec<BatchItem>,
    metadata: Value,
    cancelling: bool,
    link: Option<(String, u64)>,
    created: u64,
    ended: Option<u64>,
}

impl Resource for Batch {
    const NAME: &'static str = "Batch";

    fn size(&self) -> usize {
        1 + self.items.len()
    }
}

impl Batch {
    fn status(&self, now: u64) -> &'static str {
        match (self.expires(), self.cancelling) {
            (None, false) => "in_progress",
            (None, true) => "cancelling",
            (Some(_), true) => "cancelled",
            (Some(expires), false) if now >= expires => "expired",
            (Some(_), false) => "completed",
        }
    }

    fn expires(&self) -> Option<u64> {
        self.ended.map(|ended| ended + RETENTION)
    }

    fn has_results(&self, now: u64) -> bool {
        self.expires().is_some_and(|expires| now < expires)
    }

    fn to_json(&self, now: u64, host: &str) -> Value {
        let count = |succeeded: bool| {
            let items = self.items.iter();
            items
                .filter(|item| item.succeeded() == Some(succeeded))
                .count()
        };
        let link = self.link.as_ref().filter(|_| self.has_results(now));
        let link = link.map(|(token, _)| format!("http://{host}/sandbox/results/{token}"));
        json!({
            "id": self.id,
            "object": "batch",
            "status": self.status(now),
            "requestCounts": {
                "total": self.items.len(),
                "completed": count(true),
                "failed": count(false),
            },
            "createdAt": iso(self.created),
            "expiresAt": self.expires().map(iso),
            "endedAt": self.ended.map(iso),
            "resultsUrl": link,
            "metadata": self.metadata,
        })
    }

    /// The error for a request that does not fit the status.
    fn conflict(&self, now: u64, action: &str) -> ApiError {
        let message = format!("A batch that is {} cannot be {action}", self.status(now));
        ApiError::new(409, "INVALID_REQUEST", message)
    }

    /// Starts some of the waiting items and brings the others up to date.
    fn advance(&mut self, account: &mut Account) {
        let mut to_start = self.items.len().div_ceil(STEPS);
        for item in &mut self.items {
            if item.is_waiting() && to_start > 0 && !self.cancelling {
                item.start(account);
                to_start -= 1;
            }
            item.update(account);
        }
        let is_open =
            |item: &BatchItem| item.is_running() || (item.is_waiting() && !self.cancelling);
        if !self.items.iter().any(is_open) {
            self.ended = Some(account.now());
        }
    }
}

/// Advances a batch, unless it has ended.
pub(crate) fn advance(account: &mut Account, id: &str) {
    let Some((sequence, mut batch)) = account.batches.take(id) else {
        return;
    };
    if batch.ended.is_none() {
        batch.advance(account);
        if batch.ended.is_none() {
            account.schedule_after(INTERVAL, ScheduledStep::Batch(id.to_owned()));
        }
    }
    account.batches.put(sequence, id, batch);
}

/// Returns the results as JSON lines; `None` once they have expired.
pub(crate) fn results(account: &Account, id: &str, marker: &str) -> Option<String> {
    let batch = account.batches.get(id)?;
    let lines = batch.items.iter().filter_map(|item| item.line(marker));
    let is_available = batch.has_results(account.now());
    is_available.then(|| lines.map(|line| format!("{line}\n")).collect())
}

fn require_beta(call: &Call) -> Result<(), ApiError> {
    call.require_beta(BETA, "Batches")
}

/// Returns a batch as a response, with a link to its results that is valid for a while.
fn batch_json(account: &mut Account, id: &str, host: &str) -> Result<Value, ApiError> {
    let (now, token) = (account.now(), account.new_id("results"));
    let batch = account.batches.find_mut(id)?;
    let needs_link = batch
        .link
        .as_ref()
        .is_none_or(|(_, until)| now + LINK_LIFETIME / 2 > *until);
    let is_new = batch.has_results(now) && needs_link;
    if is_new {
        batch.link = Some((token.clone(), now + LINK_LIFETIME));
    }
    let json = batch.to_json(now, host);
    if is_new {
        let (batch, expires) = (id.to_owned(), now + LINK_LIFETIME);
        account.register_link(token, LinkTarget::Results { batch, expires });
    }
    Ok(json)
}

/// `POST /batches`.
pub(crate) fn create(account: &mut Account, call: &Call, parse: &BodyParser<'_>) -> ApiResult {
    require_beta(call)?;
    let requests = call.list("requests");
    account.ensure_capacity(1 + requests.len())?;
    for (index, request) in requests.iter().enumerate() {
        let name = text(request, "customId");
        let mut earlier = requests.iter().take(index);
        if earlier.any(|other| text(other, "customId") == name) {
            let message = format!("requests.{index}.customId: '{name}' is used twice");
            return Err(ApiError::new(400, "INVALID_REQUEST_BODY", message));
        }
        if request.pointer("/body/stream").and_then(Value::as_bool) == Some(true) {
            let message = format!("requests.{index}.body.stream: a batch cannot stream");
            return Err(ApiError::new(400, "INVALID_REQUEST_BODY", message));
        }
    }
    let items = requests
        .iter()
        .map(|request| BatchItem::new(request, call, parse));
    let items = items.collect();
    let id = account.new_id("batch");
    let batch = Batch {
        id: id.clone(),
        items,
        metadata: call.metadata(),
        cancelling: false,
        link: None,
        created: account.now(),
        ended: None,
    };
    let json = batch.to_json(account.now(), &call.host);
    account.batches.insert(&id, batch);
    account.schedule_after(INTERVAL, ScheduledStep::Batch(id));
    ApiResponse::ok(json)
}

/// `GET /batches/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> ApiResult {
    require_beta(call)?;
    ApiResponse::ok(batch_json(account, call.text("batchId"), &call.host)?)
}

/// `GET /batches`: newest first; completed ones by the time at which they expire.
pub(crate) fn list(account: &mut Account, call: &Call) -> ApiResult {
    require_beta(call)?;
    for id in account.batches.ids_where(|_| true) {
        batch_json(account, &id, &call.host)?;
    }
    let now = account.now();
    let to_json = |batch: &Batch| batch.to_json(now, &call.host);
    let page = if call.opt_text("status").is_some() {
        let paging = Paging::of_own_list(call, 100, "expiring_")?;
        let rows = account
            .batches
            .rows()
            .filter(|(_, batch)| batch.status(now) == "completed");
        let mut rows: Vec<(u64, &Batch)> = rows
            .map(|(sequence, batch)| (batch.ended.unwrap_or(0) << 20 | sequence, batch))
            .collect();
        rows.sort_by_key(|(key, _)| *key);
        paging.page(rows.into_iter(), Order::OldestFirst, to_json)
    } else {
        let paging = Paging::of_own_list(call, 100, "batch_cursor_")?;
        paging.page(account.batches.rows(), Order::NewestFirst, to_json)
    };
    list_response(page)
}

/// `POST /batches/{id}/cancel`: items that run are finished, the others are not started.
pub(crate) fn cancel(account: &mut Account, call: &Call) -> ApiResult {
    require_beta(call)?;
    let (now, id) = (account.now(), call.text("batchId"));
    let batch = account.batches.find_mut(id)?;
    if batch.ended.is_some() && !batch.cancelling {
        return Err(batch.conflict(now, "canceled"));
    }
    batch.cancelling = true;
    ApiResponse::ok(batch_json(account, id, &call.host)?)
}

/// `DELETE /batches/{id}`.
pub(crate) fn delete(account: &mut Account, call: &Call) -> ApiResult {
    require_beta(call)?;
    let (now, id) = (account.now(), call.text("batchId"));
    let batch = account.batches.find(id)?;
    if batch.ended.is_none() {
        return Err(batch.conflict(now, "deleted"));
    }
    account.batches.delete(id)?;
    ApiResponse::ok(json!({ "id": id, "object": "batch.deleted", "deleted": true }))
}
