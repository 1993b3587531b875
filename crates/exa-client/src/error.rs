//! The error type of the crate.

use std::{borrow::Cow, time::Duration};

use serde_json::Value;

use super::ConfigError;

/// What class of failure an [`ExaError`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExaErrorKind {
    /// The API answered with this status, which is not a success.
    Api(u16),
    /// No complete answer came in time.
    Timeout,
    /// No connection could be made, so the API never saw the request.
    Connect,
    /// The connection broke before the answer was complete, or the answer came damaged.
    ConnectionLost,
    /// The answer was longer than the configured limit.
    TooLarge,
    /// The API reported success, but the answer was not readable JSON.
    NotJson,
    /// The answer came as a stream of events that failed before it was complete.
    Stream,
    /// The file of an import could not be uploaded.
    Upload,
    /// The API sent a redirect that is not followed.
    Redirect,
    /// The request could not be built or sent as it was given.
    InvalidRequest,
    /// A setting is wrong.
    Config,
    /// The guard of the request did not let it be sent.
    NotAllowed,
}

/// TextAssembler of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote(pub String);

/// A failed call. Its texts are cleaned and bounded, and never hold the API key, headers or query
/// strings of the request.
#[derive(Clone, Debug)]
pub struct ExaError {
    /// The class of the failure.
    pub kind: ExaErrorKind,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// The id that Exa gave the request, to quote when reporting a problem.
    pub request_id: Option<String>,
    /// Exa's machine-readable name of the error, such as `INVALID_API_KEY`.
    pub tag: Option<String>,
    /// What happened: the words of the API, or ours where the API said nothing.
    pub message: String,
    /// The words of others within `message`, which nobody vouches for. In an error of the API the whole
    /// message is theirs.
    pub quote: Option<Box<Quote>>,
    /// How long the API asked to wait before trying again.
    pub retry_after: Option<Duration>,
    /// Further data of the API, such as a list of validation errors. Boxed to keep results small.
    pub detail: Option<Box<Value>>,
    /// How often the request was sent.
    pub attempts: u32,
}

impl ExaErrorKind {
    /// Its name in statistics: the status, or a word.
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
    /// An error that has only a class and a message, which should be a whole sentence.
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
        }
    }

    /// The same error, whose message holds these words of others.
    pub fn with_quote(mut self, quote: impl Into<String>) -> Self {
        self.quote = Some(Box::new(Quote(said.into())));
        self
    }

    /// A request that cannot be sent as it was given. `message` should be whole sentences that say
    /// what is wrong and what to do.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(ExaErrorKind::InvalidRequest, message)
    }

    /// A file that could not be uploaded. `message` should be whole sentences that say what is wrong
    /// and what to do.
    pub fn upload(message: impl Into<String>) -> Self {
        Self::new(ExaErrorKind::Upload, message)
    }

    /// A wrong setting. `message` should be whole sentences that say what is wrong and what to do.
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(ExaErrorKind::Config, message)
    }

    /// Says whether the same call may succeed later without any change.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self.kind {
            ExaErrorKind::Api(429) => !self.is_about_credits(),
            ExaErrorKind::Api(status) => status == 408 || (500..600).contains(&status),
            ExaErrorKind::Timeout | ExaErrorKind::Connect | ExaErrorKind::ConnectionLost => true,
            _ => false,
        }
    }

    /// Returns whether something between here and the API answered: a gateway that lost the response, or one
    /// that wants the request to go elsewhere. The API may have acted.
    pub fn is_from_gateway(&self) -> bool {
        matches!(
            self.kind,
            ExaErrorKind::Api(408 | 502 | 504 | 520..=527) | ExaErrorKind::Redirect
        )
    }

    /// Says whether the API has not acted: it refused the request, or never received it.
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

    /// Says whether credits or a budget ran out, which waiting does not mend.
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

/// Lets a hook of a generated client use `?` on [`super::prepare`].
impl<E> From<ExaError> for progenitor_client::Error<E> {
    fn from(error: ExaError) -> Self {
        Self::InvalidRequest(error.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_small_enough_to_return_by_value() {
        assert!(size_of::<ExaError>() <= 128, "{}", size_of::<ExaError>());
    }

    #[test]
    fn only_passing_trouble_is_retryable() {
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
        let mut empty = ExaError::new(Api(429), "");
        empty.tag = Some("NO_MORE_CREDITS".to_owned());
        assert!(!empty.is_retryable());
    }
}
