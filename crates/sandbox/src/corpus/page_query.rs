//! Page searches: an endless sequence of candidates derived from the query, reduced by the filters.

use std::collections::HashSet;

use super::page::Page;
use super::vocabulary::{
    COMPANY_ENDS, COMPANY_STARTS, FIRST_NAMES, LAST_NAMES, PUBLISHERS, TITLE_PATTERNS,
};
use super::{slug, words_of};
use crate::rng::Rng;
use crate::time::{DAY, iso_day};

/// Publication dates without a date filter, in days since 1970: 2023 to mid-2026.
const FIRST_DAY: u64 = 19_358;
const LAST_DAY: u64 = 20_634;
/// Maximum number of words of the query in a URL.
const MAX_TOPIC_WORDS: usize = 8;

/// A search for pages.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageQuery {
    pub(crate) query: String,
    pub(crate) count: usize,
    pub(crate) category: Option<String>,
    pub(crate) include_domains: Vec<String>,
    pub(crate) exclude_domains: Vec<String>,
    /// Earliest publication date, in milliseconds since 1970.
    pub(crate) start: Option<u64>,
    /// Latest publication date, in milliseconds since 1970.
    pub(crate) end: Option<u64>,
    pub(crate) include_text: Vec<String>,
    pub(crate) exclude_text: Vec<String>,
}

impl PageQuery {
    /// A query without filters.
    pub(crate) fn new(query: &str, count: usize) -> Self {
        PageQuery {
            query: query.to_owned(),
            count,
            ..PageQuery::default()
        }
    }

    /// Returns the pages, best first; empty if the filters contradict each other.
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
            if self.excludes(&page.url) || !seen.insert(page.url.clone()) {
                continue;
            }
            if self.matches_text(&page) {
                pages.push(page);
            }
        }
        pages
    }

    /// Returns the `n`-th candidate, which may not match the filters.
    pub(super) fn nth(&self, seed: u64, n: u64) -> Option<Page> {
        let url = self.candidate(seed, usize::try_from(n).ok()?)?;
        Some(Page::at(seed, &url))
    }

    fn candidate(&self, seed: u64, attempt: usize) -> Option<String> {
        let mut rng = Rng::new(seed, &["find", &self.query, &attempt.to_string()]);
        let day = self.day(&mut rng)?;
        let date = iso_day(day * DAY).replace('-', "/");
        let site = self.site(&mut rng);
        if self.returns_home_pages() {
            return Some(format!("https://{site}/"));
        }
        Some(format!("https://{site}/{date}/{}", self.name(&mut rng)))
    }

    /// Whether results are home pages: for companies and people, unless a filter affects the URL.
    fn returns_home_pages(&self) -> bool {
        let filtered = self.start.is_some() || self.end.is_some();
        matches!(self.category.as_deref(), Some("company" | "people"))
            && !filtered
            && self.include_domains.is_empty()
            && self.include_text.is_empty()
    }

    /// Returns a day within the date filter; `None` if there is none. URLs contain days without a
    /// time, so the first day must start within the filter.
    fn day(&self, rng: &mut Rng) -> Option<u64> {
        let start = self.start.map_or(FIRST_DAY, |ms| ms.div_ceil(DAY));
        let end = self.end.map_or(LAST_DAY, |ms| ms / DAY);
        match (self.start, self.end) {
            // The start may be after the default range, and the end before it.
            (Some(_), None) => Some(rng.between(start, end.max(start + 30))),
            (None, Some(_)) => Some(rng.between(start.min(end.saturating_sub(365)), end)),
            _ => (start <= end).then(|| rng.between(start, end)),
        }
    }

    /// Returns host and path prefix.
    fn site(&self, rng: &mut Rng) -> String {
        if !self.include_domains.is_empty() {
            let names: Vec<&str> = self.include_domains.iter().map(String::as_str).collect();
            return site_for(rng.choose(&names));
        }
        match self.category.as_deref() {
            Some("company") => {
                format!(
                    "{}{}.example",
                    rng.choose(COMPANY_STARTS).to_lowercase(),
                    rng.choose(COMPANY_ENDS)
                )
            }
            Some("people") => {
                let name = format!("{}-{}", rng.choose(FIRST_NAMES), rng.choose(LAST_NAMES))
                    .to_lowercase();
                format!("profiles.example/in/{name}")
            }
            Some("personal site") => format!("{}.example", rng.choose(LAST_NAMES).to_lowercase()),
            Some("github") => format!("code.example/{}", rng.choose(LAST_NAMES).to_lowercase()),
            _ => rng.choose(PUBLISHERS).to_owned(),
        }
    }

    /// Returns the last part of the URL, from which the title of the page is derived.
    fn name(&self, rng: &mut Rng) -> String {
        let topic = if words_of(&self.query).is_empty() {
            "everything".to_owned()
        } else {
            slug(&self.query, MAX_TOPIC_WORDS)
        };
        let mut name = format!(
            "{}-{topic}",
            slug(rng.choose(TITLE_PATTERNS), MAX_TOPIC_WORDS)
        );
        for text in &self.include_text {
            name.push('-');
            name.push_str(&slug(text, MAX_TOPIC_WORDS));
        }
        if matches!(self.category.as_deref(), Some("pdf" | "financial report")) {
            name.push_str(".pdf");
        }
        name
    }

    fn excludes(&self, url: &str) -> bool {
        self.exclude_domains
            .iter()
            .any(|domain| domain_matches(url, domain))
    }

    fn matches_text(&self, page: &Page) -> bool {
        if self.exclude_text.is_empty() {
            return true;
        }
        let words = format!(" {} ", words_of(page.text()).join(" "));
        let has = |text: &String| words.contains(&format!(" {} ", words_of(text).join(" ")));
        !self.exclude_text.iter().any(has)
    }
}

/// Returns a site that matches a domain filter: `*.example.com` gets a host, `example.com/blog` stays.
fn site_for(domain: &str) -> String {
    let plain = normalize_domain(domain);
    match plain.strip_prefix("*.") {
        Some(rest) => format!("www.{rest}"),
        None => plain.to_owned(),
    }
}

/// Removes the scheme and the final slash of a domain filter.
fn normalize_domain(domain: &str) -> &str {
    without_scheme(domain).trim_end_matches('/')
}

/// Whether a URL matches a domain filter: the domain, its subdomains, or a path below it; with `*.`
/// only the subdomains.
fn domain_matches(url: &str, domain: &str) -> bool {
    let domain = normalize_domain(domain).to_lowercase();
    let (filter_host, prefix) = domain
        .split_once('/')
        .map_or((domain.as_str(), None), |(host, path)| (host, Some(path)));
    let host = host_of(url).to_lowercase();
    let is_subdomain_of = |parent: &str| {
        host.strip_suffix(parent)
            .is_some_and(|rest| rest.ends_with('.'))
    };
    let host_matches = match filter_host.strip_prefix("*.") {
        Some(parent) => is_subdomain_of(parent),
        None => host == filter_host || is_subdomain_of(filter_host),
    };
    host_matches
        && prefix.is_none_or(|prefix| {
            let path = without_scheme(url).split_once('/');
            path.is_some_and(|(_, path)| {
                let path = path.trim_start_matches('/').to_lowercase();
                path.starts_with(prefix)
            })
        })
}

/// Returns the part of a URL after `://`, or the whole text.
pub(super) fn without_scheme(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest)
}

/// Returns the host of a URL; empty if it has none.
pub(crate) fn host_of(url: &str) -> &str {
    let host = without_scheme(url).split(['/', '?', '#', ':']).next();
    host.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::parse;

    #[test]
    fn results_match_the_filters() {
        let query = PageQuery {
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
            ..PageQuery::default()
        };
        let pages = query.run(1);
        assert!(!pages.is_empty());
        for page in &pages {
            assert!(!domain_matches(&page.url, "a.example"), "{}", page.url);
            assert!(
                page.url.contains("b.example/blog/") || page.url.contains("www.c.example/"),
                "{}",
                page.url
            );
            assert!(
                (query.start..=query.end).contains(&Some(page.published)),
                "{}",
                page.url
            );
            assert!(page.text().contains("dry room"));
        }
    }

    #[test]
    fn results_are_complete_and_deterministic() {
        let query = PageQuery {
            query: "tidal power".into(),
            count: 100,
            ..PageQuery::default()
        };
        let urls = |seed| {
            query
                .run(seed)
                .into_iter()
                .map(|page| page.url)
                .collect::<Vec<_>>()
        };
        assert_eq!(urls(1).len(), 100);
        assert_eq!(urls(1), urls(1));
        assert_ne!(urls(1), urls(2));
    }

    #[test]
    fn contradictory_filters_return_no_pages() {
        let query = PageQuery {
            query: "x".into(),
            count: 5,
            start: parse("2025-01-02"),
            end: parse("2025-01-01"),
            ..PageQuery::default()
        };
        assert!(query.run(1).is_empty());
        let query = PageQuery {
            query: "x".into(),
            count: 5,
            exclude_text: vec!["made up".into()],
            ..PageQuery::default()
        };
        assert!(query.run(1).is_empty());
    }

    #[test]
    fn matches_domain_filters() {
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
