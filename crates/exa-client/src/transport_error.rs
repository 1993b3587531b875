//! Describes and classifies failures below HTTP.

use std::{error::Error, io, time::Duration};

use reqwest::Response;

use super::{ApiKey, CallContext, ExaError, ExaErrorKind, retry::Effect, text};

/// A failed attempt: what to tell, and whether it may be repeated.
pub(super) struct Failure {
    pub(super) error: ExaError,
    pub(super) effect: Effect,
    /// The response by which the API refused the request.
    pub(super) refusal: Option<Box<Response>>,
}

impl From<ExaError> for Failure {
    fn from(error: ExaError) -> Self {
        let effect = Effect::of(error.kind);
        Self {
            error,
            effect,
            refusal: None,
        }
    }
}

/// What is known about the call, to tell more than reqwest does.
struct Known<'a> {
    key: &'a ApiKey,
    timeout: Duration,
    connect_timeout: Duration,
}

/// The failure of an attempt that brought no complete answer.
pub(super) fn failure(error: &reqwest::Error, context: &CallContext) -> Failure {
    let known = Known {
        key: context.key(),
        timeout: context.timeout(),
        connect_timeout: context.http().config().connect_timeout,
    };
    let mut failure = Failure::from(describe(error, Some(&known)));
    // The system already repeated the first packet of a slow connection, and a certificate that is
    // not trusted now will not be trusted in a second.
    if error.is_timeout() || certificate_problem(error).is_some() {
        failure.effect = Effect::Final;
    }
    failure
}

/// The failure of an attempt that was not complete in time.
pub(super) fn timed_out(host: &str, context: &CallContext) -> Failure {
    let time = text::duration(context.timeout());
    let message = format!("No complete answer came from {host} within {time}.");
    let message = text::tidy(Some(context.key()), &message, text::MAX_MESSAGE);
    Failure::from(ExaError::new(ExaErrorKind::Timeout, message))
}

/// The error for a failure that reached us without knowledge about its call.
pub(super) fn error(error: &reqwest::Error) -> ExaError {
    describe(error, None)
}

fn describe(error: &reqwest::Error, known: Option<&Known<'_>>) -> ExaError {
    let host = host(error);
    let within = |time: Option<Duration>| {
        time.map_or_else(
            || "in time".to_owned(),
            |time| format!("within {}", text::duration(time)),
        )
    };
    let (kind, message) = if let Some(problem) = certificate_problem(error) {
        let message = format!(
            "No secure connection to {host} was made because its certificate was not accepted: \
             {problem}. If a company proxy signs the certificates, set SSL_CERT_FILE to a PEM file \
             with its certificate."
        );
        (ExaErrorKind::Connect, message)
    } else if error.is_connect() && error.is_timeout() {
        let within = within(known.map(|known| known.connect_timeout.min(known.timeout)));
        let message = format!("No connection to {host} could be made {within}.");
        (ExaErrorKind::Connect, message)
    } else if error.is_connect() {
        let message = format!(
            "No connection to {host} could be made: {}.",
            root_cause(error)
        );
        (ExaErrorKind::Connect, message)
    } else if error.is_timeout() {
        let within = within(known.map(|known| known.timeout));
        let message = format!("No complete answer came from {host} {within}.");
        (ExaErrorKind::Timeout, message)
    } else if error.is_builder() {
        let message = format!("The request could not be built: {}.", root_cause(error));
        (ExaErrorKind::InvalidRequest, message)
    } else {
        let message = format!(
            "The answer of {host} broke off or came damaged: {}.",
            root_cause(error)
        );
        (ExaErrorKind::ConnectionLost, message)
    };
    let key = known.map(|known| known.key);
    ExaError::new(kind, text::tidy(key, &message, text::MAX_MESSAGE))
}

/// The host of a failed request. The rest of its URL stays untold, as a query may hold secrets.
fn host(error: &reqwest::Error) -> String {
    let host = error.url().and_then(|url| url.host_str());
    host.unwrap_or("the Exa API").to_owned()
}

/// Returns the innermost cause of an error, which is the specific one, such as `Connection refused`.
pub fn root_cause(error: &reqwest::Error) -> String {
    // The texts of reqwest itself could hold the URL.
    let telling = causes(error).filter(|cause| !cause.is::<reqwest::Error>());
    let text = match telling.last() {
        Some(cause) => cause.to_string(),
        None => "no cause is known".to_owned(),
    };
    let text = text::clean(&text);
    text::cut(text.trim_end_matches('.'), text::MAX_EXCERPT)
}

/// All errors below an error, from the outside to the inside.
pub(super) fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |&error| error.source())
}

/// What is wrong with the certificate of the server, if that was the problem.
fn certificate_problem(error: &reqwest::Error) -> Option<String> {
    match causes(error).find_map(tls_error)? {
        problem @ rustls::Error::InvalidCertificate(_) => Some(problem.to_string()),
        _ => None,
    }
}

/// The TLS error that this error is or wraps. I/O errors do not name what they wrap as their source,
/// and here one may wrap another.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    if let Some(found) = error.downcast_ref::<rustls::Error>() {
        return Some(found);
    }
    let inner = error.downcast_ref::<io::Error>()?.get_ref()?;
    tls_error(inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn tls_errors_are_found_inside_io_errors() {
        let problem = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let inner = io::Error::new(io::ErrorKind::InvalidData, problem);
        let outer = io::Error::other(inner);
        let found = tls_error(&outer).unwrap().to_string();
        assert!(found.contains("UnknownIssuer"), "{found}");
        assert!(tls_error(&io::Error::other("x")).is_none());
    }
}
