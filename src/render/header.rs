//! The header of a result: how much it holds, what it costs, and how to get more.

use serde_json::{Map, Value, json};

use super::budget::FittedResults;
use super::renderer::{RenderInput, ResourceLink};
use super::selection::Selection;
use super::shape::ShapedResult;
use super::text::{one_line, truncate_text};
use super::{ContentLevel, FilterStats, View, level, path};
use exa_mcp_model::{CallStats, MicroDollars};

/// Capacity of the metadata: no result has more fields.
const MAX_FIELDS: usize = 16;

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
            ("matching", json!(self.matching())),
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
        let hidden = self.view.extra.hidden_above.unwrap_or(ContentLevel::Full);
        self.view.level.min(requested).min(hidden)
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
        let own = self.selection.warnings.iter().cloned();
        let own = own.chain(self.unread_pages()).map(|warning| json!(warning));
        from_exa.into_iter().chain(own).collect()
    }

    /// Returns how many results match the filters, if some do not.
    pub(super) fn matching(&self) -> Option<usize> {
        let matching = self.selection.matching;
        let is_filtered = self.view.index.is_none() && matching < self.input.envelope.results.len();
        is_filtered.then_some(matching)
    }

    /// Describes why a list was not read to its end, and how to continue.
    fn unread_pages(&self) -> Option<String> {
        let reason = self.input.paging_stop.as_ref()?;
        let cursor = self.fitted.rest.get("nextCursor").and_then(Value::as_str);
        let next = match cursor {
            Some(cursor) => format!("; continue with cursor \"{cursor}\""),
            None => String::new(),
        };
        Some(format!("not all pages were read: {reason}{next}"))
    }

    /// Returns the numbers of the shown results, unless they are the first ones.
    fn indexes(&self) -> Value {
        let shown = self.fitted.shown.iter();
        let numbers: Vec<usize> = shown.map(|shown| shown.index + 1).collect();
        if (1..).zip(&numbers).all(|(at, number)| at == *number) {
            Value::Null
        } else {
            json!(numbers)
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

    /// Returns the numbers of truncated results.
    pub(super) fn shortened(&self) -> Vec<usize> {
        let cut = self.fitted.shown.iter().filter(|shown| shown.truncated);
        cut.map(|shown| shown.index + 1).collect()
    }

    /// Returns the names of fields that the level leaves out of some results, although they were asked for.
    pub(super) fn omitted_fields(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        let shown = self.fitted.shown.iter();
        for name in shown.flat_map(|result| result.omitted.iter()) {
            if !names.contains(&name.as_str()) && !self.view.extra.fields.contains(name) {
                names.push(name);
            }
        }
        names
    }

    pub(super) fn is_rest_truncated(&self) -> bool {
        self.selection.rest_truncated || self.fitted.rest_truncated
    }

    /// Returns which results are missing or truncated.
    fn left_out(&self) -> Value {
        let mut fields = Map::new();
        if let Some(first) = self.fitted.left_out.first() {
            fields.insert("results".to_owned(), json!(self.fitted.left_out.len()));
            fields.insert("from".to_owned(), json!(first + 1));
        }
        let omitted = self.omitted_fields();
        if !omitted.is_empty() {
            fields.insert("fields".to_owned(), json!(omitted));
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
        let level = self.level();
        let requested = self.input.requested_level.unwrap_or(ContentLevel::Full);
        let mut hints = Vec::new();
        let options = self.cache_options(requested);
        let options = options.join(" or ");
        match self.input.cache_id {
            Some(id) if !options.is_empty() => {
                hints.push(format!("cache_id {id} and {options}, free"))
            }
            None if self.fitted.is_reduced() && self.input.repeatable => hints.push(format!(
                "call again with {options}; the result was not cached, so Exa is called again"
            )),
            _ => {}
        }
        if requested < ContentLevel::Full && requested <= level && self.hides_content() {
            hints.push(
                match self.input.cache_id.filter(|_| self.input.is_expandable) {
                    Some(id) => {
                        format!(
                            "cache_id {id} and content_level \"full\" for whole texts, at a price"
                        )
                    }
                    None => "content_level \"full\" without cache_id for whole texts".to_owned(),
                },
            );
        }
        // The entries that are left out of this page come first.
        if self.has_next_page() && self.fitted.rest.contains_key("nextCursor") {
            hints.push("nextCursor as cursor for the next page, or all: true".into());
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
        if self.level() < requested && self.hides_content() {
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

    /// Returns whether the level hides something of the shown results that is worth a call.
    fn hides_content(&self) -> bool {
        let hides = |result: &ShapedResult| result.truncated || !result.omitted.is_empty();
        let mut shown = self.fitted.shown.iter();
        match self.view.level {
            ContentLevel::Summary => shown.next().is_some(),
            _ => self.is_rest_truncated() || shown.any(hides),
        }
    }

    /// Returns whether the list goes on after this page.
    pub(super) fn has_next_page(&self) -> bool {
        let rest = &self.input.envelope.rest;
        let cursor = rest.get("nextCursor").and_then(Value::as_str);
        let more = rest.get("hasMore").and_then(Value::as_bool);
        more.unwrap_or_else(|| cursor.is_some_and(|cursor| !cursor.is_empty()))
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
                uri: format!("exa://results/{id}/{}", index + 1),
                name: truncate_text(&one_line(title), 100).0,
                description: format!("Result {} in full", index + 1),
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
