//! Bytes as hexadecimal digits.

/// Writes bytes as lower-case hexadecimal digits.
#[must_use]
pub fn to_hex<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> String {
    let digits = bytes.into_iter().map(|byte| format!("{byte:02x}"));
    digits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_two_digits() {
        assert_eq!(to_hex(&[0, 10, 255]), "000aff");
    }
}
