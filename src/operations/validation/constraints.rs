//! Messages about bounds, lengths and formats.

use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

use super::messages::{self, given};

/// Returns the message about a violated bound, length or format.
pub(super) fn violation(kind: &Kind, value: &Value) -> Option<String> {
    let characters = || {
        let length = value.as_str().map_or(0, |text| text.chars().count());
        length as u64
    };
    let entries = || value.as_array().map_or(0, Vec::len) as u64;
    let entry = |number| messages::count(number, "entry", "entries");
    let character = |number| messages::count(number, "character", "characters");
    let shown = given(value);
    Some(match kind {
        Kind::Minimum { limit } => format!("must be at least {limit}; got {shown}"),
        Kind::Maximum { limit } => format!("must be at most {limit}; got {shown}"),
        Kind::ExclusiveMinimum { limit } => format!("must be above {limit}; got {shown}"),
        Kind::ExclusiveMaximum { limit } => format!("must be below {limit}; got {shown}"),
        Kind::MultipleOf { multiple_of } => {
            format!("must be a multiple of {multiple_of}; got {shown}")
        }
        Kind::MinLength { limit: 1 } => "must not be empty".to_owned(),
        Kind::MinLength { limit } => {
            format!("must have at least {}; got {shown}", character(*limit))
        }
        Kind::MaxLength { limit } => format!(
            "must have at most {}; got {}: {shown}",
            character(*limit),
            characters()
        ),
        Kind::MinItems { limit } => {
            format!("must have at least {}; got {}", entry(*limit), entries())
        }
        Kind::MaxItems { limit } => {
            format!("must have at most {}; got {}", entry(*limit), entries())
        }
        Kind::MinProperties { limit } => {
            format!(
                "must have at least {}",
                messages::count(*limit, "field", "fields")
            )
        }
        Kind::Pattern { pattern } => format!("must match `{pattern}`; got {shown}"),
        Kind::Format { format } if format == "uri" => invalid_url(value),
        Kind::Format { format } if format == "date-time" => {
            format!("must be a date or a date-time such as `2026-01-31T09:00:00Z`; got {shown}")
        }
        Kind::Format { format } => format!("must have the format `{format}`; got {shown}"),
        Kind::OneOfMultipleValid { .. } => {
            format!("matches more than one of the allowed forms; got {shown}")
        }
        _ => return None,
    })
}

/// Returns the message about an invalid URL.
pub(super) fn invalid_url(value: &Value) -> String {
    format!(
        "must be a URL that starts with http:// or https://; got {}{}",
        given(value),
        suggest_scheme(value)
    )
}

/// Suggests a URL if only the scheme is missing.
fn suggest_scheme(value: &Value) -> String {
    match with_scheme(value.as_str().unwrap_or_default()) {
        Some(whole) => format!("; did you mean `{}`?", messages::short(&whole)),
        None => String::new(),
    }
}

/// Returns the URL for a text that lacks only the scheme.
pub(super) fn with_scheme(text: &str) -> Option<String> {
    let whole = format!("https://{}", text.trim());
    let host = text
        .trim()
        .split(['/', '?', '#'])
        .next()
        .unwrap_or_default();
    let is_host = host.contains('.') && !host.contains('@');
    (is_host && !text.contains("://") && messages::is_web_url(&whole)).then_some(whole)
}
