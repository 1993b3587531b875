//! One page. It follows from its address alone, so that a page found by a search reads the same when
//! its contents are fetched later.

use std::sync::OnceLock;

use serde_json::{Value, json};

use super::find::host_of;
use super::words::{FIRST_NAMES, LAST_NAMES};
use super::{capital, text, words_of};
use crate::percent;
use crate::random::Dice;
use crate::time::{self, DAY};

/// Pages whose address names no day are dated between these days after 1970: 2021 to mid-2026.
const FIRST_DAY: u64 = 18_628;
const LAST_DAY: u64 = 20_634;

/// A page of the made-up web.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) url: String,
    pub(crate) title: String,
    pub(crate) author: Option<String>,
    /// Milliseconds since 1970.
    pub(crate) published: u64,
    /// Written when somebody asks for it: most searches only show titles.
    text: OnceLock<String>,
    dice: Dice,
}

impl Page {
    /// The page at an address; `https` is added to one without a scheme.
    pub(crate) fn at(seed: u64, url: &str) -> Page {
        let url = percent::address(url.trim());
        let url = if url.contains("://") {
            url
        } else {
            format!("https://{url}")
        };
        let mut dice = Dice::new(seed, &["page", &url]);
        let title = title_of(&url);
        let published = day_in(&url).unwrap_or_else(|| dice.between(FIRST_DAY, LAST_DAY) * DAY);
        let author = (!dice.once_in(8)).then(|| person(&mut dice));
        Page {
            url,
            title,
            author,
            published,
            text: OnceLock::new(),
            dice,
        }
    }

    /// The text, in Markdown.
    pub(crate) fn text(&self) -> &str {
        self.text
            .get_or_init(|| text::about(&mut self.dice.clone(), &self.title))
    }

    /// The fields of a result that are there without any contents.
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

    /// The sentences of the paragraphs.
    pub(crate) fn sentences(&self) -> Vec<&str> {
        // Blocks are apart from each other, and those of code have no empty lines.
        let blocks = self.text().split("\n\n").map(str::trim);
        blocks
            .filter(|block| is_prose(block))
            .flat_map(|block| block.split_inclusive(". "))
            .map(str::trim)
            .filter(|sentence| !sentence.is_empty())
            .collect()
    }

    /// The sentences closest to a query, best first, with scores.
    pub(crate) fn excerpts(&self, query: &str, count: usize) -> Vec<(String, f64)> {
        let wanted: Vec<String> = words_of(query)
            .into_iter()
            .filter(|word| word.len() > 3)
            .collect();
        let mut scored: Vec<(usize, &str)> = self
            .sentences()
            .into_iter()
            .map(|sentence| {
                let words = words_of(sentence);
                (
                    wanted.iter().filter(|word| words.contains(word)).count(),
                    sentence,
                )
            })
            .collect();
        // A stable sort keeps sentences of equal weight in reading order.
        scored.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        let places = scored.into_iter().take(count).enumerate();
        places
            .map(|(place, (_, sentence))| (sentence.to_owned(), score(place)))
            .collect()
    }
}

/// Not a heading, a table, a list, a quote or code.
fn is_prose(block: &str) -> bool {
    block.starts_with(char::is_alphanumeric) && !block.starts_with("1. ")
}

/// A falling row of scores: 0.92, 0.89, …
pub(crate) fn score(place: usize) -> f64 {
    let place = u32::try_from(place).unwrap_or(u32::MAX);
    let value = 0.92 / (1.0 + 0.035 * f64::from(place));
    (value * 10_000.0).round() / 10_000.0
}

pub(super) fn person(dice: &mut Dice) -> String {
    format!("{} {}", dice.word(FIRST_NAMES), dice.word(LAST_NAMES))
}

/// The last part of the address that says something, as a title.
fn title_of(url: &str) -> String {
    let path = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = path.split(['?', '#']).next().unwrap_or_default();
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
        capital(&words.join(" "))
    }
}

/// The day in an address such as `https://a.example/2025/03/14/title`, in milliseconds.
fn day_in(url: &str) -> Option<u64> {
    let parts: Vec<&str> = url.split('/').collect();
    parts.windows(3).find_map(|window| match window {
        [year, month, day] => time::parse(&format!("{year}-{month}-{day}")),
        _ => None,
    })
}
