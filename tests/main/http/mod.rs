//! The HTTP server, tested through the real program on the level of bytes.

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
mod idle_clients;
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
mod webset_changes;

use serde_json::{Value, json};

/// Returns the value of the `authorization` header for a token.
pub(super) fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// Returns arguments of a search that succeeds in the sandbox.
pub(super) fn search() -> Value {
    json!({"query": "rust", "numResults": 1})
}

/// Returns a JSON-RPC request.
pub(super) fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// The `accept` header of clients that support event streams.
pub(super) const ACCEPT_EVENTS: (&str, &str) = ("accept", "application/json, text/event-stream");
