//! Detects hidden sequences that are split between two chunks of a stream.

use super::{escapes, fence, source_char};

/// The maximum number of bytes that are held back.
const MAX_SUFFIX: usize = 4_000;

/// The maximum length of a character reference such as `&amp;#8203;`.
const MAX_REFERENCE: usize = 64;

/// Returns the length of the suffix of a text that may be the start of a sequence to remove.
///
/// A stream must hold this suffix back until the next chunk arrives.
#[must_use]
pub fn incomplete_suffix_len(text: &str) -> usize {
    let from = text.len().saturating_sub(MAX_SUFFIX);
    let from = (from..text.len()).find(|at| text.is_char_boundary(*at));
    let Some(end) = from.and_then(|from| text.get(from..)) else {
        return 0;
    };
    let starts = [
        escapes::find_open(&source_char::decode(end)),
        open_reference(end),
        fence::find_open(end),
    ];
    let start = starts.into_iter().flatten().min();
    start.map_or(0, |start| end.len() - start)
}

/// Returns the start of a character reference at the end that may be incomplete.
fn open_reference(text: &str) -> Option<usize> {
    let is_part = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '&' | '#' | ';');
    let row = text.chars().rev().take(MAX_REFERENCE).take_while(is_part);
    let start = text.len() - row.count();
    let sign = text.get(start..)?.find('&')?;
    Some(start + sign)
}
