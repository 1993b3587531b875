//! Pieces in plain ASCII, which most texts consist of: measured and priced in one go.
//!
//! Whatever is rare, or may reach into characters beyond ASCII, is left to the general way, which comes to
//! the same for all other pieces.

use super::words::{self, Joint};
use super::{Price, TOKEN, symbols};

/// A piece in plain ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plain {
    /// Its length in bytes.
    pub(super) length: usize,
    /// How many letters it has, if it is a word.
    pub(super) letters: usize,
    /// What it costs.
    pub(super) price: Price,
}

impl Plain {
    /// The piece that a text begins with, if it is a plain one.
    pub(super) fn at_start(text: &[u8]) -> Option<Plain> {
        match text {
            [b'a'..=b'z' | b'A'..=b'Z', ..] => word(text, Joint::None, 0),
            [before, letter, ..] if letter.is_ascii_alphabetic() && stands_before(*before) => {
                let word_alone = text.get(1..)?;
                word(word_alone, Joint::of(char::from(*before)), 1)
            }
            [b'0'..=b'9', ..] => digits(text),
            // A space before digits belongs to nothing.
            [b' ', b'0'..=b'9', ..] => Some(Plain::token(1)),
            [b' ', mark, ..] if is_symbol(*mark) => marks(text, 1),
            [mark, ..] if is_symbol(*mark) => marks(text, 0),
            [b' ', b' ', ..] => indent(text),
            [b'\n', ..] => line_ends(text),
            _ => None,
        }
    }

    fn token(length: usize) -> Plain {
        Plain {
            length,
            letters: 0,
            price: TOKEN,
        }
    }
}

/// Whether a character belongs to the word that follows it.
fn stands_before(byte: u8) -> bool {
    byte.is_ascii() && !matches!(byte, b'0'..=b'9' | b'\r' | b'\n')
}

/// Neither letter nor digit nor white space.
fn is_symbol(byte: u8) -> bool {
    matches!(byte, 0..=8 | 14..=31 | b'!'..=b'/' | b':'..=b'@' | b'['..=b'`' | b'{'..=127)
}

/// A word after so many other characters.
fn word(text: &[u8], joint: Joint, before: usize) -> Option<Plain> {
    let (letters, price) = words::measure(text, joint);
    // A letter beyond ASCII would belong to the word, and so might what follows an apostrophe.
    let next = text.get(letters);
    let ends = next.is_none_or(|next| next.is_ascii() && *next != b'\'');
    ends.then_some(Plain {
        length: before + letters,
        letters,
        price,
    })
}

/// One to three digits; others than these may follow beyond ASCII.
fn digits(text: &[u8]) -> Option<Plain> {
    let most = text.iter().take(3);
    let length = most.take_while(|byte| byte.is_ascii_digit()).count();
    let ends = length == 3 || text.get(length).is_none_or(u8::is_ascii);
    ends.then(|| Plain::token(length))
}

/// Symbols after so many spaces, with the line ends after them.
fn marks(text: &[u8], spaces: usize) -> Option<Plain> {
    let rest = text.get(spaces..)?;
    let symbols = rest.iter().take_while(|byte| is_symbol(**byte)).count();
    let (symbols, rest) = rest.split_at_checked(symbols)?;
    let ends = rest.iter().take_while(|byte| **byte == b'\n').count();
    // More line ends, slashes after them, and symbols beyond ASCII would belong to the piece.
    let is_end = |next: &u8| next.is_ascii() && !matches!(next, b'\r' | b'/');
    let next = rest.get(ends);
    next.is_none_or(is_end).then(|| Plain {
        length: spaces + symbols.len() + ends,
        letters: 0,
        price: symbols::plain_marks(symbols, spaces > 0),
    })
}

/// White space that is longer is not one token.
const MOST_WHITE: usize = 10;

/// A few spaces; the last one belongs to what follows.
fn indent(text: &[u8]) -> Option<Plain> {
    let spaces = text.iter().take_while(|byte| **byte == b' ').count();
    let follows = text.get(spaces).is_some_and(u8::is_ascii_graphic);
    (follows && spaces <= MOST_WHITE).then(|| Plain::token(spaces - 1))
}

/// A few line ends; spaces after them belong to what follows.
fn line_ends(text: &[u8]) -> Option<Plain> {
    let length = text.iter().take_while(|byte| **byte == b'\n').count();
    let mut rest = text.iter().skip(length).skip_while(|byte| **byte == b' ');
    // After other white space there may be more line ends.
    let alone = rest.next().is_none_or(u8::is_ascii_graphic);
    (alone && length <= MOST_WHITE).then(|| Plain::token(length))
}
