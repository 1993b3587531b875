//! Splits a text where `o200k` splits it before it looks for tokens, which never reach across.

use super::plain::Plain;
use crate::chars::category;
use icu_properties::props::GeneralCategory as Category;

/// What a piece consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Letters, perhaps with one other character before them and an English ending after them.
    Word,
    /// One to three digits.
    Digits,
    /// Punctuation and symbols, perhaps with a space before and line ends after them.
    Marks,
    /// White space.
    Space,
}

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Upper,
    Lower,
    /// A letter without case, or a mark on a letter.
    Caseless,
    Digit,
    LineEnd,
    Space,
    Other,
}

impl Class {
    fn of(c: char) -> Class {
        match c {
            'a'..='z' => Class::Lower,
            ' ' | '\t' | '\u{b}' | '\u{c}' => Class::Space,
            'A'..='Z' => Class::Upper,
            '0'..='9' => Class::Digit,
            '\n' | '\r' => Class::LineEnd,
            c if c.is_ascii() => Class::Other,
            // The bulk of what is neither ASCII nor rare.
            '\u{3041}'..='\u{3096}'
            | '\u{30a1}'..='\u{30fa}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7a3}' => Class::Caseless,
            c => Class::by_category(c),
        }
    }

    fn by_category(c: char) -> Class {
        match category(c) {
            Category::UppercaseLetter | Category::TitlecaseLetter => Class::Upper,
            Category::LowercaseLetter => Class::Lower,
            Category::ModifierLetter
            | Category::OtherLetter
            | Category::NonspacingMark
            | Category::SpacingMark
            | Category::EnclosingMark => Class::Caseless,
            Category::DecimalNumber | Category::LetterNumber | Category::OtherNumber => {
                Class::Digit
            }
            _ if c.is_whitespace() => Class::Space,
            _ => Class::Other,
        }
    }

    fn is_letter(self) -> bool {
        matches!(self, Class::Upper | Class::Lower | Class::Caseless)
    }

    fn is_white(self) -> bool {
        matches!(self, Class::Space | Class::LineEnd)
    }
}

/// The pieces of a text, in order and without gaps.
#[derive(Clone, Debug)]
pub(super) struct Pieces<'a> {
    rest: &'a str,
}

impl<'a> Pieces<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Pieces { rest: text }
    }

    /// The next piece, if it is a plain one.
    pub(super) fn plain(&mut self) -> Option<Plain> {
        let piece = Plain::at_start(self.rest.as_bytes())?;
        self.rest = self.rest.get(piece.length..)?;
        Some(piece)
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let first = self.rest.chars().next()?;
        let (kind, length) = measure(self.rest, first);
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(Piece { kind, text })
    }
}

/// Kind and length in bytes of the piece that a text begins with.
fn measure(text: &str, first: char) -> (Kind, usize) {
    let class = Class::of(first);
    let after = text.get(first.len_utf8()..).unwrap_or_default();
    let next = after.chars().next().map_or(Class::LineEnd, Class::of);
    match class {
        Class::Upper | Class::Lower | Class::Caseless => (Kind::Word, word(text)),
        Class::Digit => (Kind::Digits, digits(text)),
        Class::Space | Class::Other if next.is_letter() => {
            (Kind::Word, first.len_utf8() + word(after))
        }
        Class::Other => (Kind::Marks, marks(text)),
        Class::Space if first == ' ' && next == Class::Other => (Kind::Marks, 1 + marks(after)),
        Class::Space | Class::LineEnd => (Kind::Space, space(text)),
    }
}

/// Capitals, then small letters, then perhaps an English ending such as `'s`.
fn word(text: &str) -> usize {
    let mut small = false;
    let mut length = 0;
    for c in text.chars() {
        match Class::of(c) {
            Class::Upper if small => break,
            Class::Upper | Class::Caseless => {}
            Class::Lower => small = true,
            _ => break,
        }
        length += c.len_utf8();
    }
    length + ending(text.as_bytes().get(length..).unwrap_or_default())
}

fn ending(rest: &[u8]) -> usize {
    let [b'\'', first, tail @ ..] = rest else {
        return 0;
    };
    let second = tail.first().map(u8::to_ascii_lowercase);
    match (first.to_ascii_lowercase(), second) {
        (b's' | b't' | b'm' | b'd', _) => 2,
        (b'r' | b'v', Some(b'e')) | (b'l', Some(b'l')) => 3,
        _ => 0,
    }
}

fn digits(text: &str) -> usize {
    let digits = text.chars().take(3);
    digits
        .take_while(|c| Class::of(*c) == Class::Digit)
        .map(char::len_utf8)
        .sum()
}

/// Symbols, with the line ends and slashes after them.
fn marks(text: &str) -> usize {
    let symbols = text.find(|c| Class::of(c) != Class::Other);
    let symbols = symbols.unwrap_or(text.len());
    let rest = text.get(symbols..).unwrap_or_default();
    let ends = rest.find(|c| !matches!(c, '\r' | '\n' | '/'));
    symbols + ends.unwrap_or(rest.len())
}

/// White space up to its last line end; or else all of it but the last character, which belongs to
/// what follows.
fn space(text: &str) -> usize {
    let end = text.find(|c| !Class::of(c).is_white());
    let run = end.map_or(text, |end| text.get(..end).unwrap_or_default());
    if let Some(last) = run.rfind(['\r', '\n']) {
        return last + 1;
    }
    let last = run.chars().next_back().map_or(0, char::len_utf8);
    if end.is_some() && run.len() > last {
        run.len() - last
    } else {
        run.len()
    }
}
