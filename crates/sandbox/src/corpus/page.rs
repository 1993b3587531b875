//! A page. It is derived from its URL alone, so that a page found by a search has the same contents
//! when it is fetched later.

use std::sync::OnceLock;

use serde_json::{Value, json};

use super::page_query::{host_of, without_scheme};
use super::vocabulary::{FIRST_NAMES, LAST_NAMES};
use super::{capitalize, page_text, words_of};
use crate::percent;
use crate::rng::Rng;
use crate::time::{self, DAY};

/// Publication dates of pages without a date in the URL, in days since 1970: 2021 to mid-2026.
const FIRST_DAY: u64 = 18_628;
const LAST_DAY: u64 = 20_634;

/// A page of the synthetic web.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) url: String,
    pub(crate) title: String,
    pub(crate) author: Option<String>,
    /// Milliseconds since 1970.
    pub(crate) published: u64,
    /// Generated on demand, because most searches return titles only.
    text: OnceLock<String>,
    rng: Rng,
}

impl Page {
    /// Returns the page at a URL; `https` is added to a URL without a scheme.
    pub(crate) fn at(seed: u64, url: &str) -> Page {
        let url = percent::encode_url(url.trim());
        let url = if url.contains("://") {
            url
        } else {
            format!("https://{url}")
        };
        let mut rng = Rng::new(seed, &["page", &url]);
        let title = title_of(&url);
        let published = date_in_url(&url).unwrap_or_else(|| rng.between(FIRST_DAY, LAST_DAY) * DAY);
        let author = (!rng.one_in(8)).then(|| person_name(&mut rng));
        Page {
            url,
            title,
            author,
            published,
            text: OnceLock::new(),
            rng,
        }
    }

    /// Returns the text in Markdown.
    pub(crate) fn text(&self) -> &str {
        self.text
            .get_or_init(|| page_text::generate(&mut self.rng.clone(), &self.title))
    }

    /// Returns the fields of a result without contents.
    pub(crate) fn to_json(&self) -> Value {
        let host = host_of(&self.url);
        json!({
            "id": self.url,
            "url": self.url,
            "title": self.title,
            "publishedDate": time::iso(self.published),
            "author": self.author,
            "image": format!("https://{host}/images/cover.png"),
            "favicon": format!("https://{host}/favicon.ico"),
        })
    }

    /// Returns the sentences of the paragraphs.
    pub(crate) fn sentences(&self) -> Vec<&str> {
        // Empty lines separate blocks; code blocks contain none.
        let blocks = self.text().split("\n\n").map(str::trim);
        blocks
            .filter(|block| is_prose(block))
            .flat_map(|block| block.split_inclusive(". "))
            .map(str::trim)
            .filter(|sentence| !sentence.is_empty())
            .collect()
    }

    /// Returns the sentences that match a query best, with scores, best first.
    pub(crate) fn excerpts(&self, query: &str, count: usize) -> Vec<(String, f64)> {
        let keywords: Vec<String> = words_of(query)
            .into_iter()
            .filter(|word| word.len() > 3)
            .collect();
        let mut scored: Vec<(usize, &str)> = self
            .sentences()
            .into_iter()
            .map(|sentence| {
                let words = words_of(sentence);
                (
                    keywords.iter().filter(|word| words.contains(word)).count(),
                    sentence,
                )
            })
            .collect();
        // The sort is stable, so equally good sentences stay in reading order.
        scored.sort_by_key(|(matches, _)| std::cmp::Reverse(*matches));
        let best = scored.into_iter().take(count).enumerate();
        best.map(|(rank, (_, sentence))| (sentence.to_owned(), score(rank)))
            .collect()
    }
}

/// Whether a block is a paragraph, and not a heading, a table, a list, a quote or code.
fn is_prose(block: &str) -> bool {
    block.starts_with(char::is_alphanumeric) && !block.starts_with("1. ")
}

/// Returns the score of a rank: 0.92, 0.89, …
pub(crate) fn score(rank: usize) -> f64 {
    let rank = u32::try_from(rank).unwrap_or(u32::MAX);
    let value = 0.92 / (1.0 + 0.035 * f64::from(rank));
    (value * 10_000.0).round() / 10_000.0
}

pub(super) fn person_name(rng: &mut Rng) -> String {
    format!("{} {}", rng.choose(FIRST_NAMES), rng.choose(LAST_NAMES))
}

/// Derives a title from the last part of the URL.
fn title_of(url: &str) -> String {
    let path = without_scheme(url)
        .split(['?', '#'])
        .next()
        .unwrap_or_default();
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let host = if parts.is_empty() {
        ""
    } else {
        parts.remove(0)
    };
    let name = parts
        .last()
        .copied()
        .unwrap_or(host.split('.').next().unwrap_or(host));
    let name = name
        .strip_suffix(".pdf")
        .or_else(|| name.strip_suffix(".html"))
        .unwrap_or(name);
    let words = words_of(&percent::decode(name));
    if words.is_empty() {
        host.to_owned()
    } else {
        capitalize(&words.join(" "))
    }
}

/// Returns the date in a URL such as `https://a.example/2025/03/14/title`, in milliseconds.
fn date_in_url(url: &str) -> Option<u64> {
    let parts: Vec<&str> = url.split('/').collect();
    parts.windows(3).find_map(|window| match window {
        [year, month, day] => time::parse(&format!("{year}-{month}-{day}")),
        _ => None,
    })
}
