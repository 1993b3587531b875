//! Percent-encoding: of paths and queries that come in, and of addresses that are made up.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// The printable ASCII characters that no address may have.
const NOT_IN_ADDRESSES: &AsciiSet = &CONTROLS
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

/// Text with `%xx` resolved. A stray percent sign stays, bytes that are no UTF-8 become U+FFFD.
pub(crate) fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// An address in which only characters stand that an address may have.
pub(crate) fn address(text: &str) -> String {
    utf8_percent_encode(text, NOT_IN_ADDRESSES).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        assert_eq!(
            address("https://a.example/größe 1"),
            "https://a.example/gr%C3%B6%C3%9Fe%201"
        );
        assert_eq!(decode("gr%C3%B6%C3%9Fe%201 %zz%2"), "größe 1 %zz%2");
    }
}
