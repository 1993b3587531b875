//! Decides on the invisible characters that some scripts and emoji need, by their neighbours.

use super::MOST_MARKS;
use super::units::Unit;
use crate::chars::{
    JOINER, LAST_TAG, NON_JOINER, is_emoji, is_joining, is_mark, is_mongolian_form, is_style,
    is_tag, is_virama, joins_both_sides,
};

/// The flags that are spelled with tags: England, Scotland, Wales.
const FLAGS: [&str; 3] = ["gbeng", "gbsct", "gbwls"];
const BLACK_FLAG: char = '\u{1f3f4}';
/// Draws a key around a digit.
const KEY: char = '\u{20e3}';

/// The units without invisible characters that are not needed where they are, and without more marks
/// on one character than any script has.
pub(super) fn strip(units: &[Unit]) -> Vec<Unit> {
    let mut kept: Vec<Unit> = Vec::with_capacity(units.len());
    let mut marks = 0;
    let mut flag = 0;
    for (at, unit) in units.iter().enumerate() {
        let rest = units.get(at + 1..).unwrap_or_default();
        let before = kept.last().map(|unit| unit.c);
        let next = rest.first().map(|unit| unit.c);
        let stays = match unit.c {
            c if is_tag(c) => flag > 0,
            c if is_style(c) => takes_style(before, next),
            c if is_mongolian_form(c) => before.is_some_and(is_mongolian),
            c @ (JOINER | NON_JOINER) => is_needed(c, before, next, marks < MOST_MARKS),
            c if is_mark(c) => {
                marks += 1;
                marks <= MOST_MARKS
            }
            c => {
                marks = 0;
                flag = if c == BLACK_FLAG { tags(rest) } else { 0 };
                true
            }
        };
        if is_tag(unit.c) {
            flag = flag.saturating_sub(1);
        }
        if stays {
            kept.push(*unit);
        }
    }
    kept
}

/// The number of tags that make a flag, with the last one.
fn tags(rest: &[Unit]) -> usize {
    let spells = |name: &&&str| {
        let wanted = name.chars().map(tag).chain([LAST_TAG]);
        rest.len() > name.len() && wanted.zip(rest).all(|(wanted, unit)| unit.c == wanted)
    };
    FLAGS.iter().find(spells).map_or(0, |name| name.len() + 1)
}

fn tag(letter: char) -> char {
    char::from_u32(0xe0000 + u32::from(letter)).unwrap_or(letter)
}

/// Emoji have a style, and digits do inside a key.
fn takes_style(before: Option<char>, next: Option<char>) -> bool {
    match before {
        Some('0'..='9' | '#' | '*') => next == Some(KEY),
        Some(c) => is_emoji(c),
        None => false,
    }
}

fn is_mongolian(c: char) -> bool {
    matches!(c, '\u{1820}'..='\u{1878}' | '\u{1880}'..='\u{18aa}')
}

/// Whether a joiner or non-joiner does something between its neighbours. A mark counts as a neighbour
/// only if there is room for it.
fn is_needed(c: char, before: Option<char>, next: Option<char>, room: bool) -> bool {
    let Some(before) = before else {
        return false;
    };
    let letter = next.filter(|next| is_joining(*next) && (room || !is_mark(*next)));
    if is_joining(before) && letter.is_some() {
        return true;
    }
    let picture = is_emoji(before) || is_style(before);
    let emoji = picture && next.is_some_and(is_emoji);
    c == JOINER && (emoji || is_virama(before) || joins_both_sides(before))
}
