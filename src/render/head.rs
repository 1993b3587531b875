//! What is said about an answer: how much there is, what it costs, and how to get more.

use serde_json::{Map, Value, json};

use super::budget::Fitted;
use super::clean::Fence;
use super::inline::inline;
use super::show::{Answer, Chosen, Link, as_rows};
use super::text::{bounded, one_line};
use super::{Dropped, Level, View, level, markdown, path};

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
        let mut metadata = Map::new();
        // Code relies on the first ten; the others are told where there is something to tell.
        let mut put = |name: &str, value: Value| drop(metadata.insert(name.to_owned(), value));
        put("operation", json!(answer.operation));
        put("totalResults", json!(answer.envelope.results.len()));
        put("returned", json!(self.fitted.shown.len()));
        put("tokenEstimate", json!(tokens));
        put("contentLevel", json!(self.view.level.name()));
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

    /// What this answer cost; one that was kept from before costs nothing more.
    fn cost(&self) -> Value {
        let envelope = &self.answer.envelope;
        let of = |cost: &Value| {
            let total = cost.get("total").unwrap_or(cost);
            Some(total).filter(|cost| cost.is_number()).cloned()
        };
        let own = envelope.rest.get("costDollars").and_then(of);
        let thing = || match envelope.results.as_slice() {
            [thing] => thing.get("costDollars").and_then(of),
            _ => None,
        };
        match (self.answer.cached, own.or_else(thing)) {
            (_, None) => Value::Null,
            (true, Some(_)) => json!(0),
            (false, Some(cost)) => cost,
        }
    }

    fn request_id(&self) -> Value {
        match self.answer.envelope.rest.get("requestId") {
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
    fn applied_here(&self) -> impl Iterator<Item = &Dropped> {
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
    fn shortened(&self) -> Vec<usize> {
        let cut = self.fitted.shown.iter().filter(|shown| shown.cut);
        cut.map(|shown| shown.index).collect()
    }

    fn rest_cut(&self) -> bool {
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
        if self.answer.cache_id.is_some() && !again.is_empty() {
            ways.push(format!(
                "call again with this cache_id and {}, which costs nothing",
                again.join(" or ")
            ));
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
            });
        }
        links
    }

    /// The whole answer as Markdown.
    pub(super) fn markdown(&self, metadata: &Map<String, Value>) -> String {
        let mut lines = vec![self.headline(metadata)];
        for (name, label) in [("warnings", "Warning"), ("mended", "Mended")] {
            let list = metadata.get(name).and_then(Value::as_array);
            lines.extend(list.into_iter().flatten().map(|entry| {
                let text = entry
                    .as_str()
                    .map_or_else(|| entry.to_string(), str::to_owned);
                format!("{label}: {}", inline(&text))
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
        let fence = Fence::new();
        // Exa and its users have a word in the head as well: no mark of theirs must stand before ours.
        let head = lines.join("\n");
        // Without an empty line, what follows would belong to the last of these.
        format!("{}\n\n{}", fence.neutral(&head), self.body(fence))
    }

    fn headline(&self, metadata: &Map<String, Value>) -> String {
        let answer = self.answer;
        let told = |name: &str| metadata.get(name).cloned().unwrap_or_default();
        let mut head = format!(
            "{}: {} of {} results · ~{} tokens · {}",
            answer.operation,
            told("returned"),
            told("totalResults"),
            told("tokenEstimate"),
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
            head.push_str(&format!(" · request {}", inline(id)));
        }
        head
    }

    /// Which filters were applied where, and what fell out.
    fn filter_line(&self) -> Option<String> {
        let mut parts = Vec::new();
        if !self.answer.sent_filters.is_empty() {
            let sent = self.answer.sent_filters.join(", ");
            parts.push(format!("Exa applied {sent}"));
        }
        for dropped in self.applied_here() {
            let without = match dropped.unknown {
                0 => String::new(),
                unknown => format!(", {unknown} of them without a value"),
            };
            parts.push(format!(
                "{} took away {}{without}",
                dropped.filter,
                dropped.count()
            ));
        }
        (!parts.is_empty()).then(|| format!("Filters: {}", parts.join("; ")))
    }

    fn left_out_line(&self) -> Option<String> {
        let mut parts = Vec::new();
        if let Some(from) = self.fitted.left_out.first() {
            let count = self.fitted.left_out.len();
            parts.push(format!("{count} results from {from} on"));
        }
        let shortened = self.shortened();
        if !shortened.is_empty() {
            parts.push(format!("parts of {}", ranges(&shortened)));
        }
        if self.rest_cut() {
            parts.push("parts of what stands beside the results".to_owned());
        }
        (!parts.is_empty()).then(|| format!("Left out: {}", parts.join("; ")))
    }

    /// Everything that others wrote, between marks that they cannot know.
    fn body(&self, fence: Fence) -> String {
        let shown = &self.fitted.shown;
        let results = match as_rows(self.view) {
            true => markdown::rows(shown),
            false => shown
                .iter()
                .map(markdown::section)
                .collect::<Vec<_>>()
                .join("\n"),
        };
        let mut parts = vec![markdown::fields(&self.fitted.rest), results];
        parts.retain(|part| !part.is_empty());
        if parts.is_empty() {
            return "No results.".to_owned();
        }
        // The empty lines keep the marks and the parts apart, whatever kind of Markdown they are.
        format!(
            "{}\n\n{}\n\n{}",
            fence.begin(),
            fence.neutral(&parts.join("\n\n")),
            fence.end()
        )
    }
}

fn warning(warning: &Value) -> Value {
    match warning {
        Value::String(text) => json!(bounded(text, LONGEST_WARNING).0),
        Value::Object(_) => warning.clone(),
        other => json!(other.to_string()),
    }
}

/// Numbers in ascending order, neighbours together: `0 to 3, 7`.
fn ranges(numbers: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let range = |(first, last): &(usize, usize)| match last - first {
        0 => first.to_string(),
        _ => format!("{first} to {last}"),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_told_together() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0 to 2, 5, 7 to 8");
        assert_eq!(ranges(&[4]), "4");
    }
}
