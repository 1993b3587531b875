//! Selects the results that a view shows, and reduces each to what its level shows.

use serde_json::{Map, Value};

use super::budget::FittedResults;
use super::columns::name_columns;
use super::fields::{field_names, shape_fields};
use super::renderer::{MIN_BUDGET, RenderInput};
use super::shape::{ShapedResult, shape, shape_rest};
use super::{ColumnTitles, ContentLevel, FilterStats, OutputFormat, View, ViewError};

/// Maximum field names listed for a caller that requested unknown ones.
const MAX_NAMES: usize = 50;

/// Facts about the selection of results.
pub(super) struct Selection {
    /// A field beside the results was truncated.
    pub(super) rest_truncated: bool,
    /// How many results passed the filters.
    pub(super) matching: usize,
    /// How many each filter removed.
    pub(super) filter_stats: Vec<FilterStats>,
    /// Warnings for the caller.
    pub(super) warnings: Vec<String>,
}

/// Returns the indexes of the results that a view selects.
pub(crate) fn selected_indexes(results: &[Value], view: &View) -> Vec<usize> {
    let mut all: Vec<(usize, &Value)> = results.iter().enumerate().collect();
    if view.index.is_none() {
        view.filters.apply(&mut all);
    }
    let selected = view.select(all).unwrap_or_default();
    selected.into_iter().map(|(index, _)| index).collect()
}

pub(super) fn select(
    input: &mut RenderInput<'_>,
    view: &View,
) -> Result<(Selection, FittedResults), ViewError> {
    let envelope = &input.envelope;
    let mut results: Vec<(usize, &Value)> = envelope.results.iter().enumerate().collect();
    let filter_stats = match view.index {
        Some(_) => Vec::new(),
        None => view.filters.apply(&mut results),
    };
    let matching = results.len();
    let removed = removed_pages(&envelope.results, &results);
    let selected = view.select(results)?;
    let fields: Vec<&str> = view.fields.iter().map(String::as_str).collect();
    let mut warnings = input.warnings.clone();
    warnings.extend(idle_filters(input, view));
    warnings.extend(unscored(input, view));
    warnings.extend(tiny_budget(view));
    warnings.extend(unknown_fields(
        &selected,
        &envelope.rest,
        &fields,
        &input.titles,
    ));
    if selected.is_empty() && view.offset > 0 && matching > 0 {
        let offset = view.offset;
        warnings.push(format!(
            "offset {offset} is past the last of {matching} results"
        ));
    }
    let mut rest_truncated = false;
    // Callers that pick single fields do not want details of the request.
    let rest_level = if view.fields.is_empty() {
        view.level
    } else {
        ContentLevel::Summary
    };
    let selected: Vec<usize> = selected.into_iter().map(|(index, _)| index).collect();
    if let Some(Value::Array(statuses)) = input.envelope.rest.get_mut("statuses") {
        let id = |status: &Value| status.get("id").and_then(Value::as_str).map(str::to_owned);
        statuses.retain(|status| id(status).is_none_or(|id| !removed.contains(&id)));
    }
    let rest = shape_rest(&mut input.envelope.rest, rest_level, &mut rest_truncated);
    let is_single = view.index.is_some() || input.envelope.results.len() == 1;
    let titles = &input.titles;
    let envelope = &mut input.envelope;
    let results = selected.into_iter().filter_map(|index| {
        let result = envelope.results.get_mut(index)?;
        let hidden = hide_extra(result, view);
        Some(if view.fields.is_empty() {
            let original = (view.format == OutputFormat::Json).then(|| page_fields(result));
            let mut shaped = shape(index, result, view.level, view.extract);
            if let (Some(Some(fields)), Value::Object(value)) = (original, &mut shaped.value) {
                for (name, field) in fields {
                    value.entry(name).or_insert(field);
                }
            }
            if view.is_brief {
                keep_brief(&mut shaped, view.level);
            }
            shaped.omitted.extend(hidden);
            name_columns(&mut shaped, result, view, titles, is_single);
            shaped
        } else {
            shape_fields(index, result, view.level, &fields, titles)
        })
    });
    let whole = FittedResults::whole(results.collect(), rest);
    let selection = Selection {
        rest_truncated,
        matching,
        filter_stats,
        warnings,
    };
    Ok((selection, whole))
}

/// Removes the contents that the view hides from a result. Returns their names.
fn hide_extra(result: &mut Value, view: &View) -> Vec<String> {
    let (Some(_), Value::Object(fields)) = (view.extra.hidden_above, result) else {
        return Vec::new();
    };
    let names = view.extra.fields.iter();
    let hidden = names.filter(|name| fields.shift_remove(*name).is_some_and(|it| !it.is_null()));
    hidden.cloned().collect()
}

/// Removes what a brief view does not show of a page.
fn keep_brief(shaped: &mut ShapedResult, level: ContentLevel) {
    if let (ContentLevel::Standard, Value::Object(fields)) = (level, &mut shaped.value) {
        for name in ["publishedDate", "author", "score"] {
            fields.shift_remove(name);
        }
    }
}

/// Returns the identifiers of pages that the filters removed.
fn removed_pages(all: &[Value], left: &[(usize, &Value)]) -> Vec<String> {
    if left.len() == all.len() {
        return Vec::new();
    }
    let is_left = |index: usize| left.iter().any(|(own, _)| *own == index);
    let removed = all.iter().enumerate().filter(|(index, _)| !is_left(*index));
    removed
        .flat_map(|(_, page)| ["id", "url"].map(|name| page.get(name).and_then(Value::as_str)))
        .flatten()
        .map(str::to_owned)
        .collect()
}

/// The fields that a page has in JSON at every level; null if there is no value, or none at the level.
const PAGE_FIELDS: [&str; 9] = [
    "id",
    "title",
    "url",
    "publishedDate",
    "author",
    "text",
    "score",
    "image",
    "favicon",
];

/// Returns the short fields of a page, with null for those that it does not have; `None` if it is no page.
fn page_fields(result: &Value) -> Option<Vec<(String, Value)>> {
    let is_page = result.get("url").is_some_and(Value::is_string)
        && result.get("id").is_some()
        && ["object", "secret", "status", "properties"]
            .iter()
            .all(|name| result.get(*name).is_none());
    let field = |name: &str| {
        let value = result.get(name).filter(|_| name != "text").cloned();
        (name.to_owned(), value.unwrap_or(Value::Null))
    };
    is_page.then(|| PAGE_FIELDS.map(field).into())
}

/// Warns about a minimum score that cannot be applied.
fn unscored(input: &RenderInput<'_>, view: &View) -> Option<String> {
    let results = &input.envelope.results;
    let is_idle =
        view.index.is_none() && !results.is_empty() && view.filters.is_unscored(results.iter());
    is_idle.then(|| "minScore is not applied: no result has a score".to_owned())
}

/// Warns about a budget that the header alone may exceed.
fn tiny_budget(view: &View) -> Option<String> {
    let max_tokens = view.max_tokens;
    (max_tokens < MIN_BUDGET)
        .then(|| format!("max_tokens {max_tokens} is too small; use at least {MIN_BUDGET}"))
}

/// Warns about filters beside `index`, which shows its result regardless of them.
fn idle_filters(input: &RenderInput<'_>, view: &View) -> Option<String> {
    let index = view.index?;
    let given = view.filters.active();
    let names = given.iter().map(|stats| stats.filter);
    let idle: Vec<&str> = names
        .filter(|name| !input.sent_filters.iter().any(|sent| sent == name))
        .collect();
    (!idle.is_empty()).then(|| {
        format!(
            "result {} is shown unfiltered: {} not applied with index",
            index + 1,
            match idle.as_slice() {
                [one] => format!("the filter {one} is"),
                all => format!("the filters {} are", all.join(", ")),
            }
        )
    })
}

/// Warns about fields that no result has.
fn unknown_fields(
    results: &[(usize, &Value)],
    rest: &Map<String, Value>,
    fields: &[&str],
    titles: &ColumnTitles,
) -> Option<String> {
    let has = |field: &&&str| {
        let only = std::slice::from_ref(*field);
        let found = |value: &Value| {
            let picked = shape_fields(0, value, ContentLevel::Full, only, titles).value;
            picked.as_object().is_some_and(|map| !map.is_empty())
        };
        rest.contains_key(**field) || results.iter().any(|(_, result)| found(result))
    };
    let unknown: Vec<&str> = fields.iter().filter(|field| !has(field)).copied().collect();
    let (_, first) = results.first().filter(|_| !unknown.is_empty())?;
    let mut known: Vec<String> = Vec::new();
    let all = results
        .iter()
        .flat_map(|(_, result)| field_names(result, titles));
    for name in field_names(first, titles).into_iter().chain(all) {
        if known.len() < MAX_NAMES && !known.contains(&name) {
            known.push(name);
        }
    }
    Some(format!(
        "no result has the field {}; available fields: {}",
        unknown.join(", "),
        known.join(", ")
    ))
}
