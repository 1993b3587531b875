//! An answer as the caller sees it: text and data that say the same.

use serde_json::{Map, Value, json};

use super::budget::{Fitted, fit};
use super::head::Head;
use super::shape::{Shaped, shape, shape_fields, shape_rest};
use super::{Dropped, Envelope, Format, Level, View, ViewError, json, markdown, path};
use exa_mcp_model::CallStats;
use exa_mcp_text::tokens::estimate;

/// How often a text that came out too long is tried again.
const TRIES: usize = 4;

/// The least budget that every answer keeps to; a smaller one may be less than its head.
const LEAST_KEPT: usize = 200;

/// Names of fields that are told to someone who asked for others.
const MOST_NAMES: usize = 50;

/// What is to be shown.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    /// The operation that was called.
    pub operation: &'a str,
    /// What it answered.
    pub envelope: Envelope,
    /// What the tool itself has to say.
    pub told: Map<String, Value>,
    /// Under which name the answer is kept, if it is.
    pub cache_id: Option<&'a str>,
    /// Calling again changes nothing.
    pub repeatable: bool,
    /// Exa was not asked: the answer was kept from before.
    pub cached: bool,
    /// The level that Exa was asked for, where a tool chose that.
    pub asked: Option<Level>,
    /// What was put right in the arguments.
    pub mended: Vec<String>,
    /// What the caller should know.
    pub warnings: Vec<String>,
    /// Filters that Exa applied.
    pub sent_filters: Vec<String>,
}

/// An answer ready to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// For those who read.
    pub text: String,
    /// For those who compute; the same information.
    pub structured: Map<String, Value>,
    /// Where to find what was left out.
    pub links: Vec<Link>,
    /// How the text is written: as JSON it is the structured content.
    pub format: Format,
    /// Facts about the answer, if there is one.
    pub stats: Option<CallStats>,
}

/// A resource that holds more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its address.
    pub uri: String,
    /// What it is called.
    pub name: String,
    /// What it holds.
    pub description: String,
    /// The kind of its content.
    pub mime_type: &'static str,
    /// Its size in bytes, where that is known.
    pub size: Option<usize>,
}

/// What of an answer is wanted.
pub(super) struct Chosen {
    /// Something beside the results was cut.
    pub(super) rest_cut: bool,
    /// How many results passed the filters.
    pub(super) matching: usize,
    /// How many did not.
    pub(super) dropped: Vec<Dropped>,
    /// What the caller should know.
    pub(super) warnings: Vec<String>,
}

/// Shows an answer.
pub(crate) fn show(mut answer: Answer<'_>, view: &View) -> Result<Rendered, ViewError> {
    let (chosen, whole) = choose(&mut answer, view)?;
    let written = write(&answer, view, &chosen, &whole);
    // Most answers fit, and these are written but once.
    if written.tokens <= view.max_tokens {
        return Ok(finish(&answer, view, &chosen, whole, written));
    }
    let (fitted, written) = squeeze(&answer, view, &chosen, &whole);
    Ok(finish(&answer, view, &chosen, fitted, written))
}

fn choose(answer: &mut Answer<'_>, view: &View) -> Result<(Chosen, Fitted), ViewError> {
    let envelope = &answer.envelope;
    let mut results: Vec<(usize, &Value)> = envelope.results.iter().enumerate().collect();
    let dropped = match view.index {
        Some(_) => Vec::new(),
        None => view.filters.apply(&mut results),
    };
    let matching = results.len();
    let selected = view.select(results)?;
    let fields: Vec<&str> = view.fields.iter().map(String::as_str).collect();
    let mut warnings = answer.warnings.clone();
    warnings.extend(idle_filters(answer, view));
    warnings.extend(tiny_budget(view));
    warnings.extend(unknown_fields(&selected, &envelope.rest, &fields));
    if selected.is_empty() && view.offset > 0 && matching > 0 {
        let offset = view.offset;
        warnings.push(format!(
            "offset {offset} is behind the last of {matching} results"
        ));
    }
    let mut rest_cut = false;
    // Who picks single fields does not want to read about the request.
    let rest_level = match view.fields.is_empty() {
        true => view.level,
        false => Level::Summary,
    };
    let selected: Vec<usize> = selected.into_iter().map(|(index, _)| index).collect();
    let rest = shape_rest(&mut answer.envelope.rest, rest_level, &mut rest_cut);
    let results = selected.into_iter().filter_map(|index| {
        let result = answer.envelope.results.get_mut(index)?;
        Some(match view.fields.is_empty() {
            true => shape(index, result, view.level, view.extract),
            false => shape_fields(index, result, view.level, &fields),
        })
    });
    let whole = Fitted::whole(results.collect(), rest);
    let chosen = Chosen {
        rest_cut,
        matching,
        dropped,
        warnings,
    };
    Ok((chosen, whole))
}

/// An answer in writing.
struct Written {
    metadata: Map<String, Value>,
    text: String,
    tokens: usize,
}

/// Writes what fits into the tokens of a view.
fn squeeze(answer: &Answer<'_>, view: &View, chosen: &Chosen, whole: &Fitted) -> (Fitted, Written) {
    let mut room = view.max_tokens;
    let mut tries = TRIES;
    loop {
        let one = |result: &Shaped| write_one(result, view);
        let fitted = fit(&whole.shown, &whole.rest, room, one);
        let written = write(answer, view, chosen, &fitted);
        // How long the head will be is not known before the rest is.
        let excess = written.tokens.saturating_sub(view.max_tokens);
        if excess == 0 {
            return (fitted, written);
        }
        if room == 0 {
            break;
        }
        tries -= 1;
        room = match tries {
            0 => 0,
            _ => room.saturating_sub(excess),
        };
    }
    // Where even the least of a result is too much, the head says where everything is.
    let nothing = Fitted::nothing(&whole.shown, &whole.rest);
    let written = write(answer, view, chosen, &nothing);
    (nothing, written)
}

fn write(answer: &Answer<'_>, view: &View, chosen: &Chosen, fitted: &Fitted) -> Written {
    let head = Head {
        answer,
        view,
        chosen,
        fitted,
    };
    let metadata = head.metadata(PLACEHOLDER);
    let text = match view.format {
        Format::Json => json::text(&metadata, &answer.told, fitted),
        Format::Markdown => head.markdown(&metadata),
    };
    let tokens = estimate(&text);
    Written {
        metadata,
        text,
        tokens,
    }
}

/// Puts the number of tokens in, and the same information beside the text.
fn finish(
    answer: &Answer<'_>,
    view: &View,
    chosen: &Chosen,
    fitted: Fitted,
    written: Written,
) -> Rendered {
    let Written {
        mut metadata,
        mut text,
        tokens,
    } = written;
    let head = Head {
        answer,
        view,
        chosen,
        fitted: &fitted,
    };
    let links = head.links();
    let stats = Some(head.stats(tokens));
    metadata.insert("tokenEstimate".to_owned(), json!(tokens));
    let placeholder = PLACEHOLDER.to_string();
    if let Some(at) = text.find(&placeholder) {
        text.replace_range(at..at + placeholder.len(), &tokens.to_string());
    }
    Rendered {
        text,
        structured: json::structured(metadata, &answer.told, fitted),
        links,
        format: view.format,
        stats,
    }
}

/// Where the number of tokens will stand: as wide as large numbers are.
const PLACEHOLDER: u64 = 98_765_432;

fn write_one(result: &Shaped, view: &View) -> String {
    let mut text = String::new();
    match view.format {
        Format::Json => text = result.value.to_string(),
        Format::Markdown if as_rows(view) => markdown::push_row(&mut text, result),
        Format::Markdown => markdown::push_section(&mut text, result),
    }
    text
}

/// Whether each result is one line; single fields that were picked may be longer.
pub(super) fn as_rows(view: &View) -> bool {
    view.level == Level::Summary && view.fields.is_empty()
}

/// A sentence for a budget that the head of an answer alone may need more than.
fn tiny_budget(view: &View) -> Option<String> {
    let most = view.max_tokens;
    (most < LEAST_KEPT).then(|| format!("max_tokens {most} cannot be kept to; {LEAST_KEPT} can"))
}

/// A sentence for filters beside a choice of one result, which is shown whatever they say.
fn idle_filters(answer: &Answer<'_>, view: &View) -> Option<String> {
    let index = view.index?;
    let given = view.filters.given();
    let names = given.iter().map(|dropped| dropped.filter);
    let idle: Vec<&str> = names
        .filter(|name| !answer.sent_filters.iter().any(|sent| sent == name))
        .collect();
    (!idle.is_empty()).then(|| {
        format!(
            "result {index} is shown whether it fits or not: {} not applied beside index",
            match idle.as_slice() {
                [one] => format!("the filter {one} is"),
                all => format!("the filters {} are", all.join(", ")),
            }
        )
    })
}

/// A sentence for fields that nothing has.
fn unknown_fields(
    results: &[(usize, &Value)],
    rest: &Map<String, Value>,
    fields: &[&str],
) -> Option<String> {
    let has = |field: &&&str| {
        let only = std::slice::from_ref(*field);
        let found = |value: &Value| {
            path::pick(value, only)
                .as_object()
                .is_some_and(|map| !map.is_empty())
        };
        rest.contains_key(**field) || results.iter().any(|(_, result)| found(result))
    };
    let unknown: Vec<&str> = fields.iter().filter(|field| !has(field)).copied().collect();
    let (_, first) = results.first().filter(|_| !unknown.is_empty())?;
    let known = first.as_object()?.keys().map(String::as_str);
    let known: Vec<&str> = known.take(MOST_NAMES).collect();
    Some(format!(
        "no result has the field {}; fields there are: {}",
        unknown.join(", "),
        known.join(", ")
    ))
}
