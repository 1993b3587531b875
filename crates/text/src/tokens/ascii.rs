//! A fast path for plain ASCII pieces, which measures and prices them in one pass.
//!
//! Rare pieces, and those that may continue beyond ASCII, take the general path, which gives the same result for
//! all other pieces.

use super::word_cost::{self, WordPrefix};
use super::{Cost, TOKEN, symbols};

/// A plain ASCII piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AsciiPiece {
    /// Its length in bytes.
    pub(super) length: usize,
    /// The number of letters, if it is a word.
    pub(super) letters: usize,
    /// Its cost.
    pub(super) cost: Cost,
}

impl AsciiPiece {
    /// Returns the first piece of a text if it is plain ASCII.
    pub(super) fn at_start(text: &[u8]) -> Option<AsciiPiece> {
        match text {
            [b'a'..=b'z' | b'A'..=b'Z', ..] => word(text, WordPrefix::None, 0),
            [before, letter, ..] if letter.is_ascii_alphabetic() && may_precede_word(*before) => {
                let word_only = text.get(1..)?;
                word(word_only, WordPrefix::from_char(char::from(*before)), 1)
            }
            [b'0'..=b'9', ..] => digits(text),
            // A space before digits is a piece of its own.
            [b' ', b'0'..=b'9', ..] => Some(AsciiPiece::token(1)),
            [b' ', mark, ..] if is_symbol(*mark) => marks(text, 1),
            [mark, ..] if is_symbol(*mark) => marks(text, 0),
            [b' ', b' ', ..] => indent(text),
            [b'\n', ..] => line_ends(text),
            _ => None,
        }
    }

    fn token(length: usize) -> AsciiPiece {
        AsciiPiece {
            length,
            letters: 0,
            cost: TOKEN,
        }
    }
}

/// Returns whether a character belongs to the word that follows it.
fn may_precede_word(byte: u8) -> bool {
    byte.is_ascii() && !matches!(byte, b'0'..=b'9' | b'\r' | b'\n')
}

/// Returns whether a byte is neither letter nor digit nor white space.
fn is_symbol(byte: u8) -> bool {
    matches!(byte, 0..=8 | 14..=31 | b'!'..=b'/' | b':'..=b'@' | b'['..=b'`' | b'{'..=127)
}

/// Measures a word after a prefix of this length.
fn word(text: &[u8], prefix: WordPrefix, prefix_length: usize) -> Option<AsciiPiece> {
    let (letters, cost) = word_cost::measure(text, prefix);
    // A letter beyond ASCII or a contraction would belong to the word.
    let next = text.get(letters);
    let ends = next.is_none_or(|next| next.is_ascii() && *next != b'\'');
    ends.then_some(AsciiPiece {
        length: prefix_length + letters,
        letters,
        cost,
    })
}

/// Measures one to three digits, unless a digit beyond ASCII may follow.
fn digits(text: &[u8]) -> Option<AsciiPiece> {
    let most = text.iter().take(3);
    let length = most.take_while(|byte| byte.is_ascii_digit()).count();
    let ends = length == 3 || text.get(length).is_none_or(u8::is_ascii);
    ends.then(|| AsciiPiece::token(length))
}

/// Measures symbols after this many spaces, including subsequent line ends.
fn marks(text: &[u8], spaces: usize) -> Option<AsciiPiece> {
    let rest = text.get(spaces..)?;
    let symbols = rest.iter().take_while(|byte| is_symbol(**byte)).count();
    let (symbols, rest) = rest.split_at_checked(symbols)?;
    let ends = rest.iter().take_while(|byte| **byte == b'\n').count();
    // More line ends, slashes after them, and symbols beyond ASCII would belong to the piece.
    let is_end = |next: &u8| next.is_ascii() && !matches!(next, b'\r' | b'/');
    let next = rest.get(ends);
    next.is_none_or(is_end).then(|| AsciiPiece {
        length: spaces + symbols.len() + ends,
        letters: 0,
        cost: symbols::ascii_marks(symbols, spaces > 0),
    })
}

/// Longer white space is not one token.
const MAX_WHITE_SPACE: usize = 10;

/// Measures a few spaces; the last one belongs to the next piece.
fn indent(text: &[u8]) -> Option<AsciiPiece> {
    let spaces = text.iter().take_while(|byte| **byte == b' ').count();
    let follows = text.get(spaces).is_some_and(u8::is_ascii_graphic);
    (follows && spaces <= MAX_WHITE_SPACE).then(|| AsciiPiece::token(spaces - 1))
}

/// Measures a few line ends; subsequent spaces belong to the next piece.
fn line_ends(text: &[u8]) -> Option<AsciiPiece> {
    let length = text.iter().take_while(|byte| **byte == b'\n').count();
    let mut rest = text.iter().skip(length).skip_while(|byte| **byte == b' ');
    // More line ends may follow other white space.
    let alone = rest.next().is_none_or(u8::is_ascii_graphic);
    (alone && length <= MAX_WHITE_SPACE).then(|| AsciiPiece::token(length))
}
