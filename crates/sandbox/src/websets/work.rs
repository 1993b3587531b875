//! The motor of a webset. A tick takes in imports that have become complete, moves searches and
//! enrichments on to where they should be by now, and plans the next tick while there is work left.

use serde_json::Value;

use super::TICK;
use super::items::{self, EnrichmentResult, Item, Source};
use super::searches::{Search, Status};
use super::webset::Webset;
use crate::corpus::entity::{self, Kind};
use crate::corpus::value;
use crate::state::Account;

/// Candidates looked at in one tick beyond those that are needed.
const MOST_MISSES: u64 = 200;
/// From the question about an item to its answer, in milliseconds at time scale 1.
const ENRICHMENT: u64 = 600;
/// Items enriched in one tick, at least.
const LEAST_ENRICHED: usize = 5;

impl Account {
    pub(crate) fn step_webset(&mut self, id: &str) {
        let Some((place, mut webset)) = self.websets.take(id) else {
            return;
        };
        webset.ticking = false;
        let had_work = webset.busy() || !webset.waiting.is_empty();
        self.receive_imports(&mut webset);
        self.run_searches(&mut webset);
        self.enrich(&mut webset);
        settle(&mut webset, self.now());
        if webset.busy() {
            let tick = self.span(TICK);
            self.wake(&mut webset, tick);
        } else if had_work && webset.waiting.is_empty() {
            webset.updated = self.now();
            let json = self.webset_json(&webset);
            self.record("webset.idle", json);
        }
        self.websets.put(place, id, webset);
    }

    fn receive_imports(&mut self, webset: &mut Webset) {
        for id in std::mem::take(&mut webset.waiting) {
            let Some(import) = self.imports.get(&id) else {
                continue;
            };
            match import.status() {
                "completed" => {
                    let all = import.properties(self.data_seed());
                    items::add_all(self, webset, &id, all);
                }
                "failed" => {}
                _ => webset.waiting.push(id),
            }
        }
    }

    fn run_searches(&mut self, webset: &mut Webset) {
        let active: Vec<String> = webset
            .searches
            .values()
            .filter(|search| search.is_active())
            .map(|search| search.id.clone())
            .collect();
        for id in active {
            let Some((place, mut search)) = webset.searches.take(&id) else {
                continue;
            };
            let event = self.run_search(webset, &mut search);
            let json = search.to_json(&webset.id, self.now());
            webset.searches.put(place, &id, search);
            if let Some(event) = event {
                self.record(event, json);
            }
        }
    }

    /// Moves one search on; returns the event to tell about.
    fn run_search(&mut self, webset: &mut Webset, search: &mut Search) -> Option<&'static str> {
        let now = self.now();
        let mut event = None;
        if search.state == Status::Created && now >= search.starts() {
            search.state = Status::Running;
            search.updated = now;
            event = Some("webset.search.updated");
            if search.overrides {
                self.review(webset, search);
            }
        }
        if search.state == Status::Running {
            self.find_items(webset, search);
        }
        if now >= search.ends() {
            search.state = Status::Completed;
            event = Some("webset.search.completed");
        }
        event
    }

    /// An overriding search holds the items that are there against its own criteria and drops, here,
    /// about one in three.
    fn review(&mut self, webset: &mut Webset, search: &Search) {
        let mut dropped = Vec::new();
        for item in webset.items.values_mut() {
            let address = Item::address(&item.properties);
            if self
                .dice(&["review", &search.wanted.query, &address])
                .once_in(3)
            {
                dropped.push(item.id.clone());
            } else {
                item.evaluations = items::evaluations(&search.wanted.criteria, &address);
                item.updated = self.now();
            }
        }
        for item in dropped.iter().filter_map(|id| webset.items.remove(id)) {
            webset.addresses.remove(&Item::address(&item.properties));
        }
    }

    fn find_items(&mut self, webset: &mut Webset, search: &mut Search) {
        let now = self.now();
        let due = search.due(now);
        let mut room = self.room().saturating_sub(webset.size());
        let mut misses = 0;
        while search.found < due && room > 0 && misses < MOST_MISSES {
            let Some(properties) = candidate(search, self.data_seed()) else {
                break;
            };
            search.next += 1;
            search.analyzed = search.next * 3;
            let unwanted = search.excluded.contains(&Item::address(&properties));
            if !unwanted && Item::add(self, webset, &Source::search(search), properties) {
                search.found += 1;
                search.updated = now;
                room -= 1;
            } else {
                misses += 1;
            }
        }
    }

    fn enrich(&mut self, webset: &mut Webset) {
        let old_enough = self.now().saturating_sub(self.span(ENRICHMENT));
        let batch = LEAST_ENRICHED.max(webset.items.len() / 4);
        let due: Vec<String> = webset
            .items
            .values()
            .filter(|item| item.is_due(old_enough))
            .take(batch)
            .map(|item| item.id.clone())
            .collect();
        for id in due {
            self.enrich_item(webset, &id, old_enough);
        }
    }

    /// Fills in what was asked about an item by `then` and is still open.
    fn enrich_item(&mut self, webset: &mut Webset, id: &str, then: u64) {
        let Some(item) = webset.items.get_mut(id) else {
            return;
        };
        let address = Item::address(&item.properties);
        let due = |result: &&mut EnrichmentResult| result.is_due(then);
        for result in item.results.iter_mut().filter(due) {
            let Some(column) = webset.enrichments.get(&result.enrichment) else {
                continue;
            };
            let about = &column.description;
            let mut dice = self.dice(&["enrich", about, &address]);
            let value =
                value::of_format(&mut dice, &result.format, about, &address, &column.options);
            result.value = Some(value);
            result.status = "completed";
        }
        item.updated = self.now();
        let json = item.to_json(&webset.id);
        self.record("webset.item.enriched", json);
    }
}

/// The next candidate: from the scope when there is one, made up otherwise.
fn candidate(search: &Search, seed: u64) -> Option<Value> {
    match &search.pool {
        Some(pool) => pool.get(usize::try_from(search.next).ok()?).cloned(),
        None => Some(entity::found(
            seed,
            Kind::of(&search.wanted.entity),
            &search.wanted.query,
            search.next,
        )),
    }
}

/// Enrichments are complete once nothing is left to look at, and pending again when items come.
fn settle(webset: &mut Webset, now: u64) {
    let searching = webset.searches.values().any(Search::is_active);
    for enrichment in webset
        .enrichments
        .values_mut()
        .filter(|enrichment| enrichment.status != "canceled")
    {
        let open = webset.items.values().flat_map(|item| &item.results);
        let open = open
            .into_iter()
            .any(|result| result.enrichment == enrichment.id && result.status == "pending");
        let status = if open || searching {
            "pending"
        } else {
            "completed"
        };
        if enrichment.status != status {
            enrichment.turn(status, now);
        }
    }
}
