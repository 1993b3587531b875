//! What words in plain ASCII letters cost.

use super::Price;
use super::letters::{NO_ROW, parting, row_of};

/// How a word hangs on what stands before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    /// After a space or nothing, as most words stand.
    None,
    /// After a character that often makes one token with the word, as in code.
    Tight,
    /// After a character that mostly is a token of its own, as in addresses.
    Loose,
}

impl Joint {
    /// The joint that a character makes.
    pub(super) fn of(before: char) -> Joint {
        match before {
            ' ' => Joint::None,
            '_' | '.' | '(' | '\t' | ',' | '=' | '#' | '[' | '\\' | '&' | ':' => Joint::Tight,
            _ => Joint::Loose,
        }
    }
}

/// What a word costs: a start, each letter after the fourth, and each pair of letters by how readily
/// tokens end between the two.
#[derive(Clone, Copy, Debug)]
struct Rate {
    start: Price,
    letter: Price,
    pairs: [Price; 4],
}

impl Rate {
    const PLAIN: Rate = Rate::new(96, 4, [0, 4, 15, 55]);
    const TIGHT: Rate = Rate::new(108, 7, [0, 10, 31, 65]);
    const LOOSE: Rate = Rate::new(142, 7, [0, 10, 31, 65]);
    const CAPITALS: Rate = Rate::new(96, 15, [0, 20, 36, 48]);
    const JOINED_CAPITALS: Rate = Rate::new(116, 15, [0, 20, 36, 60]);
    /// Several capitals, then small letters.
    const MIXED: Rate = Rate::new(150, 4, [0, 18, 20, 52]);

    const fn new(start: Price, letter: Price, pairs: [Price; 4]) -> Rate {
        Rate {
            start,
            letter,
            pairs,
        }
    }

    /// The rate of a word that begins with so many capitals.
    fn of(capitals: usize, all_capitals: bool, joint: Joint) -> &'static Rate {
        match (joint, capitals) {
            (Joint::None, 0 | 1) => &Rate::PLAIN,
            (Joint::Tight, 0 | 1) => &Rate::TIGHT,
            (Joint::Loose, 0 | 1) => &Rate::LOOSE,
            _ if !all_capitals => &Rate::MIXED,
            (Joint::None, _) => &Rate::CAPITALS,
            _ => &Rate::JOINED_CAPITALS,
        }
    }

    fn pair(&self, parting: usize) -> Price {
        self.pairs.get(parting & 3).copied().unwrap_or(0)
    }
}

/// How many letters the word has that a text begins with, and what it costs. It has capitals first, then
/// small letters.
pub(super) fn measure(text: &[u8], joint: Joint) -> (usize, Price) {
    let capitals = text.iter().take_while(|byte| byte.is_ascii_uppercase());
    let capitals = capitals.count();
    let all_capitals = !text.get(capitals).is_some_and(u8::is_ascii_lowercase);
    let rate = Rate::of(capitals, all_capitals, joint);
    let (mut letters, mut pairs, mut row) = (0, 0, NO_ROW);
    for letter in text.iter().copied() {
        if letters >= capitals && !letter.is_ascii_lowercase() {
            break;
        }
        pairs += rate.pair(parting(row, letter));
        row = row_of(letter);
        letters += 1;
    }
    (letters, rate.start + rate.letter * long(letters) + pairs)
}

/// How many letters a word has after its fourth.
pub(super) fn long(letters: usize) -> Price {
    letters.saturating_sub(4) as Price
}
