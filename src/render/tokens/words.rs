//! What words in plain ASCII letters cost.

use super::Price;
use super::letters::parting;

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

    fn of(letters: &[u8], joint: Joint) -> &'static Rate {
        let capitals = letters.iter().filter(|byte| byte.is_ascii_uppercase());
        let capitals = capitals.count();
        let first = letters.first().is_some_and(u8::is_ascii_uppercase);
        match (joint, capitals - usize::from(first)) {
            (Joint::None, 0) => &Rate::PLAIN,
            (Joint::Tight, 0) => &Rate::TIGHT,
            (Joint::Loose, 0) => &Rate::LOOSE,
            _ if capitals < letters.len() => &Rate::MIXED,
            (Joint::None, _) => &Rate::CAPITALS,
            _ => &Rate::JOINED_CAPITALS,
        }
    }

    /// The price of pairs whose numbers stand in sixteen bits a kind.
    fn all_pairs(&self, counts: u64) -> Price {
        let [_, a, b, c] = self.pairs;
        let count = |kind: u32| counts >> (16 * kind) & 0xffff;
        a * count(1) + b * count(2) + c * count(3)
    }

    fn pair(&self, parting: usize) -> Price {
        self.pairs.get(parting & 3).copied().unwrap_or(0)
    }
}

/// What most texts consist of: a word of ASCII letters, perhaps with a space before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainWord {
    pub(super) letters: usize,
    pub(super) price: Price,
}

/// No plain word is longer: the pairs of its letters are counted in sixteen bits.
const LONGEST: usize = 1_000;

impl PlainWord {
    /// The word that a text begins with, and its length in bytes with the space.
    pub(super) fn at_start(text: &[u8]) -> Option<(PlainWord, usize)> {
        let space = usize::from(text.first() == Some(&b' '));
        let word = text.get(space..)?;
        let (mut letters, mut capitals, mut before) = (0, 0, 0);
        // How many pairs there are of each kind, sixteen bits a kind.
        let mut pairs: u64 = 0;
        for byte in word.iter().copied() {
            let is_capital = byte.is_ascii_uppercase();
            // A capital after a small letter begins the next word.
            if !byte.is_ascii_alphabetic() || is_capital && letters > capitals {
                break;
            }
            if letters == LONGEST {
                return None;
            }
            if letters > 0 {
                pairs += 1 << (16 * parting(before, byte));
            }
            letters += 1;
            capitals += usize::from(is_capital);
            before = byte;
        }
        // A letter beyond ASCII would belong to the word, and so might what follows an apostrophe.
        let next = word.get(letters);
        let ends = next.is_none_or(|next| next.is_ascii() && *next != b'\'');
        if letters == 0 || !ends {
            return None;
        }
        let rate = match (capitals, letters - capitals) {
            (0 | 1, _) => &Rate::PLAIN,
            (_, 0) => &Rate::CAPITALS,
            _ => &Rate::MIXED,
        };
        let price = rate.start + rate.letter * long(letters) + rate.all_pairs(pairs);
        Some((PlainWord { letters, price }, space + letters))
    }
}

/// What a word costs.
pub(super) fn price(letters: &[u8], joint: Joint) -> Price {
    let rate = Rate::of(letters, joint);
    let pairs = letters.iter().zip(letters.iter().skip(1));
    let partings: Price = pairs.map(|(a, b)| rate.pair(parting(*a, *b))).sum();
    rate.start + rate.letter * long(letters.len()) + partings
}

/// How many letters a word has after its fourth.
pub(super) fn long(letters: usize) -> Price {
    letters.saturating_sub(4) as Price
}
