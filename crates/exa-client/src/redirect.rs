//! Redirects: followed within the same origin, refused beyond it.
//!
//! reqwest follows none here, because its redirect policy knows neither the method nor which headers
//! are secret: it would send `x-api-key` to any host, and turn a POST into a GET.

use http::{Method, StatusCode, header::LOCATION};
use reqwest::{Request, Response};
use url::Url;

use super::{CallContext, ExaError, ExaErrorKind, text};

/// How many redirects one attempt follows.
pub(super) const MAX_REDIRECTS: usize = 3;

/// Says whether a status tells to send the request elsewhere.
pub(super) fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// The request to send next, if this answer is a redirect that may be followed.
pub(super) fn follow_up(response: &Response, sent: Option<Request>) -> Option<Request> {
    let target = target(response)?;
    let mut next = sent?;
    let trusted = target.origin() == response.url().origin()
        && target.username().is_empty()
        && target.password().is_none();
    if !trusted || !keeps_method(response.status(), next.method()) {
        return None;
    }
    *next.url_mut() = target;
    Some(next)
}

/// The error for a redirect that is not followed.
///
/// The other address is upstream's word, so the key is removed from it like from any answer.
pub(super) fn refusal(context: &CallContext, response: &Response, method: &Method) -> ExaError {
    let status = response.status();
    let origin = |url: &Url| url.origin().ascii_serialization();
    let own = response.url();
    let message = match target(response) {
        None => format!(
            "The Exa API at {} answered {status} without a usable address to go to. Check \
             EXA_BASE_URL.",
            origin(own)
        ),
        Some(other) if other.origin() != own.origin() => format!(
            "The Exa API at {} redirected the request to {}. It was not followed, because the API key \
             is sent to no other host. If that address is right, set EXA_BASE_URL to it.",
            origin(own),
            origin(&other)
        ),
        Some(_) if !keeps_method(status, method) => format!(
            "The Exa API at {} redirected a {method} request with status {status}, which would turn \
             it into a GET, so it was not followed. Check the path in EXA_BASE_URL.",
            origin(own)
        ),
        Some(_) => format!(
            "The Exa API at {} redirected the request again after {MAX_REDIRECTS} redirects. Check \
             EXA_BASE_URL.",
            origin(own)
        ),
    };
    let message = text::tidy(Some(context.key()), &message, text::MAX_MESSAGE);
    let mut error = ExaError::new(ExaErrorKind::Redirect, message);
    let other = target(response).filter(|other| other.origin() != own.origin());
    if let Some(other) = other {
        let said = text::tidy(Some(context.key()), &origin(&other), text::MAX_MESSAGE);
        error = error.with_quote(said);
    }
    error.status = Some(status.as_u16());
    error
}

/// Where a redirect leads.
fn target(response: &Response) -> Option<Url> {
    if !is_redirect(response.status()) {
        return None;
    }
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let target = response.url().join(location).ok()?;
    matches!(target.scheme(), "http" | "https").then_some(target)
}

/// Says whether following a redirect sends the same method again. The older statuses make clients
/// send a GET, so that a request to create something would end as one that lists.
fn keeps_method(status: StatusCode, method: &Method) -> bool {
    matches!(status.as_u16(), 307 | 308) || matches!(*method, Method::GET | Method::HEAD)
}
