//! The last requests, for tests that look at what a client really sent.

use std::collections::VecDeque;

use axum::http::HeaderMap;
use serde_json::{Map, Value, json};

/// Requests remembered.
const KEPT: usize = 500;
/// Bytes of a body remembered.
const LONGEST_BODY: usize = 64 * 1024;

/// Headers that carry a key; their values are never kept.
const KEY_HEADERS: [&str; 2] = ["x-api-key", "authorization"];

/// A request as `GET /sandbox/requests` shows it.
pub(crate) struct Entry {
    number: u64,
    shown: Map<String, Value>,
}

/// The last requests, oldest first.
#[derive(Default)]
pub(crate) struct Log {
    entries: VecDeque<Entry>,
    count: u64,
}

/// What is remembered of a request.
pub(super) struct Seen<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) query: &'a [(String, String)],
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
    pub(super) operation: Option<&'a str>,
    pub(super) has_key: bool,
    pub(super) request_id: &'a str,
    pub(super) at: String,
}

impl Log {
    /// Remembers a request and returns its number.
    pub(super) fn push(&mut self, seen: &Seen<'_>) -> u64 {
        self.count += 1;
        if self.entries.len() >= KEPT {
            self.entries.pop_front();
        }
        self.entries.push_back(Entry {
            number: self.count,
            shown: seen.to_map(self.count),
        });
        self.count
    }

    /// Adds what was answered.
    pub(super) fn answered(&mut self, number: u64, status: u16) {
        if let Some(entry) = self
            .entries
            .iter_mut()
            .rev()
            .find(|entry| entry.number == number)
        {
            entry.shown.insert("status".into(), status.into());
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The last `limit` requests, oldest first.
    pub(super) fn last(&self, limit: usize) -> Vec<Value> {
        let skip = self.entries.len().saturating_sub(limit);
        self.entries
            .iter()
            .skip(skip)
            .map(|entry| Value::Object(entry.shown.clone()))
            .collect()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

impl Seen<'_> {
    fn to_map(&self, number: u64) -> Map<String, Value> {
        let query: Vec<Value> = self
            .query
            .iter()
            .map(|(key, value)| json!([key, value]))
            .collect();
        let shown = json!({
            "number": number,
            "at": self.at,
            "requestId": self.request_id,
            "method": self.method,
            "path": self.path,
            "operation": self.operation,
            "query": query,
            "headers": headers(self.headers),
            "hasKey": self.has_key,
            "body": body(self.body),
            "bodyBytes": self.body.len(),
            "status": null,
        });
        match shown {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }
}

fn headers(headers: &HeaderMap) -> Map<String, Value> {
    headers
        .iter()
        .filter(|(name, _)| !KEY_HEADERS.contains(&name.as_str()))
        .map(|(name, value)| {
            (
                name.to_string(),
                String::from_utf8_lossy(value.as_bytes()).into(),
            )
        })
        .collect()
}

/// JSON as JSON, other text as text; long bodies only by their beginning.
fn body(bytes: &[u8]) -> Value {
    if bytes.is_empty() {
        return Value::Null;
    }
    match bytes.get(..LONGEST_BODY) {
        Some(start) => String::from_utf8_lossy(start).into(),
        None => {
            serde_json::from_slice(bytes).unwrap_or_else(|_| String::from_utf8_lossy(bytes).into())
        }
    }
}
