//! Finding pages: an endless row of candidates that follows from the query, cut down by the filters.

use std::collections::HashSet;

use super::page::Page;
use super::words::{
    COMPANY_ENDS, COMPANY_STARTS, FIRST_NAMES, LAST_NAMES, PUBLISHERS, TITLE_PATTERNS,
};
use super::{slug, words_of};
use crate::random::Dice;
use crate::time::{DAY, iso_day};

/// Without a filter pages are from 2023 to mid-2026, in days after 1970.
const FIRST_DAY: u64 = 19_358;
const LAST_DAY: u64 = 20_634;
/// Words of the query that make it into an address.
const TOPIC_WORDS: usize = 8;

/// What is looked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Find {
    pub(crate) query: String,
    pub(crate) count: usize,
    pub(crate) category: Option<String>,
    pub(crate) include_domains: Vec<String>,
    pub(crate) exclude_domains: Vec<String>,
    /// Milliseconds since 1970.
    pub(crate) start: Option<u64>,
    pub(crate) end: Option<u64>,
    pub(crate) include_text: Vec<String>,
    pub(crate) exclude_text: Vec<String>,
}

impl Find {
    /// The pages found, best first. Filters that exclude each other leave none.
    pub(crate) fn run(&self, seed: u64) -> Vec<Page> {
        let mut seen = HashSet::new();
        let mut pages = Vec::new();
        for attempt in 0..self.count * 4 + 20 {
            if pages.len() >= self.count {
                break;
            }
            let Some(url) = self.candidate(seed, attempt) else {
                break;
            };
            let page = Page::at(seed, &url);
            if self.excluded(&page.url) || !seen.insert(page.url.clone()) {
                continue;
            }
            if self.text_fits(&page) {
                pages.push(page);
            }
        }
        pages
    }

    /// The `n`-th page of the row, filters or not.
    pub(super) fn nth(&self, seed: u64, n: u64) -> Option<Page> {
        let url = self.candidate(seed, usize::try_from(n).ok()?)?;
        Some(Page::at(seed, &url))
    }

    fn candidate(&self, seed: u64, attempt: usize) -> Option<String> {
        let mut dice = Dice::new(seed, &["find", &self.query, &attempt.to_string()]);
        let day = self.day(&mut dice)?;
        let date = iso_day(day * DAY).replace('-', "/");
        let site = self.site(&mut dice);
        if self.wants_home_pages() {
            return Some(format!("https://{site}/"));
        }
        Some(format!("https://{site}/{date}/{}", self.name(&mut dice)))
    }

    /// Companies and people are found by their own pages, unless a filter needs a say in the address.
    fn wants_home_pages(&self) -> bool {
        let filtered = self.start.is_some() || self.end.is_some();
        matches!(self.category.as_deref(), Some("company" | "people"))
            && !filtered
            && self.include_domains.is_empty()
            && self.include_text.is_empty()
    }

    /// A day inside the filter, or a usual one; none when the filter leaves no day. Addresses name
    /// days only, so the first day must begin inside the filter.
    fn day(&self, dice: &mut Dice) -> Option<u64> {
        let start = self.start.map_or(FIRST_DAY, |ms| ms.div_ceil(DAY));
        let end = self.end.map_or(LAST_DAY, |ms| ms / DAY);
        match (self.start, self.end) {
            // A start after the usual days is fine, and so is an end before them.
            (Some(_), None) => Some(dice.between(start, end.max(start + 30))),
            (None, Some(_)) => Some(dice.between(start.min(end.saturating_sub(365)), end)),
            _ => (start <= end).then(|| dice.between(start, end)),
        }
    }

    /// Host and path prefix.
    fn site(&self, dice: &mut Dice) -> String {
        if !self.include_domains.is_empty() {
            let names: Vec<&str> = self.include_domains.iter().map(String::as_str).collect();
            return site_for(dice.word(&names));
        }
        match self.category.as_deref() {
            Some("company") => {
                format!(
                    "{}{}.example",
                    dice.word(COMPANY_STARTS).to_lowercase(),
                    dice.word(COMPANY_ENDS)
                )
            }
            Some("people") => {
                let name =
                    format!("{}-{}", dice.word(FIRST_NAMES), dice.word(LAST_NAMES)).to_lowercase();
                format!("profiles.example/in/{name}")
            }
            Some("personal site") => format!("{}.example", dice.word(LAST_NAMES).to_lowercase()),
            Some("github") => format!("code.example/{}", dice.word(LAST_NAMES).to_lowercase()),
            _ => dice.word(PUBLISHERS).to_owned(),
        }
    }

    /// The last part of the address; the title of the page comes from it.
    fn name(&self, dice: &mut Dice) -> String {
        let topic = if words_of(&self.query).is_empty() {
            "everything".to_owned()
        } else {
            slug(&self.query, TOPIC_WORDS)
        };
        let mut name = format!("{}-{topic}", slug(dice.word(TITLE_PATTERNS), TOPIC_WORDS));
        for text in &self.include_text {
            name.push('-');
            name.push_str(&slug(text, TOPIC_WORDS));
        }
        if matches!(self.category.as_deref(), Some("pdf" | "financial report")) {
            name.push_str(".pdf");
        }
        name
    }

    fn excluded(&self, url: &str) -> bool {
        self.exclude_domains
            .iter()
            .any(|domain| domain_matches(url, domain))
    }

    fn text_fits(&self, page: &Page) -> bool {
        if self.exclude_text.is_empty() {
            return true;
        }
        let words = format!(" {} ", words_of(page.text()).join(" "));
        let has = |text: &String| words.contains(&format!(" {} ", words_of(text).join(" ")));
        !self.exclude_text.iter().any(has)
    }
}

/// An address for a domain filter: `*.example.com` gets a host, `example.com/blog` stays.
fn site_for(domain: &str) -> String {
    let plain = bare(domain);
    match plain.strip_prefix("*.") {
        Some(rest) => format!("www.{rest}"),
        None => plain.to_owned(),
    }
}

/// A domain filter without scheme and final slash.
fn bare(domain: &str) -> &str {
    let plain = domain.split_once("://").map_or(domain, |(_, rest)| rest);
    plain.trim_end_matches('/')
}

/// Whether an address falls under a domain filter: the domain, a subdomain of it, a path below it, or
/// with `*.` only its subdomains.
fn domain_matches(url: &str, domain: &str) -> bool {
    let domain = bare(domain).to_lowercase();
    let (wanted, prefix) = domain
        .split_once('/')
        .map_or((domain.as_str(), None), |(host, path)| (host, Some(path)));
    let host = host_of(url).to_lowercase();
    let below = |parent: &str| {
        host.strip_suffix(parent)
            .is_some_and(|rest| rest.ends_with('.'))
    };
    let host_fits = match wanted.strip_prefix("*.") {
        Some(parent) => below(parent),
        None => host == wanted || below(wanted),
    };
    host_fits
        && prefix.is_none_or(|prefix| {
            path_of(url)
                .trim_start_matches('/')
                .to_lowercase()
                .starts_with(prefix)
        })
}

/// The host of an address; empty when there is none.
pub(crate) fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#', ':']).next().unwrap_or_default()
}

fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/')
        .and_then(|at| rest.get(at..))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::parse;

    #[test]
    fn filters_hold() {
        let find = Find {
            query: "solid-state batteries".into(),
            count: 25,
            include_domains: vec![
                "a.example".into(),
                "b.example/blog".into(),
                "*.c.example".into(),
            ],
            exclude_domains: vec!["a.example".into()],
            start: parse("2024-05-01"),
            end: parse("2024-05-31"),
            include_text: vec!["dry room".into()],
            ..Find::default()
        };
        let pages = find.run(1);
        assert!(!pages.is_empty());
        for page in &pages {
            assert!(!domain_matches(&page.url, "a.example"), "{}", page.url);
            assert!(
                page.url.contains("b.example/blog/") || page.url.contains("www.c.example/"),
                "{}",
                page.url
            );
            assert!(
                (find.start..=find.end).contains(&Some(page.published)),
                "{}",
                page.url
            );
            assert!(page.text().contains("dry room"));
        }
    }

    #[test]
    fn counts_and_repeats() {
        let find = Find {
            query: "tidal power".into(),
            count: 100,
            ..Find::default()
        };
        let urls = |seed| {
            find.run(seed)
                .into_iter()
                .map(|page| page.url)
                .collect::<Vec<_>>()
        };
        assert_eq!(urls(1).len(), 100);
        assert_eq!(urls(1), urls(1));
        assert_ne!(urls(1), urls(2));
    }

    #[test]
    fn impossible_filters_find_nothing() {
        let find = Find {
            query: "x".into(),
            count: 5,
            start: parse("2025-01-02"),
            end: parse("2025-01-01"),
            ..Find::default()
        };
        assert!(find.run(1).is_empty());
        let find = Find {
            query: "x".into(),
            count: 5,
            exclude_text: vec!["made up".into()],
            ..Find::default()
        };
        assert!(find.run(1).is_empty());
    }

    #[test]
    fn domains() {
        assert!(domain_matches("https://www.a.example/x", "a.example"));
        assert!(!domain_matches("https://ba.example/x", "a.example"));
        assert!(!domain_matches("https://a.example/x", "*.a.example"));
        assert!(domain_matches(
            "https://a.example/blog/1",
            "https://a.example/blog/"
        ));
        assert!(!domain_matches(
            "https://a.example/news/1",
            "a.example/blog"
        ));
    }
}
