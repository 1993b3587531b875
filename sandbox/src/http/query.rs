//! Percent-encoding of paths and query strings.

/// The pairs of a query string, decoded, in order.
pub(super) fn pairs(query: &str) -> Vec<(String, String)> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(&key.replace('+', " ")), decode(&value.replace('+', " ")))
        })
        .collect()
}

/// Text with `%xx` resolved. A stray percent sign stays, bytes that are no UTF-8 become U+FFFD.
pub(super) fn decode(text: &str) -> String {
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
    text.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u8::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_pairs() {
        let read = pairs("types=a&types=b%20c&x&y=1+2&&z=%zz%2");
        let plain: Vec<(&str, &str)> = read.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(plain, [("types", "a"), ("types", "b c"), ("x", ""), ("y", "1 2"), ("z", "%zz%2")]);
    }
}
