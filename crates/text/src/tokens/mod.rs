//! How many tokens a text costs, without a tokenizer.
//!
//! A tokenizer's table is larger than this whole program. What a caller needs is a price that is not
//! too low: the text is split the way `o200k` splits it before it looks anything up, each piece gets
//! the price pieces of its kind have on average, and the sum gets a margin.

mod bill;
mod letters;
mod plain;
mod script;
mod split;
mod symbols;
#[cfg(test)]
mod tests;
mod words;

use bill::Bill;
use split::Pieces;

/// A price in hundredths of a token.
type Price = u64;

/// One token.
const TOKEN: Price = 100;

/// Rather up than down, but not so that a single word costs two tokens.
const ROUNDING: Price = 70;

/// About how many tokens of `o200k` a text has; seldom fewer than it really has.
#[must_use]
pub fn estimate(text: &str) -> usize {
    let mut bill = Bill::default();
    let mut pieces = Pieces::of(text);
    loop {
        if let Some(piece) = pieces.plain() {
            bill.add_plain(piece);
        } else if let Some(piece) = pieces.next() {
            bill.add(piece);
        } else {
            break;
        }
    }
    usize::try_from((bill.total() + ROUNDING) / TOKEN).unwrap_or(usize::MAX)
}
