//! The relevant named character references: those of invisible characters, and those that can be part of other
//! references.

/// The length of the longest name.
pub(super) const MAX_LENGTH: usize = 21;

/// Names of invisible characters, and of the characters that references consist of.
const NAMES: [(&str, char); 22] = [
    ("AMP", '&'),
    ("ApplyFunction", '\u{2061}'),
    ("InvisibleComma", '\u{2063}'),
    ("InvisibleTimes", '\u{2062}'),
    ("NegativeMediumSpace", '\u{200b}'),
    ("NegativeThickSpace", '\u{200b}'),
    ("NegativeThinSpace", '\u{200b}'),
    ("NegativeVeryThinSpace", '\u{200b}'),
    ("NoBreak", '\u{2060}'),
    ("ZeroWidthSpace", '\u{200b}'),
    ("af", '\u{2061}'),
    ("amp", '&'),
    ("ic", '\u{2063}'),
    ("it", '\u{2062}'),
    ("lbrack", '['),
    ("lrm", '\u{200e}'),
    ("num", '#'),
    ("rlm", '\u{200f}'),
    ("semi", ';'),
    ("shy", '\u{ad}'),
    ("zwj", '\u{200d}'),
    ("zwnj", '\u{200c}'),
];

/// Decodes a name; `next` is the character after its `;`.
pub(super) fn decode(name: &str, next: Option<char>) -> Option<char> {
    let (name, c) = NAMES.iter().find(|(known, _)| *known == name)?;
    // `&it;` is code, unless an operand follows the invisible times sign.
    let is_operand = next.is_some_and(|next| next.is_alphanumeric() || next == '&');
    (name.len() > 2 || is_operand).then_some(*c)
}

/// Returns whether a text after `&` may be a relevant reference.
pub(super) fn may_start(text: &str) -> bool {
    text.starts_with('#') || NAMES.iter().any(|(name, _)| text.starts_with(name))
}
