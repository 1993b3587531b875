//! Contents of pages: text, highlights, summaries, subpages and links, as far as they are requested.

use serde_json::{Map, Value, json};

use super::html;
use crate::api_error::ApiError;
use crate::call::Call;
use crate::corpus::{Page, host_of, slug, truncate};
use crate::json::{count, is_given, items, set};
use crate::rng::hash;
use crate::sample;
use crate::time::{self, DAY, iso};

/// Beta token for `highlights.dynamic` and `highlights.verbosity`.
const BETA: &str = "dynamic-highlights-2026-08-28";

/// Number of highlights per page if the request does not say.
const DEFAULT_HIGHLIGHTS: usize = 3;
/// How long old versions of pages are kept.
const SNAPSHOT_WINDOW: u64 = 150 * DAY;
/// Age of the stored version of a page at the requested time.
const SNAPSHOT_AGE: u64 = 2 * DAY;
/// Characters of a token, for limits in tokens.
const TOKEN_LENGTH: usize = 4;

/// The contents options of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContentsOptions {
    options: Map<String, Value>,
    query: String,
    seed: u64,
}

impl ContentsOptions {
    /// Reads the options of a request. `query` is the default query of highlights and summaries.
    pub(crate) fn new(options: Option<&Value>, query: &str, seed: u64) -> Self {
        let options = options.and_then(Value::as_object);
        ContentsOptions {
            options: options.cloned().unwrap_or_default(),
            query: query.to_owned(),
            seed,
        }
    }

    /// Validates what the input schema cannot express.
    pub(crate) fn validate(&self, call: &Call) -> Result<(), ApiError> {
        self.validate_highlights(call)?;
        self.validate_snapshot()
    }

    fn validate_highlights(&self, call: &Call) -> Result<(), ApiError> {
        let Some(highlights) = self.requested("highlights") else {
            return Ok(());
        };
        for (name, others) in [
            ("dynamic", &["maxCharacters"][..]),
            ("verbosity", &["maxCharacters", "numSentences"]),
        ] {
            if !is_given(highlights.get(name)) {
                continue;
            }
            if let Some(other) = others
                .iter()
                .find(|other| is_given(highlights.get(**other)))
            {
                return Err(ApiError::invalid(format!(
                    "highlights.{other} cannot be used together with highlights.{name}"
                )));
            }
            call.require_beta(BETA, &format!("highlights.{name}"))?;
        }
        Ok(())
    }

    fn validate_snapshot(&self) -> Result<(), ApiError> {
        let Some(given) = self.options.get("snapshotAsOf").and_then(Value::as_str) else {
            return Ok(());
        };
        if time::parse(given).is_none() {
            let message = format!("snapshotAsOf: '{given}' is not an ISO 8601 time");
            return Err(ApiError::invalid(message));
        }
        let mut others = ["livecrawl", "livecrawlTimeout", "maxAgeHours", "subpages"].iter();
        match others.find(|other| is_given(self.options.get(**other))) {
            Some(other) => Err(ApiError::invalid(format!(
                "{other} cannot be used together with snapshotAsOf"
            ))),
            None => Ok(()),
        }
    }

    /// The time whose version of the pages is requested.
    pub(super) fn snapshot(&self) -> Option<u64> {
        let given = self.options.get("snapshotAsOf").and_then(Value::as_str);
        given.and_then(time::parse)
    }

    /// Whether the requested version of the pages is stored; the current one always is.
    pub(super) fn is_stored(&self, now: u64) -> bool {
        self.snapshot().is_none_or(|at| at + SNAPSHOT_WINDOW >= now)
    }

    /// Returns the first option that is not one of these.
    pub(super) fn find_other(&self, allowed: &[&str]) -> Option<&str> {
        let mut given = self
            .options
            .iter()
            .filter(|(_, value)| is_given(Some(value)));
        let other = given.find(|(name, _)| !allowed.contains(&name.as_str()));
        other.map(|(name, _)| name.as_str())
    }

    pub(super) fn has_text(&self) -> bool {
        self.requested("text").is_some()
    }

    pub(super) fn has_highlights(&self) -> bool {
        self.requested("highlights").is_some()
    }

    pub(super) fn has_summary(&self) -> bool {
        self.requested("summary").is_some()
    }

    /// Whether text, highlights or summaries are requested.
    pub(super) fn has_kind(&self) -> bool {
        self.has_text() || self.has_highlights() || self.has_summary()
    }

    /// The number of subpages per page.
    pub(super) fn subpage_count(&self) -> u64 {
        self.options.get("subpages").and_then(count).unwrap_or(0)
    }

    /// Whether anything beyond the metadata of the pages is requested.
    pub(super) fn any(&self) -> bool {
        self.has_kind() || self.subpage_count() > 0 || self.requested("extras").is_some()
    }

    /// Returns the settings of a requested part; `true` requests it with the defaults.
    fn requested(&self, name: &str) -> Option<Map<String, Value>> {
        match self.options.get(name)? {
            Value::Bool(true) => Some(Map::new()),
            Value::Object(settings) => Some(settings.clone()),
            _ => None,
        }
    }

    /// Returns the `source` that statuses report.
    pub(super) fn source(&self) -> &'static str {
        let is_fresh = self.options.get("maxAgeHours").and_then(Value::as_i64) == Some(0);
        let is_forced = matches!(
            self.options.get("livecrawl").and_then(Value::as_str),
            Some("always" | "preferred")
        );
        if is_fresh || is_forced {
            "crawled"
        } else {
            "cached"
        }
    }

    /// Returns a page as a result with the requested parts.
    pub(crate) fn result(&self, page: &Page) -> Value {
        self.build(page, self.subpage_count())
    }

    fn build(&self, page: &Page, subpages: u64) -> Value {
        let mut result = page.to_json();
        if let Some(settings) = self.requested("text") {
            set(&mut result, "text", text(page, &settings));
        }
        if let Some(settings) = self.requested("highlights") {
            set(&mut result, "highlights", self.highlights(page, &settings));
        }
        if let Some(settings) = self.requested("summary") {
            set(&mut result, "summary", self.summary(page, &settings));
        }
        if let Some(settings) = self.requested("extras") {
            set(&mut result, "extras", extras(page, &settings));
        }
        if let Some(at) = self.snapshot() {
            set(
                &mut result,
                "snapshotAt",
                iso(at.saturating_sub(SNAPSHOT_AGE)),
            );
        }
        if subpages > 0 {
            set(&mut result, "subpages", self.subpages(page, subpages));
        }
        result
    }

    fn query_of<'a>(&'a self, settings: &'a Map<String, Value>) -> &'a str {
        let query = settings.get("query").and_then(Value::as_str);
        query.unwrap_or(&self.query)
    }

    fn highlights(&self, page: &Page, settings: &Map<String, Value>) -> Vec<String> {
        let query = self.query_of(settings);
        let count = match settings.get("verbosity").and_then(Value::as_str) {
            Some("low") => 1,
            Some("high") => 2 * DEFAULT_HIGHLIGHTS,
            _ => size(settings, "numSentences").unwrap_or(DEFAULT_HIGHLIGHTS),
        };
        let highlights = page.excerpts(query, count.min(50)).into_iter();
        let mut remaining = max_characters(settings).unwrap_or(usize::MAX);
        let highlights = highlights.map(|(sentence, _)| {
            let sentence = truncate(&sentence, remaining);
            remaining = remaining.saturating_sub(sentence.chars().count());
            sentence
        });
        highlights.take_while(|text| !text.is_empty()).collect()
    }

    fn summary(&self, page: &Page, settings: &Map<String, Value>) -> String {
        if let Some(schema) = settings.get("schema") {
            return sample::generate(schema, hash(self.seed, &["summary", &page.url])).to_string();
        }
        let query = self.query_of(settings);
        let best: Vec<String> = page
            .excerpts(query, 2)
            .into_iter()
            .map(|(sentence, _)| sentence)
            .collect();
        let summary = format!("{} (made up): {}", page.title, best.join(" "));
        let limit = size(settings, "maxTokens").map(|tokens| tokens.saturating_mul(TOKEN_LENGTH));
        truncate(&summary, limit.unwrap_or(usize::MAX))
    }

    fn subpages(&self, page: &Page, count: u64) -> Value {
        let targets = match self.options.get("subpageTarget") {
            Some(Value::String(target)) => vec![target.as_str()],
            targets => {
                let targets = targets.map(items).unwrap_or_default().iter();
                targets.filter_map(Value::as_str).collect()
            }
        };
        let names = targets
            .iter()
            .map(|target| slug(target, 6))
            .chain((1..).map(|number| format!("part-{number}")));
        let base = page.url.trim_end_matches('/');
        names
            .take(usize::try_from(count).unwrap_or(0))
            // Subpages have no subpages of their own.
            .map(|name| self.build(&Page::at(self.seed, &format!("{base}/{name}")), 0))
            .collect()
    }

    /// Returns the deprecated `context` string of all contents.
    pub(crate) fn context(&self, requested: Option<&Value>, pages: &[Page]) -> Option<String> {
        let requested = requested.or_else(|| self.options.get("context"))?;
        if requested.as_bool() == Some(false) {
            return None;
        }
        let parts: Vec<String> = pages
            .iter()
            .map(|page| {
                format!(
                    "Title: {}\nURL: {}\n\n{}",
                    page.title,
                    page.url,
                    page.text()
                )
            })
            .collect();
        let all = parts.join("\n---\n\n");
        let limit = requested.as_object().and_then(max_characters);
        Some(truncate(&all, limit.unwrap_or(usize::MAX)))
    }
}

fn size(settings: &Map<String, Value>, name: &str) -> Option<usize> {
    let size = settings.get(name).and_then(count);
    size.and_then(|size| usize::try_from(size).ok())
}

fn max_characters(settings: &Map<String, Value>) -> Option<usize> {
    size(settings, "maxCharacters")
}

fn text(page: &Page, settings: &Map<String, Value>) -> String {
    let as_html = settings.get("includeHtmlTags").and_then(Value::as_bool) == Some(true);
    let text = if as_html {
        html::from_markdown(page.text())
    } else {
        page.text().to_owned()
    };
    truncate(&text, max_characters(settings).unwrap_or(usize::MAX))
}

fn extras(page: &Page, settings: &Map<String, Value>) -> Value {
    let host = host_of(&page.url);
    let mut extras = json!({});
    for name in [
        "links",
        "imageLinks",
        "richLinks",
        "richImageLinks",
        "codeBlocks",
    ] {
        let links = (1..=size(settings, name).unwrap_or(0).min(20)).map(|number| match name {
            "imageLinks" => format!("https://{host}/images/{number}.png").into(),
            "richImageLinks" => {
                json!({ "url": format!("https://{host}/images/{number}.png"), "text": "Image" })
            }
            "codeBlocks" => format!("let example = {number};").into(),
            "richLinks" => {
                json!({ "url": format!("https://{host}/related/{number}"), "text": "Related" })
            }
            _ => format!("https://{host}/related/{number}").into(),
        });
        let links: Vec<Value> = links.collect();
        if !links.is_empty() {
            set(&mut extras, name, links);
        }
    }
    extras
}
