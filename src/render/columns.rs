//! The enrichments and criteria of webset items as columns with the titles that their owner knows them by.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::shape::{MAX_ENTRIES, ShapedResult, truncate_value};
use super::text::{one_line, truncate_text};
use super::{ContentLevel, OutputFormat, View, path};

/// Separates the values of an enrichment with several.
const SEPARATOR: &str = "; ";

/// Maximum characters of the title of a column.
const MAX_TITLE_CHARS: usize = 100;

/// Maximum characters of a text about a single item.
const MAX_DETAIL_CHARS: usize = 600;

/// The titles of enrichments, by their id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ColumnTitles(HashMap<String, String>);

impl FromIterator<(String, String)> for ColumnTitles {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(titles: T) -> Self {
        let short = |title: &str| truncate_text(&one_line(title), MAX_TITLE_CHARS).0;
        let titles = titles.into_iter();
        Self(titles.map(|(id, title)| (id, short(&title))).collect())
    }
}

impl ColumnTitles {
    /// Returns the title of an enrichment of an item.
    fn title(&self, enrichment: &Value) -> Option<&str> {
        let id = enrichment.get("enrichmentId")?.as_str()?;
        self.0.get(id).map(String::as_str)
    }

    /// Returns the title of an enrichment, or its id.
    fn name<'a>(&'a self, enrichment: &'a Value) -> Option<&'a str> {
        let id = || enrichment.get("enrichmentId")?.as_str();
        self.title(enrichment).or_else(id)
    }
}

/// Returns the results of an item's enrichments by title.
pub(super) fn enrichment_columns(item: &Value, titles: &ColumnTitles) -> Vec<(String, Value)> {
    let column = |entry: &Value| Some((titles.name(entry)?.to_owned(), result_of(entry)));
    entries(item, "enrichments").filter_map(column).collect()
}

/// Returns the verdicts on an item by criterion.
fn criterion_columns(item: &Value) -> Vec<(String, Value)> {
    let column = |entry: &Value| {
        let criterion = entry.get("criterion")?.as_str()?;
        let (criterion, _) = truncate_text(&one_line(criterion), MAX_TITLE_CHARS);
        Some((criterion, entry.get("satisfied")?.clone()))
    };
    entries(item, "evaluations").filter_map(column).collect()
}

fn entries<'a>(item: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    let list = item.get(list).and_then(Value::as_array);
    list.into_iter().flatten()
}

/// Returns the values of an enrichment as one, or its status while there are none.
fn result_of(enrichment: &Value) -> Value {
    match enrichment.get("result") {
        Some(Value::Array(values)) if !values.is_empty() => match values.as_slice() {
            [one] => one.clone(),
            several => {
                let text = |value: &Value| match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                json!(several.iter().map(text).collect::<Vec<_>>().join(SEPARATOR))
            }
        },
        Some(value) if !path::is_empty(value) => value.clone(),
        _ => match enrichment.get("status").and_then(Value::as_str) {
            None | Some("completed") => Value::Null,
            Some(status) => json!(format!("({status})")),
        },
    }
}

/// Replaces the enrichments and criteria of an item by columns, as far as the view has columns or titles are known.
pub(super) fn name_columns(
    shaped: &mut ShapedResult,
    item: &Value,
    view: &View,
    titles: &ColumnTitles,
    is_single: bool,
) {
    let Value::Object(shown) = &mut shaped.value else {
        return;
    };
    let is_table = matches!(view.format, OutputFormat::Csv | OutputFormat::Table);
    if is_single && view.level == ContentLevel::Standard && item.get("properties").is_some() {
        add_details(shown, item, &mut shaped.truncated);
    }
    match view.level {
        _ if view.format == OutputFormat::Json => {}
        ContentLevel::Standard if is_table => {
            for (list, columns) in [
                ("evaluations", criterion_columns(item)),
                ("enrichments", enrichment_columns(item, titles)),
            ] {
                if !columns.is_empty() {
                    shown.shift_remove(list);
                    columns
                        .into_iter()
                        .for_each(|(name, value)| insert_column(shown, name, value));
                }
            }
        }
        ContentLevel::Standard if !is_single => {
            if entries(item, "enrichments").any(|entry| titles.title(entry).is_some()) {
                let columns: Map<String, Value> =
                    enrichment_columns(item, titles).into_iter().collect();
                shown.insert("enrichments".to_owned(), Value::Object(columns));
            }
        }
        ContentLevel::Standard | ContentLevel::Full => {
            if let Some(Value::Array(list)) = shown.get_mut("enrichments") {
                list.iter_mut().for_each(|entry| add_title(entry, titles));
            }
        }
        ContentLevel::Summary => {}
    }
}

/// Shows why a single item matches, and where its values come from.
fn add_details(shown: &mut Map<String, Value>, item: &Value, truncated: &mut bool) {
    for (list, fields) in [
        (
            "evaluations",
            ["criterion", "satisfied", "reasoning", "references.url"].as_slice(),
        ),
        (
            "enrichments",
            [
                "enrichmentId",
                "status",
                "result",
                "reasoning",
                "references.url",
            ]
            .as_slice(),
        ),
    ] {
        let Some(value) = item.get(list) else {
            continue;
        };
        let mut picked = path::pick(value, fields);
        for entry in picked.as_array_mut().into_iter().flatten() {
            let references = entry.get_mut("references").and_then(Value::as_array_mut);
            // Only their addresses are left.
            for reference in references.into_iter().flatten() {
                if let Some(url) = reference.get_mut("url") {
                    *reference = url.take();
                }
            }
        }
        let picked = truncate_value(picked, MAX_DETAIL_CHARS, MAX_ENTRIES, truncated);
        if !path::is_empty(&picked) {
            shown.insert(list.to_owned(), picked);
        }
    }
}

/// Puts the title of an enrichment in the place of its id.
fn add_title(enrichment: &mut Value, titles: &ColumnTitles) {
    let title = titles.title(enrichment).map(str::to_owned);
    if let (Some(title), Value::Object(fields)) = (title, enrichment) {
        fields.shift_insert(0, "title".to_owned(), json!(title));
    }
}

/// Adds a column under a name that no other column has.
fn insert_column(shown: &mut Map<String, Value>, name: String, value: Value) {
    let mut unique = name.clone();
    let mut number = 2;
    while shown.contains_key(&unique) {
        unique = format!("{name} ({number})");
        number += 1;
    }
    shown.insert(unique, value);
}

/// Returns the value of a column by its title, whatever its letter case.
pub(super) fn column(item: &Value, title: &str, titles: &ColumnTitles) -> Option<Value> {
    let title = title.strip_prefix("enrichments.").unwrap_or(title);
    let columns = enrichment_columns(item, titles)
        .into_iter()
        .chain(criterion_columns(item));
    let mut found = columns.filter(|(name, _)| name.to_lowercase() == title.to_lowercase());
    found.next().map(|(_, value)| value)
}

/// Returns the titles of an item's columns.
pub(super) fn names(item: &Value, titles: &ColumnTitles) -> Vec<String> {
    let columns = enrichment_columns(item, titles)
        .into_iter()
        .chain(criterion_columns(item));
    columns.map(|(name, _)| name).collect()
}
