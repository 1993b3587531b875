//! What a request would cost by Exa's published prices, in the shape the official clients read.

use serde_json::{Map, Value, json};

use super::contents::Contents;

/// Results that the price of a search includes.
const INCLUDED: u64 = 10;
/// A further result, or one kind of content of a page, in millionths of a dollar.
const EACH: u64 = 1_000;
/// An answer, in millionths of a dollar.
const ANSWER: u64 = 5_000;

/// The bill of one request, in millionths of a dollar.
#[derive(Default)]
pub(super) struct Cost {
    search: u64,
    contents: Map<String, Value>,
    total: u64,
}

impl Cost {
    /// A search of this type that found so many results.
    pub(super) fn search(kind: &str, results: usize) -> Self {
        let price = match kind {
            "lite" | "instant" => 4_000,
            "deep" | "deep-lite" => 12_000,
            "deep-reasoning" => 15_000,
            _ => 7_000,
        };
        let search = price + number(results).saturating_sub(INCLUDED) * EACH;
        Cost {
            search,
            total: search,
            contents: Map::new(),
        }
    }

    /// An answer.
    pub(super) fn answer() -> Self {
        Cost {
            search: ANSWER,
            total: ANSWER,
            contents: Map::new(),
        }
    }

    /// Contents of the results of a search: their text and highlights are included.
    pub(super) fn with_results(mut self, contents: &Contents, pages: usize) -> Self {
        let below = number(pages) * contents.subpage_count();
        if contents.has_summary() {
            self.add("summary", number(pages) + below);
        }
        if contents.has_text() || (below > 0 && !contents.has_kind()) {
            self.add("text", below);
        }
        if contents.has_highlights() {
            self.add("highlights", below);
        }
        self
    }

    /// Contents of so many pages; text is what a page has unasked.
    pub(super) fn with_pages(mut self, contents: &Contents, pages: usize) -> Self {
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
            let price = pages.saturating_mul(EACH);
            self.total = self.total.saturating_add(price);
            self.contents.insert(kind.to_owned(), dollars(price).into());
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let mut cost = json!({ "total": dollars(self.total) });
        if let Value::Object(fields) = &mut cost {
            if self.search > 0 {
                fields.insert("search".into(), json!({ "neural": dollars(self.search) }));
            }
            if !self.contents.is_empty() {
                fields.insert("contents".into(), Value::Object(self.contents.clone()));
            }
        }
        cost
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Millionths of a dollar as dollars.
#[allow(clippy::cast_precision_loss)]
fn dollars(micro: u64) -> f64 {
    micro as f64 / 1_000_000.0
}
