//! Query parameters.

use http::request::Parts;

use super::HttpRejection;
use crate::http_response::invalid_params;

/// Returns a query parameter.
pub(super) fn text(parts: &Parts, name: &str) -> Option<String> {
    let query = parts.uri.query().unwrap_or_default();
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let (_, text) = pairs.find(|(known, _)| known == name)?;
    Some(text.into_owned())
}

/// Returns an integer query parameter.
pub(super) fn number(parts: &Parts, name: &str) -> Result<Option<u64>, HttpRejection> {
    let Some(text) = text(parts, name) else {
        return Ok(None);
    };
    let number = text.parse();
    number
        .map(Some)
        .map_err(|_| invalid_parameter(name, "must be an integer"))
}

/// Returns a boolean query parameter.
pub(super) fn boolean(parts: &Parts, name: &str) -> Result<Option<bool>, HttpRejection> {
    match text(parts, name).as_deref() {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(invalid_parameter(name, "must be true or false")),
    }
}

/// Returns the error response for an invalid query parameter.
pub(super) fn invalid_parameter(name: &str, reason: &str) -> HttpRejection {
    Box::new(invalid_params(&format!(
        "query parameter `{name}` {reason}"
    )))
}
