//! The last requests, for tests that check what a client really sent.

use std::collections::VecDeque;

use axum::http::HeaderMap;
use serde_json::{Map, Value, json};

use super::incoming::IncomingRequest;
use crate::json::set;
use crate::time::iso;

/// Maximum number of requests in the log.
const MAX_ENTRIES: usize = 500;
/// Maximum number of logged bytes of a body.
const MAX_BODY: usize = 64 * 1024;

/// Headers that carry a key; their values are never logged.
const KEY_HEADERS: [&str; 2] = ["x-api-key", "authorization"];

/// The last requests, oldest first.
#[derive(Default)]
pub(crate) struct RequestLog {
    /// Number and JSON of every request.
    entries: VecDeque<(u64, Value)>,
    count: u64,
}

impl RequestLog {
    /// Logs a request and returns its number.
    pub(super) fn push(&mut self, request: &IncomingRequest, operation: Option<&str>) -> u64 {
        self.count += 1;
        if self.entries.len() >= MAX_ENTRIES {
            self.entries.pop_front();
        }
        let entry = entry_json(self.count, request, operation);
        self.entries.push_back((self.count, entry));
        self.count
    }

    /// Adds the status of the response.
    pub(super) fn set_status(&mut self, number: u64, status: u16) {
        let mut entries = self.entries.iter_mut().rev();
        if let Some((_, entry)) = entries.find(|(other, _)| *other == number) {
            set(entry, "status", status);
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the last `limit` requests, oldest first.
    pub(super) fn last(&self, limit: usize) -> Vec<Value> {
        let skip = self.entries.len().saturating_sub(limit);
        let entries = self.entries.iter().skip(skip);
        entries.map(|(_, entry)| entry.clone()).collect()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

fn entry_json(number: u64, request: &IncomingRequest, operation: Option<&str>) -> Value {
    let body: &[u8] = request.body.as_deref().unwrap_or_default();
    json!({
        "number": number,
        "at": iso(request.now),
        "requestId": request.request_id,
        "method": request.method(),
        "path": request.path(),
        "operation": operation,
        "query": request.query,
        "headers": headers_json(&request.parts.headers),
        "hasKey": request.key.is_some(),
        "body": body_json(body),
        "bodyBytes": body.len(),
        "status": null,
    })
}

fn headers_json(headers: &HeaderMap) -> Map<String, Value> {
    headers
        .iter()
        .filter(|(name, _)| !KEY_HEADERS.contains(&name.as_str()))
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.to_string(), value.into())
        })
        .collect()
}

/// Returns JSON as JSON and other text as text; long bodies are truncated.
fn body_json(bytes: &[u8]) -> Value {
    if bytes.is_empty() {
        return Value::Null;
    }
    match bytes.get(..MAX_BODY) {
        Some(start) => String::from_utf8_lossy(start).into(),
        None => {
            serde_json::from_slice(bytes).unwrap_or_else(|_| String::from_utf8_lossy(bytes).into())
        }
    }
}
