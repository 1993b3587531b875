//! Ids in the style of the API: a prefix and 26 lower-case base 32 digits, the first ten of which
//! say when the object was made, so that ids sort by age.

const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// An id such as `webset_01k9x3m2q7…`.
pub(crate) fn id(prefix: &str, ms: u64, hash: u64) -> String {
    let mut text = format!("{prefix}_");
    push(&mut text, u128::from(ms), 10);
    let wide = u128::from(hash) << 16 | u128::from(crate::random::mix(hash) & 0xffff);
    push(&mut text, wide, 16);
    text
}

fn push(text: &mut String, value: u128, count: u32) {
    for place in (0..count).rev() {
        let digit = usize::try_from(value >> (5 * place) & 31).unwrap_or(0);
        text.push(DIGITS.get(digit).copied().map_or('0', char::from));
    }
}

/// A request id: 32 hexadecimal digits.
pub(crate) fn request_id(hash: u64) -> String {
    format!("{hash:016x}{:016x}", crate::random::mix(hash))
}

/// A secret such as `whsec_…`; as made up as everything else.
pub(crate) fn secret(hash: u64) -> String {
    format!("whsec_{hash:016x}{:016x}", crate::random::mix(hash))
}
