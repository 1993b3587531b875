//! One result as a level shows it.

use serde_json::{Map, Value, json};

use super::level::{Level, ResultType, Standard, type_of};
use super::{date, path, text};
use exa_mcp_model::envelope::METADATA_FIELDS;

/// Entries of a list inside a result that is shown by its fields.
const MOST_ENTRIES: usize = 50;

/// Fields that a result which is shown by its fields seldom exceeds.
const MOST_FIELDS: usize = 8;

/// Fields of an answer that tell about the request, not about what was found.
const ABOUT_REQUEST: [&str; 7] = [
    "object",
    "searchTime",
    "searchType",
    "resolvedSearchType",
    "autoDate",
    "costDollars",
    "version",
];

/// Characters of a text beside the results, by level.
const BESIDE_SUMMARY: usize = 600;
const BESIDE_STANDARD: usize = 4_000;

/// Characters of an address, a state or a date: a page may say anything of itself.
const LONGEST_HEADING: usize = 2_000;

/// A result as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shaped {
    /// Its place in the answer.
    pub(super) index: usize,
    /// What is shown.
    pub(super) value: Value,
    /// A text or list of it was cut.
    pub(super) cut: bool,
}

/// Shapes a result; `extract` is how many characters of text the caller asked for. Passages may be taken
/// out of the result; what it is called stays.
pub(super) fn shape(
    index: usize,
    result: &mut Value,
    level: Level,
    extract: Option<usize>,
) -> Shaped {
    let mut cut = false;
    let value = match (level, &*result) {
        (Level::Summary, Value::Object(_)) => Value::Object(summary(result, &mut cut)),
        (Level::Standard, Value::Object(_)) => standard(result, extract, &mut cut),
        (Level::Full, _) => result.clone(),
        (_, other) => bounded(other.clone(), BESIDE_SUMMARY, MOST_ENTRIES, &mut cut),
    };
    Shaped { index, value, cut }
}

/// Single fields of a result; below `full`, long texts and lists are cut.
pub(super) fn shape_fields(index: usize, result: &Value, level: Level, fields: &[&str]) -> Shaped {
    let mut cut = false;
    let picked = path::pick(result, fields);
    let value = match level {
        Level::Full => picked,
        Level::Standard => bounded(picked, BESIDE_STANDARD, MOST_ENTRIES, &mut cut),
        Level::Summary => bounded(picked, BESIDE_SUMMARY, MOST_ENTRIES, &mut cut),
    };
    Shaped { index, value, cut }
}

/// What stands beside the results, as a level shows it; what the head tells is left to it. Lists and
/// objects may be taken out.
pub(super) fn shape_rest(
    rest: &mut Map<String, Value>,
    level: Level,
    cut: &mut bool,
) -> Map<String, Value> {
    let rest = rest
        .iter_mut()
        .filter(|(name, _)| !METADATA_FIELDS.contains(&name.as_str()));
    let bound = match level {
        Level::Full => {
            let whole = rest.map(|(name, value)| (name.clone(), value.clone()));
            return whole.collect();
        }
        Level::Standard => BESIDE_STANDARD,
        Level::Summary => BESIDE_SUMMARY,
    };
    let told = |(name, value): &(&String, &mut Value)| {
        let says_nothing = path::is_empty(value) || **value == json!(false) && *name == "hasMore";
        !says_nothing && !ABOUT_REQUEST.contains(&name.as_str())
    };
    let mut shaped = Map::new();
    for (name, value) in rest.filter(told) {
        let value = match value {
            Value::Array(_) | Value::Object(_) => value.take(),
            // The head has a word to say about where a list goes on.
            scalar => scalar.clone(),
        };
        let value = match name.as_str() {
            "statuses" => states(value, level),
            // The text of all pages in one piece says again what the results say.
            "context" if level == Level::Summary => {
                *cut = true;
                continue;
            }
            _ => bounded(value, bound, MOST_ENTRIES, cut),
        };
        if !path::is_empty(&value) {
            shaped.insert(name.clone(), value);
        }
    }
    shaped
}

/// The states of single pages; of a success there is no more to tell, and nothing in a summary.
fn states(statuses: Value, level: Level) -> Value {
    let Value::Array(mut list) = statuses else {
        return Value::Array(Vec::new());
    };
    if level == Level::Summary {
        list.retain(|status| !is_success(status));
    }
    for status in list.iter_mut().filter(|status| is_success(status)) {
        if let Value::Object(told) = status {
            told.retain(|name, _| ["id", "status"].contains(&name.as_str()));
        }
    }
    Value::Array(list)
}

fn is_success(status: &Value) -> bool {
    let state = status
        .as_object()
        .and_then(|told| path::field(told, "status"));
    state.and_then(Value::as_str) == Some("success")
}

fn summary(result: &Value, cut: &mut bool) -> Map<String, Value> {
    let kind = type_of(result);
    let mut row = heading(result, kind, cut);
    for place in kind.date {
        if let Some(moment) = row.get_mut(leaf(place)) {
            *moment = json!(date::day(moment));
        }
    }
    let line = kind
        .line
        .iter()
        .filter_map(|path| path::get(result, path))
        .find_map(text::line);
    if let Some(line) = line
        && row.get("title").and_then(Value::as_str) != Some(&line)
    {
        row.insert("line".to_owned(), json!(line));
    }
    row
}

/// What every level shows: identifier, title, address, date, state.
fn heading(result: &Value, kind: &ResultType, cut: &mut bool) -> Map<String, Value> {
    let mut row = Map::with_capacity(MOST_FIELDS);
    let mut short = |value: &Value| match value {
        Value::String(_) => bounded(value.clone(), LONGEST_HEADING, MOST_ENTRIES, cut),
        other => other.clone(),
    };
    if let Some(id) = path::first(result, kind.id) {
        row.insert("id".to_owned(), id.clone());
    }
    if let Some(Value::String(title)) = path::first(result, kind.title) {
        let (title, _) = text::bounded(&text::one_line(title), 200);
        row.insert("title".to_owned(), json!(title));
    }
    for (name, paths) in [("url", kind.url), ("status", kind.status)] {
        if let Some(value) = path::first(result, paths) {
            row.insert(name.to_owned(), short(value));
        }
    }
    for date in kind.date {
        if let Some(value) = path::get(result, date) {
            row.insert(leaf(date).to_owned(), short(value));
            break;
        }
    }
    row
}

fn standard(result: &mut Value, extract: Option<usize>, cut: &mut bool) -> Value {
    let kind = type_of(result);
    match kind.standard {
        Standard::Bounded { bound, entries } => bounded(result.clone(), bound, entries, cut),
        Standard::Fields {
            keep,
            passages,
            bound,
        } => {
            let mut shown = heading(result, kind, cut);
            let kept = path::pick_fields(result, keep);
            for (name, value) in kept.filter(|(_, value)| !path::is_empty(value)) {
                shown.insert(name, bounded(value, bound, MOST_ENTRIES, cut));
            }
            let bound = extract.unwrap_or(bound);
            for passage in passages {
                if let Some(value) = path::take(result, passage) {
                    shown.insert(leaf(passage).to_owned(), extract_of(value, bound, cut));
                    break;
                }
            }
            Value::Object(shown)
        }
    }
}

fn leaf(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Passages share their characters; other values are bounded text by text.
fn extract_of(value: Value, bound: usize, cut: &mut bool) -> Value {
    let Value::Array(passages) = value else {
        return bounded(value, bound, MOST_ENTRIES, cut);
    };
    let mut left = bound;
    let mut taken = Vec::with_capacity(passages.len());
    for passage in passages {
        // A few characters of a passage say nothing.
        if left < bound / 10 {
            *cut = true;
            break;
        }
        let passage = bounded(passage, left, MOST_ENTRIES, cut);
        left = left.saturating_sub(passage.as_str().map_or(0, |text| text.chars().count()));
        taken.push(passage);
    }
    Value::Array(taken)
}

/// A value without what says nothing, with long texts and lists cut.
fn bounded(mut value: Value, text: usize, entries: usize, cut: &mut bool) -> Value {
    let bounds = Bounds {
        text,
        entries,
        fields: usize::MAX,
    };
    bounds.apply(&mut value, cut);
    value
}

/// How much of a value is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Characters of a text.
    pub(super) text: usize,
    /// Entries of a list.
    pub(super) entries: usize,
    /// Fields of an object.
    pub(super) fields: usize,
}

impl Bounds {
    /// Leaves out of a value what says nothing, and cuts everything that is longer.
    pub(super) fn apply(&self, value: &mut Value, cut: &mut bool) {
        match value {
            Value::String(text) => *cut |= text::shorten(text, self.text),
            Value::Array(list) => {
                *cut |= list.len() > self.entries;
                list.truncate(self.entries);
                list.iter_mut().for_each(|entry| self.apply(entry, cut));
            }
            Value::Object(map) => {
                *cut |= map.len() > self.fields;
                // The identifier begins with the kind of thing it is.
                map.retain(|name, value| !path::is_empty(value) && name != "object");
                if map.len() > self.fields {
                    *map = std::mem::take(map).into_iter().take(self.fields).collect();
                }
                map.values_mut().for_each(|value| self.apply(value, cut));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn page() -> Value {
        json!({
            "id": "https://a.example/x", "url": "https://a.example/x", "title": "A | title\nin two lines",
            "publishedDate": "2024-01-02T00:00:00.000Z", "author": null, "score": 0.5,
            "text": format!("# A title\n\n{}", "Some words of it. ".repeat(200)), "image": "i", "new": 1,
        })
    }

    #[test]
    fn each_level_shows_more() {
        let sizes: Vec<usize> = [Level::Summary, Level::Standard, Level::Full]
            .map(|level| shape(0, &mut page(), level, None).value.to_string().len())
            .into();
        assert!(
            sizes[0] * 2 < sizes[1] && sizes[1] * 3 < sizes[2],
            "{sizes:?}"
        );
        let summary = shape(0, &mut page(), Level::Summary, None).value;
        assert_eq!(summary["title"], "A | title in two lines");
        assert_eq!(summary["publishedDate"], "2024-01-02");
        assert!(summary["line"].as_str().unwrap().starts_with("Some words"));
        assert!(summary.get("id").is_none(), "the address identifies a page");
        assert_eq!(shape(0, &mut page(), Level::Full, None).value, page());
    }

    #[test]
    fn no_heading_is_endless() {
        let mut page = page();
        page["url"] = json!(format!("https://a.example/{}", "x".repeat(100_000)));
        page["publishedDate"] = json!("2024 ".repeat(100_000));
        for level in [Level::Summary, Level::Standard] {
            let shaped = shape(0, &mut page.clone(), level, None);
            assert!(shaped.cut, "{level:?}");
            assert!(shaped.value.to_string().len() < 10_000, "{level:?}");
        }
        assert_eq!(shape(0, &mut page.clone(), Level::Full, None).value, page);
    }

    #[test]
    fn the_extract_is_as_long_as_asked_for() {
        let standard = |extract| shape(0, &mut page(), Level::Standard, extract);
        let length =
            |extract: Option<usize>| standard(extract).value["text"].as_str().unwrap().len();
        assert!(length(None) <= 610 && length(None) > 400);
        assert!(length(Some(2_000)) > 1_300);
        assert!(standard(None).cut && !standard(Some(10_000)).cut);
    }

    #[test]
    fn an_item_shows_what_was_found_out() {
        let mut item = json!({
            "id": "item_1", "properties": {"type": "company", "url": "https://a.example", "description": "Makes things",
            "company": {"name": "Acme", "logoUrl": "l"}},
            "evaluations": [{"criterion": "c", "satisfied": "yes", "reasoning": "long", "references": [1]}],
            "enrichments": [{"enrichmentId": "e", "result": ["Ann"], "reasoning": "r"}], "createdAt": "2024-01-01",
        });
        let shown = shape(0, &mut item, Level::Standard, None).value;
        assert_eq!(shown["title"], "Acme");
        assert_eq!(
            shown["evaluations"],
            json!([{"criterion": "c", "satisfied": "yes"}])
        );
        assert_eq!(
            shown["enrichments"],
            json!([{"enrichmentId": "e", "result": ["Ann"]}])
        );
        assert_eq!(shown["description"], "Makes things");
    }

    #[test]
    fn the_state_of_every_page_is_told_but_for_those_that_say_nothing_new() {
        let rest = json!({"statuses": [{"id": "a", "status": "success", "source": "cached"}, {"id": "b", "status": "error"}], "searchTime": 5});
        let shown = |level| {
            Value::from(shape_rest(
                &mut rest.as_object().unwrap().clone(),
                level,
                &mut false,
            ))
        };
        let told =
            json!({"statuses": [{"id": "a", "status": "success"}, {"id": "b", "status": "error"}]});
        assert_eq!(shown(Level::Standard), told);
        let failed = json!({"statuses": [{"id": "b", "status": "error"}]});
        assert_eq!(shown(Level::Summary), failed);
    }
}
