//! The cost of a request by Exa's published prices, in the format that the official clients read.

use exa_mcp_model::MicroDollars;
use serde_json::{Map, Value, json};

use super::contents::ContentsOptions;
use crate::json::set;

/// Number of results that the price of a search includes.
const INCLUDED_RESULTS: u64 = 10;
/// Price of an additional result, or of one kind of content of a page, in millionths of a dollar.
const UNIT_PRICE: u64 = 1_000;
/// Price of an answer, in millionths of a dollar.
const ANSWER_PRICE: u64 = 5_000;

/// The cost of one request, in millionths of a dollar.
#[derive(Default)]
pub(super) struct Cost {
    search: u64,
    /// Whether only the total is reported.
    total_only: bool,
    summary: u64,
    contents: Map<String, Value>,
    total: u64,
}

impl Cost {
    /// The cost of a search of this type with this number of results.
    pub(super) fn search(search_type: &str, results: usize) -> Self {
        let price = match search_type {
            "lite" | "instant" => 4_000,
            "deep" | "deep-lite" => 12_000,
            "deep-reasoning" => 15_000,
            _ => 7_000,
        };
        let search = price + number(results).saturating_sub(INCLUDED_RESULTS) * UNIT_PRICE;
        Cost {
            search,
            total_only: search_type.starts_with("deep"),
            total: search,
            ..Cost::default()
        }
    }

    /// The cost of an answer.
    pub(super) fn answer() -> Self {
        Cost {
            search: ANSWER_PRICE,
            total: ANSWER_PRICE,
            ..Cost::default()
        }
    }

    /// Adds the contents of search results; the price of the search includes their text and highlights.
    pub(super) fn with_results(mut self, contents: &ContentsOptions, pages: usize) -> Self {
        let subpages = number(pages) * contents.subpage_count();
        if contents.has_summary() {
            self.summary = (number(pages) + subpages).saturating_mul(UNIT_PRICE);
            self.total = self.total.saturating_add(self.summary);
        }
        if contents.has_text() || (subpages > 0 && !contents.has_kind()) {
            self.add("text", subpages);
        }
        if contents.has_highlights() {
            self.add("highlights", subpages);
        }
        self
    }

    /// Adds the contents of pages; text is the default.
    pub(super) fn with_pages(mut self, contents: &ContentsOptions, pages: usize) -> Self {
        let pages = number(pages) * (1 + contents.subpage_count());
        if contents.has_text() || !contents.has_kind() {
            self.add("text", pages);
        }
        if contents.has_highlights() {
            self.add("highlights", pages);
        }
        if contents.has_summary() {
            self.add("summary", pages);
        }
        self
    }

    fn add(&mut self, kind: &str, pages: u64) {
        if pages > 0 {
            let price = pages.saturating_mul(UNIT_PRICE);
            self.total = self.total.saturating_add(price);
            self.contents.insert(kind.to_owned(), dollars(price).into());
        }
    }

    pub(super) fn total(&self) -> MicroDollars {
        MicroDollars::new(self.total)
    }

    pub(super) fn to_json(&self) -> Value {
        let mut cost = json!({ "total": dollars(self.total) });
        if self.total_only {
            return cost;
        }
        if self.summary > 0 {
            set(&mut cost, "summary", dollars(self.summary));
        }
        if self.search > 0 {
            set(
                &mut cost,
                "search",
                json!({ "neural": dollars(self.search) }),
            );
        }
        if !self.contents.is_empty() {
            set(&mut cost, "contents", self.contents.clone());
        }
        cost
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn dollars(micro: u64) -> f64 {
    MicroDollars::new(micro).dollars()
}
