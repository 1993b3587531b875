//! What is said about an answer: how much there is, what it costs, and how to get more.

use serde_json::{Map, Value, json};

use super::budget::Fitted;
use super::show::{Answer, Chosen, Link};
use super::text::{bounded, one_line};
use super::{Dropped, Level, View, level, path};
use exa_mcp_model::{CallStats, MicroDollars};

/// Fields that the metadata never exceed.
const MOST_FIELDS: usize = 15;

/// More links than this help nobody: the whole answer has one too.
const MOST_LINKS: usize = 20;

/// More warnings than this are not read.
const MOST_WARNINGS: usize = 20;

/// Characters of one warning, and of the id of a request.
const LONGEST_WARNING: usize = 500;

/// What is said about an answer.
pub(super) struct Head<'a> {
    pub(super) answer: &'a Answer<'a>,
    pub(super) view: &'a View,
    pub(super) chosen: &'a Chosen,
    pub(super) fitted: &'a Fitted,
}

impl Head<'_> {
    /// The same for code; the number of tokens is put in later.
    pub(super) fn metadata(&self, tokens: u64) -> Map<String, Value> {
        let answer = self.answer;
        let mut metadata = Map::with_capacity(MOST_FIELDS);
        // Code relies on the first ten; the others are told where there is something to tell.
        let mut put = |name: &str, value: Value| drop(metadata.insert(name.to_owned(), value));
        put("operation", json!(answer.operation));
        put("totalResults", json!(answer.envelope.results.len()));
        put("returned", json!(self.fitted.shown.len()));
        put("tokenEstimate", json!(tokens));
        put("contentLevel", json!(self.level().name()));
        put("cacheId", json!(answer.cache_id));
        put("costDollars", self.cost());
        put("requestId", self.request_id());
        put("warnings", self.warnings());
        put("mended", json!(answer.mended));
        let optional = [
            ("cached", json!(answer.cached.then_some(true))),
            ("indexes", self.indexes()),
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

    /// The level that the answer has: nothing shows more than Exa was asked for.
    pub(super) fn level(&self) -> Level {
        let asked = self.answer.asked.unwrap_or(Level::Full);
        self.view.level.min(asked)
    }

    /// Facts about the answer, once its tokens are counted.
    pub(super) fn stats(&self, tokens: usize) -> CallStats {
        let charged = self.price().filter(|_| !self.answer.cached);
        let dollars = charged.and_then(Value::as_f64);
        CallStats {
            operation: self.answer.operation.to_owned(),
            tokens: u64::try_from(tokens).unwrap_or(u64::MAX),
            cost: dollars.map_or(MicroDollars::ZERO, MicroDollars::from_dollars),
            cached: self.answer.cached,
        }
    }

    /// What this answer cost; one that was kept from before costs nothing more.
    fn cost(&self) -> Value {
        match self.price() {
            None => Value::Null,
            Some(_) if self.answer.cached => json!(0),
            Some(cost) => cost.clone(),
        }
    }

    /// What Exa says that the answer costs, in dollars.
    fn price(&self) -> Option<&Value> {
        let envelope = &self.answer.envelope;
        let own = envelope.rest.get("costDollars").and_then(total);
        own.or_else(|| match envelope.results.as_slice() {
            [thing] => thing.get("costDollars").and_then(total),
            _ => None,
        })
    }

    fn request_id(&self) -> Value {
        let envelope = &self.answer.envelope;
        let thing = || match envelope.results.as_slice() {
            [thing] => thing.get("requestId"),
            _ => None,
        };
        match envelope.rest.get("requestId").or_else(thing) {
            None | Some(Value::Null) => Value::Null,
            Some(Value::String(id)) => json!(bounded(id, LONGEST_WARNING).0),
            Some(other) => json!(other.to_string()),
        }
    }

    /// Exa's warnings, then ours.
    fn warnings(&self) -> Value {
        let from_exa = match self.answer.envelope.rest.get("warnings") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(list)) => list.iter().take(MOST_WARNINGS).map(warning).collect(),
            Some(one) => vec![warning(one)],
        };
        let own = self.chosen.warnings.iter().map(|warning| json!(warning));
        from_exa.into_iter().chain(own).collect()
    }

    /// Where the results stand in the whole answer, unless they are its beginning.
    fn indexes(&self) -> Value {
        let indexes: Vec<usize> = self.fitted.shown.iter().map(|shown| shown.index).collect();
        match indexes.iter().enumerate().all(|(at, index)| at == *index) {
            true => Value::Null,
            false => json!(indexes),
        }
    }

    /// The filters that were applied here: what Exa applied is told only if more fell out.
    pub(super) fn applied_here(&self) -> impl Iterator<Item = &Dropped> {
        let is_sent = |filter: &str| self.answer.sent_filters.iter().any(|sent| sent == filter);
        let dropped = self.chosen.dropped.iter();
        dropped.filter(move |dropped| dropped.count() > 0 || !is_sent(dropped.filter))
    }

    fn filters(&self) -> Value {
        let mut told = Map::new();
        if !self.answer.sent_filters.is_empty() {
            told.insert("sentToExa".to_owned(), json!(self.answer.sent_filters));
        }
        let here: Vec<Value> = self.applied_here().map(Dropped::json).collect();
        if !here.is_empty() {
            told.insert("appliedHere".to_owned(), json!(here));
        }
        Value::Object(told)
    }

    /// Results of which a part is missing.
    pub(super) fn shortened(&self) -> Vec<usize> {
        let cut = self.fitted.shown.iter().filter(|shown| shown.cut);
        cut.map(|shown| shown.index).collect()
    }

    pub(super) fn rest_cut(&self) -> bool {
        self.chosen.rest_cut || self.fitted.rest_cut
    }

    /// What was found but is not shown, or not whole.
    fn left_out(&self) -> Value {
        let mut told = Map::new();
        if let Some(first) = self.fitted.left_out.first() {
            told.insert("results".to_owned(), json!(self.fitted.left_out.len()));
            told.insert("from".to_owned(), json!(first));
        }
        let shortened = self.shortened();
        if !shortened.is_empty() {
            told.insert("shortened".to_owned(), json!(shortened));
        }
        if self.rest_cut() {
            told.insert("shortenedBesideResults".to_owned(), json!(true));
        }
        Value::Object(told)
    }

    /// How to get more.
    fn more(&self) -> Option<String> {
        let level = self.view.level;
        let asked = self.answer.asked.unwrap_or(Level::Full);
        let mut ways = Vec::new();
        let again = self.again(asked);
        let again = again.join(" or ");
        match self.answer.cache_id {
            Some(_) if !again.is_empty() => ways.push(format!(
                "call again with this cache_id and {again}, which costs nothing"
            )),
            None if self.fitted.is_tight() && self.answer.repeatable => ways.push(format!(
                "call again with {again}; the answer was not kept, so Exa is asked again"
            )),
            _ => {}
        }
        if asked < Level::Full && asked <= level {
            ways.push(
                "call without cache_id and with content_level \"full\" for whole texts".into(),
            );
        }
        if self.has_next_page() {
            ways.push("call with nextCursor as cursor for the next page, or with all: true".into());
        }
        (!ways.is_empty()).then(|| ways.join("; "))
    }

    /// What a look at the kept answer could show.
    fn again(&self, asked: Level) -> Vec<String> {
        let mut ways = Vec::new();
        let next = self.view.offset.saturating_add(self.fitted.shown.len());
        if self.view.index.is_none() && next < self.chosen.matching {
            ways.push(format!("offset {next}"));
        }
        if self.view.level < asked && !self.fitted.shown.is_empty() {
            ways.push("content_level \"full\"".to_owned());
        }
        if !self.shortened().is_empty() && self.view.index.is_none() {
            ways.push("index N".to_owned());
        }
        if self.fitted.is_tight() {
            ways.push("a larger max_tokens".to_owned());
        }
        ways
    }

    fn has_next_page(&self) -> bool {
        let rest = &self.answer.envelope.rest;
        let cursor = rest.get("nextCursor").and_then(Value::as_str);
        let more = rest.get("hasMore").and_then(Value::as_bool);
        cursor.is_some_and(|cursor| !cursor.is_empty()) && more != Some(false)
    }

    /// Resources that hold what the budget left out.
    pub(super) fn links(&self) -> Vec<Link> {
        let Some(id) = self.answer.cache_id else {
            return Vec::new();
        };
        let link = |index: usize| {
            let result = self.answer.envelope.results.get(index)?;
            let title = level::title(result).unwrap_or("result");
            Some(Link {
                uri: format!("exa://results/{id}/{index}"),
                name: bounded(&one_line(title), 100).0,
                description: format!("Result {index}, whole"),
                mime_type: "text/markdown",
                size: None,
            })
        };
        let places = self.fitted.shrunk.iter().chain(&self.fitted.left_out);
        let mut links: Vec<Link> = places
            .take(MOST_LINKS)
            .filter_map(|index| link(*index))
            .collect();
        if self.fitted.left_out.len() > MOST_LINKS || self.fitted.rest_cut {
            links.push(Link {
                uri: format!("exa://results/{id}"),
                name: format!("All {} results", self.answer.envelope.results.len()),
                description: "The whole answer".to_owned(),
                mime_type: "text/markdown",
                size: None,
            });
        }
        links
    }
}

/// The total of a cost, which may be told with its parts.
fn total(cost: &Value) -> Option<&Value> {
    let total = cost.get("total").unwrap_or(cost);
    Some(total).filter(|total| total.is_number())
}

fn warning(warning: &Value) -> Value {
    match warning {
        Value::String(text) => json!(bounded(text, LONGEST_WARNING).0),
        Value::Object(_) => warning.clone(),
        other => json!(other.to_string()),
    }
}
