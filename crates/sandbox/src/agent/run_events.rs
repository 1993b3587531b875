//! The stored events of an agent run: live while it runs, and replayed later.

use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::call::{ApiResponse, ApiResult, Call, list_response};
use crate::http::stream;
use crate::state::{Account, Order, Paging, Table};
use crate::time::iso;

/// The events of one run, oldest first.
#[derive(Default)]
pub(super) struct RunEvents(Table<RunEvent>);

struct RunEvent {
    id: String,
    name: &'static str,
    data: Value,
    at: u64,
}

impl RunEvent {
    fn to_json(&self) -> Value {
        json!({ "id": self.id, "event": self.name, "data": self.data, "createdAt": iso(self.at) })
    }

    fn to_stream(&self) -> String {
        stream::event(Some(&self.id), self.name, self.data.clone())
    }
}

impl RunEvents {
    pub(super) fn add(&mut self, run: &str, name: &'static str, data: Value, at: u64) {
        let id = format!("{run}_{}", self.0.len() + 1);
        let event = RunEvent {
            id: id.clone(),
            name,
            data,
            at,
        };
        self.0.insert(&id, event);
    }

    /// Returns the events after the one with this id, or all of them.
    fn after(&self, id: Option<&str>) -> Result<Vec<String>, ApiError> {
        let Some(id) = id else {
            return Ok(self.0.values().map(RunEvent::to_stream).collect());
        };
        if !self.0.contains(id) {
            return Err(ApiError::invalid(format!(
                "Last-Event-ID: there is no event {id}"
            )));
        }
        let later = self.0.values().skip_while(|event| event.id != id).skip(1);
        Ok(later.map(RunEvent::to_stream).collect())
    }
}

/// Returns the events after the first `skip`, and whether the run has ended.
pub(crate) fn live(account: &Account, id: &str, skip: usize) -> (Vec<String>, bool) {
    let Some(run) = account.agent_runs.get(id) else {
        return (Vec::new(), true);
    };
    let events = run.events.0.values().skip(skip).map(RunEvent::to_stream);
    (events.collect(), run.has_ended())
}

/// `GET /agent/runs/{id}/events`: a page of JSON, or a stream that ends after the last stored event.
pub(crate) fn list(account: &mut Account, call: &Call) -> ApiResult {
    let paging = Paging::from_call(call, 20, 100)?;
    let run = account.agent_runs.find(call.text("runId"))?;
    if call.wants_events {
        let events = run.events.after(call.last_event_id.as_deref())?;
        return Ok(ApiResponse::Events(events));
    }
    list_response(paging.page(run.events.0.rows(), Order::OldestFirst, RunEvent::to_json))
}
