//! Ids in the style of the API: a prefix and 26 lower-case base 32 digits. The first ten digits hold
//! the creation time, so ids sort by age.

use crate::rng::mix;

const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Returns an id such as `webset_01k9x3m2q7…`.
pub(crate) fn id(prefix: &str, ms: u64, hash: u64) -> String {
    let mut text = format!("{prefix}_");
    push_digits(&mut text, u128::from(ms), 10);
    let wide = u128::from(hash) << 16 | u128::from(mix(hash) & 0xffff);
    push_digits(&mut text, wide, 16);
    text
}

fn push_digits(text: &mut String, value: u128, count: u32) {
    for position in (0..count).rev() {
        let digit = usize::try_from(value >> (5 * position) & 31).unwrap_or(0);
        text.push(DIGITS.get(digit).copied().map_or('0', char::from));
    }
}

/// Returns a request id: 32 hexadecimal digits.
pub(crate) fn request_id(hash: u64) -> String {
    format!("{hash:016x}{:016x}", mix(hash))
}

/// Returns a UUID.
pub(crate) fn uuid(hash: u64) -> String {
    let (high, low) = (hash, mix(hash));
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 52,
        low & 0xffff_ffff_ffff
    )
}

/// Returns a secret such as `whsec_…`.
pub(crate) fn secret(hash: u64) -> String {
    format!("whsec_{hash:016x}{:016x}", mix(hash))
}
