//! Describes and classifies failures below HTTP.

use std::{error::Error, io, time::Duration};

use reqwest::Response;

use super::{ApiKey, CallContext, ExaError, ExaErrorKind, retry::Effect, text};

/// A failed attempt.
pub(super) struct Failure {
    pub(super) error: ExaError,
    pub(super) effect: Effect,
    /// The error response of the API.
    pub(super) response: Option<Box<Response>>,
}

impl From<ExaError> for Failure {
    fn from(error: ExaError) -> Self {
        let effect = Effect::from_error_kind(error.kind);
        Self {
            error,
            effect,
            response: None,
        }
    }
}

/// Facts about the call that reqwest does not know.
struct CallFacts<'a> {
    key: &'a ApiKey,
    timeout: Duration,
    connect_timeout: Duration,
}

/// Returns the failure of an attempt without a complete response.
pub(super) fn failure(error: &reqwest::Error, context: &CallContext) -> Failure {
    let facts = CallFacts {
        key: context.key(),
        timeout: context.timeout(),
        connect_timeout: context.http().config().connect_timeout,
    };
    let mut failure = Failure::from(describe(error, Some(&facts)));
    // TCP already retransmits the first packet of a slow connection, and an untrusted certificate will
    // not become trusted within seconds.
    if error.is_timeout() || certificate_problem(error).is_some() {
        failure.effect = Effect::Final;
    }
    failure
}

/// Returns the failure of an attempt that timed out.
pub(super) fn timed_out(host: &str, context: &CallContext) -> Failure {
    let time = text::duration(context.timeout());
    let message = format!("No complete response from {host} within {time}.");
    let message = text::tidy(Some(context.key()), &message, text::MAX_MESSAGE);
    Failure::from(ExaError::new(ExaErrorKind::Timeout, message))
}

/// Returns the error for a failure without knowledge about its call.
pub(super) fn error(error: &reqwest::Error) -> ExaError {
    describe(error, None)
}

fn describe(error: &reqwest::Error, facts: Option<&CallFacts<'_>>) -> ExaError {
    let host = host(error);
    let within = |time: Option<Duration>| {
        time.map_or_else(
            || "in time".to_owned(),
            |time| format!("within {}", text::duration(time)),
        )
    };
    let (kind, message) = if let Some(problem) = certificate_problem(error) {
        let message = format!(
            "No secure connection to {host} was made, because its certificate was not accepted: \
             {problem}. If a company proxy signs the certificates, set SSL_CERT_FILE to a PEM file \
             with its certificate."
        );
        (ExaErrorKind::Connect, message)
    } else if error.is_connect() && error.is_timeout() {
        let within = within(facts.map(|facts| facts.connect_timeout.min(facts.timeout)));
        let message = format!("No connection to {host} could be made {within}.");
        (ExaErrorKind::Connect, message)
    } else if error.is_connect() {
        let message = format!(
            "No connection to {host} could be made: {}.",
            root_cause(error)
        );
        (ExaErrorKind::Connect, message)
    } else if error.is_timeout() {
        let within = within(facts.map(|facts| facts.timeout));
        let message = format!("No complete response from {host} {within}.");
        (ExaErrorKind::Timeout, message)
    } else if error.is_builder() {
        let message = format!("The request could not be built: {}.", root_cause(error));
        (ExaErrorKind::InvalidRequest, message)
    } else {
        let message = format!(
            "The response from {host} was cut off or corrupt: {}.",
            root_cause(error)
        );
        (ExaErrorKind::ConnectionLost, message)
    };
    let key = facts.map(|facts| facts.key);
    ExaError::new(kind, text::tidy(key, &message, text::MAX_MESSAGE))
}

/// Returns the host of a failed request. The query is not shown, because it may contain secrets.
fn host(error: &reqwest::Error) -> String {
    let host = error.url().and_then(|url| url.host_str());
    host.unwrap_or("the Exa API").to_owned()
}

/// Returns the innermost cause of an error, which is the most specific one, such as `Connection refused`.
pub fn root_cause(error: &reqwest::Error) -> String {
    // The texts of reqwest itself may contain the URL.
    let relevant = causes(error).filter(|cause| !cause.is::<reqwest::Error>());
    let text = match relevant.last() {
        Some(cause) => cause.to_string(),
        None => "unknown cause".to_owned(),
    };
    let text = text::clean(&text);
    text::cut(text.trim_end_matches('.'), text::MAX_EXCERPT)
}

/// Returns the chain of sources, outermost first.
pub(super) fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |&error| error.source())
}

/// Returns what is wrong with the certificate of the server, if that is the problem.
fn certificate_problem(error: &reqwest::Error) -> Option<String> {
    match causes(error).find_map(tls_error)? {
        problem @ rustls::Error::InvalidCertificate(_) => Some(problem.to_string()),
        _ => None,
    }
}

/// Returns the TLS error that this error is or wraps. I/O errors do not expose a wrapped error as their
/// source, and they may be nested.
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
    fn finds_tls_errors_inside_io_errors() {
        let problem = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let inner = io::Error::new(io::ErrorKind::InvalidData, problem);
        let outer = io::Error::other(inner);
        let found = tls_error(&outer).unwrap().to_string();
        assert!(found.contains("UnknownIssuer"), "{found}");
        assert!(tls_error(&io::Error::other("x")).is_none());
    }
}
