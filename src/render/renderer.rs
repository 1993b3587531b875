//! Renders a result: text and structured content with the same information.

use serde_json::{Map, Value, json};

use super::budget::{FittedResults, fit};
use super::document::write_document;
use super::header::Header;
use super::selection::{Selection, select};
use super::shape::ShapedResult;
use super::{
    ColumnTitles, ContentLevel, Envelope, OutputFormat, View, ViewError, csv, deprecated, json,
    markdown, plain,
};
use exa_mcp_model::{CallStats, JobEnd};
use exa_mcp_text::tokens::estimate;

/// How often a result that exceeds the budget is fitted again.
const MAX_TRIES: usize = 4;

/// The smallest budget that is guaranteed to hold; a smaller one may be less than the header.
pub(super) const MIN_BUDGET: usize = 200;

/// A result to render.
#[derive(Debug)]
pub(crate) struct RenderInput<'a> {
    /// The operation that was called.
    pub operation: &'a str,
    /// Its response.
    pub envelope: Envelope,
    /// The texts among its arguments, such as the addresses of the pages to read.
    pub named: Vec<String>,
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
    /// A higher level than the requested one can be read by the id in the cache, at a price.
    pub is_expandable: bool,
    /// The titles of the enrichments of webset items.
    pub titles: ColumnTitles,
    /// Corrections made to the arguments.
    pub corrections: Vec<String>,
    /// Warnings for the caller.
    pub warnings: Vec<String>,
    /// Filters applied by Exa.
    pub sent_filters: Vec<String>,
    /// Why a list was not read to its end, if it was not.
    pub paging_stop: Option<String>,
}

impl RenderInput<'_> {
    /// Returns whether the caller gave this text as an argument.
    pub(super) fn is_named(&self, text: &str) -> bool {
        self.named.iter().any(|name| name == text)
    }
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

/// Renders a result within the budget of a view.
pub(crate) fn render(mut input: RenderInput<'_>, view: &View) -> Result<Rendered, ViewError> {
    let (selection, mut whole) = select(&mut input, view)?;
    hide_cursor(&mut whole, view, &selection);
    let written = write(&input, view, &selection, &whole);
    // Most results fit and are written only once.
    if written.tokens <= view.max_tokens {
        return Ok(finish(&input, view, &selection, whole, written));
    }
    let (fitted, written) = fit_to_budget(&input, view, &selection, &whole);
    Ok(finish(&input, view, &selection, fitted, written))
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
        OutputFormat::Markdown if view.is_plain => plain::push_section(&mut text, result),
        OutputFormat::Markdown => markdown::push_section(&mut text, result),
    }
    text
}

/// Returns whether each result is one line; picked fields may be longer.
pub(super) fn is_one_line_per_result(view: &View) -> bool {
    view.level == ContentLevel::Summary && view.fields.is_empty()
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
            named: Vec::new(),
            tool_fields: Map::new(),
            cache_id: Some("r_aaaaaaaaaaaaaaaaaaaa"),
            repeatable: true,
            cached: true,
            requested_level: None,
            is_expandable: false,
            titles: ColumnTitles::default(),
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
