//! Names that others give.

/// Whether a text can only be a name: an id, a tag or a state, but no sentence. Names that others give may
/// appear where their sentences may not.
#[must_use]
pub fn is_identifier(text: &str) -> bool {
    const MAX_LENGTH: usize = 64;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
    (1..=MAX_LENGTH).contains(&text.len()) && text.bytes().all(is_allowed)
}
