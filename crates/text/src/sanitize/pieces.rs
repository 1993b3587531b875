//! Text that comes in pieces: what is hidden may begin in one and end in another.

use super::{escapes, fence, units};

/// Bytes at the end of a text that are held back at most: more is told as it is.
const MOST_HELD: usize = 4_000;

/// Characters of a reference such as `&amp;#8203;`, of which each may come apart.
const LONGEST_REFERENCE: usize = 64;

/// How many bytes at the end of a text may be the beginning of something that has to go, and whose end
/// is still to come.
#[must_use]
pub fn incomplete_suffix_len(text: &str) -> usize {
    let from = text.len().saturating_sub(MOST_HELD);
    let from = (from..text.len()).find(|at| text.is_char_boundary(*at));
    let Some(end) = from.and_then(|from| text.get(from..)) else {
        return 0;
    };
    let starts = [
        escapes::open(&units::of(end)),
        reference(end),
        fence::open(end),
    ];
    let start = starts.into_iter().flatten().min();
    start.map_or(0, |start| end.len() - start)
}

/// Where a reference begins to which more may belong.
fn reference(text: &str) -> Option<usize> {
    let is_part = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '&' | '#' | ';');
    let row = text
        .chars()
        .rev()
        .take(LONGEST_REFERENCE)
        .take_while(is_part);
    let start = text.len() - row.count();
    let sign = text.get(start..)?.find('&')?;
    Some(start + sign)
}
