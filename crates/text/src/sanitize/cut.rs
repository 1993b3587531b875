//! Cuts texts where it hurts least.

use crate::chars::{JOINER, NON_JOINER, is_emoji, is_flag_letter, is_mark, is_skin_tone, is_tag};

/// The beginning of a text with at most `most` characters, and whether that is less than all. It ends
/// with a paragraph, a sentence or a word if one ends near enough, and never inside an emoji or
/// between a letter and its accent.
#[must_use]
pub fn truncate(text: &str, most: usize) -> (&str, bool) {
    // No character has less than a byte.
    if text.len() <= most {
        return (text, false);
    }
    let Some((limit, _)) = text.char_indices().nth(most) else {
        return (text, false);
    };
    let (head, tail) = text.split_at(limit);
    let end = paragraph(head)
        .or_else(|| sentence(head, tail))
        .or_else(|| word(head, tail))
        .unwrap_or_else(|| character(head, tail));
    (head.get(..end).unwrap_or(head).trim_end(), true)
}

/// No part of a text is given up for a better end if it is more than this share of all.
fn near(head: &str, end: usize) -> bool {
    end * 3 >= head.len() * 2
}

fn paragraph(head: &str) -> Option<usize> {
    head.rfind("\n\n").filter(|end| near(head, *end))
}

fn sentence(head: &str, tail: &str) -> Option<usize> {
    let mut next = tail.chars().next();
    for (at, c) in head.char_indices().rev() {
        let end = at + c.len_utf8();
        if !near(head, end) {
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

fn word(head: &str, tail: &str) -> Option<usize> {
    if tail.starts_with(char::is_whitespace) {
        return Some(head.len());
    }
    head.rfind(char::is_whitespace)
        .filter(|end| near(head, *end))
}

/// The last place between two characters as readers count them. A text that is a single one is cut
/// anywhere.
fn character(head: &str, tail: &str) -> usize {
    let mut next = tail.chars().next();
    for (at, c) in head.char_indices().rev() {
        let end = at + c.len_utf8();
        let before = head.get(..end).unwrap_or_default();
        if next.is_some_and(|next| !belongs(before, c, next)) {
            return end;
        }
        next = Some(c);
    }
    head.len()
}

/// Whether a character is one with what stands before it.
fn belongs(before: &str, last: char, next: char) -> bool {
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
