//! Repairs JSON text with lone surrogates.
//!
//! The grammar of JSON allows a lone `"\ud83d"`, which results from truncating a text by UTF-16 units inside an
//! emoji. Rust strings cannot represent it, so the parser rejects the whole text.

/// The escape of U+FFFD, the replacement character.
const REPLACEMENT: &[u8] = b"\\ufffd";

/// Replaces every escaped lone surrogate; returns `None` if there are none.
pub fn repair(text: &[u8]) -> Option<Vec<u8>> {
    let mut repaired = Vec::with_capacity(text.len());
    let mut changed = false;
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        let (length, is_lone) = match (code_unit(rest), rest.get(6..).and_then(code_unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (12, false),
            (Some(0xD800..=0xDFFF), _) => (6, true),
            // An escaped backslash is skipped as a whole, so that the next character does not start an escape.
            _ if *first == b'\\' && !tail.is_empty() => (2, false),
            _ => (1, false),
        };
        let (taken, after) = rest.split_at_checked(length)?;
        repaired.extend_from_slice(if is_lone { REPLACEMENT } else { taken });
        changed |= is_lone;
        rest = after;
    }
    changed.then_some(repaired)
}

/// Parses the UTF-16 code unit of an escape such as `\ud83d` at the start of the text.
fn code_unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn repaired(text: &str) -> Option<String> {
        repair(text.as_bytes()).map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn replaces_lone_surrogates() {
        assert_eq!(repaired(r#""a\ud83d""#).unwrap(), r#""a\ufffd""#);
        assert_eq!(repaired(r#""\uDE00b""#).unwrap(), r#""\ufffdb""#);
        assert_eq!(repaired(r#""\ud83d\u0041""#).unwrap(), r#""\ufffd\u0041""#);
        let twice = repaired(r#""\ud83d\ud83d\ude00""#).unwrap();
        assert_eq!(twice, r#""\ufffd\ud83d\ude00""#);
    }

    #[test]
    fn leaves_other_text_unchanged() {
        for text in [r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\u00"#, "\\", ""] {
            assert_eq!(repaired(text), None, "{text}");
        }
    }
}
