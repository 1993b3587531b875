//! Events: what happened, as it was when it happened.

use serde_json::{Value, json};

use crate::call::{Call, Outcome, Reply};
use crate::failure::Failure;
use crate::state::{Account, Order, Paging};
use crate::time::iso;

/// Events kept; they hold whole objects.
const MOST_EVENTS: usize = 5_000;

/// One event.
pub(crate) struct Event {
    pub(super) id: String,
    pub(super) kind: &'static str,
    data: Value,
    pub(super) created: u64,
}

impl Event {
    fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "object": "event",
            "type": self.kind,
            "data": self.data,
            "createdAt": iso(self.created),
        })
    }
}

impl Account {
    /// Writes down that something happened, and tells the webhooks that asked for it.
    pub(crate) fn record(&mut self, kind: &'static str, data: Value) {
        let event = Event {
            id: self.id("event"),
            kind,
            data,
            created: self.now(),
        };
        self.deliver(&event);
        let id = event.id.clone();
        self.events.insert(&id, event);
        self.events.shrink_to(MOST_EVENTS);
    }
}

/// `GET /websets/v0/events`.
pub(crate) fn list(account: &mut Account, call: &Call) -> Outcome {
    let paging = Paging::of(call, 25, 200)?;
    let types: Vec<&str> = call
        .list("types")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let (before, after) = (call.time("createdBefore")?, call.time("createdAfter")?);
    let rows = account.events.placed().filter(|(_, event)| {
        (types.is_empty() || types.contains(&event.kind))
            && before.is_none_or(|before| event.created <= before)
            && after.is_none_or(|after| event.created >= after)
    });
    Reply::ok(paging.page(rows, Order::NewestFirst, Event::to_json))
}

/// `GET /websets/v0/events/{id}`.
pub(crate) fn get(account: &mut Account, call: &Call) -> Outcome {
    let id = call.text("eventId");
    let event = account
        .events
        .get(id)
        .ok_or_else(|| Failure::not_found("Event", id))?;
    Reply::ok(event.to_json())
}
