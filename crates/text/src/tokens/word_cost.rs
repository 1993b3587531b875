//! The cost of ASCII words.

use super::Cost;
use super::letter_pairs::{NO_ROW, row_of, split_level};

/// The kind of character before a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordPrefix {
    /// A space or nothing, as for most words.
    None,
    /// A character that often shares a token with the word, as in code.
    Tight,
    /// A character that is mostly a separate token, as in URLs.
    Loose,
}

impl WordPrefix {
    /// Classifies a character.
    pub(super) fn from_char(before: char) -> WordPrefix {
        match before {
            ' ' => WordPrefix::None,
            '_' | '.' | '(' | '\t' | ',' | '=' | '#' | '[' | '\\' | '&' | ':' => WordPrefix::Tight,
            _ => WordPrefix::Loose,
        }
    }
}

/// The cost of a word: a base, each letter after the fourth, and each pair of letters by how likely a token ends
/// between the two.
#[derive(Clone, Copy, Debug)]
struct Rate {
    base: Cost,
    letter: Cost,
    pairs: [Cost; 4],
}

impl Rate {
    const PLAIN: Rate = Rate::new(96, 4, [0, 4, 15, 55]);
    const TIGHT: Rate = Rate::new(108, 7, [0, 10, 31, 65]);
    const LOOSE: Rate = Rate::new(142, 7, [0, 10, 31, 65]);
    const CAPITALS: Rate = Rate::new(96, 15, [0, 20, 36, 48]);
    const JOINED_CAPITALS: Rate = Rate::new(116, 15, [0, 20, 36, 60]);
    /// Several capitals, then lower-case letters.
    const MIXED: Rate = Rate::new(150, 4, [0, 18, 20, 52]);

    const fn new(base: Cost, letter: Cost, pairs: [Cost; 4]) -> Rate {
        Rate {
            base,
            letter,
            pairs,
        }
    }

    /// Returns the rate of a word that starts with this many capitals.
    fn for_word(capitals: usize, all_capitals: bool, prefix: WordPrefix) -> &'static Rate {
        match (prefix, capitals) {
            (WordPrefix::None, 0 | 1) => &Rate::PLAIN,
            (WordPrefix::Tight, 0 | 1) => &Rate::TIGHT,
            (WordPrefix::Loose, 0 | 1) => &Rate::LOOSE,
            _ if !all_capitals => &Rate::MIXED,
            (WordPrefix::None, _) => &Rate::CAPITALS,
            _ => &Rate::JOINED_CAPITALS,
        }
    }

    fn pair(&self, split_level: usize) -> Cost {
        self.pairs.get(split_level & 3).copied().unwrap_or(0)
    }
}

/// Returns the number of letters and the cost of the first word of a text: capitals, then lower-case letters.
pub(super) fn measure(text: &[u8], prefix: WordPrefix) -> (usize, Cost) {
    let capitals = text.iter().take_while(|byte| byte.is_ascii_uppercase());
    let capitals = capitals.count();
    let all_capitals = !text.get(capitals).is_some_and(u8::is_ascii_lowercase);
    let rate = Rate::for_word(capitals, all_capitals, prefix);
    let (mut letters, mut pairs, mut row) = (0, 0, NO_ROW);
    for letter in text.iter().copied() {
        if letters >= capitals && !letter.is_ascii_lowercase() {
            break;
        }
        pairs += rate.pair(split_level(row, letter));
        row = row_of(letter);
        letters += 1;
    }
    (
        letters,
        rate.base + rate.letter * extra_letters(letters) + pairs,
    )
}

/// Returns the number of letters after the fourth.
pub(super) fn extra_letters(letters: usize) -> Cost {
    letters.saturating_sub(4) as Cost
}
