//! Percent-encoding of generated URLs, and decoding of paths.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// The printable ASCII characters that a URL must not contain.
const NOT_IN_URLS: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Decodes `%xx`. A stray percent sign stays; bytes that are not UTF-8 become U+FFFD.
pub(crate) fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Encodes the characters that a URL must not contain.
pub(crate) fn encode_url(text: &str) -> String {
    utf8_percent_encode(text, NOT_IN_URLS).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_and_decodes() {
        assert_eq!(
            encode_url("https://a.example/größe 1"),
            "https://a.example/gr%C3%B6%C3%9Fe%201"
        );
        assert_eq!(decode("gr%C3%B6%C3%9Fe%201 %zz%2"), "größe 1 %zz%2");
    }
}
