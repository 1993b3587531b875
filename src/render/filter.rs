//! Filters: which results are wanted.

use serde_json::{Map, Value, json};
use url::Url;

use super::level::type_of;
use super::{date, path};
use exa_mcp_model::time;

/// Which results are wanted; what is not given lets everything through.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Filters {
    /// The least score.
    pub min_score: Option<f64>,
    /// Not before this moment.
    pub after: Option<i64>,
    /// Not after this moment.
    pub before: Option<i64>,
    /// Only from these domains.
    pub include_domains: Vec<String>,
    /// Not from these domains.
    pub exclude_domains: Vec<String>,
    /// A part of the title, in small letters.
    pub title_contains: Option<String>,
    /// The most results.
    pub max_results: Option<usize>,
}

/// How many results a filter took away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// The filter.
    pub filter: &'static str,
    /// How many results did not fit,
    pub unfit: usize,
    /// and how many do not say what the filter asks for.
    pub unknown: usize,
}

/// What a filter says of a result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Fits,
    Unfit,
    Unknown,
}

impl Filters {
    /// Reads checked `filters`; a date that is none is named.
    pub(crate) fn read(given: &Map<String, Value>) -> Result<Self, (&'static str, String)> {
        let moment = |name: &'static str, read: fn(&str) -> Option<i64>| {
            let text = given.get(name).and_then(Value::as_str);
            let moment = text.map(|text| read(text).ok_or((name, text.to_owned())));
            moment.transpose()
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
            after: moment("afterDate", time::parse_timestamp)?,
            before: moment("beforeDate", time::parse_period_end)?,
            include_domains: domains("includeDomains"),
            exclude_domains: domains("excludeDomains"),
            title_contains: given
                .get("titleContains")
                .and_then(Value::as_str)
                .map(str::to_lowercase),
            max_results: given
                .get("maxResults")
                .and_then(Value::as_u64)
                .map(|most| usize::try_from(most).unwrap_or(usize::MAX)),
        })
    }

    /// The moment after which results are wanted, as an API reads it.
    pub(crate) fn after_written(&self) -> Option<String> {
        self.after.map(time::format_timestamp)
    }

    /// The moment before which results are wanted, as an API reads it.
    pub(crate) fn before_written(&self) -> Option<String> {
        self.before.map(time::format_timestamp)
    }

    /// Takes away what is not wanted, and says for each filter how much that was.
    pub(super) fn apply(&self, results: &mut Vec<(usize, &Value)>) -> Vec<Dropped> {
        let mut dropped = self.given();
        if dropped.is_empty() {
            return dropped;
        }
        let mut count = |filter: &str, verdict: Verdict, number: usize| {
            let mut entries = dropped.iter_mut();
            if let Some(entry) = entries.find(|entry| entry.filter == filter) {
                match verdict {
                    Verdict::Unknown => entry.unknown += number,
                    _ => entry.unfit += number,
                }
            }
        };
        results.retain(|(_, result)| match self.against(result) {
            None => true,
            Some((filter, verdict)) => {
                count(filter, verdict, 1);
                false
            }
        });
        if let Some(most) = self.max_results {
            let excess = results.len().saturating_sub(most);
            count("maxResults", Verdict::Unfit, excess);
            results.truncate(most);
        }
        dropped
    }

    /// The filters that the caller gave.
    pub(super) fn given(&self) -> Vec<Dropped> {
        let filters = [
            ("minScore", self.min_score.is_some()),
            ("afterDate", self.after.is_some()),
            ("beforeDate", self.before.is_some()),
            ("includeDomains", !self.include_domains.is_empty()),
            ("excludeDomains", !self.exclude_domains.is_empty()),
            ("titleContains", self.title_contains.is_some()),
            ("maxResults", self.max_results.is_some()),
        ];
        let given = filters.into_iter().filter(|(_, is_given)| *is_given);
        let none = |(filter, _)| Dropped {
            filter,
            unfit: 0,
            unknown: 0,
        };
        given.map(none).collect()
    }

    /// The first filter that a result does not pass.
    fn against(&self, result: &Value) -> Option<(&'static str, Verdict)> {
        let verdicts = [
            ("minScore", self.score(result)),
            (
                "afterDate",
                self.moment(result, self.after, |found, limit| found >= limit),
            ),
            (
                "beforeDate",
                self.moment(result, self.before, |found, limit| found <= limit),
            ),
            ("includeDomains", self.included(result)),
            ("excludeDomains", self.excluded(result)),
            ("titleContains", self.titled(result)),
        ];
        verdicts
            .into_iter()
            .find(|(_, verdict)| *verdict != Verdict::Fits)
    }

    fn score(&self, result: &Value) -> Verdict {
        let found = result.get("score").and_then(Value::as_f64);
        judge(self.min_score, found, |least, found| found >= least)
    }

    fn moment(&self, result: &Value, limit: Option<i64>, fits: fn(i64, i64) -> bool) -> Verdict {
        let found = path::first(result, type_of(result).date).and_then(date::of_value);
        judge(limit, found, |limit, found| fits(found, limit))
    }

    fn included(&self, result: &Value) -> Verdict {
        let wanted = Some(&self.include_domains).filter(|list| !list.is_empty());
        judge(wanted, address(result), |list, url| {
            list.iter().any(|domain| lies_in(&url, domain))
        })
    }

    fn excluded(&self, result: &Value) -> Verdict {
        match address(result) {
            Some(url)
                if self
                    .exclude_domains
                    .iter()
                    .any(|domain| lies_in(&url, domain)) =>
            {
                Verdict::Unfit
            }
            _ => Verdict::Fits,
        }
    }

    fn titled(&self, result: &Value) -> Verdict {
        let title = path::first(result, type_of(result).title).and_then(Value::as_str);
        judge(self.title_contains.as_ref(), title, |part, title| {
            title.to_lowercase().contains(part.as_str())
        })
    }
}

fn judge<L, F>(limit: Option<L>, found: Option<F>, fits: impl FnOnce(L, F) -> bool) -> Verdict {
    match (limit, found) {
        (None, _) => Verdict::Fits,
        (Some(_), None) => Verdict::Unknown,
        (Some(limit), Some(found)) => match fits(limit, found) {
            true => Verdict::Fits,
            false => Verdict::Unfit,
        },
    }
}

fn address(result: &Value) -> Option<Url> {
    let url = path::first(result, type_of(result).url)?.as_str()?;
    Url::parse(url).ok()
}

/// A domain as callers write it, `https://Example.com/blog/` or `*.example.com`, in plain form.
fn domain(text: &str) -> String {
    let text = text.trim().to_lowercase();
    let text = text
        .split_once("://")
        .map_or(text.as_str(), |(_, rest)| rest);
    text.trim_start_matches("*.")
        .trim_end_matches('/')
        .to_owned()
}

/// Whether an address lies in a domain, or under a path of it.
fn lies_in(url: &Url, domain: &str) -> bool {
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

impl Dropped {
    /// How many results it took away.
    pub(super) fn count(&self) -> usize {
        self.unfit + self.unknown
    }

    /// The same as JSON.
    pub(super) fn json(&self) -> Value {
        let mut told = json!({"filter": self.filter, "dropped": self.count()});
        if let Value::Object(told) = &mut told
            && self.unknown > 0
        {
            told.insert("withoutValue".to_owned(), json!(self.unknown));
        }
        told
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn left(filters: Value) -> (Vec<usize>, Vec<Dropped>) {
        let results = [
            json!({"url": "https://a.example/blog/x", "title": "Alpha One", "score": 0.9, "publishedDate": "2024-05-01T00:00:00.000Z"}),
            json!({"url": "https://www.a.example/", "title": "Beta", "score": 0.4, "publishedDate": "2023-05-01"}),
            json!({"url": "https://nota.example/", "title": "Gamma"}),
        ];
        let mut results: Vec<(usize, &Value)> = results.iter().enumerate().collect();
        let filters = Filters::read(filters.as_object().unwrap()).unwrap();
        let dropped = filters.apply(&mut results);
        (
            results.into_iter().map(|(index, _)| index).collect(),
            dropped,
        )
    }

    #[test]
    fn each_filter_takes_away_what_does_not_fit() {
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
    fn what_fell_out_is_counted() {
        let (_, dropped) = left(json!({"minScore": 0.5, "maxResults": 5}));
        assert_eq!(
            dropped,
            [
                Dropped {
                    filter: "minScore",
                    unfit: 1,
                    unknown: 1
                },
                Dropped {
                    filter: "maxResults",
                    unfit: 0,
                    unknown: 0
                }
            ]
        );
    }

    #[test]
    fn a_malformed_date_is_named() {
        let given = json!({"afterDate": "next week"});
        let error = Filters::read(given.as_object().unwrap()).unwrap_err();
        assert_eq!(error, ("afterDate", "next week".to_owned()));
    }
}
