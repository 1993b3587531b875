//! Advances a webset. A tick adds the records of completed imports, brings searches and enrichments
//! up to date, and schedules the next tick while there is work left.

use serde_json::Value;

use super::events;
use super::items::{self, EnrichmentResult, Item, ItemSource};
use super::searches::{SearchStatus, WebsetSearch};
use super::webset::Webset;
use crate::corpus::entity::{self, EntityKind};
use crate::corpus::value;
use crate::state::{Account, Resource};

/// Time between two ticks, in milliseconds at time scale 1.
const INTERVAL: u64 = 250;
/// Maximum number of rejected candidates per search and tick.
const MAX_MISSES: u64 = 200;
/// Time from the request of an enrichment result to its value, in milliseconds at time scale 1.
const ENRICHMENT_DURATION: u64 = 600;
/// Minimum number of items that a tick enriches, if that many are due.
const MIN_ENRICHED: usize = 5;

/// Runs one tick of a webset.
pub(crate) fn run(account: &mut Account, id: &str) {
    let Some((sequence, mut webset)) = account.websets.take(id) else {
        return;
    };
    webset.tick_scheduled = false;
    let had_work = webset.is_busy() || !webset.pending_imports.is_empty();
    receive_imports(account, &mut webset);
    run_searches(account, &mut webset);
    enrich(account, &mut webset);
    update_enrichment_status(&mut webset, account.now());
    if webset.is_busy() {
        let interval = account.scaled(INTERVAL);
        webset.wake(account, interval);
    } else if had_work && webset.pending_imports.is_empty() {
        webset.updated = account.now();
        let json = webset.to_json(account);
        events::record(account, "webset.idle", json);
    }
    account.websets.put(sequence, id, webset);
}

fn receive_imports(account: &mut Account, webset: &mut Webset) {
    for id in std::mem::take(&mut webset.pending_imports) {
        let Some(import) = account.imports.get(&id) else {
            continue;
        };
        match import.status() {
            "completed" => {
                let properties = import.properties(account.data_seed());
                items::add_all(account, webset, &id, properties);
            }
            "failed" => {}
            _ => webset.pending_imports.push(id),
        }
    }
}

fn run_searches(account: &mut Account, webset: &mut Webset) {
    for id in webset.searches.ids_where(WebsetSearch::is_active) {
        let Some((sequence, mut search)) = webset.searches.take(&id) else {
            continue;
        };
        let event = advance_search(account, webset, &mut search);
        let json = search.to_json(&webset.id, account.now());
        webset.searches.put(sequence, &id, search);
        if let Some(event) = event {
            events::record(account, event, json);
        }
    }
}

/// Brings a search up to date and returns the event to record.
fn advance_search(
    account: &mut Account,
    webset: &mut Webset,
    search: &mut WebsetSearch,
) -> Option<&'static str> {
    let now = account.now();
    let mut event = None;
    if search.status == SearchStatus::Created && now >= search.starts_at() {
        search.status = SearchStatus::Running;
        search.updated = now;
        event = Some("webset.search.updated");
        if search.overrides {
            review_items(account, webset, search);
        }
    }
    if search.status == SearchStatus::Running {
        find_items(account, webset, search);
    }
    if now >= search.ends_at() {
        event = Some(search.end(now));
    }
    event
}

/// Evaluates the existing items by the criteria of an overriding search; about one in three fails
/// and is removed.
fn review_items(account: &Account, webset: &mut Webset, search: &WebsetSearch) {
    let urls = &mut webset.urls;
    webset.items.retain_mut(|item| {
        let url = Item::url_of(&item.properties);
        let mut rng = account.rng(&["review", &search.spec.query, &url]);
        if rng.one_in(3) {
            urls.remove(&url);
            return false;
        }
        item.evaluations = items::evaluate(&search.spec.criteria, &url);
        item.updated = account.now();
        true
    });
}

fn find_items(account: &mut Account, webset: &mut Webset, search: &mut WebsetSearch) {
    let now = account.now();
    let expected = search.expected_items(now);
    let mut capacity = account.remaining_capacity().saturating_sub(webset.size());
    let mut misses = 0;
    while search.found < expected && capacity > 0 && misses < MAX_MISSES {
        let Some(properties) = next_candidate(search, account.data_seed()) else {
            break;
        };
        search.next += 1;
        search.analyzed = search.next * 3;
        let is_excluded = search.excluded.contains(&Item::url_of(&properties));
        if !is_excluded && Item::add(account, webset, &ItemSource::Search(search), properties) {
            search.found += 1;
            search.updated = now;
            capacity -= 1;
        } else {
            misses += 1;
        }
    }
}

/// Returns the next candidate: from the scope if there is one, otherwise a generated one.
fn next_candidate(search: &WebsetSearch, seed: u64) -> Option<Value> {
    match &search.pool {
        Some(pool) => pool.get(usize::try_from(search.next).ok()?).cloned(),
        None => {
            let kind = EntityKind::from_json(&search.spec.entity);
            let properties = entity::generate(seed, kind, &search.spec.query, search.next);
            Some(properties)
        }
    }
}

fn enrich(account: &mut Account, webset: &mut Webset) {
    let due = account
        .now()
        .saturating_sub(account.scaled(ENRICHMENT_DURATION));
    let batch = MIN_ENRICHED.max(webset.items.len() / 4);
    let items = webset.items.ids_where(|item| item.is_due(due));
    for id in items.iter().take(batch) {
        enrich_item(account, webset, id, due);
    }
}

/// Fills in the pending results of an item that were requested by `due`.
fn enrich_item(account: &mut Account, webset: &mut Webset, id: &str, due: u64) {
    let Some(item) = webset.items.get_mut(id) else {
        return;
    };
    let url = Item::url_of(&item.properties);
    let is_due = |result: &&mut EnrichmentResult| result.is_due(due);
    for result in item.results.iter_mut().filter(is_due) {
        let Some(enrichment) = webset.enrichments.get(&result.enrichment) else {
            continue;
        };
        let topic = &enrichment.description;
        if enrichment.asks_for_failure() {
            result.status = "failed";
            continue;
        }
        let mut rng = account.rng(&["enrich", topic, &url]);
        let value = value::of_format(&mut rng, &result.format, topic, &url, &enrichment.options);
        result.value = Some(value);
        result.status = "completed";
    }
    item.updated = account.now();
    let json = item.to_json(&webset.id);
    events::record(account, "webset.item.enriched", json);
}

/// Marks enrichments as completed or failed when no result is pending, and as pending when items are added.
fn update_enrichment_status(webset: &mut Webset, now: u64) {
    let is_searching = webset.searches.values().any(WebsetSearch::is_active);
    let enrichments = webset.enrichments.values_mut();
    for enrichment in enrichments.filter(|enrichment| enrichment.status != "canceled") {
        let mut results = webset.items.values().flat_map(|item| &item.results);
        let has_pending =
            results.any(|result| result.enrichment == enrichment.id && result.status == "pending");
        let status = match (has_pending || is_searching, enrichment.asks_for_failure()) {
            (true, _) => "pending",
            (false, true) => "failed",
            (false, false) => "completed",
        };
        if enrichment.status != status {
            enrichment.set_status(status, now);
        }
    }
}
