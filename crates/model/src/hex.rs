//! Hexadecimal encoding.

/// Encodes bytes as lower-case hexadecimal digits.
#[must_use]
pub fn to_hex<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> String {
    let digits = bytes.into_iter().map(|byte| format!("{byte:02x}"));
    digits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_two_digits_per_byte() {
        assert_eq!(to_hex(&[0, 10, 255]), "000aff");
    }
}
