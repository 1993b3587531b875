//! Events: snapshots of objects at the time they changed.

use serde_json::{Value, json};

use super::webhooks;
use crate::call::{ApiResponse, ApiResult, Call};
use crate::state::{Account, Order, Paging, Resource};
use crate::time::iso;

/// Maximum number of events; each holds a whole object.
const MAX_EVENTS: usize = 5_000;

/// One event.
pub(crate) struct WebsetEvent {
    pub(super) id: String,
    pub(super) event_type: &'static str,
    data: Value,
    pub(super) created: u64,
}

impl Resource for WebsetEvent {
    const NAME: &'static str = "Event";
}

impl WebsetEvent {
    fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "object": "event",
            "type": self.event_type,
            "data": self.data,
            "createdAt": iso(self.created),
        })
    }
}

/// Records an event and delivers it to the webhooks that subscribe to it.
pub(super) fn record(account: &mut Account, event_type: &'static str, data: Value) {
    let id = account.new_id("event");
    let event = WebsetEvent {
        id: id.clone(),
        event_type,
        data,
        created: account.now(),
    };
    webhooks::deliver(account, &event);
    account.events.insert_bounded(&id, event, MAX_EVENTS);
}

/// `GET /websets/v0/events`.
pub(crate) fn list(account: &mut Account, call: &Call) -> ApiResult {
    let paging = Paging::from_call(call, 25, 200)?;
    let types = call.texts("types");
    let (before, after) = (call.time("createdBefore")?, call.time("createdAfter")?);
    let rows = account.events.rows().filter(|(_, event)| {
        (types.is_empty() || types.contains(&event.event_type))
            && before.is_none_or(|before| event.created <= before)
            && after.is_none_or(|after| event.created >= after)
    });
    ApiResponse::ok(paging.page(rows, Order::NewestFirst, WebsetEvent::to_json))
}

/// `GET /websets/v0/events/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> ApiResult {
    ApiResponse::ok(account.events.find(call.text("eventId"))?.to_json())
}
