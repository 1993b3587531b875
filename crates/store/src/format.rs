//! Versioned JSON documents. The field `v` holds the version of the format; without it the version is 1.
//!
//! The types spell out their field names in `#[serde(rename)]`, so that renaming a Rust field does not change the
//! stored format.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A kind of document.
pub trait DocumentFormat: Serialize + DeserializeOwned {
    /// The name in log messages.
    const KIND: &'static str;

    /// The version to write; older ones can be read. A version that older programs would misread also needs a new
    /// version of the whole store.
    const VERSION: u32 = 1;
}

#[derive(Serialize)]
struct Versioned<'a, T> {
    v: u32,
    #[serde(flatten)]
    document: &'a T,
}

#[derive(Deserialize)]
struct VersionField {
    #[serde(default = "first_version")]
    v: u32,
}

fn first_version() -> u32 {
    1
}

/// Encodes a document.
pub fn encode<T: DocumentFormat>(document: &T) -> String {
    let v = T::VERSION;
    serde_json::to_string(&Versioned { v, document }).unwrap_or_default()
}

/// Decodes a document; `None` if it is not of this kind or of a newer version.
pub fn decode<T: DocumentFormat>(body: &str) -> Option<T> {
    let VersionField { v } = serde_json::from_str(body).ok()?;
    if v > T::VERSION {
        tracing::error!(
            kind = T::KIND,
            version = v,
            supported = T::VERSION,
            "ignoring a document of a newer version; update this program"
        );
        return None;
    }
    serde_json::from_str(body).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Pair {
        #[serde(rename = "one")]
        first: u8,
        #[serde(rename = "two", default, skip_serializing_if = "Option::is_none")]
        second: Option<String>,
    }

    impl DocumentFormat for Pair {
        const KIND: &'static str = "pair";
        const VERSION: u32 = 2;
    }

    #[test]
    fn documents_contain_their_version() {
        let pair = Pair {
            first: 1,
            second: Some("b".to_owned()),
        };
        let text = encode(&pair);
        assert_eq!(text, r#"{"v":2,"one":1,"two":"b"}"#);
        assert_eq!(decode(&text), Some(pair));
    }

    #[test]
    fn decodes_older_versions_only() {
        let old = Pair {
            first: 1,
            second: None,
        };
        for text in [r#"{"one":1}"#, r#"{"v":1,"one":1,"later":true}"#] {
            assert_eq!(decode(text), Some(old.clone()), "{text}");
        }
        for text in [r#"{"v":3,"one":1}"#, r#"{"v":"x","one":1}"#, "", "[]", "{}"] {
            assert_eq!(decode::<Pair>(text), None, "{text}");
        }
    }
}
