//! The header of a result: how much it holds, what it costs, and how to get more.

use serde_json::{Map, Value, json};

use super::budget::FittedResults;
use super::renderer::{RenderInput, ResourceLink, Selection};
use super::text::{one_line, truncate_text};
use super::{ContentLevel, FilterStats, View, level, path};
use exa_mcp_model::{CallStats, MicroDollars};

/// Capacity of the metadata: no result has more fields.
const MAX_FIELDS: usize = 15;

/// Maximum links to single results; beyond it, one link to the whole result is added.
const MAX_LINKS: usize = 20;

/// Maximum warnings of Exa that are shown.
const MAX_WARNINGS: usize = 20;

/// Maximum characters of a warning and of a request id.
const MAX_WARNING_CHARS: usize = 500;

/// The header of a result, from which metadata, links and statistics are derived.
pub(super) struct Header<'a> {
    pub(super) input: &'a RenderInput<'a>,
    pub(super) view: &'a View,
    pub(super) selection: &'a Selection,
    pub(super) fitted: &'a FittedResults,
}

impl Header<'_> {
    /// Returns the metadata. `tokens` may be a placeholder.
    pub(super) fn metadata(&self, tokens: u64) -> Map<String, Value> {
        let input = self.input;
        let mut metadata = Map::with_capacity(MAX_FIELDS);
        // Clients rely on the first ten; the others are present only if they are not empty.
        let mut put = |name: &str, value: Value| drop(metadata.insert(name.to_owned(), value));
        put("operation", json!(input.operation));
        put("totalResults", json!(input.envelope.results.len()));
        put("returned", json!(self.fitted.shown.len()));
        put("tokenEstimate", json!(tokens));
        put("contentLevel", json!(self.level().name()));
        put("cacheId", json!(input.cache_id));
        put("costDollars", self.cost());
        put("requestId", self.request_id());
        put("warnings", self.warnings());
        put("corrections", json!(input.corrections));
        let optional = [
            ("cached", json!(input.cached.then_some(true))),
            ("indexes", self.indexes()),
            ("filters", self.filters()),
            ("leftOut", self.left_out()),
            ("more", json!(self.more())),
        ];
        let present = optional
            .into_iter()
            .filter(|(_, value)| !path::is_empty(value));
        metadata.extend(present.map(|(name, value)| (name.to_owned(), value)));
        metadata
    }

    /// Returns the level of the result, which is never above the one requested from Exa.
    pub(super) fn level(&self) -> ContentLevel {
        let requested = self.input.requested_level.unwrap_or(ContentLevel::Full);
        self.view.level.min(requested)
    }

    /// Returns statistics of the call for a text of so many tokens.
    pub(super) fn stats(&self, tokens: usize) -> CallStats {
        let charged = self.price().filter(|_| !self.input.cached);
        let dollars = charged.and_then(Value::as_f64);
        CallStats {
            operation: self.input.operation.to_owned(),
            tokens: u64::try_from(tokens).unwrap_or(u64::MAX),
            cost: dollars.map_or(MicroDollars::ZERO, MicroDollars::from_dollars),
            cached: self.input.cached,
        }
    }

    /// Returns the cost of this call; a cached result is free.
    fn cost(&self) -> Value {
        match self.price() {
            None => Value::Null,
            Some(_) if self.input.cached => json!(0),
            Some(cost) => cost.clone(),
        }
    }

    /// Returns the price that Exa reports, in dollars.
    fn price(&self) -> Option<&Value> {
        let envelope = &self.input.envelope;
        let own = envelope.rest.get("costDollars").and_then(total);
        own.or_else(|| match envelope.results.as_slice() {
            [single] => single.get("costDollars").and_then(total),
            _ => None,
        })
    }

    fn request_id(&self) -> Value {
        let envelope = &self.input.envelope;
        let of_single = || match envelope.results.as_slice() {
            [single] => single.get("requestId"),
            _ => None,
        };
        match envelope.rest.get("requestId").or_else(of_single) {
            None | Some(Value::Null) => Value::Null,
            Some(Value::String(id)) => json!(truncate_text(id, MAX_WARNING_CHARS).0),
            Some(other) => json!(other.to_string()),
        }
    }

    /// Returns the warnings of Exa, then those of this server.
    fn warnings(&self) -> Value {
        let from_exa = match self.input.envelope.rest.get("warnings") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(list)) => list.iter().take(MAX_WARNINGS).map(warning).collect(),
            Some(one) => vec![warning(one)],
        };
        let own = self.selection.warnings.iter().map(|warning| json!(warning));
        from_exa.into_iter().chain(own).collect()
    }

    /// Returns the positions of the shown results, unless they are the first ones.
    fn indexes(&self) -> Value {
        let indexes: Vec<usize> = self.fitted.shown.iter().map(|shown| shown.index).collect();
        if indexes.iter().enumerate().all(|(at, index)| at == *index) {
            Value::Null
        } else {
            json!(indexes)
        }
    }

    /// Returns the filters applied by this server. One that Exa applied too is included only if it removed more.
    pub(super) fn local_filters(&self) -> impl Iterator<Item = &FilterStats> {
        let is_sent = |filter: &str| self.input.sent_filters.iter().any(|sent| sent == filter);
        let stats = self.selection.filter_stats.iter();
        stats.filter(move |stats| stats.count() > 0 || !is_sent(stats.filter))
    }

    fn filters(&self) -> Value {
        let mut fields = Map::new();
        if !self.input.sent_filters.is_empty() {
            fields.insert("sentToExa".to_owned(), json!(self.input.sent_filters));
        }
        let here: Vec<Value> = self.local_filters().map(FilterStats::to_json).collect();
        if !here.is_empty() {
            fields.insert("appliedHere".to_owned(), json!(here));
        }
        Value::Object(fields)
    }

    /// Returns the positions of truncated results.
    pub(super) fn shortened(&self) -> Vec<usize> {
        let cut = self.fitted.shown.iter().filter(|shown| shown.truncated);
        cut.map(|shown| shown.index).collect()
    }

    pub(super) fn is_rest_truncated(&self) -> bool {
        self.selection.rest_truncated || self.fitted.rest_truncated
    }

    /// Returns which results are missing or truncated.
    fn left_out(&self) -> Value {
        let mut fields = Map::new();
        if let Some(first) = self.fitted.left_out.first() {
            fields.insert("results".to_owned(), json!(self.fitted.left_out.len()));
            fields.insert("from".to_owned(), json!(first));
        }
        let shortened = self.shortened();
        if !shortened.is_empty() {
            fields.insert("shortened".to_owned(), json!(shortened));
        }
        if self.is_rest_truncated() {
            fields.insert("shortenedBesideResults".to_owned(), json!(true));
        }
        Value::Object(fields)
    }

    /// Describes how to get more.
    fn more(&self) -> Option<String> {
        let level = self.view.level;
        let requested = self.input.requested_level.unwrap_or(ContentLevel::Full);
        let mut hints = Vec::new();
        let options = self.cache_options(requested);
        let options = options.join(" or ");
        match self.input.cache_id {
            Some(_) if !options.is_empty() => hints.push(format!(
                "call again with this cache_id and {options}, which costs nothing"
            )),
            None if self.fitted.is_reduced() && self.input.repeatable => hints.push(format!(
                "call again with {options}; the result was not cached, so Exa is called again"
            )),
            _ => {}
        }
        if requested < ContentLevel::Full && requested <= level {
            hints.push(
                "call without cache_id and with content_level \"full\" for whole texts".into(),
            );
        }
        if self.has_next_page() {
            hints
                .push("call with nextCursor as cursor for the next page, or with all: true".into());
        }
        (!hints.is_empty()).then(|| hints.join("; "))
    }

    /// Returns the options with which the cached result would show more.
    fn cache_options(&self, requested: ContentLevel) -> Vec<String> {
        let mut options = Vec::new();
        let next = self.view.offset.saturating_add(self.fitted.shown.len());
        if self.view.index.is_none() && next < self.selection.matching {
            options.push(format!("offset {next}"));
        }
        if self.view.level < requested && !self.fitted.shown.is_empty() {
            options.push("content_level \"full\"".to_owned());
        }
        if !self.shortened().is_empty() && self.view.index.is_none() {
            options.push("index N".to_owned());
        }
        if self.fitted.is_reduced() {
            options.push("a larger max_tokens".to_owned());
        }
        options
    }

    fn has_next_page(&self) -> bool {
        let rest = &self.input.envelope.rest;
        let cursor = rest.get("nextCursor").and_then(Value::as_str);
        let more = rest.get("hasMore").and_then(Value::as_bool);
        cursor.is_some_and(|cursor| !cursor.is_empty()) && more != Some(false)
    }

    /// Returns links to the resources with what the budget left out.
    pub(super) fn links(&self) -> Vec<ResourceLink> {
        let Some(id) = self.input.cache_id else {
            return Vec::new();
        };
        let link = |index: usize| {
            let result = self.input.envelope.results.get(index)?;
            let title = level::title(result).unwrap_or("result");
            Some(ResourceLink {
                uri: format!("exa://results/{id}/{index}"),
                name: truncate_text(&one_line(title), 100).0,
                description: format!("Result {index} in full"),
                mime_type: "text/markdown",
                size: None,
            })
        };
        let positions = self.fitted.shrunk.iter().chain(&self.fitted.left_out);
        let mut links: Vec<ResourceLink> = positions
            .take(MAX_LINKS)
            .filter_map(|index| link(*index))
            .collect();
        if self.fitted.left_out.len() > MAX_LINKS || self.fitted.rest_truncated {
            links.push(ResourceLink {
                uri: format!("exa://results/{id}"),
                name: format!("All {} results", self.input.envelope.results.len()),
                description: "The whole result".to_owned(),
                mime_type: "text/markdown",
                size: None,
            });
        }
        links
    }
}

/// Returns the total of a cost that may be broken down into parts.
fn total(cost: &Value) -> Option<&Value> {
    let total = cost.get("total").unwrap_or(cost);
    Some(total).filter(|total| total.is_number())
}

fn warning(warning: &Value) -> Value {
    match warning {
        Value::String(text) => json!(truncate_text(text, MAX_WARNING_CHARS).0),
        Value::Object(_) => warning.clone(),
        other => json!(other.to_string()),
    }
}
