//! What an address asks for behind its `?`.

use http::request::Parts;

use super::Refused;
use crate::http_response::invalid_params;

/// A value in the address.
pub(super) fn text(parts: &Parts, name: &str) -> Option<String> {
    let query = parts.uri.query().unwrap_or_default();
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let (_, text) = pairs.find(|(known, _)| known == name)?;
    Some(text.into_owned())
}

/// A number in the address.
pub(super) fn number(parts: &Parts, name: &str) -> Result<Option<u64>, Refused> {
    let Some(text) = text(parts, name) else {
        return Ok(None);
    };
    let number = text.parse();
    number
        .map(Some)
        .map_err(|_| unfit(name, "is no whole number"))
}

/// Something in the address that is on or off.
pub(super) fn switch(parts: &Parts, name: &str) -> Result<Option<bool>, Refused> {
    match text(parts, name).as_deref() {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(unfit(name, "is neither true nor false")),
    }
}

/// The answer to an address that cannot be served.
pub(super) fn unfit(name: &str, why: &str) -> Refused {
    Box::new(invalid_params(&format!("`{name}` in the address {why}")))
}
