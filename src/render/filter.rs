//! Filters for results.

use serde_json::{Map, Value, json};
use url::Url;

use super::level::type_of;
use super::{date, path};
use exa_mcp_model::time;

/// Conditions that shown results meet; an absent one matches everything.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Filters {
    /// The minimum score.
    pub min_score: Option<f64>,
    /// The earliest date, in milliseconds since 1970.
    pub after: Option<i64>,
    /// The latest date, in milliseconds since 1970.
    pub before: Option<i64>,
    /// Domains to which results are limited.
    pub include_domains: Vec<String>,
    /// Excluded domains.
    pub exclude_domains: Vec<String>,
    /// A part of the title, in lower case.
    pub title_contains: Option<String>,
    /// The maximum number of results.
    pub max_results: Option<usize>,
}

/// How many results a filter removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilterStats {
    /// The name of the filter.
    pub filter: &'static str,
    /// Results whose value did not match.
    pub mismatched: usize,
    /// Results without a value to match.
    pub without_value: usize,
}

/// The outcome of a filter for one result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Pass,
    Fail,
    NoValue,
}

impl Filters {
    /// Parses validated `filters`. Returns the filter and the value of a malformed date.
    pub(crate) fn parse(given: &Map<String, Value>) -> Result<Self, (&'static str, String)> {
        let timestamp = |name: &'static str, parse: fn(&str) -> Option<i64>| {
            let text = given.get(name).and_then(Value::as_str);
            let timestamp = text.map(|text| parse(text).ok_or((name, text.to_owned())));
            timestamp.transpose()
        };
        let domains = |name: &str| {
            let list = given
                .get(name)
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            list.filter_map(Value::as_str).map(domain).collect()
        };
        Ok(Self {
            min_score: given.get("minScore").and_then(Value::as_f64),
            after: timestamp("afterDate", time::parse_timestamp)?,
            before: timestamp("beforeDate", time::parse_period_end)?,
            include_domains: domains("includeDomains"),
            exclude_domains: domains("excludeDomains"),
            title_contains: given
                .get("titleContains")
                .and_then(Value::as_str)
                .map(str::to_lowercase),
            max_results: given
                .get("maxResults")
                .and_then(Value::as_u64)
                .map(|max| usize::try_from(max).unwrap_or(usize::MAX)),
        })
    }

    /// Returns the earliest date as the API expects it.
    pub(crate) fn after_timestamp(&self) -> Option<String> {
        self.after.map(time::format_timestamp)
    }

    /// Returns the latest date as the API expects it.
    pub(crate) fn before_timestamp(&self) -> Option<String> {
        self.before.map(time::format_timestamp)
    }

    /// Removes results that do not match. Returns how many each filter removed.
    pub(super) fn apply(&self, results: &mut Vec<(usize, &Value)>) -> Vec<FilterStats> {
        let mut stats = self.active();
        let is_unscored = self.is_unscored(results.iter().map(|(_, result)| *result));
        if is_unscored {
            stats.retain(|entry| entry.filter != "minScore");
        }
        if stats.is_empty() {
            return stats;
        }
        let mut count = |filter: &str, verdict: Verdict, number: usize| {
            let mut entries = stats.iter_mut();
            if let Some(entry) = entries.find(|entry| entry.filter == filter) {
                match verdict {
                    Verdict::NoValue => entry.without_value += number,
                    _ => entry.mismatched += number,
                }
            }
        };
        let scored = Self {
            min_score: self.min_score.filter(|_| !is_unscored),
            ..self.clone()
        };
        results.retain(|(_, result)| match scored.first_failed(result) {
            None => true,
            Some((filter, verdict)) => {
                count(filter, verdict, 1);
                false
            }
        });
        if let Some(max) = self.max_results {
            let excess = results.len().saturating_sub(max);
            count("maxResults", Verdict::Fail, excess);
            results.truncate(max);
        }
        stats
    }

    /// Returns whether a minimum score is given and no result has a score, so that it cannot be applied.
    pub(super) fn is_unscored<'a>(&self, mut results: impl Iterator<Item = &'a Value>) -> bool {
        self.min_score.is_some()
            && results.all(|result| result.get("score").and_then(Value::as_f64).is_none())
    }

    /// Returns zeroed statistics of the filters that the caller set.
    pub(super) fn active(&self) -> Vec<FilterStats> {
        let filters = [
            ("minScore", self.min_score.is_some()),
            ("afterDate", self.after.is_some()),
            ("beforeDate", self.before.is_some()),
            ("includeDomains", !self.include_domains.is_empty()),
            ("excludeDomains", !self.exclude_domains.is_empty()),
            ("titleContains", self.title_contains.is_some()),
            ("maxResults", self.max_results.is_some()),
        ];
        let active = filters.into_iter().filter(|(_, is_active)| *is_active);
        let zero = |(filter, _)| FilterStats {
            filter,
            mismatched: 0,
            without_value: 0,
        };
        active.map(zero).collect()
    }

    /// Returns the first filter that a result does not pass.
    fn first_failed(&self, result: &Value) -> Option<(&'static str, Verdict)> {
        let verdicts = [
            ("minScore", self.check_score(result)),
            (
                "afterDate",
                self.check_date(result, self.after, |found, limit| found >= limit),
            ),
            (
                "beforeDate",
                self.check_date(result, self.before, |found, limit| found <= limit),
            ),
            ("includeDomains", self.check_included(result)),
            ("excludeDomains", self.check_excluded(result)),
            ("titleContains", self.check_title(result)),
        ];
        verdicts
            .into_iter()
            .find(|(_, verdict)| *verdict != Verdict::Pass)
    }

    fn check_score(&self, result: &Value) -> Verdict {
        let found = result.get("score").and_then(Value::as_f64);
        judge(self.min_score, found, |least, found| found >= least)
    }

    fn check_date(
        &self,
        result: &Value,
        limit: Option<i64>,
        fits: fn(i64, i64) -> bool,
    ) -> Verdict {
        let found = path::first(result, type_of(result).date).and_then(date::timestamp);
        judge(limit, found, |limit, found| fits(found, limit))
    }

    fn check_included(&self, result: &Value) -> Verdict {
        let wanted = Some(&self.include_domains).filter(|list| !list.is_empty());
        judge(wanted, address(result), |list, url| {
            list.iter().any(|domain| is_in_domain(&url, domain))
        })
    }

    fn check_excluded(&self, result: &Value) -> Verdict {
        match address(result) {
            Some(url)
                if self
                    .exclude_domains
                    .iter()
                    .any(|domain| is_in_domain(&url, domain)) =>
            {
                Verdict::Fail
            }
            _ => Verdict::Pass,
        }
    }

    fn check_title(&self, result: &Value) -> Verdict {
        let title = path::first(result, type_of(result).title).and_then(Value::as_str);
        judge(self.title_contains.as_ref(), title, |part, title| {
            title.to_lowercase().contains(part.as_str())
        })
    }
}

fn judge<L, F>(limit: Option<L>, found: Option<F>, fits: impl FnOnce(L, F) -> bool) -> Verdict {
    match (limit, found) {
        (None, _) => Verdict::Pass,
        (Some(_), None) => Verdict::NoValue,
        (Some(limit), Some(found)) => {
            if fits(limit, found) {
                Verdict::Pass
            } else {
                Verdict::Fail
            }
        }
    }
}

fn address(result: &Value) -> Option<Url> {
    let url = path::first(result, type_of(result).url)?.as_str()?;
    Url::parse(url).ok()
}

/// Normalizes a domain such as `https://Example.com/blog/` or `*.example.com`.
fn domain(text: &str) -> String {
    let text = text.trim().to_lowercase();
    let text = text
        .split_once("://")
        .map_or(text.as_str(), |(_, rest)| rest);
    text.trim_start_matches("*.")
        .trim_end_matches('/')
        .to_owned()
}

/// Returns whether a URL belongs to a domain, or to a path below it.
fn is_in_domain(url: &Url, domain: &str) -> bool {
    let (host, path) = match domain.split_once('/') {
        Some((host, path)) => (host, format!("/{path}")),
        None => (domain, String::new()),
    };
    let found = url.host_str().unwrap_or_default();
    let same_host = found
        .strip_suffix(host)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let below = url.path().to_lowercase();
    let same_path = below
        .strip_prefix(&path)
        .is_some_and(|rest| path.is_empty() || rest.is_empty() || rest.starts_with('/'));
    !host.is_empty() && same_host && same_path
}

impl FilterStats {
    /// Returns how many results the filter removed.
    pub(super) fn count(&self) -> usize {
        self.mismatched + self.without_value
    }

    /// Returns the statistics as JSON.
    pub(super) fn to_json(&self) -> Value {
        let mut fields = json!({"filter": self.filter, "dropped": self.count()});
        if let Value::Object(fields) = &mut fields
            && self.without_value > 0
        {
            fields.insert("withoutValue".to_owned(), json!(self.without_value));
        }
        fields
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn left(filters: Value) -> (Vec<usize>, Vec<FilterStats>) {
        let results = [
            json!({"url": "https://a.example/blog/x", "title": "Alpha One", "score": 0.9, "publishedDate": "2024-05-01T00:00:00.000Z"}),
            json!({"url": "https://www.a.example/", "title": "Beta", "score": 0.4, "publishedDate": "2023-05-01"}),
            json!({"url": "https://nota.example/", "title": "Gamma"}),
        ];
        let mut results: Vec<(usize, &Value)> = results.iter().enumerate().collect();
        let filters = Filters::parse(filters.as_object().unwrap()).unwrap();
        let stats = filters.apply(&mut results);
        (results.into_iter().map(|(index, _)| index).collect(), stats)
    }

    #[test]
    fn each_filter_removes_results_that_do_not_match() {
        assert_eq!(left(json!({"minScore": 0.5})).0, [0]);
        assert_eq!(left(json!({"afterDate": "2024-01-01"})).0, [0]);
        assert_eq!(left(json!({"beforeDate": "2023-05-01"})).0, [1]);
        assert_eq!(left(json!({"includeDomains": ["A.example"]})).0, [0, 1]);
        assert_eq!(
            left(json!({"includeDomains": ["https://a.example/blog/"]})).0,
            [0]
        );
        assert_eq!(left(json!({"excludeDomains": ["*.a.example"]})).0, [2]);
        assert_eq!(left(json!({"titleContains": "ALPHA"})).0, [0]);
        assert_eq!(left(json!({"maxResults": 2})).0, [0, 1]);
        assert_eq!(left(json!({})).0, [0, 1, 2]);
    }

    #[test]
    fn counts_removed_results() {
        let (_, stats) = left(json!({"minScore": 0.5, "maxResults": 5}));
        assert_eq!(
            stats,
            [
                FilterStats {
                    filter: "minScore",
                    mismatched: 1,
                    without_value: 1
                },
                FilterStats {
                    filter: "maxResults",
                    mismatched: 0,
                    without_value: 0
                }
            ]
        );
    }

    #[test]
    fn reports_a_malformed_date() {
        let given = json!({"afterDate": "next week"});
        let error = Filters::parse(given.as_object().unwrap()).unwrap_err();
        assert_eq!(error, ("afterDate", "next week".to_owned()));
    }
}
