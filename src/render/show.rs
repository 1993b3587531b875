//! An answer as the caller sees it: text and data that say the same, with a head that tells how much
//! there is, what it costs, and how to get more.

use serde_json::{Map, Value, json};

use super::budget::{Fitted, fit};
use super::clean::Fence;
use super::shape::{Shaped, shape, shape_rest};
use super::tokens::estimate;
use super::{Dropped, Envelope, Format, Level, View, ViewError, json, level, markdown, path};

/// More links than this help nobody: the whole answer has one too.
const MOST_LINKS: usize = 20;

/// What is to be shown.
#[derive(Debug)]
pub struct Answer<'a> {
    /// The operation that was called.
    pub operation: &'a str,
    /// What it answered.
    pub envelope: Envelope,
    /// What the tool itself has to say.
    pub told: Map<String, Value>,
    /// Under which name the answer is kept, if it is.
    pub cache_id: Option<&'a str>,
    /// Exa was not asked: the answer was kept from before.
    pub cached: bool,
    /// The level that Exa was asked for, where a tool chose that.
    pub asked: Option<Level>,
    /// What was put right in the arguments.
    pub mended: Vec<String>,
    /// What the caller should know.
    pub warnings: Vec<String>,
    /// Filters that Exa applied.
    pub sent_filters: Vec<String>,
}

/// An answer ready to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// For those who read.
    pub text: String,
    /// For those who compute; the same information.
    pub structured: Map<String, Value>,
    /// Where to find what was left out.
    pub links: Vec<Link>,
}

/// A resource that holds more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its address.
    pub uri: String,
    /// What it is called.
    pub name: String,
    /// What it holds.
    pub description: String,
    /// The kind of its content.
    pub mime_type: &'static str,
}

/// Shows an answer.
pub fn show(answer: Answer<'_>, view: &View) -> Result<Rendered, ViewError> {
    let Answer { envelope, told, .. } = &answer;
    let total = envelope.results.len();
    let mut results: Vec<(usize, Value)> = envelope.results.iter().cloned().enumerate().collect();
    let dropped = match view.index {
        Some(_) => Vec::new(),
        None => view.filters.apply(&mut results),
    };
    let matching = results.len();
    let selected = view.select(results)?;
    let mut rest_cut = false;
    // Who picks single fields does not want to read about the request.
    let rest_level = if view.fields.is_empty() {
        view.level
    } else {
        Level::Summary
    };
    let rest = shape_rest(&without_head(&envelope.rest), rest_level, &mut rest_cut);
    let mut warnings = answer.warnings.clone();
    let shaped: Vec<Shaped> = selected
        .iter()
        .map(|(index, result)| shape(*index, result, view.level, view.extract))
        .map(|result| pick_fields(result, &view.fields))
        .collect();
    warnings.extend(unknown_fields(&selected, &view.fields));
    let fitted = fit(shaped, rest, view.max_tokens, |result| {
        write_one(result, view)
    });
    let rest_cut = rest_cut || fitted.rest_cut;
    let head = Head {
        answer: &answer,
        view,
        total,
        matching,
        dropped: &dropped,
        warnings,
        fitted: &fitted,
        rest_cut,
    };
    let metadata = head.metadata();
    let text = match view.format {
        Format::Json => json::text(&envelope_json(&metadata, told, &fitted)),
        Format::Markdown => head.markdown(&metadata),
    };
    let links = head.links();
    let (text, metadata) = with_estimate(text, metadata);
    let structured = match envelope_json(&metadata, told, &fitted) {
        Value::Object(structured) => structured,
        _ => Map::new(),
    };
    Ok(Rendered {
        text,
        structured,
        links,
    })
}

/// Where the number of tokens will stand: as wide as most numbers are.
const PLACEHOLDER: u64 = 98_765_432;

/// Puts the estimate of the text into the text and the metadata.
fn with_estimate(text: String, mut metadata: Map<String, Value>) -> (String, Map<String, Value>) {
    let tokens = estimate(&text);
    metadata.insert("tokenEstimate".to_owned(), json!(tokens));
    let text = text.replacen(&PLACEHOLDER.to_string(), &tokens.to_string(), 1);
    (text, metadata)
}

fn write_one(result: &Shaped, view: &View) -> String {
    match (view.format, view.level) {
        (Format::Json, _) => json::result(result),
        (_, Level::Summary) => markdown::row(result),
        _ => markdown::section(result),
    }
}

/// Fields of the API's answer that stand in the metadata instead.
pub const IN_METADATA: [&str; 2] = ["requestId", "warnings"];

/// What the head does not tell anyway.
fn without_head(rest: &Map<String, Value>) -> Map<String, Value> {
    let mut rest = rest.clone();
    for name in IN_METADATA {
        rest.shift_remove(name);
    }
    rest
}

fn pick_fields(mut result: Shaped, fields: &[String]) -> Shaped {
    if !fields.is_empty() {
        result.value = path::pick(&result.value, fields);
    }
    result
}

/// A sentence for fields that no result has.
fn unknown_fields(results: &[(usize, Value)], fields: &[String]) -> Option<String> {
    let has = |field: &&String| {
        let only = std::slice::from_ref(*field);
        let found = |value: &Value| {
            path::pick(value, only)
                .as_object()
                .is_some_and(|map| !map.is_empty())
        };
        results.iter().any(|(_, result)| found(result))
    };
    let unknown: Vec<&str> = fields
        .iter()
        .filter(|field| !has(field))
        .map(String::as_str)
        .collect();
    let (_, first) = results.first().filter(|_| !unknown.is_empty())?;
    let known: Vec<&str> = first.as_object()?.keys().map(String::as_str).collect();
    Some(format!(
        "no result has the field {}; fields there are: {}",
        unknown.join(", "),
        known.join(", ")
    ))
}

fn envelope_json(
    metadata: &Map<String, Value>,
    told: &Map<String, Value>,
    fitted: &Fitted,
) -> Value {
    let mut envelope = Map::new();
    envelope.insert("metadata".to_owned(), Value::Object(metadata.clone()));
    envelope.extend(told.clone());
    let results = fitted
        .shown
        .iter()
        .map(|result| result.value.clone())
        .collect();
    envelope.insert("results".to_owned(), Value::Array(results));
    for (name, value) in &fitted.rest {
        envelope
            .entry(name.clone())
            .or_insert_with(|| value.clone());
    }
    Value::Object(envelope)
}

/// What is said about an answer.
struct Head<'a> {
    answer: &'a Answer<'a>,
    view: &'a View,
    total: usize,
    matching: usize,
    dropped: &'a [Dropped],
    warnings: Vec<String>,
    fitted: &'a Fitted,
    rest_cut: bool,
}

impl Head<'_> {
    fn metadata(&self) -> Map<String, Value> {
        let answer = self.answer;
        let rest = &answer.envelope.rest;
        let mut metadata = Map::new();
        // Code relies on the first ten; the others are told where there is something to tell.
        let mut put = |name: &str, value: Value| drop(metadata.insert(name.to_owned(), value));
        put("operation", json!(answer.operation));
        put("totalResults", json!(self.total));
        put("returned", json!(self.fitted.shown.len()));
        put("tokenEstimate", json!(PLACEHOLDER));
        put("contentLevel", json!(self.view.level.name()));
        put("cacheId", json!(answer.cache_id));
        put("costDollars", self.cost());
        put(
            "requestId",
            rest.get("requestId").cloned().unwrap_or_default(),
        );
        put("warnings", self.all_warnings());
        put("mended", json!(answer.mended));
        let optional = [
            ("cached", json!(answer.cached.then_some(true))),
            ("filters", self.filters()),
            ("leftOut", self.left_out()),
            ("more", json!(self.more())),
        ];
        let told = optional
            .into_iter()
            .filter(|(_, value)| !path::is_empty(value));
        metadata.extend(told.map(|(name, value)| (name.to_owned(), value)));
        metadata
    }

    /// What this answer cost; one that was kept from before costs nothing more.
    fn cost(&self) -> Value {
        let first = self.answer.envelope.results.first();
        let of = |map: &Value| {
            map.get("total")
                .or(Some(map))
                .filter(|cost| cost.is_number())
                .cloned()
        };
        let own = self.answer.envelope.rest.get("costDollars").and_then(of);
        let thing = || {
            first
                .filter(|_| self.total == 1)?
                .get("costDollars")
                .and_then(of)
        };
        match (self.answer.cached, own.or_else(thing)) {
            (_, None) => Value::Null,
            (true, Some(_)) => json!(0),
            (false, Some(cost)) => cost,
        }
    }

    fn all_warnings(&self) -> Value {
        let from_exa = self.answer.envelope.rest.get("warnings");
        let from_exa = from_exa
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .cloned();
        from_exa
            .chain(self.warnings.iter().map(|warning| json!(warning)))
            .collect()
    }

    fn filters(&self) -> Value {
        let mut told = Map::new();
        if !self.answer.sent_filters.is_empty() {
            told.insert("sentToExa".to_owned(), json!(self.answer.sent_filters));
        }
        if !self.dropped.is_empty() {
            let dropped: Vec<Value> = self.dropped.iter().map(Dropped::json).collect();
            told.insert("appliedHere".to_owned(), json!(dropped));
        }
        Value::Object(told)
    }

    /// What was found but is not shown, or not whole.
    fn left_out(&self) -> Value {
        let cut: Vec<usize> = self
            .fitted
            .shown
            .iter()
            .filter(|shown| shown.cut)
            .map(|shown| shown.index)
            .collect();
        let mut told = Map::new();
        if !self.fitted.left_out.is_empty() {
            told.insert("results".to_owned(), json!(self.fitted.left_out.len()));
            told.insert("from".to_owned(), json!(self.fitted.left_out.first()));
        }
        if !cut.is_empty() {
            told.insert("shortened".to_owned(), json!(cut));
        }
        if self.rest_cut {
            told.insert("shortenedBesideResults".to_owned(), json!(true));
        }
        Value::Object(told)
    }

    /// How to get more of this answer.
    fn more(&self) -> Option<String> {
        let id = self.answer.cache_id?;
        let mut ways = Vec::new();
        if let Some(from) = self.fitted.left_out.first() {
            ways.push(format!("offset {from}"));
        }
        let next = self.view.offset.saturating_add(self.fitted.shown.len());
        if self.fitted.left_out.is_empty() && self.view.index.is_none() && next < self.matching {
            ways.push(format!("offset {next}"));
        }
        let shortened = self.rest_cut || self.fitted.shown.iter().any(|shown| shown.cut);
        if self.view.level < Level::Full {
            ways.push("content_level \"full\"".to_owned());
        }
        if shortened {
            ways.push("index N".to_owned());
            ways.push("a larger max_tokens".to_owned());
        }
        if ways.is_empty() {
            return None;
        }
        Some(format!(
            "call again with cache_id \"{id}\" and {}; it costs nothing",
            ways.join(" or ")
        ))
    }

    fn links(&self) -> Vec<Link> {
        let Some(id) = self.answer.cache_id else {
            return Vec::new();
        };
        let cut = self
            .fitted
            .shown
            .iter()
            .filter(|shown| shown.cut)
            .map(|shown| shown.index);
        // A level below full cuts on purpose; only what the budget cut needs a link.
        let cut = cut.filter(|_| self.view.level == Level::Full);
        let places = cut.chain(self.fitted.left_out.iter().copied());
        let link = |index: usize| {
            let result = self.answer.envelope.results.get(index)?;
            let title = level::title(result).unwrap_or("result");
            Some(Link {
                uri: format!("exa://results/{id}/{index}"),
                name: super::text::bounded(&super::text::one_line(title), 100).0,
                description: format!("Result {index}, whole"),
                mime_type: "text/markdown",
            })
        };
        let mut links: Vec<Link> = places.take(MOST_LINKS).filter_map(link).collect();
        if self.fitted.left_out.len() > MOST_LINKS
            || self.rest_cut && self.view.level == Level::Full
        {
            links.push(Link {
                uri: format!("exa://results/{id}"),
                name: format!("All {} results", self.total),
                description: "The whole answer".to_owned(),
                mime_type: "text/markdown",
            });
        }
        links
    }

    fn markdown(&self, metadata: &Map<String, Value>) -> String {
        let mut lines = vec![self.headline(metadata)];
        for (name, label) in [("warnings", "Warning"), ("mended", "Mended")] {
            let list = metadata
                .get(name)
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            lines.extend(list.map(|entry| {
                let text = entry
                    .as_str()
                    .map_or_else(|| entry.to_string(), str::to_owned);
                format!("{label}: {}", markdown::inline(&text))
            }));
        }
        lines.extend(self.filter_line());
        lines.extend(self.left_out_line());
        if let Some(more) = metadata.get("more").and_then(Value::as_str) {
            lines.push(format!("More: {more}"));
        }
        if !self.answer.told.is_empty() {
            lines.push(markdown::fields(&self.answer.told));
        }
        lines.push(self.body());
        lines.join("\n")
    }

    /// Which filters were applied where, and what fell out.
    fn filter_line(&self) -> Option<String> {
        let mut parts = Vec::new();
        if !self.answer.sent_filters.is_empty() {
            parts.push(format!(
                "Exa applied {}",
                self.answer.sent_filters.join(", ")
            ));
        }
        for dropped in self.dropped {
            let without = match dropped.unknown {
                0 => String::new(),
                unknown => format!(", {unknown} of them without a value"),
            };
            let count = dropped.unfit + dropped.unknown;
            parts.push(format!("{} took away {count}{without}", dropped.filter));
        }
        (!parts.is_empty()).then(|| format!("Filters: {}", parts.join("; ")))
    }

    fn left_out_line(&self) -> Option<String> {
        let mut parts = Vec::new();
        if let Some(from) = self.fitted.left_out.first() {
            parts.push(format!(
                "{} results from {from} on",
                self.fitted.left_out.len()
            ));
        }
        let cut = self.fitted.shown.iter().filter(|shown| shown.cut);
        let cut: Vec<String> = cut.map(|shown| shown.index.to_string()).collect();
        if !cut.is_empty() {
            parts.push(format!("parts of {}", cut.join(", ")));
        }
        if self.rest_cut {
            parts.push("parts of what stands beside the results".to_owned());
        }
        (!parts.is_empty()).then(|| format!("Left out: {}", parts.join("; ")))
    }

    fn headline(&self, metadata: &Map<String, Value>) -> String {
        let answer = self.answer;
        let mut head = format!(
            "{}: {} of {} results · ~{PLACEHOLDER} tokens · {}",
            answer.operation,
            self.fitted.shown.len(),
            self.total,
            self.view.level.name(),
        );
        if let Some(cost) = metadata.get("costDollars").filter(|cost| cost.is_number()) {
            head.push_str(&format!(" · ${cost}"));
        }
        if let Some(id) = answer.cache_id {
            head.push_str(&format!(" · cache_id {id}"));
        }
        if answer.cached {
            head.push_str(" · from the cache");
        }
        if let Some(id) = metadata.get("requestId").and_then(Value::as_str) {
            head.push_str(&format!(" · request {}", markdown::inline(id)));
        }
        head
    }

    /// Everything that others wrote, between marks that they cannot know.
    fn body(&self) -> String {
        let fence = Fence::new();
        let mut parts = Vec::new();
        if !self.fitted.rest.is_empty() {
            parts.push(markdown::fields(&self.fitted.rest));
        }
        match self.view.level {
            Level::Summary if self.view.fields.is_empty() => {
                parts.push(markdown::rows(&self.fitted.shown))
            }
            _ => parts.extend(self.fitted.shown.iter().map(markdown::section)),
        }
        parts.retain(|part| !part.is_empty());
        if parts.is_empty() {
            return "No results.".to_owned();
        }
        format!(
            "{}\n{}\n{}",
            fence.begin(),
            fence.neutral(&parts.join("\n")),
            fence.end()
        )
    }
}
