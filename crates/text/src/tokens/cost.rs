//! Sums the cost of the pieces of a text.

use super::ascii::AsciiPiece;
use super::script::{Script, has_common_accent, is_traditional};
use super::split::{Piece, PieceKind};
use super::word_cost::{self, WordPrefix, extra_letters};
use super::{Cost, TOKEN, symbols};

/// The margin on the base cost of pieces, in percent.
const PIECE_MARGIN: Cost = 10;
/// The margin on the cost beyond one token per piece, which is less certain, in percent.
const EXTRA_MARGIN: Cost = 22;
/// The deviation of that part, in percent of its square root; small amounts deviate more.
const SPREAD: Cost = 30;

/// The cost of the pieces so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CostSum {
    /// One token per piece, which is the minimum.
    pieces: Cost,
    /// The cost beyond that.
    extra: Cost,
    /// Signs of languages whose words cost more than English ones.
    signs: LanguageSigns,
}

/// Counts that indicate the language.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LanguageSigns {
    /// Words in Latin letters.
    words: Cost,
    /// The letters of these words after the fourth.
    extra_letters: Cost,
    /// Letters with accents of languages with many tokens, and of those with fewer.
    accents: Cost,
    rare_accents: Cost,
    /// Chinese characters, and those that are used only in traditional Chinese.
    han: Cost,
    traditional: Cost,
}

impl LanguageSigns {
    /// Returns the additional cost of words that are not English. Three accents in a hundred words are conclusive.
    fn latin(&self) -> Cost {
        let accents = self.accents + self.rare_accents;
        let each = (5 * self.accents + 19 * self.rare_accents).checked_div(accents);
        self.extra_letters * each.unwrap_or(0) * confidence(accents, self.words, 3) / 100
    }

    /// Returns the additional cost of traditional Chinese. Eight such characters in a hundred are conclusive.
    fn han(&self) -> Cost {
        self.han * 22 * confidence(self.traditional, self.han, 8) / 100
    }
}

/// Returns the confidence in percent that `count` out of `all` give, if `percent` of all are conclusive.
fn confidence(count: Cost, all: Cost, percent: Cost) -> Cost {
    let share = (count * 100 * 100 / percent).checked_div(all);
    share.unwrap_or(0).min(100)
}

impl CostSum {
    pub(super) fn add(&mut self, piece: Piece<'_>) {
        let cost = match piece.kind {
            PieceKind::Word => self.word(piece.text),
            PieceKind::Digits => symbols::digits(piece.text),
            PieceKind::Marks => symbols::marks(piece.text),
            PieceKind::Space => symbols::space(piece.text),
        };
        self.pieces += TOKEN;
        self.extra += cost.saturating_sub(TOKEN);
    }

    pub(super) fn add_ascii(&mut self, piece: AsciiPiece) {
        self.signs.words += Cost::from(piece.letters > 0);
        self.signs.extra_letters += extra_letters(piece.letters);
        self.pieces += TOKEN;
        self.extra += piece.cost.saturating_sub(TOKEN);
    }

    /// Returns the total cost with a margin.
    pub(super) fn total(&self) -> Cost {
        let extra = self.extra + self.signs.latin() + self.signs.han();
        let spread = (extra * TOKEN).isqrt() * SPREAD;
        let margin = self.pieces * PIECE_MARGIN + extra * EXTRA_MARGIN + spread;
        self.pieces + extra + margin / 100
    }

    fn word(&mut self, text: &str) -> Cost {
        let (prefix, letters) = split_prefix(text);
        let ascii = letters.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (ascii, rest) = letters.as_bytes().split_at(ascii);
        let contraction = match rest.first() {
            None => 0,
            Some(b'\'') => CONTRACTION,
            Some(_) => return self.non_ascii_word(letters, prefix),
        };
        self.signs.words += 1;
        self.signs.extra_letters += extra_letters(ascii.len());
        let (_, cost) = word_cost::measure(ascii, prefix);
        cost + contraction
    }

    /// Returns the cost of a word with letters beyond ASCII.
    fn non_ascii_word(&mut self, letters: &str, prefix: WordPrefix) -> Cost {
        let kana = letters
            .chars()
            .any(|c| Script::from_char(c) == Script::Kana);
        let mut cost = if prefix == WordPrefix::None {
            0
        } else {
            PREFIX
        };
        let mut before = None;
        for c in letters.chars() {
            let script = Script::from_char(c);
            self.count_signs(script, c, kana);
            let (start, each) = script.rate(c, kana);
            if before != Some(script) {
                cost += start;
            }
            cost += each;
            before = Some(script);
        }
        if before == Some(Script::Latin) {
            self.signs.words += 1;
            self.signs.extra_letters += extra_letters(letters.chars().count());
        }
        cost
    }

    fn count_signs(&mut self, script: Script, c: char, kana: bool) {
        let signs = &mut self.signs;
        match script {
            Script::Latin if c.is_ascii() => {}
            Script::Latin if has_common_accent(c) => signs.accents += 1,
            Script::Latin => signs.rare_accents += 1,
            Script::Han if !kana => {
                signs.han += 1;
                signs.traditional += Cost::from(is_traditional(c));
            }
            _ => {}
        }
    }
}

/// The cost of a contraction such as `'s`, which is a separate token after all but the most frequent words.
const CONTRACTION: Cost = 60;

/// The cost of a prefix, which rarely shares a token with letters beyond ASCII.
const PREFIX: Cost = 80;

/// Splits the character before the letters off a word.
fn split_prefix(text: &str) -> (WordPrefix, &str) {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) if !first.is_alphabetic() => (WordPrefix::from_char(first), chars.as_str()),
        _ => (WordPrefix::None, text),
    }
}
