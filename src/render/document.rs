//! A whole result as Markdown, or as CSV with the same header: the header, then the untrusted content inside a fence.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::header::Header;
use super::inline::push_inline;
use super::plain::PageHeading;
use super::renderer::is_one_line_per_result;
use super::text::one_line;
use super::{ContentLevel, OutputFormat, csv, markdown, path, plain};
use exa_mcp_text::sanitize::Fence;

/// Initial capacities, in bytes: header and fence, and one result at the standard level.
const HEADER_CAPACITY: usize = 1_024;
const RESULT_CAPACITY: usize = 1_024;

/// Dollars up to which the price of a page is not worth a line.
const MAX_UNREMARKABLE_COST: f64 = 0.01;

/// Returns the whole result as Markdown.
pub(super) fn write_document(header: &Header<'_>, metadata: &Map<String, Value>) -> String {
    let fence = Fence::new();
    let is_ordinary = is_ordinary(header, metadata);
    let failures = named_failures(header).filter(|_| is_ordinary);
    let body = body(header, is_ordinary, failures.is_some());
    let mut head = String::with_capacity(body.len() + HEADER_CAPACITY);
    if !is_ordinary || body.is_empty() && failures.is_none() {
        push_header(&mut head, header, metadata);
    }
    // The header quotes Exa and its users as well: none of their text may look like our fence.
    let mut text = match fence.neutralize(&head) {
        Cow::Owned(neutral) => neutral,
        Cow::Borrowed(_) => head,
    };
    // Without an empty line, Markdown would append what follows to the last paragraph.
    let separate = |text: &mut String| text.push_str(if text.is_empty() { "" } else { "\n\n" });
    separate(&mut text);
    // The empty lines separate the fence from any kind of Markdown in the body.
    let content = fence.neutralize(&body);
    let tags = (fence.opening_tag(), fence.closing_tag());
    let parts: &[&str] = match &failures {
        _ if !body.is_empty() => &[&tags.0, "\n\n", &content, "\n\n", &tags.1],
        None => &["No results."],
        Some(_) => &[],
    };
    text.extend(parts.iter().copied());
    if let Some(failures) = failures {
        separate(&mut text);
        text.push_str(&fence.neutralize(&failures));
    }
    text
}

/// Returns whether a header would only say what the caller expects: all pages, at the price of a few.
fn is_ordinary(header: &Header<'_>, metadata: &Map<String, Value>) -> bool {
    let view = header.view;
    let cost = metadata.get("costDollars").and_then(Value::as_f64);
    let is_plain = view.is_plain && view.format == OutputFormat::Markdown;
    // Only pages that were named by the caller have statuses.
    let is_of_pages = header.input.envelope.rest.contains_key("statuses");
    let is_whole = header.fitted.shown.len() == header.input.envelope.results.len();
    let has_remarks = [
        "warnings",
        "corrections",
        "filters",
        "leftOut",
        "more",
        "cached",
    ]
    .iter()
    .any(|name| {
        metadata
            .get(*name)
            .is_some_and(|value| !path::is_empty(value))
    });
    is_plain
        && is_of_pages
        && is_whole
        && !has_remarks
        && view.level == ContentLevel::Standard
        && cost.is_none_or(|cost| cost <= MAX_UNREMARKABLE_COST)
        && header.input.tool_fields.is_empty()
        && !header.has_next_page()
}

fn push_header(out: &mut String, header: &Header<'_>, metadata: &Map<String, Value>) {
    push_headline(out, header, metadata);
    for (name, label) in [
        ("warnings", "\nWarning: "),
        ("corrections", "\nCorrected: "),
    ] {
        let list = metadata.get(name).and_then(Value::as_array);
        for entry in list.into_iter().flatten() {
            out.push_str(label);
            match entry {
                Value::String(text) => out.push_str(&one_line(text)),
                other => push_inline(out, &other.to_string()),
            }
        }
    }
    for line in [filter_line(header), left_out_line(header)]
        .iter()
        .flatten()
    {
        out.push('\n');
        out.push_str(line);
    }
    if let Some(more) = metadata.get("more").and_then(Value::as_str) {
        out.push_str("\nMore: ");
        out.push_str(more);
    }
    if !header.input.tool_fields.is_empty() {
        out.push('\n');
        markdown::push_all(out, &header.input.tool_fields);
    }
}

fn push_headline(out: &mut String, header: &Header<'_>, metadata: &Map<String, Value>) {
    let input = header.input;
    let toolhost_operation = header.view.toolhost_operation.as_deref();
    let operation = toolhost_operation.unwrap_or(input.operation);
    out.push_str(&format!("{operation}: {}", count(header)));
    if let Some(cost) = metadata.get("costDollars").filter(|cost| cost.is_number()) {
        out.push_str(&format!(" · ${cost}"));
    }
    if input.cached {
        out.push_str(" · from the cache");
    }
    let request = metadata.get("requestId").and_then(Value::as_str);
    if let Some(id) = request.filter(|_| header.view.level == ContentLevel::Full) {
        out.push_str(" · request ");
        push_inline(out, id);
    }
}

/// Describes how many results are shown, and of how many.
fn count(header: &Header<'_>) -> String {
    let shown = header.fitted.shown.len();
    let total = header.input.envelope.results.len();
    let matching = header.matching();
    let mut text = match matching.unwrap_or(total) {
        all if all == shown => shown.to_string(),
        all => format!("{shown} of {all}"),
    };
    text.push_str(match shown {
        _ if header.has_next_page() => " on this page, more follow",
        1 if text == "1" => " result",
        _ => " results",
    });
    if matching.is_some() {
        text.push_str(&format!(", {total} before filters"));
    }
    text
}

/// Describes which filters were applied where, and how many results each removed.
fn filter_line(header: &Header<'_>) -> Option<String> {
    let mut parts = Vec::new();
    if !header.input.sent_filters.is_empty() {
        let sent = header.input.sent_filters.join(", ");
        parts.push(format!("Exa applied {sent}"));
    }
    for stats in header.local_filters() {
        let without = match stats.without_value {
            0 => String::new(),
            count => format!(", {count} without a value"),
        };
        parts.push(format!(
            "{} removed {}{without}",
            stats.filter,
            stats.count()
        ));
    }
    (!parts.is_empty()).then(|| format!("Filters: {}", parts.join("; ")))
}

fn left_out_line(header: &Header<'_>) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(from) = header.fitted.left_out.first() {
        let count = header.fitted.left_out.len();
        parts.push(format!("{count} results from {} on", from + 1));
    }
    parts.extend(header.omitted_fields().into_iter().map(str::to_owned));
    let shortened = header.shortened();
    if !shortened.is_empty() {
        parts.push(format!("parts of {}", ranges(&shortened)));
    }
    if header.is_rest_truncated() {
        parts.push("parts of the other fields".to_owned());
    }
    (!parts.is_empty()).then(|| format!("Left out: {}", parts.join("; ")))
}

/// Returns lines about the pages that could not be read, if they quote nobody: addresses that the caller gave, and
/// codes.
fn named_failures(header: &Header<'_>) -> Option<String> {
    let statuses = header.fitted.rest.get("statuses")?.as_array()?;
    if statuses.is_empty() {
        return None;
    }
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for status in statuses {
        let url = path::get(status, "id").and_then(Value::as_str)?;
        let error = path::get(status, "error").and_then(Value::as_str)?;
        if !header.input.is_named(url) || !plain::is_one_word(url) {
            return None;
        }
        let code = plain::error_code(error)?;
        match groups.iter_mut().find(|(other, _)| *other == code) {
            Some((_, urls)) => urls.push(url),
            None => groups.push((code, vec![url])),
        }
    }
    let line = |(code, urls): &(String, Vec<&str>)| format!("Failed: {} {code}", urls.join(" "));
    Some(groups.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Returns which parts of the headings of pages the caller does not know.
fn page_heading(header: &Header<'_>, is_ordinary: bool) -> PageHeading {
    let url = match header.fitted.shown.as_slice() {
        [single] => path::get(&single.value, "url").and_then(Value::as_str),
        _ => None,
    };
    match url {
        _ if !is_ordinary => PageHeading::Numbered,
        Some(url) if header.input.is_named(url) => PageHeading::Title,
        _ => PageHeading::TitleAndUrl,
    }
}

/// Writes all untrusted content.
fn body(header: &Header<'_>, is_ordinary: bool, has_failures: bool) -> String {
    let fitted = header.fitted;
    let mut body = String::with_capacity(RESULT_CAPACITY * fitted.shown.len());
    let mut rest = Cow::Borrowed(&fitted.rest);
    if header.view.level != ContentLevel::Full
        && let Some(Value::Array(statuses)) = fitted.rest.get("statuses")
    {
        rest.to_mut().shift_remove("statuses");
        if !has_failures {
            markdown::push_statuses(&mut body, statuses);
        }
        if !rest.is_empty() {
            body.push('\n');
        }
    }
    markdown::push_all(&mut body, &rest);
    if !body.is_empty() && !fitted.shown.is_empty() {
        body.push_str("\n\n");
    }
    match header.view.format {
        // Without results, only the names of columns would be left.
        OutputFormat::Csv | OutputFormat::Table if fitted.shown.is_empty() => {}
        OutputFormat::Csv => csv::push_rows(&mut body, &fitted.shown),
        OutputFormat::Table => csv::push_table(&mut body, &fitted.shown),
        // JSON documents are written elsewhere.
        OutputFormat::Markdown | OutputFormat::Json => {
            push_markdown(&mut body, header, is_ordinary)
        }
    }
    body
}

/// Writes the results as Markdown.
fn push_markdown(body: &mut String, header: &Header<'_>, is_ordinary: bool) {
    let shown = &header.fitted.shown;
    if is_one_line_per_result(header.view) {
        markdown::push_rows(body, shown);
    } else if header.view.is_plain {
        plain::push_sections(body, shown, page_heading(header, is_ordinary));
    } else {
        markdown::push_sections(body, shown);
    }
}

/// Formats ascending numbers with neighbors as ranges: `0 to 3, 7`.
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
    fn joins_neighboring_numbers() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0 to 2, 5, 7 to 8");
        assert_eq!(ranges(&[4]), "4");
    }
}
