//! Reduces results to a content level.

use serde_json::{Map, Value, json};

use super::level::{ContentLevel, ResultType, StandardFields, type_of};
use super::{date, path, text};
use exa_mcp_model::envelope::METADATA_FIELDS;

/// Maximum entries of a list inside a result.
const MAX_ENTRIES: usize = 50;

/// Capacity for the fields of a result at the standard level.
const FIELD_CAPACITY: usize = 8;

/// Fields of a response that describe the request, not the results.
const REQUEST_FIELDS: [&str; 7] = [
    "object",
    "searchTime",
    "searchType",
    "resolvedSearchType",
    "autoDate",
    "costDollars",
    "version",
];

/// Maximum characters of a text beside the results, by level.
const SUMMARY_REST_CHARS: usize = 600;
const STANDARD_REST_CHARS: usize = 4_000;

/// Maximum characters of a URL, a status or a date: pages choose their own.
const MAX_HEADING_CHARS: usize = 2_000;

/// A result reduced to a content level.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ShapedResult {
    /// Its index in the response.
    pub(super) index: usize,
    /// The reduced value.
    pub(super) value: Value,
    /// A text or list was truncated.
    pub(super) truncated: bool,
}

/// Reduces a result to a level. `extract` is the number of characters of text that the caller requested. Passages
/// may be moved out of `result`; its title stays.
pub(super) fn shape(
    index: usize,
    result: &mut Value,
    level: ContentLevel,
    extract: Option<usize>,
) -> ShapedResult {
    let mut truncated = false;
    let value = match (level, &*result) {
        (ContentLevel::Summary, Value::Object(_)) => Value::Object(summary(result, &mut truncated)),
        (ContentLevel::Standard, Value::Object(_)) => standard(result, extract, &mut truncated),
        (ContentLevel::Full, _) => result.clone(),
        (_, other) => truncate_value(
            other.clone(),
            SUMMARY_REST_CHARS,
            MAX_ENTRIES,
            &mut truncated,
        ),
    };
    ShapedResult {
        index,
        value,
        truncated,
    }
}

/// Reduces a result to single fields; below the full level, long texts and lists are truncated.
pub(super) fn shape_fields(
    index: usize,
    result: &Value,
    level: ContentLevel,
    fields: &[&str],
) -> ShapedResult {
    let mut truncated = false;
    let picked = path::pick(result, fields);
    let value = match level {
        ContentLevel::Full => picked,
        ContentLevel::Standard => {
            truncate_value(picked, STANDARD_REST_CHARS, MAX_ENTRIES, &mut truncated)
        }
        ContentLevel::Summary => {
            truncate_value(picked, SUMMARY_REST_CHARS, MAX_ENTRIES, &mut truncated)
        }
    };
    ShapedResult {
        index,
        value,
        truncated,
    }
}

/// Reduces the fields beside the results to a level, without those that the metadata has. Lists and objects may be
/// moved out of `rest`.
pub(super) fn shape_rest(
    rest: &mut Map<String, Value>,
    level: ContentLevel,
    truncated: &mut bool,
) -> Map<String, Value> {
    let rest = rest
        .iter_mut()
        .filter(|(name, _)| !METADATA_FIELDS.contains(&name.as_str()));
    let bound = match level {
        ContentLevel::Full => {
            let whole = rest.map(|(name, value)| (name.clone(), value.clone()));
            return whole.collect();
        }
        ContentLevel::Standard => STANDARD_REST_CHARS,
        ContentLevel::Summary => SUMMARY_REST_CHARS,
    };
    let is_shown = |(name, value): &(&String, &mut Value)| {
        let is_redundant = path::is_empty(value) || **value == json!(false) && *name == "hasMore";
        !is_redundant && !REQUEST_FIELDS.contains(&name.as_str())
    };
    let mut shaped = Map::new();
    for (name, value) in rest.filter(is_shown) {
        let value = match value {
            Value::Array(_) | Value::Object(_) => value.take(),
            // The header still needs the cursor of the next page.
            scalar => scalar.clone(),
        };
        let value = match name.as_str() {
            "statuses" => shape_statuses(value, level),
            // The context repeats the texts of all results.
            "context" if level == ContentLevel::Summary => {
                *truncated = true;
                continue;
            }
            _ => truncate_value(value, bound, MAX_ENTRIES, truncated),
        };
        if !path::is_empty(&value) {
            shaped.insert(name.clone(), value);
        }
    }
    shaped
}

/// Reduces the statuses of pages: successes have no details, and a summary omits them.
fn shape_statuses(statuses: Value, level: ContentLevel) -> Value {
    let Value::Array(mut list) = statuses else {
        return Value::Array(Vec::new());
    };
    if level == ContentLevel::Summary {
        list.retain(|status| !is_success(status));
    }
    for status in list.iter_mut().filter(|status| is_success(status)) {
        if let Value::Object(fields) = status {
            fields.retain(|name, _| ["id", "status"].contains(&name.as_str()));
        }
    }
    Value::Array(list)
}

fn is_success(status: &Value) -> bool {
    let state = status
        .as_object()
        .and_then(|fields| path::field(fields, "status"));
    state.and_then(Value::as_str) == Some("success")
}

fn summary(result: &Value, truncated: &mut bool) -> Map<String, Value> {
    let result_type = type_of(result);
    let mut row = heading(result, result_type, truncated);
    for path in result_type.date {
        if let Some(date) = row.get_mut(last_segment(path)) {
            *date = json!(date::format_day(date));
        }
    }
    let line = result_type
        .line
        .iter()
        .filter_map(|path| path::get(result, path))
        .find_map(text::first_line);
    if let Some(line) = line
        && row.get("title").and_then(Value::as_str) != Some(&line)
    {
        row.insert("line".to_owned(), json!(line));
    }
    row
}

/// Returns what every level shows: identifier, title, URL, date, status.
fn heading(result: &Value, result_type: &ResultType, truncated: &mut bool) -> Map<String, Value> {
    let mut row = Map::with_capacity(FIELD_CAPACITY);
    let mut short = |value: &Value| match value {
        Value::String(_) => {
            truncate_value(value.clone(), MAX_HEADING_CHARS, MAX_ENTRIES, truncated)
        }
        other => other.clone(),
    };
    if let Some(id) = path::first(result, result_type.id) {
        row.insert("id".to_owned(), id.clone());
    }
    if let Some(Value::String(title)) = path::first(result, result_type.title) {
        let (title, _) = text::truncate_text(&text::one_line(title), 200);
        row.insert("title".to_owned(), json!(title));
    }
    for (name, paths) in [("url", result_type.url), ("status", result_type.status)] {
        if let Some(value) = path::first(result, paths) {
            row.insert(name.to_owned(), short(value));
        }
    }
    for date in result_type.date {
        if let Some(value) = path::get(result, date) {
            row.insert(last_segment(date).to_owned(), short(value));
            break;
        }
    }
    row
}

fn standard(result: &mut Value, extract: Option<usize>, truncated: &mut bool) -> Value {
    let result_type = type_of(result);
    match result_type.standard {
        StandardFields::Bounded { bound, entries } => {
            truncate_value(result.clone(), bound, entries, truncated)
        }
        StandardFields::Fields {
            keep,
            passages,
            bound,
        } => {
            let mut shown = heading(result, result_type, truncated);
            let fields = path::pick_fields(result, keep);
            for (name, value) in fields.filter(|(_, value)| !path::is_empty(value)) {
                shown.insert(name, truncate_value(value, bound, MAX_ENTRIES, truncated));
            }
            let bound = extract.unwrap_or(bound);
            for passage in passages {
                if let Some(value) = path::take(result, passage) {
                    shown.insert(
                        last_segment(passage).to_owned(),
                        extract_passages(value, bound, truncated),
                    );
                    break;
                }
            }
            Value::Object(shown)
        }
    }
}

fn last_segment(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Truncates passages to `bound` characters in total, and other values text by text.
fn extract_passages(value: Value, bound: usize, truncated: &mut bool) -> Value {
    let Value::Array(passages) = value else {
        return truncate_value(value, bound, MAX_ENTRIES, truncated);
    };
    let mut left = bound;
    let mut extracted = Vec::with_capacity(passages.len());
    for passage in passages {
        // A passage of a few characters is useless.
        if left < bound / 10 {
            *truncated = true;
            break;
        }
        let passage = truncate_value(passage, left, MAX_ENTRIES, truncated);
        left = left.saturating_sub(passage.as_str().map_or(0, |text| text.chars().count()));
        extracted.push(passage);
    }
    Value::Array(extracted)
}

/// Returns a value without empty fields, with long texts and lists truncated.
fn truncate_value(mut value: Value, text: usize, entries: usize, truncated: &mut bool) -> Value {
    let bounds = Bounds {
        text,
        entries,
        fields: usize::MAX,
    };
    bounds.apply(&mut value, truncated);
    value
}

/// Maximum sizes inside a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Maximum characters of a text.
    pub(super) text: usize,
    /// Maximum entries of a list.
    pub(super) entries: usize,
    /// Maximum fields of an object.
    pub(super) fields: usize,
}

impl Bounds {
    /// Removes empty fields from a value and truncates what is longer.
    pub(super) fn apply(&self, value: &mut Value, truncated: &mut bool) {
        match value {
            Value::String(text) => *truncated |= text::truncate(text, self.text),
            Value::Array(list) => {
                *truncated |= list.len() > self.entries;
                list.truncate(self.entries);
                list.iter_mut()
                    .for_each(|entry| self.apply(entry, truncated));
            }
            Value::Object(map) => {
                *truncated |= map.len() > self.fields;
                // The prefix of the identifier already names the type of object.
                map.retain(|name, value| !path::is_empty(value) && name != "object");
                if map.len() > self.fields {
                    *map = std::mem::take(map).into_iter().take(self.fields).collect();
                }
                map.values_mut()
                    .for_each(|value| self.apply(value, truncated));
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
    fn shows_more_at_each_level() {
        let sizes: Vec<usize> = [
            ContentLevel::Summary,
            ContentLevel::Standard,
            ContentLevel::Full,
        ]
        .map(|level| shape(0, &mut page(), level, None).value.to_string().len())
        .into();
        assert!(
            sizes[0] * 2 < sizes[1] && sizes[1] * 3 < sizes[2],
            "{sizes:?}"
        );
        let summary = shape(0, &mut page(), ContentLevel::Summary, None).value;
        assert_eq!(summary["title"], "A | title in two lines");
        assert_eq!(summary["publishedDate"], "2024-01-02");
        assert!(summary["line"].as_str().unwrap().starts_with("Some words"));
        assert!(summary.get("id").is_none(), "the URL identifies a page");
        assert_eq!(
            shape(0, &mut page(), ContentLevel::Full, None).value,
            page()
        );
    }

    #[test]
    fn truncates_long_headings() {
        let mut page = page();
        page["url"] = json!(format!("https://a.example/{}", "x".repeat(100_000)));
        page["publishedDate"] = json!("2024 ".repeat(100_000));
        for level in [ContentLevel::Summary, ContentLevel::Standard] {
            let shaped = shape(0, &mut page.clone(), level, None);
            assert!(shaped.truncated, "{level:?}");
            assert!(shaped.value.to_string().len() < 10_000, "{level:?}");
        }
        assert_eq!(
            shape(0, &mut page.clone(), ContentLevel::Full, None).value,
            page
        );
    }

    #[test]
    fn extracts_as_much_text_as_requested() {
        let standard = |extract| shape(0, &mut page(), ContentLevel::Standard, extract);
        let length =
            |extract: Option<usize>| standard(extract).value["text"].as_str().unwrap().len();
        assert!(length(None) <= 610 && length(None) > 400);
        assert!(length(Some(2_000)) > 1_300);
        assert!(standard(None).truncated && !standard(Some(10_000)).truncated);
    }

    #[test]
    fn shows_evaluations_and_enrichments_of_an_item() {
        let mut item = json!({
            "id": "item_1", "properties": {"type": "company", "url": "https://a.example", "description": "Makes things",
            "company": {"name": "Acme", "logoUrl": "l"}},
            "evaluations": [{"criterion": "c", "satisfied": "yes", "reasoning": "long", "references": [1]}],
            "enrichments": [{"enrichmentId": "e", "result": ["Ann"], "reasoning": "r"}], "createdAt": "2024-01-01",
        });
        let shown = shape(0, &mut item, ContentLevel::Standard, None).value;
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
    fn omits_redundant_page_statuses() {
        let rest = json!({"statuses": [{"id": "a", "status": "success", "source": "cached"}, {"id": "b", "status": "error"}], "searchTime": 5});
        let shown = |level| {
            Value::from(shape_rest(
                &mut rest.as_object().unwrap().clone(),
                level,
                &mut false,
            ))
        };
        let expected =
            json!({"statuses": [{"id": "a", "status": "success"}, {"id": "b", "status": "error"}]});
        assert_eq!(shown(ContentLevel::Standard), expected);
        let failed = json!({"statuses": [{"id": "b", "status": "error"}]});
        assert_eq!(shown(ContentLevel::Summary), failed);
    }
}
