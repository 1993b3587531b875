//! Picks single fields of results, by their names at Exa or those that the answer shows.

use serde_json::{Map, Value};

use super::level::{ResultType, StandardFields, type_of};
use super::shape::{
    MAX_ENTRIES, STANDARD_REST_CHARS, SUMMARY_REST_CHARS, ShapedResult, last_segment,
    truncate_value,
};
use super::{ColumnTitles, ContentLevel, columns, path};

/// Reduces a result to single fields; below the full level, long texts and lists are truncated.
pub(super) fn shape_fields(
    index: usize,
    result: &Value,
    level: ContentLevel,
    fields: &[&str],
    titles: &ColumnTitles,
) -> ShapedResult {
    let mut truncated = false;
    let picked = pick_shown(result, fields, titles);
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
        omitted: Vec::new(),
    }
}

/// Returns fields of a result, also by the names under which the levels show them.
fn pick_shown(result: &Value, fields: &[&str], titles: &ColumnTitles) -> Value {
    let mut picked = path::pick(result, fields);
    for field in fields {
        if let (None, Value::Object(map)) = (path::get(result, field), &mut picked)
            && let Some(value) = shown_value(result, field, titles)
        {
            map.insert((*field).to_owned(), value);
        }
    }
    picked
}

/// Returns a field by the name under which a level shows it.
fn shown_value(result: &Value, field: &str, titles: &ColumnTitles) -> Option<Value> {
    let paths = match field {
        "name" => type_of(result).title.to_vec(),
        "date" => type_of(result).date.to_vec(),
        _ => shown_paths(type_of(result))
            .filter(|(name, _)| *name == field)
            .flat_map(|(_, paths)| paths)
            .collect(),
    };
    let value = path::first(result, &paths).cloned();
    value.or_else(|| columns::column(result, field, titles))
}

/// Returns the names under which the levels show fields, and their paths.
fn shown_paths(
    result_type: &ResultType,
) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let heading = [
        ("title", result_type.title.to_vec()),
        ("url", result_type.url.to_vec()),
        ("status", result_type.status.to_vec()),
    ];
    let more: &[&str] = match result_type.standard {
        StandardFields::Fields { passages, .. } => passages,
        StandardFields::Bounded { .. } => &[],
    };
    let by_end = more.iter().chain(result_type.date);
    let by_end = by_end.map(|path| (last_segment(path), vec![*path]));
    heading.into_iter().chain(by_end)
}

/// Returns the names that `fields` accepts for a result: those that the answer shows, and those of Exa.
pub(super) fn field_names(result: &Value, titles: &ColumnTitles) -> Vec<String> {
    let shown = shown_paths(type_of(result));
    let shown = shown.filter(|(_, paths)| path::first(result, paths).is_some());
    let mut names: Vec<String> = shown.map(|(name, _)| name.to_owned()).collect();
    names.extend(columns::names(result, titles));
    let own = result.as_object().into_iter().flat_map(Map::keys);
    for name in own {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}
