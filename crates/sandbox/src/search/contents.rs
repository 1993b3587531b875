//! Contents of pages: text, highlights, summaries, subpages and links, each only when asked for.

use serde_json::{Map, Value, json};

use super::html;
use crate::call::{Call, whole};
use crate::corpus::{Page, host_of, slug, start_of};
use crate::failure::Failure;
use crate::random::hash;
use crate::sample;

/// Token that `highlights.dynamic` needs.
const BETA: &str = "dynamic-highlights-2026-08-28";

/// Excerpts a page gets when the request does not say.
const USUAL_EXCERPTS: usize = 3;

/// The contents options of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    options: Map<String, Value>,
    query: String,
    seed: u64,
}

impl Contents {
    /// Reads the options from where a request keeps them. `query` steers highlights and summaries
    /// that bring none of their own.
    pub(crate) fn new(options: Option<&Map<String, Value>>, query: &str, seed: u64) -> Self {
        Contents {
            options: options.cloned().unwrap_or_default(),
            query: query.to_owned(),
            seed,
        }
    }

    /// Checks what a schema cannot say.
    pub(crate) fn check(&self, call: &Call) -> Result<(), Failure> {
        let Some(highlights) = self.asked("highlights") else {
            return Ok(());
        };
        if highlights.get("dynamic").and_then(Value::as_bool) != Some(true) {
            return Ok(());
        }
        if highlights.contains_key("maxCharacters") {
            return Err(Failure::invalid(
                "highlights.maxCharacters cannot be used together with highlights.dynamic",
            ));
        }
        call.need_beta(BETA, "highlights.dynamic")
    }

    pub(super) fn has_text(&self) -> bool {
        self.asked("text").is_some()
    }

    pub(super) fn has_highlights(&self) -> bool {
        self.asked("highlights").is_some()
    }

    pub(super) fn has_summary(&self) -> bool {
        self.asked("summary").is_some()
    }

    /// Whether any kind of content is wanted.
    pub(super) fn has_kind(&self) -> bool {
        self.has_text() || self.has_highlights() || self.has_summary()
    }

    /// Subpages of every page.
    pub(super) fn subpage_count(&self) -> u64 {
        self.count("subpages")
    }

    /// Whether anything about the pages themselves is wanted.
    pub(super) fn any(&self) -> bool {
        let subpages = self.count("subpages") > 0;
        self.has_text()
            || self.has_highlights()
            || self.has_summary()
            || subpages
            || self.asked("extras").is_some()
    }

    /// A part that is wanted, with its settings; `true` means without any.
    fn asked(&self, name: &str) -> Option<Map<String, Value>> {
        match self.options.get(name)? {
            Value::Bool(true) => Some(Map::new()),
            Value::Object(settings) => Some(settings.clone()),
            _ => None,
        }
    }

    fn count(&self, name: &str) -> u64 {
        self.options.get(name).and_then(whole).unwrap_or(0)
    }

    /// Where contents are said to come from.
    pub(super) fn source(&self) -> &'static str {
        let fresh = self.options.get("maxAgeHours").and_then(Value::as_i64) == Some(0);
        let forced = matches!(
            self.options.get("livecrawl").and_then(Value::as_str),
            Some("always" | "preferred")
        );
        if fresh || forced { "crawled" } else { "cached" }
    }

    /// The page as a result, with the parts that were asked for.
    pub(crate) fn result(&self, page: &Page) -> Value {
        self.build(page, self.count("subpages"))
    }

    fn build(&self, page: &Page, subpages: u64) -> Value {
        let mut result = page.to_json();
        let Value::Object(fields) = &mut result else {
            return result;
        };
        if let Some(settings) = self.asked("text") {
            fields.insert("text".into(), text(page, &settings).into());
        }
        if let Some(settings) = self.asked("highlights") {
            let (excerpts, scores) = self.highlights(page, &settings);
            fields.insert("highlights".into(), excerpts.into());
            fields.insert("highlightScores".into(), scores.into());
        }
        if let Some(settings) = self.asked("summary") {
            fields.insert("summary".into(), self.summary(page, &settings).into());
        }
        if let Some(settings) = self.asked("extras") {
            fields.insert("extras".into(), extras(page, &settings));
        }
        if subpages > 0 {
            fields.insert("subpages".into(), self.subpages(page, subpages));
        }
        result
    }

    fn highlights(&self, page: &Page, settings: &Map<String, Value>) -> (Vec<String>, Vec<f64>) {
        let query = settings
            .get("query")
            .and_then(Value::as_str)
            .unwrap_or(&self.query);
        let count = settings
            .get("numSentences")
            .and_then(whole)
            .and_then(|count| usize::try_from(count).ok());
        let found = page.excerpts(query, count.unwrap_or(USUAL_EXCERPTS).min(50));
        let Some(limit) = length(settings) else {
            return found.into_iter().unzip();
        };
        let mut left = limit;
        let mut kept = Vec::new();
        for (sentence, score) in found {
            if left == 0 {
                break;
            }
            let part = start_of(&sentence, left);
            left -= part.chars().count();
            kept.push((part, score));
        }
        kept.into_iter().unzip()
    }

    fn summary(&self, page: &Page, settings: &Map<String, Value>) -> String {
        if let Some(schema) = settings.get("schema") {
            return sample::of(schema, hash(self.seed, &["summary", &page.url])).to_string();
        }
        let query = settings
            .get("query")
            .and_then(Value::as_str)
            .unwrap_or(&self.query);
        let best: Vec<String> = page
            .excerpts(query, 2)
            .into_iter()
            .map(|(sentence, _)| sentence)
            .collect();
        format!("{} (made up): {}", page.title, best.join(" "))
    }

    fn subpages(&self, page: &Page, count: u64) -> Value {
        let targets = match self.options.get("subpageTarget") {
            Some(Value::String(one)) => vec![one.clone()],
            Some(Value::Array(several)) => several
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            _ => Vec::new(),
        };
        let names = targets
            .iter()
            .map(|target| slug(target, 6))
            .chain((1..).map(|number| format!("part-{number}")));
        let base = page.url.trim_end_matches('/');
        names
            .take(usize::try_from(count).unwrap_or(0))
            // Subpages bring no subpages of their own.
            .map(|name| self.build(&Page::at(self.seed, &format!("{base}/{name}")), 0))
            .collect()
    }

    /// The deprecated string of all contents.
    pub(crate) fn context(&self, wanted: Option<&Value>, pages: &[Page]) -> Option<String> {
        let wanted = wanted.or_else(|| self.options.get("context"))?;
        if wanted.as_bool() == Some(false) {
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
        let limit = wanted.as_object().and_then(length);
        Some(limit.map_or_else(|| all.clone(), |limit| start_of(&all, limit)))
    }
}

fn length(settings: &Map<String, Value>) -> Option<usize> {
    settings
        .get("maxCharacters")
        .and_then(whole)
        .and_then(|limit| usize::try_from(limit).ok())
}

fn text(page: &Page, settings: &Map<String, Value>) -> String {
    let html = settings.get("includeHtmlTags").and_then(Value::as_bool) == Some(true);
    let text = if html {
        html::of(page.text())
    } else {
        page.text().to_owned()
    };
    length(settings).map_or_else(|| text.clone(), |limit| start_of(&text, limit))
}

fn extras(page: &Page, settings: &Map<String, Value>) -> Value {
    let host = host_of(&page.url);
    let list = |name: &str, form: fn(&str, u64) -> String| -> Option<Vec<String>> {
        let count = settings
            .get(name)
            .and_then(whole)
            .filter(|count| *count > 0)?;
        Some(
            (1..=count.min(20))
                .map(|number| form(host, number))
                .collect(),
        )
    };
    let mut extras = Map::new();
    if let Some(links) = list("links", |host, number| {
        format!("https://{host}/related/{number}")
    }) {
        extras.insert("links".into(), links.into());
    }
    if let Some(images) = list("imageLinks", |host, number| {
        format!("https://{host}/images/{number}.png")
    }) {
        extras.insert("imageLinks".into(), images.into());
    }
    if let Some(links) = list("richLinks", |host, number| {
        format!("https://{host}/related/{number}")
    }) {
        let rich: Vec<Value> = links
            .into_iter()
            .map(|url| json!({ "url": url, "text": "Related" }))
            .collect();
        extras.insert("richLinks".into(), rich.into());
    }
    Value::Object(extras)
}
