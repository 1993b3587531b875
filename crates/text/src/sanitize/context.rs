//! Removes invisible characters that scripts and emoji need only next to certain characters.

use super::MAX_MARKS;
use super::source_char::SourceChar;
use crate::chars::{
    JOINER, LAST_TAG, NON_JOINER, is_emoji, is_joining, is_mark, is_mongolian_form, is_style,
    is_tag, is_virama, joins_both_sides,
};

/// The flags that consist of tags: England, Scotland and Wales.
const FLAGS: [&str; 3] = ["gbeng", "gbsct", "gbwls"];
const BLACK_FLAG: char = '\u{1f3f4}';
/// Combining enclosing keycap.
const KEYCAP: char = '\u{20e3}';

/// Removes invisible characters without an effect on their neighbors, and excessive combining marks.
pub(super) fn strip(chars: &[SourceChar]) -> Vec<SourceChar> {
    let mut result: Vec<SourceChar> = Vec::with_capacity(chars.len());
    let mut marks = 0;
    let mut flag = 0;
    for (at, source) in chars.iter().enumerate() {
        let rest = chars.get(at + 1..).unwrap_or_default();
        let before = result.last().map(|source| source.c);
        let next = rest.first().map(|source| source.c);
        let is_needed = match source.c {
            c if is_tag(c) => flag > 0,
            c if is_style(c) => takes_style(before, next),
            c if is_mongolian_form(c) => before.is_some_and(is_mongolian),
            c @ (JOINER | NON_JOINER) => joins_neighbors(c, before, next, marks < MAX_MARKS),
            c if is_mark(c) => {
                marks += 1;
                marks <= MAX_MARKS
            }
            c => {
                marks = 0;
                flag = if c == BLACK_FLAG { flag_tags(rest) } else { 0 };
                true
            }
        };
        if is_tag(source.c) {
            flag = flag.saturating_sub(1);
        }
        if is_needed {
            result.push(*source);
        }
    }
    result
}

/// Returns the number of tags of a flag sequence, including the last one.
fn flag_tags(rest: &[SourceChar]) -> usize {
    let spells = |name: &&&str| {
        let wanted = name.chars().map(tag).chain([LAST_TAG]);
        rest.len() > name.len() && wanted.zip(rest).all(|(wanted, source)| source.c == wanted)
    };
    FLAGS.iter().find(spells).map_or(0, |name| name.len() + 1)
}

fn tag(letter: char) -> char {
    char::from_u32(0xe0000 + u32::from(letter)).unwrap_or(letter)
}

/// Returns whether a presentation selector applies: after an emoji, or after a digit in a keycap.
fn takes_style(before: Option<char>, next: Option<char>) -> bool {
    match before {
        Some('0'..='9' | '#' | '*') => next == Some(KEYCAP),
        Some(c) => is_emoji(c),
        None => false,
    }
}

fn is_mongolian(c: char) -> bool {
    matches!(c, '\u{1820}'..='\u{1878}' | '\u{1880}'..='\u{18aa}')
}

/// Returns whether a joiner or non-joiner has an effect. A mark counts as a neighbor only if it is allowed.
fn joins_neighbors(c: char, before: Option<char>, next: Option<char>, allows_mark: bool) -> bool {
    let Some(before) = before else {
        return false;
    };
    let letter = next.filter(|next| is_joining(*next) && (allows_mark || !is_mark(*next)));
    if is_joining(before) && letter.is_some() {
        return true;
    }
    let picture = is_emoji(before) || is_style(before);
    let emoji = picture && next.is_some_and(is_emoji);
    c == JOINER && (emoji || is_virama(before) || joins_both_sides(before))
}
