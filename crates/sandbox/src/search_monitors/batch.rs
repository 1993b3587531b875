//! `POST /monitors/batch`: pauses, resumes or deletes all monitors that match a filter. Unless the request
//! says otherwise, it only reports which ones.

use serde_json::{Value, json};

use super::filter::MonitorFilter;
use super::{SearchMonitor, remove, reschedule};
use crate::call::{ApiResponse, ApiResult, Call};
use crate::json::count;
use crate::state::Account;

/// Number of monitors that one request affects if it does not say.
const DEFAULT_LIMIT: u64 = 50;

/// What happens to the monitors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Delete,
    Pause,
    Unpause,
}

impl Action {
    /// Whether the action changes a monitor.
    fn applies_to(self, monitor: &SearchMonitor) -> bool {
        match self {
            Action::Delete => true,
            Action::Pause => monitor.status == "active",
            Action::Unpause => monitor.status == "paused",
        }
    }
}

pub(crate) fn run(account: &mut Account, call: &Call) -> ApiResult {
    let action = match call.text("action") {
        "delete" => Action::Delete,
        "pause" => Action::Pause,
        _ => Action::Unpause,
    };
    let request = call.or_null("filter");
    let filter = MonitorFilter::new(&request);
    let is_affected =
        |monitor: &SearchMonitor| filter.matches(monitor) && action.applies_to(monitor);
    let mut ids = account.search_monitors.ids_where(is_affected);
    let limit = call.get("limit").and_then(count).unwrap_or(DEFAULT_LIMIT);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = ids.len() > limit;
    ids.truncate(limit);
    let dry_run = call.get("dry_run").and_then(Value::as_bool).unwrap_or(true);
    if !dry_run {
        for id in &ids {
            apply(account, action, id);
        }
    }
    ApiResponse::ok(json!({
        "action": call.text("action"),
        "affected": ids.len(),
        "ids": ids,
        "dry_run": dry_run,
        "has_more": has_more,
    }))
}

fn apply(account: &mut Account, action: Action, id: &str) {
    if action == Action::Delete {
        // The monitor is there: it matched the filter.
        let _ = remove(account, id);
        return;
    }
    let now = account.now();
    if let Some(monitor) = account.search_monitors.get_mut(id) {
        let status = if action == Action::Pause {
            "paused"
        } else {
            "active"
        };
        status.clone_into(&mut monitor.status);
        monitor.updated = now;
    }
    reschedule(account, id);
}
