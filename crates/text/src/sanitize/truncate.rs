//! Truncates texts at a natural boundary.

use crate::chars::{JOINER, NON_JOINER, is_emoji, is_flag_letter, is_mark, is_skin_tone, is_tag};

/// Truncates a text to at most `max` characters; also returns whether the text was longer. The result ends with a
/// paragraph, a sentence or a word if one ends near the limit, and never inside an emoji or between a letter and
/// its accent.
#[must_use]
pub fn truncate(text: &str, max: usize) -> (&str, bool) {
    // Every character has at least one byte.
    if text.len() <= max {
        return (text, false);
    }
    let Some((limit, _)) = text.char_indices().nth(max) else {
        return (text, false);
    };
    let (head, tail) = text.split_at(limit);
    let end = paragraph_end(head)
        .or_else(|| sentence_end(head, tail))
        .or_else(|| word_end(head, tail))
        .unwrap_or_else(|| grapheme_end(head, tail));
    (head.get(..end).unwrap_or(head).trim_end(), true)
}

/// Returns whether a boundary is close to the limit: at most a third of the text is lost.
fn is_near(head: &str, end: usize) -> bool {
    end * 3 >= head.len() * 2
}

fn paragraph_end(head: &str) -> Option<usize> {
    head.rfind("\n\n").filter(|end| is_near(head, *end))
}

fn sentence_end(head: &str, tail: &str) -> Option<usize> {
    let mut next = tail.chars().next();
    for (at, c) in head.char_indices().rev() {
        let end = at + c.len_utf8();
        if !is_near(head, end) {
            return None;
        }
        let ends = match c {
            '.' | '!' | '?' => next.is_some_and(char::is_whitespace),
            '。' | '！' | '？' | '।' | '؟' | '\n' => true,
            _ => false,
        };
        if ends {
            return Some(end);
        }
        next = Some(c);
    }
    None
}

fn word_end(head: &str, tail: &str) -> Option<usize> {
    if tail.starts_with(char::is_whitespace) {
        return Some(head.len());
    }
    head.rfind(char::is_whitespace)
        .filter(|end| is_near(head, *end))
}

/// Returns the last boundary between two graphemes, or the limit if there is none.
fn grapheme_end(head: &str, tail: &str) -> usize {
    let mut next = tail.chars().next();
    for (at, c) in head.char_indices().rev() {
        let end = at + c.len_utf8();
        let before = head.get(..end).unwrap_or_default();
        if next.is_some_and(|next| !extends_grapheme(before, c, next)) {
            return end;
        }
        next = Some(c);
    }
    head.len()
}

/// Returns whether `next` belongs to the same grapheme as `last`.
fn extends_grapheme(before: &str, last: char, next: char) -> bool {
    if is_flag_letter(last) && is_flag_letter(next) {
        let letters = before.chars().rev().take_while(|c| is_flag_letter(*c));
        return letters.count() % 2 == 1;
    }
    is_mark(next)
        || matches!(next, JOINER | NON_JOINER | '\u{1160}'..='\u{11ff}')
        || is_skin_tone(next)
        || is_tag(next)
        || last == JOINER && (is_emoji(next) || next.is_alphabetic())
}
