//! Adds up what the pieces of a text cost.

use super::plain::Plain;
use super::script::{Script, has_common_accent, is_traditional};
use super::split::{Kind, Piece};
use super::words::{self, Joint, long};
use super::{Price, TOKEN, symbols};

/// Each piece may cost this much more than pieces of its kind do on average, in percent.
const MARGIN_OF_PIECES: Price = 10;
/// And all beyond a token a piece, which is the less certain part, this much more.
const MARGIN_OF_EXTRA: Price = 22;
/// How far that part strays, in percent of its square root: the less there is of it, the more.
const SPREAD: Price = 30;

/// The pieces so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bill {
    /// A token for each piece: no piece costs less.
    pieces: Price,
    /// What pieces cost beyond that.
    extra: Price,
    /// Signs of languages whose words cost more than English ones.
    signs: Signs,
}

/// What tells one language from another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Signs {
    /// Words in Latin letters, and their letters after the fourth.
    words: Price,
    long: Price,
    /// Letters with accents, of languages with many tokens and of those with fewer.
    accents: Price,
    rare_accents: Price,
    /// Chinese characters, and those among them that only traditional writing has.
    han: Price,
    traditional: Price,
}

impl Signs {
    /// What words cost more because they are not English. Three accents in a hundred words make that
    /// sure.
    fn latin(&self) -> Price {
        let accents = self.accents + self.rare_accents;
        let each = (5 * self.accents + 19 * self.rare_accents).checked_div(accents);
        self.long * each.unwrap_or(0) * sureness(accents, self.words, 3) / 100
    }

    /// What Chinese costs more because it is written in traditional characters. Eight in a hundred make
    /// that sure.
    fn han(&self) -> Price {
        self.han * 22 * sureness(self.traditional, self.han, 8) / 100
    }
}

/// How sure `count` out of `all` make something that `percent` of all make quite sure, in percent.
fn sureness(count: Price, all: Price, percent: Price) -> Price {
    let share = (count * 100 * 100 / percent).checked_div(all);
    share.unwrap_or(0).min(100)
}

impl Bill {
    pub(super) fn add(&mut self, piece: Piece<'_>) {
        let price = match piece.kind {
            Kind::Word => self.word(piece.text),
            Kind::Digits => symbols::digits(piece.text),
            Kind::Marks => symbols::marks(piece.text),
            Kind::Space => symbols::space(piece.text),
        };
        self.pieces += TOKEN;
        self.extra += price.saturating_sub(TOKEN);
    }

    pub(super) fn add_plain(&mut self, piece: Plain) {
        self.signs.words += Price::from(piece.letters > 0);
        self.signs.long += long(piece.letters);
        self.pieces += TOKEN;
        self.extra += piece.price.saturating_sub(TOKEN);
    }

    /// The price of all, with a margin.
    pub(super) fn total(&self) -> Price {
        let extra = self.extra + self.signs.latin() + self.signs.han();
        let spread = (extra * TOKEN).isqrt() * SPREAD;
        let margin = self.pieces * MARGIN_OF_PIECES + extra * MARGIN_OF_EXTRA + spread;
        self.pieces + extra + margin / 100
    }

    fn word(&mut self, text: &str) -> Price {
        let (joint, letters) = apart(text);
        let plain = letters.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (plain, rest) = letters.as_bytes().split_at(plain);
        let ending = match rest.first() {
            None => 0,
            Some(b'\'') => ENDING,
            Some(_) => return self.foreign(letters, joint),
        };
        self.signs.words += 1;
        self.signs.long += long(plain.len());
        let (_, price) = words::measure(plain, joint);
        price + ending
    }

    /// A word with letters beyond ASCII.
    fn foreign(&mut self, letters: &str, joint: Joint) -> Price {
        let kana = letters.chars().any(|c| Script::of(c) == Script::Kana);
        let mut price = if joint == Joint::None { 0 } else { BEFORE };
        let mut before = None;
        for c in letters.chars() {
            let script = Script::of(c);
            self.note(script, c, kana);
            let (start, each) = script.rate(c, kana);
            if before != Some(script) {
                price += start;
            }
            price += each;
            before = Some(script);
        }
        if before == Some(Script::Latin) {
            self.signs.words += 1;
            self.signs.long += long(letters.chars().count());
        }
        price
    }

    fn note(&mut self, script: Script, c: char, kana: bool) {
        let signs = &mut self.signs;
        match script {
            Script::Latin if c.is_ascii() => {}
            Script::Latin if has_common_accent(c) => signs.accents += 1,
            Script::Latin => signs.rare_accents += 1,
            Script::Han if !kana => {
                signs.han += 1;
                signs.traditional += Price::from(is_traditional(c));
            }
            _ => {}
        }
    }
}

/// `'s` and its like: a token of their own after all but the most frequent words.
const ENDING: Price = 60;

/// What stands before letters beyond ASCII is hardly ever one token with them.
const BEFORE: Price = 80;

/// A word without the character it may have before its letters.
fn apart(text: &str) -> (Joint, &str) {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) if !first.is_alphabetic() => (Joint::of(first), chars.as_str()),
        _ => (Joint::None, text),
    }
}
