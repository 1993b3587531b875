//! Percent-encoding: of paths and queries that come in, and of addresses that are made up.

/// Text with `%xx` resolved. A stray percent sign stays, bytes that are no UTF-8 become U+FFFD.
pub(crate) fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let pair = tail.split_at_checked(2).filter(|_| *first == b'%');
        match pair.and_then(|(hex, after)| Some((byte(hex)?, after))) {
            Some((decoded, after)) => {
                bytes.push(decoded);
                rest = after;
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn byte(hex: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(hex).ok()?;
    // from_str_radix alone would also take a sign.
    text.bytes()
        .all(|b| b.is_ascii_hexdigit())
        .then(|| u8::from_str_radix(text, 16).ok())
        .flatten()
}

/// An address in which only characters stand that an address may have.
pub(crate) fn address(text: &str) -> String {
    let mut address = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"/:?#@!$&'()*+,;=%-._~".contains(&byte) {
            address.push(char::from(byte));
        } else {
            address.push_str(&format!("%{byte:02X}"));
        }
    }
    address
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
