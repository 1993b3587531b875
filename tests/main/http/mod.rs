//! The server over HTTP: the real program, spoken to byte by byte.

mod access;
mod admin;
mod audit;
#[cfg(unix)]
mod budget_storm;
#[cfg(unix)]
mod budgets;
mod dashboard;
mod early_refusals;
mod eras;
mod errors;
mod files;
#[cfg(target_os = "linux")]
mod floods;
mod guard;
mod input;
mod keys;
mod large_responses;
mod legacy;
mod limits;
mod limits_of_tokens;
mod log;
mod many_tokens;
#[cfg(unix)]
mod news;
mod owners;
mod quick_start;
#[cfg(unix)]
mod replicas;
mod resuming;
#[cfg(unix)]
mod run_accounting;
mod secrets;
#[cfg(unix)]
mod store;
#[cfg(unix)]
mod store_epoch;
mod tasks;
mod telemetry;
mod token_end;
mod upgrade;
mod usage;

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
