//! Documents as they are written: JSON that says in `v` which version of its format it has.
//!
//! The names in it are written out where the types are, so that renaming something in the program changes
//! nothing in a store. What has no `v` was written before there was one and is the first version.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A kind of document.
pub trait DocumentFormat: Serialize + DeserializeOwned {
    /// What it is called in the log.
    const KIND: &'static str;

    /// The version that is written; those up to it are read. A version that older programs misread also
    /// needs a new version of the whole store.
    const VERSION: u32 = 1;
}

#[derive(Serialize)]
struct Marked<'a, T> {
    v: u32,
    #[serde(flatten)]
    document: &'a T,
}

#[derive(Deserialize)]
struct Mark {
    #[serde(default = "first")]
    v: u32,
}

fn first() -> u32 {
    1
}

/// The text of a document.
pub fn encode<T: DocumentFormat>(document: &T) -> String {
    let v = T::VERSION;
    serde_json::to_string(&Marked { v, document }).unwrap_or_default()
}

/// Reads a document; `None` if it is not one of this kind, or of a version that is not known here.
pub fn decode<T: DocumentFormat>(body: &str) -> Option<T> {
    let Mark { v } = serde_json::from_str(body).ok()?;
    if v > T::VERSION {
        tracing::error!(
            kind = T::KIND,
            version = v,
            known = T::VERSION,
            "a document of a newer program is passed over; update this one"
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
    fn a_document_says_its_version() {
        let pair = Pair {
            first: 1,
            second: Some("b".to_owned()),
        };
        let text = encode(&pair);
        assert_eq!(text, r#"{"v":2,"one":1,"two":"b"}"#);
        assert_eq!(decode(&text), Some(pair));
    }

    #[test]
    fn older_versions_are_read_and_newer_ones_are_not() {
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
