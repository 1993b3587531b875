//! The URIs of resources: `exa://…` and `note:///…`.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The maximum length of a URI, in bytes.
const MAX_BYTES: usize = 2_000;

/// Characters that are percent-encoded in a path segment.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The parsed URI of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ResourceUri {
    /// A cached result.
    Result(String),
    /// One entry of a cached result.
    ResultItem(String, usize),
    /// The description of an operation.
    Operation(String),
    /// The current state of a webset.
    Webset(String),
    /// The first page of the current items of a webset.
    WebsetItems(String),
    /// A note.
    Note(String),
}

impl ResourceUri {
    /// Parses a URI; `None` if this server has no such resources.
    pub fn parse(uri: &str) -> Option<Self> {
        if uri.len() > MAX_BYTES {
            return None;
        }
        if let Some(id) = uri.strip_prefix("note:///") {
            return segment(id).map(Self::Note);
        }
        let mut parts = uri.strip_prefix("exa://")?.split('/');
        let parsed = match (parts.next()?, segment(parts.next()?)?, parts.next()) {
            ("results", id, None) => Self::Result(id),
            ("results", id, Some(index)) => Self::ResultItem(id, number(index)?.checked_sub(1)?),
            ("operations", name, None) => Self::Operation(name),
            ("websets", id, None) => Self::Webset(id),
            ("websets", id, Some("items")) => Self::WebsetItems(id),
            _ => return None,
        };
        parts.next().is_none().then_some(parsed)
    }

    /// Returns whether a change of `other` also changes this resource.
    pub fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::ResultItem(id, _), Self::Result(of))
            | (Self::WebsetItems(id), Self::Webset(of)) => id == of,
            _ => self == other,
        }
    }
}

/// Decodes a path segment, which must not be empty.
fn segment(text: &str) -> Option<String> {
    if text.is_empty() || text.contains(['/', '?', '#']) {
        return None;
    }
    let decoded = percent_decode_str(text).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

/// Parses a number in canonical form, which "+1" and "01" are not.
fn number(text: &str) -> Option<usize> {
    let number: usize = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

impl fmt::Display for ResourceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |id| utf8_percent_encode(id, ENCODED);
        match self {
            Self::Result(id) => write!(f, "exa://results/{}", plain(id)),
            // Results are numbered from 1.
            Self::ResultItem(id, index) => {
                write!(f, "exa://results/{}/{}", plain(id), index.saturating_add(1))
            }
            Self::Operation(name) => write!(f, "exa://operations/{}", plain(name)),
            Self::Webset(id) => write!(f, "exa://websets/{}", plain(id)),
            Self::WebsetItems(id) => write!(f, "exa://websets/{}/items", plain(id)),
            Self::Note(id) => write!(f, "note:///{}", plain(id)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_it_formats() {
        for uri in [
            "exa://results/r_1",
            "exa://results/r_1/1",
            "exa://results/r_1/12",
            "exa://operations/agent.runs.create",
            "exa://websets/ws_1",
            "exa://websets/my%20webset%2F1",
            "exa://websets/ws_1/items",
            "note:///abc",
        ] {
            assert_eq!(ResourceUri::parse(uri).unwrap().to_string(), uri);
        }
        let unusual = ResourceUri::Webset("a/b?c#ü".to_owned());
        assert_eq!(ResourceUri::parse(&unusual.to_string()), Some(unusual));
    }

    #[test]
    fn rejects_other_uris() {
        for uri in [
            "",
            "exa://",
            "exa://results",
            "exa://results/",
            "exa://results/a/",
            "exa://results/a/x",
            "exa://results/a/0",
            "exa://results/a/-1",
            "exa://results/a/01",
            "exa://results/a/1/2",
            "exa://results/a?x=1",
            "exa://operations/a/b",
            "exa://websets/a/searches",
            "exa://websets/a/items/b",
            "exa://websets/%ff",
            "EXA://websets/a",
            "note://a",
            "note:///",
            "note:///a/b",
            "file:///etc/passwd",
        ] {
            assert_eq!(ResourceUri::parse(uri), None, "{uri}");
        }
        let long = format!("note:///{}", "a".repeat(MAX_BYTES));
        assert_eq!(ResourceUri::parse(&long), None);
    }

    #[test]
    fn a_part_changes_with_its_container() {
        let parse = |uri| ResourceUri::parse(uri).unwrap();
        let within = |part, whole| parse(part).is_within(&parse(whole));
        assert!(within("exa://results/a/3", "exa://results/a"));
        assert!(within("exa://websets/a/items", "exa://websets/a"));
        assert!(within("note:///a", "note:///a"));
        assert!(!within("exa://websets/a", "exa://websets/a/items"));
        assert!(!within("exa://results/ab/3", "exa://results/a"));
        assert!(!within("exa://websets/a", "exa://results/a"));
    }
}
