//! Splits a text like the pre-tokenizer of `o200k`; tokens never cross these boundaries.

use super::ascii::AsciiPiece;
use crate::chars::category;
use icu_properties::props::GeneralCategory as Category;

/// The kind of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceKind {
    /// Letters, optionally preceded by one other character and followed by an English contraction.
    Word,
    /// One to three digits.
    Digits,
    /// Punctuation and symbols, optionally preceded by a space and followed by line ends.
    Marks,
    /// White space.
    Space,
}

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) kind: PieceKind,
    pub(super) text: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CharKind {
    Upper,
    Lower,
    /// A letter without case, or a combining mark.
    Caseless,
    Digit,
    LineEnd,
    Space,
    Other,
}

impl CharKind {
    fn from_char(c: char) -> CharKind {
        match c {
            'a'..='z' => CharKind::Lower,
            ' ' | '\t' | '\u{b}' | '\u{c}' => CharKind::Space,
            'A'..='Z' => CharKind::Upper,
            '0'..='9' => CharKind::Digit,
            '\n' | '\r' => CharKind::LineEnd,
            c if c.is_ascii() => CharKind::Other,
            // The most common characters beyond ASCII.
            '\u{3041}'..='\u{3096}'
            | '\u{30a1}'..='\u{30fa}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7a3}' => CharKind::Caseless,
            c => CharKind::by_category(c),
        }
    }

    fn by_category(c: char) -> CharKind {
        match category(c) {
            Category::UppercaseLetter | Category::TitlecaseLetter => CharKind::Upper,
            Category::LowercaseLetter => CharKind::Lower,
            Category::ModifierLetter
            | Category::OtherLetter
            | Category::NonspacingMark
            | Category::SpacingMark
            | Category::EnclosingMark => CharKind::Caseless,
            Category::DecimalNumber | Category::LetterNumber | Category::OtherNumber => {
                CharKind::Digit
            }
            _ if c.is_whitespace() => CharKind::Space,
            _ => CharKind::Other,
        }
    }

    fn is_letter(self) -> bool {
        matches!(self, CharKind::Upper | CharKind::Lower | CharKind::Caseless)
    }

    fn is_white(self) -> bool {
        matches!(self, CharKind::Space | CharKind::LineEnd)
    }
}

/// The pieces of a text, in order and without gaps.
#[derive(Clone, Debug)]
pub(super) struct Pieces<'a> {
    rest: &'a str,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Pieces { rest: text }
    }

    /// Returns the next piece if it is plain ASCII.
    pub(super) fn next_ascii(&mut self) -> Option<AsciiPiece> {
        let piece = AsciiPiece::at_start(self.rest.as_bytes())?;
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

/// Returns the kind and the length in bytes of the first piece of a text.
fn measure(text: &str, first: char) -> (PieceKind, usize) {
    let class = CharKind::from_char(first);
    let after = text.get(first.len_utf8()..).unwrap_or_default();
    let next = after
        .chars()
        .next()
        .map_or(CharKind::LineEnd, CharKind::from_char);
    match class {
        CharKind::Upper | CharKind::Lower | CharKind::Caseless => (PieceKind::Word, word(text)),
        CharKind::Digit => (PieceKind::Digits, digits(text)),
        CharKind::Space | CharKind::Other if next.is_letter() => {
            (PieceKind::Word, first.len_utf8() + word(after))
        }
        CharKind::Other => (PieceKind::Marks, marks(text)),
        CharKind::Space if first == ' ' && next == CharKind::Other => {
            (PieceKind::Marks, 1 + marks(after))
        }
        CharKind::Space | CharKind::LineEnd => (PieceKind::Space, space(text)),
    }
}

/// Returns the length of a word: capitals, lower-case letters, and an English contraction such as `'s`.
fn word(text: &str) -> usize {
    let mut has_lowercase = false;
    let mut length = 0;
    for c in text.chars() {
        match CharKind::from_char(c) {
            CharKind::Upper if has_lowercase => break,
            CharKind::Upper | CharKind::Caseless => {}
            CharKind::Lower => has_lowercase = true,
            _ => break,
        }
        length += c.len_utf8();
    }
    length + contraction(text.as_bytes().get(length..).unwrap_or_default())
}

fn contraction(rest: &[u8]) -> usize {
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
        .take_while(|c| CharKind::from_char(*c) == CharKind::Digit)
        .map(char::len_utf8)
        .sum()
}

/// Returns the length of symbols, including subsequent line ends and slashes.
fn marks(text: &str) -> usize {
    let symbols = text.find(|c| CharKind::from_char(c) != CharKind::Other);
    let symbols = symbols.unwrap_or(text.len());
    let rest = text.get(symbols..).unwrap_or_default();
    let ends = rest.find(|c| !matches!(c, '\r' | '\n' | '/'));
    symbols + ends.unwrap_or(rest.len())
}

/// Returns the length of white space up to its last line end, or else without the last character, which belongs to
/// the next piece.
fn space(text: &str) -> usize {
    let end = text.find(|c| !CharKind::from_char(c).is_white());
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
