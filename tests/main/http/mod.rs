//! The server over HTTP: the real program, spoken to byte by byte.

mod access;
mod admin;
mod audit;
#[cfg(unix)]
mod budget_storm;
#[cfg(unix)]
mod budgets;
#[cfg(unix)]
mod change_notifications;
mod dashboard;
mod early_rejections;
mod errors;
mod file_access;
#[cfg(target_os = "linux")]
mod flooding;
mod host_and_origin;
mod keys;
mod large_responses;
mod legacy;
mod limits;
mod logging;
mod owners;
mod quick_start;
#[cfg(unix)]
mod replicas;
mod resumption;
#[cfg(unix)]
mod run_accounting;
mod secrets;
#[cfg(unix)]
mod store;
#[cfg(unix)]
mod store_epoch;
mod task_input;
mod tasks;
mod telemetry;
mod token_limits;
mod token_pages;
mod token_revocation;
mod upgrade;
mod usage;
mod versions;

use serde_json::{Value, json};

/// Waits until something holds; a failing test waits for long.
pub(super) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("never: {what}");
}

/// The header by which someone shows a token.
pub(super) fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// A search that the sandbox answers.
pub(super) fn search() -> Value {
    json!({"query": "rust", "numResults": 1})
}

/// A request by hand.
pub(super) fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// What streaming clients send.
pub(super) const STREAMS: (&str, &str) = ("accept", "application/json, text/event-stream");
