//! The addresses of resources: `exa://…` and `note:///…`.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The longest address that is read, in bytes.
const LONGEST: usize = 2_000;

/// What stands in an address as it is.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// What a resource is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A kept answer.
    Result(String),
    /// One result of a kept answer.
    ResultItem(String, usize),
    /// The description of an operation.
    Operation(String),
    /// A webset as it is now.
    Webset(String),
    /// The first items of a webset as they are now.
    WebsetItems(String),
    /// A note.
    Note(String),
}

impl Address {
    /// Reads an address; `None` for one that cannot be ours.
    pub fn parse(uri: &str) -> Option<Self> {
        if uri.len() > LONGEST {
            return None;
        }
        if let Some(id) = uri.strip_prefix("note:///") {
            return segment(id).map(Self::Note);
        }
        let mut parts = uri.strip_prefix("exa://")?.split('/');
        let address = match (parts.next()?, segment(parts.next()?)?, parts.next()) {
            ("results", id, None) => Self::Result(id),
            ("results", id, Some(index)) => Self::ResultItem(id, number(index)?),
            ("operations", name, None) => Self::Operation(name),
            ("websets", id, None) => Self::Webset(id),
            ("websets", id, Some("items")) => Self::WebsetItems(id),
            _ => return None,
        };
        parts.next().is_none().then_some(address)
    }

    /// Whether a change of `other` is a change of this.
    pub fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::ResultItem(id, _), Self::Result(of))
            | (Self::WebsetItems(id), Self::Webset(of)) => id == of,
            _ => self == other,
        }
    }
}

/// One part of a path, which must not be empty.
fn segment(text: &str) -> Option<String> {
    if text.is_empty() || text.contains(['/', '?', '#']) {
        return None;
    }
    let decoded = percent_decode_str(text).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

/// A number as we write it: "+1" and "01" are none.
fn number(text: &str) -> Option<usize> {
    let number: usize = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |id| utf8_percent_encode(id, ESCAPED);
        match self {
            Self::Result(id) => write!(f, "exa://results/{}", plain(id)),
            Self::ResultItem(id, index) => write!(f, "exa://results/{}/{index}", plain(id)),
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
    fn an_address_reads_as_it_is_written() {
        for uri in [
            "exa://results/r_1",
            "exa://results/r_1/0",
            "exa://results/r_1/12",
            "exa://operations/agent.runs.create",
            "exa://websets/ws_1",
            "exa://websets/my%20webset%2F1",
            "exa://websets/ws_1/items",
            "note:///abc",
        ] {
            assert_eq!(Address::parse(uri).unwrap().to_string(), uri);
        }
        let odd = Address::Webset("a/b?c#ü".to_owned());
        assert_eq!(Address::parse(&odd.to_string()), Some(odd));
    }

    #[test]
    fn anything_else_is_no_address() {
        for uri in [
            "",
            "exa://",
            "exa://results",
            "exa://results/",
            "exa://results/a/",
            "exa://results/a/x",
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
            assert_eq!(Address::parse(uri), None, "{uri}");
        }
        let long = format!("note:///{}", "a".repeat(LONGEST));
        assert_eq!(Address::parse(&long), None);
    }

    #[test]
    fn a_part_changes_with_its_whole() {
        let address = |uri| Address::parse(uri).unwrap();
        let within = |part, whole| address(part).is_within(&address(whole));
        assert!(within("exa://results/a/3", "exa://results/a"));
        assert!(within("exa://websets/a/items", "exa://websets/a"));
        assert!(within("note:///a", "note:///a"));
        assert!(!within("exa://websets/a", "exa://websets/a/items"));
        assert!(!within("exa://results/ab/3", "exa://results/a"));
        assert!(!within("exa://websets/a", "exa://results/a"));
    }
}
