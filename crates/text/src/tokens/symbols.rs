//! What digits, symbols and white space cost.

use super::{Price, TOKEN};

/// One to three digits are one token, if they are the usual ones.
pub(super) fn digits(text: &str) -> Price {
    if text.is_ascii() {
        TOKEN
    } else {
        text.chars().map(symbol).sum()
    }
}

/// Punctuation and symbols. The price grows with the changes from one character to another.
pub(super) fn marks(text: &str) -> Price {
    let mut changes: Price = 0;
    let mut others = 0;
    let mut before = ' ';
    for c in text.trim_matches([' ', '\r', '\n']).chars() {
        others += match (c.is_ascii(), c == before) {
            (true, true) => AGAIN,
            (true, false) => {
                changes += 1;
                0
            }
            (false, true) if is_line(c) => 25,
            (false, _) => symbol(c),
        };
        before = c;
    }
    of_changes(changes, text.starts_with(' ')) + others
}

/// The same for symbols of ASCII alone, without what stands around them.
pub(super) fn plain_marks(marks: &[u8], spaced: bool) -> Price {
    let mut before = b' ';
    let mut changes: Price = 0;
    for mark in marks.iter().copied() {
        changes += Price::from(mark != before);
        before = mark;
    }
    of_changes(changes, spaced) + AGAIN * (marks.len() as Price - changes)
}

/// The same symbol once more.
const AGAIN: Price = 4;

fn of_changes(changes: Price, spaced: bool) -> Price {
    match changes {
        0 => 0,
        1 | 2 => 100 + 6 * (changes - 1),
        _ if spaced => 156 + 62 * (changes - 3),
        _ => 116 + 62 * (changes - 3),
    }
}

/// A character that lines and frames are drawn with, in long rows.
fn is_line(c: char) -> bool {
    matches!(c, '\u{2500}'..='\u{259f}' | '…' | '—' | '・' | '．')
}

/// A symbol beyond ASCII.
fn symbol(c: char) -> Price {
    match c {
        '\0'..='\u{ff}'
        | '\u{200d}'..='\u{203f}'
        | '\u{3000}'..='\u{303f}'
        | '\u{fe0f}'
        | '\u{ff00}'..='\u{ff65}' => TOKEN,
        '\u{100}'..='\u{26ff}' => 150,
        '\u{1f300}'..='\u{1f64f}' => 170,
        _ => 210,
    }
}

pub(super) fn space(text: &str) -> Price {
    let mut changes: Price = 0;
    let mut length: Price = 0;
    let mut before = None;
    for c in text.chars() {
        changes += Price::from(before != Some(c));
        // Spaces have far longer tokens than line ends and tabs.
        length += match c {
            ' ' => 1,
            '\n' | '\t' => 5,
            '\r' => 0,
            _ => 50,
        };
        before = Some(c);
    }
    TOKEN + changes.saturating_sub(2) * 28 + length.saturating_sub(50)
}
