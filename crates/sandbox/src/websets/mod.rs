//! The websets API. `tick` advances the searches, imports and enrichments of a webset.

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
pub(crate) mod team;
pub(crate) mod tick;
pub(crate) mod webhooks;
pub(crate) mod webset;

pub(crate) use events::WebsetEvent;
pub(crate) use imports::Import;
pub(crate) use monitors::WebsetMonitor;
pub(crate) use webhooks::Webhook;
pub(crate) use webset::Webset;

use serde_json::{Value, json};

use crate::corpus::{entity, truncate};
use crate::json;

/// Duration of a search, in milliseconds at time scale 1.
const SEARCH_DURATION: u64 = 3_000;
/// Number of items that a search looks for if the request does not say.
const DEFAULT_COUNT: u64 = 10;

/// The goal of a search, as requests and monitors describe it.
#[derive(Clone, Debug)]
struct SearchSpec {
    query: String,
    entity: Value,
    criteria: Vec<String>,
    count: u64,
}

impl SearchSpec {
    /// Reads `query`, `entity`, `criteria` and `count`; missing parts are derived from the query.
    fn from_request(request: &Value) -> Self {
        let query = json::text(request, "query").to_owned();
        let mut criteria: Vec<String> = json::list(request, "criteria")
            .iter()
            .filter_map(|criterion| json::opt_text(criterion, "description"))
            .map(str::to_owned)
            .collect();
        if criteria.is_empty() {
            criteria = derive_criteria(&query);
        }
        let entity = request.get("entity").cloned();
        let count = request.get("count").and_then(json::count);
        SearchSpec {
            entity: entity.unwrap_or_else(|| entity::detect(&query)),
            criteria,
            count: count.unwrap_or(DEFAULT_COUNT).max(1),
            query,
        }
    }
}

/// Derives criteria from a query that comes without any.
fn derive_criteria(query: &str) -> Vec<String> {
    let parts = query.split(" with ").flat_map(|part| part.split(" in "));
    let mut parts: Vec<&str> = parts
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .take(3)
        .collect();
    if parts.len() < 2 {
        parts = vec![query];
    }
    parts
        .iter()
        .map(|part| truncate(&format!("Matches: {part}"), 1_000))
        .collect()
}

/// A page that supports a statement.
fn reference(url: &str, title: &str) -> Value {
    json!({ "title": title, "snippet": "A made-up passage that supports this.", "url": url })
}
