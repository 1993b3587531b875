//! Query strings.

/// The pairs of a query string, decoded, in order.
pub(super) fn pairs(query: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_pairs() {
        let read = pairs("types=a&types=b%20c&x&y=1+2&&z=%zz%2");
        let plain: Vec<(&str, &str)> = read.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(
            plain,
            [
                ("types", "a"),
                ("types", "b c"),
                ("x", ""),
                ("y", "1 2"),
                ("z", "%zz%2")
            ]
        );
    }
}
