//! The cost of digits, symbols and white space.

use super::{Cost, TOKEN};

/// Returns the cost of one to three digits, which are one token in ASCII.
pub(super) fn digits(text: &str) -> Cost {
    if text.is_ascii() {
        TOKEN
    } else {
        text.chars().map(symbol).sum()
    }
}

/// Returns the cost of punctuation and symbols, which grows with the changes from one character to another.
pub(super) fn marks(text: &str) -> Cost {
    let mut changes: Cost = 0;
    let mut others = 0;
    let mut before = ' ';
    for c in text.trim_matches([' ', '\r', '\n']).chars() {
        others += match (c.is_ascii(), c == before) {
            (true, true) => REPEATED,
            (true, false) => {
                changes += 1;
                0
            }
            (false, true) if is_line(c) => 25,
            (false, _) => symbol(c),
        };
        before = c;
    }
    cost_of_changes(changes, text.starts_with(' ')) + others
}

/// Returns the cost of ASCII symbols without surrounding white space.
pub(super) fn ascii_marks(marks: &[u8], spaced: bool) -> Cost {
    let mut before = b' ';
    let mut changes: Cost = 0;
    for mark in marks.iter().copied() {
        changes += Cost::from(mark != before);
        before = mark;
    }
    cost_of_changes(changes, spaced) + REPEATED * (marks.len() as Cost - changes)
}

/// The cost of a repeated symbol.
const REPEATED: Cost = 4;

fn cost_of_changes(changes: Cost, spaced: bool) -> Cost {
    match changes {
        0 => 0,
        1 | 2 => 100 + 6 * (changes - 1),
        _ if spaced => 156 + 62 * (changes - 3),
        _ => 116 + 62 * (changes - 3),
    }
}

/// Returns whether a character is used for drawing long lines.
fn is_line(c: char) -> bool {
    matches!(c, '\u{2500}'..='\u{259f}' | '…' | '—' | '・' | '．')
}

/// Returns the cost of a symbol beyond ASCII.
fn symbol(c: char) -> Cost {
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

/// Returns the cost of white space.
pub(super) fn space(text: &str) -> Cost {
    let mut changes: Cost = 0;
    let mut length: Cost = 0;
    let mut before = None;
    for c in text.chars() {
        changes += Cost::from(before != Some(c));
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
