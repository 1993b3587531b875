//! Structured content that is no longer than the text and carries the same information.

use serde_json::{Map, Value, json};

use super::OutputFormat;
use exa_mcp_text::sanitize::{Fence, neutralize};
use exa_mcp_text::tokens::estimate;

/// How much structured content a result has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StructuredContent {
    /// Every field, nulls included.
    #[default]
    Full,
    /// The information of the text.
    Compact,
    /// None.
    Off,
}

impl StructuredContent {
    /// Returns the mode with a name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "full" => Some(Self::Full),
            "compact" => Some(Self::Compact),
            "off" => Some(Self::Off),
            _ => None,
        }
    }

    /// Applies the mode to the structured content of a result with this text.
    pub(crate) fn apply(
        self,
        structured: Map<String, Value>,
        text: &str,
        format: OutputFormat,
    ) -> Map<String, Value> {
        match self {
            Self::Full => structured,
            Self::Off => Map::new(),
            // JSON text is the structured content.
            Self::Compact if format == OutputFormat::Json => structured,
            Self::Compact => compact(structured, text),
        }
    }

    /// Applies the mode to the structured content of an error with this text.
    pub(crate) fn apply_to_error(
        self,
        mut structured: Map<String, Value>,
        text: &str,
    ) -> Map<String, Value> {
        match self {
            Self::Full => structured,
            Self::Off => Map::new(),
            Self::Compact => {
                structured.values_mut().for_each(remove_nulls);
                compact_error(structured, text)
            }
        }
    }
}

/// Fields of the metadata that the text has as well.
const SHOWN_METADATA: [&str; 10] = [
    "matching",
    "costDollars",
    "cached",
    "cacheId",
    "warnings",
    "corrections",
    "filters",
    "leftOut",
    "more",
    "indexes",
];

/// Fields that the server itself adds; the text of others follows the opening mark.
const OWN_FIELDS: [&str; 10] = [
    "metadata",
    "operationId",
    "status",
    "message",
    "isComplete",
    "progress",
    "itemsFound",
    "checkWith",
    "cancelWith",
    "hint",
];

/// Returns the same information as the text: the fields without nulls or, where their names alone would make them
/// longer than that, the text itself.
fn compact(structured: Map<String, Value>, text: &str) -> Map<String, Value> {
    let fence = Fence::new();
    let (mut own, mut others) = (Map::new(), Map::new());
    for (name, mut value) in structured {
        if name == "metadata" {
            let Value::Object(metadata) = &mut value else {
                continue;
            };
            let reads_more = metadata.contains_key("more");
            metadata.retain(|name, value| {
                let is_shown = SHOWN_METADATA.contains(&name.as_str());
                is_shown && !is_empty(value) && (name != "cacheId" || !reads_more)
            });
        }
        remove_nulls(&mut value);
        if is_empty(&value) && name != "results" {
            continue;
        }
        if OWN_FIELDS.contains(&name.as_str()) {
            own.insert(name, value);
        } else {
            neutralize_texts(&mut value);
            others.insert(name, value);
        }
    }
    own.insert("untrusted".to_owned(), json!(fence.opening_tag()));
    own.extend(others);
    own.insert("endOfUntrusted".to_owned(), json!(fence.closing_tag()));
    if is_as_short(&own, text) {
        own
    } else {
        text_alone(text)
    }
}

/// Returns the fields of an error, or, where their names would make them longer than its text, that text: with the
/// code or without it, and with its calls as objects, because a quoted call has two characters for each quote.
fn compact_error(structured: Map<String, Value>, text: &str) -> Map<String, Value> {
    let fields = structured.get("error").and_then(Value::as_object);
    let (calls, lines): (Map<String, Value>, Vec<&str>) = take_calls(fields, text);
    let code = fields.and_then(|fields| fields.get("code")).cloned();
    let with = |code: Option<Value>, message: &str, calls: Map<String, Value>| {
        let mut error = Map::new();
        error.extend(code.map(|code| ("code".to_owned(), code)));
        error.insert("message".to_owned(), json!(message));
        error.extend(calls);
        Map::from_iter([("error".to_owned(), Value::Object(error))])
    };
    let lines = lines.join("\n");
    let short = [
        with(code.clone(), text, Map::new()),
        with(code, &lines, calls.clone()),
        with(None, &lines, calls),
        text_alone(text),
    ];
    let mut forms = [structured].into_iter().chain(short);
    let limit = estimate(text).saturating_mul(11) / 10;
    let mut shortest = text_alone(text);
    forms
        .find(|form| {
            if size(form) < size(&shortest) {
                shortest.clone_from(form);
            }
            size(form) <= limit
        })
        .unwrap_or(shortest)
}

/// Returns the fields of an error that are calls, and the lines of its text without those that quote one.
fn take_calls<'a>(
    fields: Option<&Map<String, Value>>,
    text: &'a str,
) -> (Map<String, Value>, Vec<&'a str>) {
    let mut calls = Map::new();
    let mut lines: Vec<&str> = text.lines().collect();
    for (name, value) in fields.into_iter().flatten() {
        let quoted = value.to_string();
        let line = lines.iter().position(|line| line.ends_with(&quoted));
        if let Some(line) = line.filter(|_| value.is_object()) {
            lines.remove(line);
            calls.insert(name.clone(), value.clone());
        }
    }
    (calls, lines)
}

/// Returns the tokens of fields as JSON.
fn size(fields: &Map<String, Value>) -> usize {
    serde_json::to_string(fields).map_or(usize::MAX, |json| estimate(&json))
}

/// Returns whether fields have at most 1.1 times the tokens of a text.
fn is_as_short(fields: &Map<String, Value>, text: &str) -> bool {
    size(fields).saturating_mul(10) <= estimate(text).saturating_mul(11)
}

fn text_alone(text: &str) -> Map<String, Value> {
    Map::from_iter([("text".to_owned(), json!(text))])
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(remove_nulls),
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(remove_nulls);
        }
        _ => {}
    }
}

/// Escapes what looks like a mark.
fn neutralize_texts(value: &mut Value) {
    match value {
        Value::String(text) => *text = neutralize(text).into_owned(),
        Value::Array(list) => list.iter_mut().for_each(neutralize_texts),
        Value::Object(map) => map.values_mut().for_each(neutralize_texts),
        _ => {}
    }
}
