//! JSON that is embedded into the program.

use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;

use serde::de::DeserializeOwned;

/// A value that the generator wrote as JSON, parsed on first use.
pub struct EmbeddedJson<T> {
    text: &'static str,
    /// Boxed, because tables of these values are in memory that each start writes to.
    value: OnceLock<Box<T>>,
}

impl<T> EmbeddedJson<T> {
    /// Wraps a text that holds the JSON of a `T`.
    pub const fn new(text: &'static str) -> Self {
        Self {
            text,
            value: OnceLock::new(),
        }
    }

    /// Returns the JSON itself.
    pub fn text(&self) -> &'static str {
        self.text
    }
}

impl<T: DeserializeOwned + Default> Deref for EmbeddedJson<T> {
    type Target = T;

    /// Returns the value. Invalid JSON, which only a manually edited file can contain, gives the default value.
    fn deref(&self) -> &T {
        self.value
            .get_or_init(|| Box::new(serde_json::from_str(self.text).unwrap_or_default()))
    }
}

impl<T> fmt::Debug for EmbeddedJson<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}
