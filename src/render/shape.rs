//! Reduces results to a content level.

use serde_json::{Map, Value, json};

use super::level::{ContentLevel, ResultType, StandardFields, type_of};
use super::passages::extract_passages;
use super::{date, path, text};
use exa_mcp_model::envelope::METADATA_FIELDS;
use exa_mcp_text::is_identifier;

/// Maximum entries of a list inside a result.
pub(super) const MAX_ENTRIES: usize = 50;

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
pub(super) const SUMMARY_REST_CHARS: usize = 600;
pub(super) const STANDARD_REST_CHARS: usize = 4_000;

/// Maximum characters of a URL, a status or a date: pages choose their own.
const MAX_HEADING_CHARS: usize = 2_000;

/// A result reduced to a content level.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ShapedResult {
    /// Its index in the response.
    pub(super) index: usize,
    /// The reduced value.
    pub(super) value: Value,
    /// A text or list was truncated.
    pub(super) truncated: bool,
    /// The names of fields that the level leaves out.
    pub(super) omitted: Vec<String>,
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
    let mut omitted = Vec::new();
    let value = match (level, &*result) {
        (ContentLevel::Summary, Value::Object(_)) => Value::Object(summary(result, &mut truncated)),
        (ContentLevel::Standard, Value::Object(_)) => {
            standard(result, extract, &mut truncated, &mut omitted)
        }
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
        omitted,
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
            "statuses" => failed_statuses(value),
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

/// Returns the pages that could not be read, each with its error in one line.
fn failed_statuses(statuses: Value) -> Value {
    let Value::Array(mut list) = statuses else {
        return Value::Array(Vec::new());
    };
    list.retain(|status| !is_success(status));
    for status in &mut list {
        let error = path::get(status, "error").map(|error| match error {
            Value::Object(parts) => {
                let texts: Vec<String> = parts.values().filter_map(text::first_line).collect();
                json!(texts.join(" "))
            }
            other => other.clone(),
        });
        if let (Value::Object(fields), Some(error)) = (status, error) {
            fields.retain(|name, _| name == "id");
            fields.insert("error".to_owned(), error);
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
            let day = json!(date::format_day(&short(value)));
            row.insert(last_segment(date).to_owned(), day);
            break;
        }
    }
    row
}

fn standard(
    result: &mut Value,
    extract: Option<usize>,
    truncated: &mut bool,
    omitted: &mut Vec<String>,
) -> Value {
    let result_type = type_of(result);
    match result_type.standard {
        StandardFields::Bounded { bound, entries } => {
            truncate_value(result.clone(), bound, entries, truncated)
        }
        StandardFields::Fields {
            keep,
            passages,
            bound,
            nested,
            excerpt,
            ignored,
        } => {
            let mut shown = heading(result, result_type, truncated);
            let fields = path::pick_fields(result, keep);
            for (name, value) in fields.filter(|(_, value)| !path::is_empty(value)) {
                let value = match value.as_f64().filter(|_| name == "score") {
                    Some(score) => json!((score * 100.0).round() / 100.0),
                    None => truncate_value(value, bound, MAX_ENTRIES, truncated),
                };
                shown.insert(name, value);
            }
            let bound = extract.unwrap_or(bound);
            let mut has_passage = false;
            for passage in passages {
                // A caller who asks for so much text wants it beside the highlights, too.
                if has_passage && !(extract.is_some() && *passage == "text") {
                    continue;
                }
                if let Some(value) = path::take(result, passage) {
                    has_passage = true;
                    let value = extract_passages(value, bound, truncated);
                    shown.insert(last_segment(passage).to_owned(), value);
                }
            }
            for list in nested {
                if let Some(Value::Array(parts)) = path::take(result, list) {
                    let mut parts = parts;
                    let parts = parts
                        .iter_mut()
                        .map(|part| standard(part, extract, truncated, omitted));
                    shown.insert((*list).to_owned(), parts.collect());
                }
            }
            if let Some(name) = excerpt {
                *truncated |= shown.get(name) != result.get(name);
            }
            if let Some(ignored) = ignored {
                let left = left_out_fields(result, &shown, ignored);
                omitted.extend(
                    left.filter(|name| !omitted.contains(name))
                        .collect::<Vec<_>>(),
                );
            }
            Value::Object(shown)
        }
    }
}

/// Returns the names of fields that are neither shown nor ignored. A name that is no identifier may be a text of the
/// page, which does not belong outside of the marks around untrusted text.
fn left_out_fields<'a>(
    result: &'a Value,
    shown: &'a Map<String, Value>,
    ignored: &'a [&'a str],
) -> impl Iterator<Item = String> + 'a {
    let fields = result.as_object().into_iter().flatten();
    let left = fields.filter(move |(name, value)| {
        is_identifier(name)
            && !path::is_empty(value)
            && !shown.contains_key(*name)
            && !ignored.contains(&name.as_str())
    });
    left.map(|(name, _)| name.clone())
}

pub(super) fn last_segment(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Returns a value without empty fields, with long texts and lists truncated.
pub(super) fn truncate_value(
    mut value: Value,
    text: usize,
    entries: usize,
    truncated: &mut bool,
) -> Value {
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
    fn names_what_a_level_leaves_out() {
        let page = json!({"url": "https://a.example/", "title": "T", "image": "i", "highlights": ["h"],
            "text": "whole", "summary": "short", "entities": [1],
            "subpages": [{"url": "https://a.example/b", "title": "B", "text": "below", "id": "b"}]});
        let shaped = shape(0, &mut page.clone(), ContentLevel::Standard, None);
        assert_eq!(shaped.omitted, ["text", "entities"]);
        let subpage = json!({"title": "B", "url": "https://a.example/b", "text": "below"});
        assert_eq!(shaped.value["subpages"], json!([subpage]));
        let shaped = shape(0, &mut page.clone(), ContentLevel::Standard, Some(3_000));
        assert_eq!(shaped.omitted, ["entities"]);
        assert_eq!(shaped.value["text"], "whole");
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
        let rest = json!({"statuses": [{"id": "a", "status": "success", "source": "cached"}, {"id": "b", "status": "error", "error": {"tag": "CRAWL_NOT_FOUND", "httpStatusCode": 404}}], "searchTime": 5});
        let shown = |level| {
            Value::from(shape_rest(
                &mut rest.as_object().unwrap().clone(),
                level,
                &mut false,
            ))
        };
        let failed = json!({"statuses": [{"id": "b", "error": "CRAWL_NOT_FOUND 404"}]});
        assert_eq!(shown(ContentLevel::Standard), failed);
        assert_eq!(shown(ContentLevel::Summary), failed);
    }
}
