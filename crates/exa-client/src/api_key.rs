//! Keys, which are never printed.

use std::fmt;

use http::HeaderValue;
use serde_json::Value;

use super::ConfigError;
use exa_mcp_model::KeyKind;

/// Shorter keys are not redacted in responses, because they could be ordinary words.
const MIN_REDACTED_LENGTH: usize = 8;

/// The replacement for the key.
const REDACTED: &str = "[redacted]";

/// A key of Exa, which can be sent as a header and does not appear in `Debug` output.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    kind: KeyKind,
    text: String,
    header: HeaderValue,
}

impl ApiKey {
    /// Creates an API key, trimming white space.
    ///
    /// # Errors
    /// The key is empty or has characters that are not allowed in an HTTP header. The error does not
    /// contain the key.
    pub fn new(key: impl Into<String>) -> Result<Self, ConfigError> {
        Self::of_kind(KeyKind::Api, key)
    }

    /// Creates a key of this kind, like [`Self::new`].
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn of_kind(kind: KeyKind, key: impl Into<String>) -> Result<Self, ConfigError> {
        let text = key.into().trim().to_owned();
        if text.is_empty() {
            return Err(ConfigError::EmptyKey(kind));
        }
        // Header values may contain other bytes, but a key with any was copied wrongly.
        if !text
            .bytes()
            .all(|byte| byte == b' ' || byte.is_ascii_graphic())
        {
            return Err(ConfigError::InvalidKey(kind));
        }
        let mut header = HeaderValue::from_str(&text).map_err(|_| ConfigError::InvalidKey(kind))?;
        // Sensitive values are hidden by `Debug` and excluded from HTTP/2 header tables.
        header.set_sensitive(true);
        Ok(Self { kind, text, header })
    }

    /// Returns the kind of the key.
    #[must_use]
    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    /// Replaces every occurrence of the key in `text`.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        text.replace(&self.text, REDACTED)
    }

    /// Replaces the key in every string and every name of a response.
    ///
    /// Does nothing for a key that is so short that it could be an ordinary word; no real key is.
    #[must_use]
    pub fn redact_json(&self, mut value: Value) -> Value {
        if self.text.len() >= MIN_REDACTED_LENGTH {
            self.redact_in(&mut value);
        }
        value
    }

    /// Replaces the key in a text, under the same condition as [`Self::redact_json`].
    #[must_use]
    pub fn redact_text(&self, text: &str) -> String {
        if self.text.len() >= MIN_REDACTED_LENGTH {
            self.redact(text)
        } else {
            text.to_owned()
        }
    }

    /// Returns the length of the longest suffix of a text that is a proper prefix of the key.
    ///
    /// Text that arrives in pieces must hold this suffix back, because the next piece may complete the key.
    #[must_use]
    pub fn partial_key_len(&self, text: &str) -> usize {
        if self.text.len() < MIN_REDACTED_LENGTH {
            return 0;
        }
        // A key is ASCII, so it can be sliced at any byte.
        let is_suffix = |length: &usize| {
            let prefix = self.text.get(..*length);
            prefix.is_some_and(|prefix| text.ends_with(prefix))
        };
        (1..self.text.len()).rev().find(is_suffix).unwrap_or(0)
    }

    fn redact_in(&self, value: &mut Value) {
        match value {
            Value::String(text) if text.contains(&self.text) => *text = self.redact(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_in(item)),
            Value::Object(fields) => {
                if fields.keys().any(|name| name.contains(&self.text)) {
                    let named = std::mem::take(fields).into_iter();
                    *fields = named.map(|(name, it)| (self.redact(&name), it)).collect();
                }
                fields.values_mut().for_each(|field| self.redact_in(field));
            }
            _ => {}
        }
    }

    /// Returns the first four characters for display, or only `…` for a key shorter than 16 characters.
    #[must_use]
    pub fn prefix(&self) -> String {
        let shown = if self.text.len() >= 16 { 4 } else { 0 };
        let prefix: String = self.text.chars().take(shown).collect();
        format!("{prefix}…")
    }

    /// Returns the key itself, to be hashed or sent.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// Returns the value of the `x-api-key` header, marked as sensitive.
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
    use serde_json::json;

    use super::*;

    #[test]
    fn debug_and_header_hide_the_key() {
        let key = ApiKey::new("secret-key-1").unwrap();
        assert_eq!(format!("{key:?}"), "ApiKey(…)");
        assert!(!format!("{:?}", key.header()).contains("secret"));
        assert_eq!(key.header().to_str().unwrap(), "secret-key-1");
    }

    #[test]
    fn trims_white_space() {
        let key = ApiKey::new(" \tabc\r\n").unwrap();
        assert_eq!(key.header().to_str().unwrap(), "abc");
    }

    #[test]
    fn rejects_invalid_keys_without_printing_them() {
        assert_eq!(
            ApiKey::new("  ").unwrap_err(),
            ConfigError::EmptyKey(KeyKind::Api)
        );
        for bad in ["sec\nret", "sécret-key", "sec\u{0}ret"] {
            let error = ApiKey::new(bad).unwrap_err();
            assert_eq!(error, ConfigError::InvalidKey(KeyKind::Api));
            assert!(!error.to_string().contains(bad));
        }
    }

    #[test]
    fn redacts_every_occurrence() {
        let key = ApiKey::new("ab1").unwrap();
        assert_eq!(key.redact("ab1 xab1y ab"), "[redacted] x[redacted]y ab");
    }

    #[test]
    fn redacts_names_and_values_of_fields() {
        let key = ApiKey::new("secret-key-1").unwrap();
        let value = json!({"a": {"x-secret-key-1": ["secret-key-1", {"secret-key-1": 1}]}, "b": 2});
        let redacted = json!({"a": {"x-[redacted]": ["[redacted]", {"[redacted]": 1}]}, "b": 2});
        assert_eq!(key.redact_json(value), redacted);
    }
}
