//! What a request would cost, in the simple shape the official clients read.

use serde_json::{Map, Value, json};

use super::contents::Contents;

/// The bill of one request.
#[derive(Default)]
pub(super) struct Cost {
    search: f64,
    contents: Map<String, Value>,
    total: f64,
}

impl Cost {
    /// A search that found so many results.
    pub(super) fn search(count: usize, deep: bool) -> Self {
        let price = match (deep, count) {
            (false, 0..=25) => 0.005,
            (false, _) => 0.025,
            (true, 0..=25) => 0.015,
            (true, _) => 0.075,
        };
        Cost {
            search: price,
            total: price,
            contents: Map::new(),
        }
    }

    /// Contents of so many pages.
    pub(super) fn add_contents(mut self, contents: &Contents, pages: usize) -> Self {
        let pages = f64::from(u32::try_from(pages).unwrap_or(u32::MAX));
        let parts = [
            ("text", contents.has_text()),
            ("highlights", contents.has_highlights()),
            ("summary", contents.has_summary()),
        ];
        for (name, _) in parts.into_iter().filter(|(_, asked)| *asked) {
            let price = round(pages * 0.001);
            self.total += price;
            self.contents.insert(name.to_owned(), price.into());
        }
        self
    }

    pub(super) fn to_json(&self) -> Value {
        let mut cost = json!({ "total": round(self.total) });
        if let Value::Object(fields) = &mut cost {
            if self.search > 0.0 {
                fields.insert("search".into(), json!({ "neural": self.search }));
            }
            if !self.contents.is_empty() {
                fields.insert("contents".into(), Value::Object(self.contents.clone()));
            }
        }
        cost
    }
}

fn round(value: f64) -> f64 {
    (value * 1_000_000.0).round() / 1_000_000.0
}
