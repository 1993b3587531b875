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
    let size = serde_json::to_string(&own).map_or(usize::MAX, |text| estimate(&text));
    // At most 1.1 times the tokens of the text.
    if size.saturating_mul(10) <= estimate(text).saturating_mul(11) {
        own
    } else {
        Map::from_iter([("text".to_owned(), json!(text))])
    }
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
