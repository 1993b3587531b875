//! Client configuration.

use std::{env, time::Duration};

use thiserror::Error;
use url::Url;

use super::RetryPolicy;
use exa_mcp_model::KeyKind;

/// The default size limit of a response after decompression: 50 MiB.
const MAX_RESPONSE_BYTES: usize = 50 * 1024 * 1024;

/// The default memory limit of all large responses together.
const MAX_RESPONSE_MEMORY: usize = 64 * 1024 * 1024;

/// The default time limit of a stream; agent runs may take three hours.
const MAX_STREAM_DURATION: Duration = Duration::from_secs(4 * 60 * 60);

/// An invalid setting. Its message never contains the key or the URL, which may hold secrets.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    /// A key is empty.
    #[error("The Exa {} is empty. Set {} to a key from {}.", .0.name(), .0.variable(), .0.page())]
    EmptyKey(KeyKind),
    /// A key has characters that are not allowed in an HTTP header.
    #[error(
        "The Exa {} has characters that cannot be sent in an HTTP header, such as line breaks \
         or letters beyond ASCII. Copy the key again from {}.", .0.name(), .0.page()
    )]
    InvalidKey(KeyKind),
    /// The base URL of the APIs that take this kind of key is invalid, for this reason.
    #[error(
        "The base URL of the Exa API ({variable}) cannot be used: {problem}. Set it to a URL such as {url}, or unset it.",
        variable = .0.base_url_variable(), problem = .1, url = example_url(*.0)
    )]
    BaseUrl(KeyKind, String),
    /// The user agent has characters that are not allowed in an HTTP header.
    #[error(
        "The user agent cannot be sent in an HTTP header. Remove line breaks and other control characters."
    )]
    UserAgent,
}

/// Settings of [`super::ExaHttp`].
#[derive(Clone, Debug)]
pub struct ExaConfig {
    /// Overrides the base URL of the APIs that take API keys.
    pub base_url: Option<Url>,
    /// Overrides the base URL of the APIs that take service keys.
    pub service_base_url: Option<Url>,
    /// When failed requests are retried.
    pub retry: RetryPolicy,
    /// The size limit of a response after decompression, in bytes.
    pub max_response_bytes: usize,
    /// The memory limit of all responses above 1 MiB, in bytes. It applies separately to the bytes being
    /// read and to the values that calls hold; further responses wait.
    pub max_response_memory: usize,
    /// The time limit of an event stream.
    pub max_stream_duration: Duration,
    /// The time limit for connecting.
    pub connect_timeout: Duration,
    /// The value of the `user-agent` header.
    pub user_agent: String,
    /// No request is sent.
    pub no_network: bool,
}

impl Default for ExaConfig {
    fn default() -> Self {
        Self {
            base_url: None,
            service_base_url: None,
            retry: RetryPolicy::default(),
            max_response_bytes: MAX_RESPONSE_BYTES,
            max_response_memory: MAX_RESPONSE_MEMORY,
            max_stream_duration: MAX_STREAM_DURATION,
            connect_timeout: Duration::from_secs(10),
            user_agent: concat!("exa-mcp-server/", env!("CARGO_PKG_VERSION")).to_owned(),
            no_network: false,
        }
    }
}

impl ExaConfig {
    /// Returns the default settings with the base URLs from the environment, or those of `fallback`, which gets the name
    /// of a variable that is not set.
    ///
    /// # Errors
    /// A URL is not a plain `http` or `https` URL.
    pub fn from_env_or<'f>(
        fallback: impl Fn(&str) -> Option<&'f str>,
    ) -> Result<Self, ConfigError> {
        let base_url = |kind: KeyKind| {
            let variable = kind.base_url_variable();
            let fallback = || parse_base_url(kind, fallback(variable).unwrap_or_default());
            match env::var(variable) {
                Ok(text) => parse_base_url(kind, &text)?.map_or_else(fallback, |url| Ok(Some(url))),
                Err(env::VarError::NotPresent) => fallback(),
                Err(env::VarError::NotUnicode(_)) => {
                    let problem = "it is not valid UTF-8".to_owned();
                    Err(ConfigError::BaseUrl(kind, problem))
                }
            }
        };
        Ok(Self {
            base_url: base_url(KeyKind::Api)?,
            service_base_url: base_url(KeyKind::Service)?,
            ..Self::default()
        })
    }

    /// Returns the URL that overrides the base URL of the APIs that take this kind of key.
    #[must_use]
    pub fn base_url_of(&self, kind: KeyKind) -> Option<&Url> {
        match kind {
            KeyKind::Api => self.base_url.as_ref(),
            KeyKind::Service => self.service_base_url.as_ref(),
        }
    }
}

fn example_url(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::Api => "https://api.exa.ai",
        KeyKind::Service => "https://admin-api.exa.ai",
    }
}

/// Parses a base URL; an empty text means that none is set.
fn parse_base_url(kind: KeyKind, text: &str) -> Result<Option<Url>, ConfigError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let mut url =
        Url::parse(text).map_err(|error| ConfigError::BaseUrl(kind, error.to_string()))?;
    check_base_url(kind, &url)?;
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    Ok(Some(url))
}

/// Rejects URLs to which no path can be appended, or which contain credentials.
pub(super) fn check_base_url(kind: KeyKind, url: &Url) -> Result<(), ConfigError> {
    let problem = if !matches!(url.scheme(), "http" | "https") {
        format!("its scheme is {}, not http or https", url.scheme())
    } else if url.host_str().is_none_or(str::is_empty) {
        "it names no host".to_owned()
    } else if !url.username().is_empty() || url.password().is_some() {
        "it contains a user name or password".to_owned()
    } else if url.query().is_some() {
        "it has a query (the part after `?`)".to_owned()
    } else if url.fragment().is_some() {
        "it has a fragment (the part after `#`)".to_owned()
    } else {
        return Ok(());
    };
    Err(ConfigError::BaseUrl(kind, problem))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn defaults_match_the_documentation() {
        let config = ExaConfig::default();
        assert_eq!(config.max_response_bytes, 52_428_800);
        assert_eq!(config.connect_timeout, Duration::from_secs(10));
        assert!(config.user_agent.starts_with("exa-mcp-server/"));
        assert!(config.base_url.is_none());
    }

    #[test]
    fn trims_trailing_slashes_of_base_urls() {
        let url = |text| {
            parse_base_url(KeyKind::Api, text)
                .unwrap()
                .map(String::from)
        };
        assert_eq!(url("http://h:1/a/b//").as_deref(), Some("http://h:1/a/b"));
        assert_eq!(
            url(" https://api.exa.ai/ ").as_deref(),
            Some("https://api.exa.ai/")
        );
        assert_eq!(url("  "), None);
    }

    #[test]
    fn rejects_invalid_base_urls_without_repeating_them() {
        for (text, part) in [
            ("api.exa.ai", "relative URL"),
            ("ftp://api.exa.ai", "scheme is ftp"),
            ("https://me:hunter2@api.exa.ai", "user name or password"),
            ("https://api.exa.ai?token=hunter2", "query"),
            ("https://api.exa.ai/#hunter2", "fragment"),
            ("https://", "empty host"),
        ] {
            for kind in [KeyKind::Api, KeyKind::Service] {
                let error = parse_base_url(kind, text).unwrap_err().to_string();
                assert!(error.contains(part), "{text}: {error}");
                assert!(error.contains(kind.base_url_variable()), "{error}");
                assert!(!error.contains("hunter2"), "{error}");
            }
        }
    }
}
