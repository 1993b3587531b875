//! The named references that matter here: those that stand for something hidden, and those that other
//! references can be made of.

/// The length of the longest name.
pub(super) const LONGEST: usize = 21;

/// Names of characters that show nothing, and of those that references are written with.
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

/// What a name stands for; `next` is the character after its `;`.
pub(super) fn decode(name: &str, next: Option<char>) -> Option<char> {
    let (name, c) = NAMES.iter().find(|(known, _)| *known == name)?;
    // `&it;` is code more often than an invisible times sign, which stands before an operand.
    let operand = next.is_some_and(|next| next.is_alphanumeric() || next == '&');
    (name.len() > 2 || operand).then_some(*c)
}

/// Whether a text, which follows a `&`, may be a reference that matters.
pub(super) fn may_begin(text: &str) -> bool {
    text.starts_with('#') || NAMES.iter().any(|(name, _)| text.starts_with(name))
}
