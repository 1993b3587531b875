//! The server over HTTP: the real program, spoken to byte by byte.

mod access;
mod admin;
mod audit;
mod dashboard;
mod eras;
mod errors;
mod guard;
mod input;
mod keys;
mod legacy;
mod limits;
mod limits_of_tokens;
mod many_tokens;
#[cfg(unix)]
mod news;
mod owners;
mod quick_start;
#[cfg(unix)]
mod replicas;
mod secrets;
mod tasks;
mod telemetry;
mod usage;

use serde_json::{Value, json};

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
