//! Recognizes identifiers in untrusted text.

/// Returns whether a text is an identifier, such as an id, a tag or a state. Untrusted identifiers may appear
/// where untrusted sentences may not.
#[must_use]
pub fn is_identifier(text: &str) -> bool {
    const MAX_LENGTH: usize = 64;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
    (1..=MAX_LENGTH).contains(&text.len()) && text.bytes().all(is_allowed)
}
