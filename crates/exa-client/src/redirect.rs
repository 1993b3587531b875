//! Redirects, which are followed only within the same origin.
//!
//! The redirect policy of reqwest is disabled, because it would send `x-api-key` to any host and turn a POST
//! into a GET.

use http::{Method, StatusCode, header::LOCATION};
use reqwest::{Request, Response};
use url::Url;

use super::{CallContext, ExaError, ExaErrorKind, text};

/// The maximum number of redirects in one attempt.
pub(super) const MAX_REDIRECTS: usize = 3;

/// Returns whether a status is a redirect.
pub(super) fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Returns the next request if the response is a redirect that may be followed.
pub(super) fn follow_up(response: &Response, sent: Option<Request>) -> Option<Request> {
    let target = target(response)?;
    let mut next = sent?;
    let is_trusted = target.origin() == response.url().origin()
        && target.username().is_empty()
        && target.password().is_none();
    if !is_trusted || !keeps_method(response.status(), next.method()) {
        return None;
    }
    *next.url_mut() = target;
    Some(next)
}

/// Returns the error for a redirect that is not followed.
///
/// The target comes from upstream, so the key is redacted in it as in any response.
pub(super) fn error(context: &CallContext, response: &Response, method: &Method) -> ExaError {
    let status = response.status();
    let origin = |url: &Url| url.origin().ascii_serialization();
    let own = response.url();
    let variable = context.key().kind().base_url_variable();
    let message = match target(response) {
        None => format!(
            "The Exa API at {} returned {status} without a usable location. Check \
             {variable}.",
            origin(own)
        ),
        Some(other) if other.origin() != own.origin() => format!(
            "The Exa API at {} redirected the request to {}. The redirect was not followed, because the \
             key must not be sent to another host. If that address is correct, set {variable} to it.",
            origin(own),
            origin(&other)
        ),
        Some(_) if !keeps_method(status, method) => format!(
            "The Exa API at {} redirected a {method} request with status {status}, which would turn \
             it into a GET, so it was not followed. Check the path in {variable}.",
            origin(own)
        ),
        Some(_) => format!(
            "The Exa API at {} redirected the request again after {MAX_REDIRECTS} redirects. Check \
             {variable}.",
            origin(own)
        ),
    };
    let message = text::tidy(Some(context.key()), &message, text::MAX_MESSAGE);
    let mut error = ExaError::new(ExaErrorKind::Redirect, message);
    let other = target(response).filter(|other| other.origin() != own.origin());
    if let Some(other) = other {
        let quote = text::tidy(Some(context.key()), &origin(&other), text::MAX_MESSAGE);
        error = error.with_quote(quote);
    }
    error.status = Some(status.as_u16());
    error
}

/// Returns the target of a redirect.
fn target(response: &Response) -> Option<Url> {
    if !is_redirect(response.status()) {
        return None;
    }
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let target = response.url().join(location).ok()?;
    matches!(target.scheme(), "http" | "https").then_some(target)
}

/// Returns whether a redirect preserves the method. For the older statuses, clients send a GET, so that a
/// request to create an object would become one that lists objects.
fn keeps_method(status: StatusCode, method: &Method) -> bool {
    matches!(status.as_u16(), 307 | 308) || matches!(*method, Method::GET | Method::HEAD)
}
