//! Mends JSON text with lone surrogates.
//!
//! JSON's grammar allows `"\ud83d"` alone, and JavaScript clients write it when a model's text was cut
//! in the middle of an emoji. Rust strings cannot hold it, so the parser refuses the whole message.

use std::str;

/// The escape of U+FFFD, the replacement character.
const REPLACEMENT: &[u8] = b"\\ufffd";

/// Replaces every lone surrogate escape; `None` if there is none, so that the text is broken otherwise.
pub(super) fn mend(text: &[u8]) -> Option<Vec<u8>> {
    let mut mended = Vec::with_capacity(text.len());
    let mut changed = false;
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        let (used, lone) = match first {
            b'\\' => escape(rest),
            _ => (1, false),
        };
        if lone {
            changed = true;
            mended.extend_from_slice(REPLACEMENT);
        } else {
            mended.extend(rest.iter().take(used));
        }
        rest = rest.get(used..).unwrap_or(tail);
    }
    changed.then_some(mended)
}

/// The length of the escape that the text begins with, and whether it is a lone surrogate.
fn escape(text: &[u8]) -> (usize, bool) {
    match unit(text) {
        Some(0xD800..=0xDBFF) => match text.get(6..).and_then(unit) {
            Some(0xDC00..=0xDFFF) => (12, false),
            _ => (6, true),
        },
        Some(0xDC00..=0xDFFF) => (6, true),
        Some(_) => (6, false),
        None => (2, false),
    }
}

/// The code unit of a `\uXXXX` escape at the beginning of the text.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
    u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn mended(text: &str) -> Option<String> {
        mend(text.as_bytes()).map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn lone_surrogates_are_replaced() {
        assert_eq!(mended(r#""a\ud83d""#).unwrap(), r#""a\ufffd""#);
        assert_eq!(mended(r#""\uDE00b""#).unwrap(), r#""\ufffdb""#);
        assert_eq!(mended(r#""\ud83d\u0041""#).unwrap(), r#""\ufffd\u0041""#);
        let twice = mended(r#""\ud83d\ud83d\ude00""#).unwrap();
        assert_eq!(twice, r#""\ufffd\ud83d\ude00""#);
    }

    #[test]
    fn other_text_is_left_alone() {
        for text in [r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\u00"#, "\\", ""] {
            assert_eq!(mended(text), None, "{text}");
        }
    }
}
