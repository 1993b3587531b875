//! Renders a result: text and structured content with the same information.

use serde_json::{Map, Value, json};

use super::budget::{FittedResults, fit};
use super::document::write_document;
use super::header::Header;
use super::shape::{ShapedResult, shape, shape_fields, shape_rest};
use super::{
    ContentLevel, Envelope, FilterStats, OutputFormat, View, ViewError, csv, deprecated, json,
    markdown,
};
use exa_mcp_model::{CallStats, JobEnd};
use exa_mcp_text::tokens::estimate;

/// How often a result that exceeds the budget is fitted again.
const MAX_TRIES: usize = 4;

/// The smallest budget that is guaranteed to hold; a smaller one may be less than the header.
const MIN_BUDGET: usize = 200;

/// Maximum field names listed for a caller that requested unknown ones.
const MAX_NAMES: usize = 50;

/// A result to render.
#[derive(Debug)]
pub(crate) struct RenderInput<'a> {
    /// The operation that was called.
    pub operation: &'a str,
    /// Its response.
    pub envelope: Envelope,
    /// Fields that the tool adds, such as how to follow a job that it started.
    pub tool_fields: Map<String, Value>,
    /// The id in the cache, if the result is cached.
    pub cache_id: Option<&'a str>,
    /// The call may be repeated without side effects.
    pub repeatable: bool,
    /// The result comes from the cache.
    pub cached: bool,
    /// The level for which the tool chose the arguments of the request, if it did.
    pub requested_level: Option<ContentLevel>,
    /// Corrections made to the arguments.
    pub corrections: Vec<String>,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
    /// Filters applied by Exa.
    pub sent_filters: Vec<String>,
    /// Why a list was not read to its end, if it was not.
    pub paging_stop: Option<String>,
}

/// A rendered result.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// The text for models.
    pub text: String,
    /// The structured content, with the same information.
    pub structured: Map<String, Value>,
    /// Links to what was left out.
    pub links: Vec<ResourceLink>,
    /// The format of the text. JSON text equals the structured content.
    pub format: OutputFormat,
    /// Statistics of the call, if an operation or tool ran.
    pub stats: Option<CallStats>,
    /// How the job behind the call ended, if it did.
    pub job_end: Option<JobEnd>,
}

/// A link to a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceLink {
    /// Its URI.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// What it holds.
    pub description: String,
    /// Its MIME type.
    pub mime_type: &'static str,
    /// Its size in bytes, if known.
    pub size: Option<usize>,
}

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

/// Renders a result within the budget of a view.
pub(crate) fn render(mut input: RenderInput<'_>, view: &View) -> Result<Rendered, ViewError> {
    let (selection, whole) = select(&mut input, view)?;
    let written = write(&input, view, &selection, &whole);
    // Most results fit and are written only once.
    if written.tokens <= view.max_tokens {
        return Ok(finish(&input, view, &selection, whole, written));
    }
    let (fitted, written) = fit_to_budget(&input, view, &selection, &whole);
    Ok(finish(&input, view, &selection, fitted, written))
}

fn select(
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
    warnings.extend(tiny_budget(view));
    warnings.extend(unknown_fields(&selected, &envelope.rest, &fields));
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
    let results = selected.into_iter().filter_map(|index| {
        let result = input.envelope.results.get_mut(index)?;
        Some(if view.fields.is_empty() {
            let original = (view.format == OutputFormat::Json).then(|| page_fields(result));
            let mut shaped = shape(index, result, view.level, view.extract);
            if let (Some(Some(fields)), Value::Object(value)) = (original, &mut shaped.value) {
                for (name, field) in fields {
                    value.entry(name).or_insert(field);
                }
            }
            shaped
        } else {
            shape_fields(index, result, view.level, &fields)
        })
    });
    let mut whole = FittedResults::whole(results.collect(), rest);
    let selection = Selection {
        rest_truncated,
        matching,
        filter_stats,
        warnings,
    };
    hide_cursor(&mut whole, view, &selection);
    Ok((selection, whole))
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

/// Removes the cursor of the next page unless this page is shown to its end: following it would skip the rest.
fn hide_cursor(fitted: &mut FittedResults, view: &View, selection: &Selection) {
    let next = view.offset.saturating_add(fitted.shown.len());
    let is_end = view.index.is_none() && fitted.left_out.is_empty() && next >= selection.matching;
    if !is_end {
        fitted.rest.shift_remove("nextCursor");
    }
}

/// A written result and its tokens.
struct RenderedText {
    metadata: Map<String, Value>,
    text: String,
    tokens: usize,
}

/// Reduces a result until it fits into the budget of a view.
fn fit_to_budget(
    input: &RenderInput<'_>,
    view: &View,
    selection: &Selection,
    whole: &FittedResults,
) -> (FittedResults, RenderedText) {
    let mut budget = view.max_tokens;
    let mut tries = MAX_TRIES;
    loop {
        let one = |result: &ShapedResult| write_one(result, view);
        let mut fitted = fit(&whole.shown, &whole.rest, budget, one);
        hide_cursor(&mut fitted, view, selection);
        let written = write(input, view, selection, &fitted);
        // The length of the header depends on what is left out.
        let excess = written.tokens.saturating_sub(view.max_tokens);
        if excess == 0 {
            return (fitted, written);
        }
        if budget == 0 {
            break;
        }
        tries -= 1;
        budget = match tries {
            0 => 0,
            _ => budget.saturating_sub(excess),
        };
    }
    // If even one minimal result exceeds the budget, the header tells how to get the results.
    let nothing = FittedResults::empty(&whole.shown, &whole.rest);
    let written = write(input, view, selection, &nothing);
    (nothing, written)
}

fn write(
    input: &RenderInput<'_>,
    view: &View,
    selection: &Selection,
    fitted: &FittedResults,
) -> RenderedText {
    let header = Header {
        input,
        view,
        selection,
        fitted,
    };
    let mut metadata = header.metadata(PLACEHOLDER);
    let text = match view.format {
        OutputFormat::Json => {
            deprecated::add_copy(&mut metadata);
            json::text(
                &metadata,
                &input.tool_fields,
                fitted,
                list_name(input, view),
            )
        }
        OutputFormat::Markdown | OutputFormat::Csv | OutputFormat::Table => {
            write_document(&header, &metadata)
        }
    };
    RenderedText {
        metadata,
        tokens: estimate(&text),
        text,
    }
}

/// Fills in the token estimate and adds the structured content.
fn finish(
    input: &RenderInput<'_>,
    view: &View,
    selection: &Selection,
    fitted: FittedResults,
    written: RenderedText,
) -> Rendered {
    let RenderedText {
        mut metadata,
        mut text,
        tokens,
    } = written;
    let header = Header {
        input,
        view,
        selection,
        fitted: &fitted,
    };
    let links = header.links();
    let stats = Some(header.stats(tokens));
    metadata.insert("tokenEstimate".to_owned(), json!(tokens));
    let placeholder = PLACEHOLDER.to_string();
    if let Some(at) = text.find(&placeholder) {
        text.replace_range(at..at + placeholder.len(), &tokens.to_string());
    }
    Rendered {
        text,
        structured: json::structured_content(
            metadata,
            &input.tool_fields,
            fitted,
            list_name(input, view),
        ),
        links,
        format: view.format,
        stats,
        job_end: None,
    }
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

/// Returns the name of the list of results: that of Exa in a toolhost, else the same for all operations.
fn list_name(input: &RenderInput<'_>, view: &View) -> &'static str {
    if view.toolhost_operation.is_some() {
        input.envelope.list
    } else {
        "results"
    }
}

/// Placeholder for the token estimate, as wide as a large estimate.
const PLACEHOLDER: u64 = 98_765_432;

fn write_one(result: &ShapedResult, view: &View) -> String {
    let mut text = String::new();
    match view.format {
        OutputFormat::Json => text = result.value.to_string(),
        OutputFormat::Csv | OutputFormat::Table => csv::push_row(&mut text, result),
        OutputFormat::Markdown if is_one_line_per_result(view) => {
            markdown::push_row(&mut text, result)
        }
        OutputFormat::Markdown => markdown::push_section(&mut text, result),
    }
    text
}

/// Returns whether each result is one line; picked fields may be longer.
pub(super) fn is_one_line_per_result(view: &View) -> bool {
    view.level == ContentLevel::Summary && view.fields.is_empty()
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
) -> Option<String> {
    let has = |field: &&&str| {
        let only = std::slice::from_ref(*field);
        let found = |value: &Value| {
            let picked = shape_fields(0, value, ContentLevel::Full, only).value;
            picked.as_object().is_some_and(|map| !map.is_empty())
        };
        rest.contains_key(**field) || results.iter().any(|(_, result)| found(result))
    };
    let unknown: Vec<&str> = fields.iter().filter(|field| !has(field)).copied().collect();
    let (_, first) = results.first().filter(|_| !unknown.is_empty())?;
    let known = first.as_object()?.keys().map(String::as_str);
    let known: Vec<&str> = known.take(MAX_NAMES).collect();
    Some(format!(
        "no result has the field {}; available fields: {}",
        unknown.join(", "),
        known.join(", ")
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn input(corrections: &[String]) -> RenderInput<'static> {
        let url = |number: usize| format!("https://example{number}.com/a/long/path/to/page");
        let page = |number: usize| {
            json!({"id": url(number), "url": url(number), "title": format!("A fairly long title of page {number}"),
                "publishedDate": "2024-05-01T00:00:00.000Z", "author": "Someone", "score": 0.345_678,
                "text": "Some words of it. ".repeat(400)})
        };
        let response = json!({"requestId": "30b92d3e-f7ca-4638-90d5-ae7acb27f3a7", "resolvedSearchType": "neural",
            "results": (0..10).map(page).collect::<Vec<_>>(), "costDollars": {"total": 0.008}});
        RenderInput {
            operation: "search",
            envelope: Envelope::from(response),
            tool_fields: Map::new(),
            cache_id: Some("r_aaaaaaaaaaaaaaaaaaaa"),
            repeatable: true,
            cached: true,
            requested_level: None,
            corrections: corrections.to_vec(),
            warnings: Vec::new(),
            sent_filters: Vec::new(),
            paging_stop: None,
        }
    }

    fn view(format: OutputFormat, level: ContentLevel, max_tokens: usize) -> View {
        View {
            level,
            format,
            max_tokens,
            ..View::default()
        }
    }

    const LEVELS: [ContentLevel; 3] = [
        ContentLevel::Summary,
        ContentLevel::Standard,
        ContentLevel::Full,
    ];

    #[test]
    fn the_smallest_budgets_hold() {
        for format in [OutputFormat::Markdown, OutputFormat::Json] {
            for level in LEVELS {
                for budget in [MIN_BUDGET, 220, 250, 300, 400] {
                    let rendered = render(input(&[]), &view(format, level, budget)).unwrap();
                    let tokens = rendered.stats.unwrap().tokens;
                    assert!(
                        tokens <= budget as u64,
                        "{format:?} {level:?} {budget}: {tokens}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_budget_of_json_covers_the_deprecated_key() {
        let corrections = vec!["`numResult` was read as `numResults`".to_owned(); 10];
        for budget in [800, 1_500, 5_000] {
            let view = view(OutputFormat::Json, ContentLevel::Full, budget);
            let rendered = render(input(&corrections), &view).unwrap();
            let text = Value::Object(rendered.structured).to_string();
            assert_eq!(rendered.text, text);
            assert!(text.contains("\"mended\""));
            assert!(estimate(&text) <= budget, "{budget}: {}", estimate(&text));
        }
    }
}
