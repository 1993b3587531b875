//! Text from the web is hostile: it may carry instructions that only a model sees, colours and links
//! for terminals, or letters in another order than they are shown. What is left here is what a
//! reader sees; meaning, code and emoji stay as they are, byte for byte.

mod char_class;
mod colours;
mod context;
mod cut;
mod escapes;
mod fence;
mod json;
mod names;
mod pieces;
#[cfg(test)]
mod tests;
mod units;

use std::borrow::Cow;

use crate::chars::{all_bytes, is_mark, is_one_of};
use char_class::CharClass;

pub use cut::truncate;
pub use fence::{Fence, neutralize, neutralize_json};
pub use json::{SanitizeStats, clean_json};
pub use pieces::incomplete_suffix_len;

/// The most marks that stay on one character. Scripts need three or four.
const MOST_MARKS: usize = 8;

/// How often a line is cleaned until nothing more falls out.
const MOST_ROUNDS: usize = 8;

/// The text without invisible and control characters, terminal escapes, and references to any of
/// these such as `&#8203;`. Other references stay as they are. Cleaning twice changes nothing more.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::new();
    let mut done = 0;
    let mut start = 0;
    // Nothing that is hidden reaches beyond its line, and most lines hide nothing.
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        if is_suspect(line)
            && let Some(better) = clean_line(line)
        {
            clean.push_str(text.get(done..start).unwrap_or_default());
            clean.push_str(&better);
            done = end;
        }
        start = end;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    clean.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(clean)
}

/// Cleans until nothing more falls out; none if nothing does.
fn clean_line(line: &str) -> Option<String> {
    let mut clean = pass(line)?;
    for _ in 0..MOST_ROUNDS {
        match pass(&clean) {
            Some(cleaner) => clean = cleaner,
            None => return Some(clean),
        }
    }
    // Nobody hides things in so many layers but to wear out a filter. Without these two characters
    // nothing can be hidden in another any more.
    clean.retain(|c| !matches!(c, '&' | '['));
    while let Some(cleaner) = pass(&clean) {
        clean = cleaner;
    }
    Some(clean)
}

/// Cleans once; none if that changes nothing.
fn pass(text: &str) -> Option<String> {
    let units = units::of(text);
    let units = escapes::strip(&units);
    let units = context::strip(&units);
    let units = colours::strip(units);
    let kept: usize = units.iter().map(units::Unit::kept).sum();
    if kept == text.len() {
        return None;
    }
    let mut clean = String::with_capacity(text.len());
    for unit in &units {
        unit.write(text, &mut clean);
    }
    Some(clean)
}

/// Whether a text is ASCII without anything that could be a part of what has to go, as most texts are.
fn is_plain(text: &str) -> bool {
    all_bytes(text, |byte| {
        let is_shown = byte.wrapping_sub(b' ') <= b'~' - b' ';
        (is_shown | is_one_of(byte, *b"\n\t")) & !is_one_of(byte, *b"&[")
    })
}

/// Whether a line has anything that may have to go.
fn is_suspect(text: &str) -> bool {
    let mut marks = 0;
    text.char_indices().any(|(at, c)| {
        let rest = || text.get(at + 1..).unwrap_or_default();
        match c {
            '&' => names::may_begin(rest()),
            '[' => rest().starts_with(|c: char| c.is_ascii_digit() || c == 'm'),
            c if c.is_ascii() => CharClass::of(c) != CharClass::Keep,
            c => {
                marks = if is_mark(c) { marks + 1 } else { 0 };
                marks > MOST_MARKS || CharClass::of(c) != CharClass::Keep
            }
        }
    })
}
