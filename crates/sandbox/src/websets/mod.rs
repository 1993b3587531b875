//! The websets API. `work` is the motor: it moves searches, imports and enrichments of a webset on,
//! a little with every tick of the sandbox clock.

mod cron;
mod csv;
pub(crate) mod enrichments;
pub(crate) mod events;
pub(crate) mod imports;
pub(crate) mod items;
pub(crate) mod monitors;
pub(crate) mod preview;
pub(crate) mod searches;
mod sources;
pub(crate) mod webhooks;
pub(crate) mod webset;
mod work;

pub(crate) use events::Event;
pub(crate) use imports::Import;
pub(crate) use monitors::Monitor;
pub(crate) use webhooks::Webhook;
pub(crate) use webset::Webset;

use serde_json::{Value, json};

use crate::call::{list_of, whole};
use crate::corpus::{entity, start_of};

/// How long a search takes, in milliseconds at time scale 1.
const SEARCH: u64 = 3_000;
/// From one look at a webset's work to the next.
const TICK: u64 = 250;

/// What a search is after, as requests and monitors describe it.
#[derive(Clone, Debug)]
struct Wanted {
    query: String,
    entity: Value,
    criteria: Vec<String>,
    count: u64,
}

impl Wanted {
    /// Reads `query`, `entity`, `criteria` and `count`; what is missing is derived from the query.
    fn of(description: &Value, usual_count: u64) -> Self {
        let query = description
            .get("query")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let mut criteria: Vec<String> = list_of(description, "criteria")
            .iter()
            .filter_map(|one| one.get("description")?.as_str())
            .map(str::to_owned)
            .collect();
        if criteria.is_empty() {
            criteria = derived(&query);
        }
        Wanted {
            entity: description
                .get("entity")
                .cloned()
                .unwrap_or_else(|| entity::detect(&query)),
            criteria,
            count: description
                .get("count")
                .and_then(whole)
                .unwrap_or(usual_count)
                .max(1),
            query,
        }
    }
}

/// Criteria for a query that brings none.
fn derived(query: &str) -> Vec<String> {
    let parts = query.split(" with ").flat_map(|part| part.split(" in "));
    let parts: Vec<&str> = parts
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .take(3)
        .collect();
    match parts.as_slice() {
        [] | [_] => vec![start_of(&format!("Matches: {query}"), 1_000)],
        several => several
            .iter()
            .map(|part| start_of(&format!("Matches: {part}"), 1_000))
            .collect(),
    }
}

/// A page that backs a statement.
fn reference(url: &str, title: &str) -> Value {
    json!({ "title": title, "snippet": "A made-up passage that supports this.", "url": url })
}
