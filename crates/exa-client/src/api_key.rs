//! The API key: carried as a secret, never printed.

use std::fmt;

use http::HeaderValue;
use serde_json::Value;

use super::ConfigError;

/// Keys shorter than this are not looked for in answers.
const SHORTEST: usize = 8;

/// What stands in a text in place of the key.
const REDACTED: &str = "[redacted]";

/// An Exa API key that can be sent as a header and never shows in any text.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    text: String,
    header: HeaderValue,
}

impl ApiKey {
    /// Creates a key, without the white space around it.
    ///
    /// # Errors
    /// An empty key, or one with characters that no HTTP header can carry. The error does not repeat
    /// the key.
    pub fn new(key: impl Into<String>) -> Result<Self, ConfigError> {
        let text = key.into().trim().to_owned();
        if text.is_empty() {
            return Err(ConfigError::EmptyKey);
        }
        // Header values may hold more than ASCII, but no key does; that is a wrong copy.
        if !text
            .bytes()
            .all(|byte| byte == b' ' || byte.is_ascii_graphic())
        {
            return Err(ConfigError::InvalidKey);
        }
        let mut header = HeaderValue::from_str(&text).map_err(|_| ConfigError::InvalidKey)?;
        // Sensitive values are hidden by Debug and kept out of HTTP/2 header tables.
        header.set_sensitive(true);
        Ok(Self { text, header })
    }

    /// Replaces every occurrence of the key in `text`.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        text.replace(&self.text, REDACTED)
    }

    /// Replaces the key in every text of a response.
    ///
    /// A key of a few characters would be found in ordinary words; no real key is that short.
    #[must_use]
    pub fn redact_json(&self, mut value: Value) -> Value {
        if self.text.len() >= SHORTEST {
            self.redact_in(&mut value);
        }
        value
    }

    /// Replaces the key in a text of the API, as [`Self::redact_json`] does.
    #[must_use]
    pub fn redact_text(&self, text: &str) -> String {
        if self.text.len() >= SHORTEST {
            self.redact(text)
        } else {
            text.to_owned()
        }
    }

    /// Returns how many bytes at the end of a text may be the beginning of the key, whose rest is still to
    /// come.
    #[must_use]
    pub fn begun_in(&self, text: &str) -> usize {
        if self.text.len() < SHORTEST {
            return 0;
        }
        // A key is ASCII, so any number of its bytes is a text.
        let begun = |length: &usize| {
            let start = self.text.get(..*length);
            start.is_some_and(|start| text.ends_with(start))
        };
        (1..self.text.len()).rev().find(begun).unwrap_or(0)
    }

    fn redact_in(&self, value: &mut Value) {
        match value {
            Value::String(text) if text.contains(&self.text) => *text = self.redact(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_in(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.redact_in(field)),
            _ => {}
        }
    }

    /// Returns the first characters, to tell keys apart; none of a short key, because they would reveal too
    /// much.
    #[must_use]
    pub fn prefix(&self) -> String {
        let shown = match self.text.len() {
            16.. => 4,
            _ => 0,
        };
        let prefix: String = self.text.chars().take(shown).collect();
        format!("{prefix}…")
    }

    /// Returns the key itself, to be hashed or sent.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// The value of the `x-api-key` header, marked as sensitive.
    pub(super) fn header(&self) -> HeaderValue {
        self.header.clone()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn debug_and_header_hide_the_key() {
        let key = ApiKey::new("secret-key-1").unwrap();
        assert_eq!(format!("{key:?}"), "ApiKey(…)");
        assert!(!format!("{:?}", key.header()).contains("secret"));
        assert_eq!(key.header().to_str().unwrap(), "secret-key-1");
    }

    #[test]
    fn white_space_around_the_key_is_dropped() {
        let key = ApiKey::new(" \tabc\r\n").unwrap();
        assert_eq!(key.header().to_str().unwrap(), "abc");
    }

    #[test]
    fn unusable_keys_are_refused_without_printing_them() {
        assert_eq!(ApiKey::new("  ").unwrap_err(), ConfigError::EmptyKey);
        for bad in ["sec\nret", "sécret-key", "sec\u{0}ret"] {
            let error = ApiKey::new(bad).unwrap_err();
            assert_eq!(error, ConfigError::InvalidKey);
            assert!(!error.to_string().contains(bad));
        }
    }

    #[test]
    fn every_occurrence_is_redacted_even_of_short_keys() {
        let key = ApiKey::new("ab1").unwrap();
        assert_eq!(key.redact("ab1 xab1y ab"), "[redacted] x[redacted]y ab");
    }
}
