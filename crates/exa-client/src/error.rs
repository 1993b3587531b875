//! The error type of the crate.

use std::{borrow::Cow, time::Duration};

use serde_json::Value;

use super::ConfigError;
use exa_mcp_model::KeyKind;

/// The class of an [`ExaError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExaErrorKind {
    /// The API returned this error status.
    Api(u16),
    /// The response was not complete in time.
    Timeout,
    /// No connection could be made, so the API never received the request.
    Connect,
    /// The connection was lost before the response was complete, or the response was corrupt.
    ConnectionLost,
    /// The response exceeds the configured limit.
    TooLarge,
    /// The API reported success, but the response is not valid JSON.
    NotJson,
    /// An event stream failed before it was complete.
    Stream,
    /// The file of an import could not be uploaded.
    Upload,
    /// The API returned a redirect that is not followed.
    Redirect,
    /// The request is invalid and was not sent.
    InvalidRequest,
    /// A setting is invalid.
    Config,
    /// The guard did not allow the request.
    NotAllowed,
}

/// Untrusted text inside an error message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote(pub String);

/// A failed call. Its texts are sanitized and limited in length, and never contain the API key, headers
/// or the query string of the request.
#[derive(Clone, Debug)]
pub struct ExaError {
    /// The class of the failure.
    pub kind: ExaErrorKind,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// The id that Exa assigned to the request, for problem reports.
    pub request_id: Option<String>,
    /// Exa's machine-readable name of the error, such as `INVALID_API_KEY`.
    pub tag: Option<String>,
    /// What happened, in the words of the API if it provided a message.
    pub message: String,
    /// The untrusted part of `message`. For [`ExaErrorKind::Api`], the whole message is untrusted.
    pub quote: Option<Box<Quote>>,
    /// The `Retry-After` of the API.
    pub retry_after: Option<Duration>,
    /// Further data from the API, such as a list of validation errors. Boxed to keep the type small.
    pub detail: Option<Box<Value>>,
    /// How many times the request was sent.
    pub attempts: u32,
    /// The kind of key that was sent, or would have been.
    pub key: KeyKind,
}

impl ExaErrorKind {
    /// Returns its name in metrics: the status, or a word.
    pub fn class(&self) -> Cow<'static, str> {
        let word = match self {
            Self::Api(status) => return status.to_string().into(),
            Self::Timeout => "timeout",
            Self::Connect => "no_connection",
            Self::ConnectionLost => "connection_lost",
            Self::TooLarge => "too_large",
            Self::NotJson => "not_json",
            Self::Stream => "stream",
            Self::Upload => "upload",
            Self::Redirect => "redirect",
            Self::InvalidRequest => "invalid_request",
            Self::Config => "configuration",
            Self::NotAllowed => "not_allowed",
        };
        word.into()
    }
}

impl ExaError {
    /// Creates an error with a message, which should be a whole sentence.
    pub fn new(kind: ExaErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            status: None,
            request_id: None,
            tag: None,
            message: message.into(),
            quote: None,
            retry_after: None,
            detail: None,
            attempts: 0,
            key: KeyKind::Api,
        }
    }

    /// Marks this part of the message as untrusted.
    pub fn with_quote(mut self, quote: impl Into<String>) -> Self {
        self.quote = Some(Box::new(Quote(quote.into())));
        self
    }

    /// Creates an error about an invalid request. `message` should say what is wrong and what to do.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(ExaErrorKind::InvalidRequest, message)
    }

    /// Creates an error about a failed upload. `message` should say what is wrong and what to do.
    pub fn upload(message: impl Into<String>) -> Self {
        Self::new(ExaErrorKind::Upload, message)
    }

    /// Creates an error about an invalid setting. `message` should say what is wrong and what to do.
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(ExaErrorKind::Config, message)
    }

    /// Returns whether the same call may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self.kind {
            ExaErrorKind::Api(429) => !self.is_about_credits(),
            ExaErrorKind::Api(status) => status == 408 || (500..600).contains(&status),
            ExaErrorKind::Timeout | ExaErrorKind::Connect | ExaErrorKind::ConnectionLost => true,
            _ => false,
        }
    }

    /// Returns whether a gateway responded in place of the API, by an error or a redirect. The API may have
    /// acted.
    pub fn is_from_gateway(&self) -> bool {
        matches!(
            self.kind,
            ExaErrorKind::Api(408 | 502 | 504 | 520..=527) | ExaErrorKind::Redirect
        )
    }

    /// Returns whether the API has not acted, because it rejected or never received the request.
    pub(super) fn is_without_effect(&self) -> bool {
        matches!(
            self.kind,
            ExaErrorKind::Api(_)
                | ExaErrorKind::Connect
                | ExaErrorKind::Redirect
                | ExaErrorKind::InvalidRequest
                | ExaErrorKind::Config
                | ExaErrorKind::NotAllowed
        )
    }

    /// Returns whether credits or a budget are exhausted, so that waiting does not help.
    pub(super) fn is_about_credits(&self) -> bool {
        let tag = self.tag.as_deref().unwrap_or_default();
        self.status == Some(402) || tag.contains("CREDIT") || tag.contains("BUDGET")
    }
}

impl std::error::Error for ExaError {}

impl From<ConfigError> for ExaError {
    fn from(error: ConfigError) -> Self {
        Self::config(error.to_string())
    }
}

/// Allows `?` on [`super::prepare`] in the hook of a generated client.
impl<E> From<ExaError> for progenitor_client::Error<E> {
    fn from(error: ExaError) -> Self {
        Self::InvalidRequest(error.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_is_small() {
        assert!(size_of::<ExaError>() <= 128, "{}", size_of::<ExaError>());
    }

    #[test]
    fn only_temporary_errors_are_retryable() {
        use ExaErrorKind::*;
        for kind in [
            Api(408),
            Api(429),
            Api(500),
            Api(503),
            Timeout,
            Connect,
            ConnectionLost,
        ] {
            assert!(ExaError::new(kind, "").is_retryable(), "{kind:?}");
        }
        for kind in [
            Api(400),
            Api(401),
            Api(404),
            TooLarge,
            NotJson,
            Redirect,
            Config,
        ] {
            assert!(!ExaError::new(kind, "").is_retryable(), "{kind:?}");
        }
        let mut no_credits = ExaError::new(Api(429), "");
        no_credits.tag = Some("NO_MORE_CREDITS".to_owned());
        assert!(!no_credits.is_retryable());
    }
}
