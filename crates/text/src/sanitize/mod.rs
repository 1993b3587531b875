//! Sanitizes text from the web.
//!
//! Such text may contain instructions that only a model sees, colors and links for terminals, or letters that
//! are displayed in another order. Only what a reader sees remains; meaning, code and emoji stay unchanged, byte
//! for byte.

mod char_class;
mod color_codes;
mod context;
mod entity_names;
mod escapes;
mod fence;
mod incomplete;
mod json;
mod source_char;
#[cfg(test)]
mod tests;
mod truncate;

use std::borrow::Cow;

use crate::chars::{all_bytes, is_mark, is_one_of};
use char_class::CharClass;
use source_char::SourceChar;

pub use fence::{Fence, neutralize, neutralize_json};
pub use incomplete::incomplete_suffix_len;
pub use json::{SanitizeStats, clean_json};
pub use truncate::truncate;

/// The maximum number of combining marks on one character. Scripts need three or four.
const MAX_MARKS: usize = 8;

/// The maximum number of passes over a line.
const MAX_ROUNDS: usize = 8;

/// Removes invisible and control characters, terminal escapes, and character references to any of these, such
/// as `&#8203;`. Other references stay unchanged. The function is idempotent.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::new();
    let mut done = 0;
    let mut start = 0;
    // No hidden sequence spans several lines, and most lines have none.
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        if is_suspect(line)
            && let Some(cleaned) = clean_line(line)
        {
            clean.push_str(text.get(done..start).unwrap_or_default());
            clean.push_str(&cleaned);
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

/// Cleans a line until nothing changes; returns `None` if it is already clean.
fn clean_line(line: &str) -> Option<String> {
    let mut clean = pass(line)?;
    for _ in 0..MAX_ROUNDS {
        match pass(&clean) {
            Some(cleaner) => clean = cleaner,
            None => return Some(clean),
        }
    }
    // Only an attack on the filter has so many layers. Without these two characters, no further nesting
    // is possible.
    clean.retain(|c| !matches!(c, '&' | '['));
    while let Some(cleaner) = pass(&clean) {
        clean = cleaner;
    }
    Some(clean)
}

/// Cleans once; returns `None` if nothing changes.
fn pass(text: &str) -> Option<String> {
    let chars = source_char::decode(text);
    let chars = escapes::strip(&chars);
    let chars = context::strip(&chars);
    let chars = color_codes::strip(chars);
    let unchanged: usize = chars.iter().map(SourceChar::source_len).sum();
    if unchanged == text.len() {
        return None;
    }
    let mut clean = String::with_capacity(text.len());
    for source in &chars {
        source.write(text, &mut clean);
    }
    Some(clean)
}

/// Returns whether a text is printable ASCII without the start of a reference or an escape, as most texts are.
fn is_plain(text: &str) -> bool {
    all_bytes(text, |byte| {
        let is_printable = byte.wrapping_sub(b' ') <= b'~' - b' ';
        (is_printable | is_one_of(byte, *b"\n\t")) & !is_one_of(byte, *b"&[")
    })
}

/// Returns whether a line may contain something to remove.
fn is_suspect(text: &str) -> bool {
    let mut marks = 0;
    text.char_indices().any(|(at, c)| {
        let rest = || text.get(at + 1..).unwrap_or_default();
        match c {
            '&' => entity_names::may_start(rest()),
            '[' => rest().starts_with(|c: char| c.is_ascii_digit() || c == 'm'),
            c if c.is_ascii() => CharClass::from_char(c) != CharClass::Keep,
            c => {
                marks = if is_mark(c) { marks + 1 } else { 0 };
                marks > MAX_MARKS || CharClass::from_char(c) != CharClass::Keep
            }
        }
    })
}
