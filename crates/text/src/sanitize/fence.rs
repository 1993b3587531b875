//! Marks where text from the web begins and ends.

use std::borrow::Cow;

use serde_json::Value;

use crate::chars::{all_bytes, is_one_of};

/// The name of the tags.
const NAME: &str = "untrusted";

/// What tags begin with, or seem to.
const BRACKETS: [char; 3] = ['<', '＜', '﹤'];

/// A pair of tags around text that nobody vouches for. Their number is made for one answer, so the
/// text cannot know it and cannot end its own fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    // Six digits are two tokens.
    number: u32,
}

impl Fence {
    /// A fence with a new number.
    #[must_use]
    pub fn new() -> Self {
        Fence {
            number: fastrand::u32(100_000..1_000_000),
        }
    }

    /// The line before the text.
    #[must_use]
    pub fn opening_tag(&self) -> String {
        format!("<{NAME} id={}>", self.number)
    }

    /// The line after the text.
    #[must_use]
    pub fn closing_tag(&self) -> String {
        format!("</{NAME} id={}>", self.number)
    }

    /// The text in which nothing looks like such a line, whatever its number.
    #[must_use]
    pub fn neutralize<'a>(&self, text: &'a str) -> Cow<'a, str> {
        neutralize(text)
    }
}

/// The text in which nothing looks like the line of a fence.
#[must_use]
pub fn neutralize(text: &str) -> Cow<'_, str> {
    // The first bytes of the three brackets; most texts have none of them.
    if all_bytes(text, |byte| !is_one_of(byte, [b'<', 0xef])) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::new();
    let mut done = 0;
    for (at, bracket) in text.match_indices(BRACKETS) {
        let after = at + bracket.len();
        if is_tag(text.get(after..).unwrap_or_default()) {
            safe.push_str(text.get(done..at).unwrap_or_default());
            safe.push_str("&lt;");
            done = after;
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    safe.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(safe)
}

impl Default for Fence {
    fn default() -> Self {
        Fence::new()
    }
}

/// Does the same to all texts of a value.
pub fn neutralize_json(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(safe) = neutralize(text) {
                *text = safe;
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(neutralize_json),
        Value::Object(fields) => fields.values_mut().for_each(neutralize_json),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Where in a text a line of a fence begins whose end may be still to come.
pub(super) fn open(text: &str) -> Option<usize> {
    let (at, bracket) = text.match_indices(BRACKETS).next_back()?;
    let rest = super::clean(text.get(at + bracket.len()..)?);
    let name = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
    let begun = NAME.get(..name.len())?;
    begun.eq_ignore_ascii_case(name).then_some(at)
}

/// Whether a text, which follows a bracket, is the rest of a tag of a fence.
fn is_tag(text: &str) -> bool {
    /// No more white space and slashes than these are looked through, so that long rows of brackets
    /// and spaces take no time.
    const MOST: usize = 16;
    let skipped: usize = text
        .chars()
        .take(MOST)
        .take_while(|c| c.is_whitespace() || *c == '/')
        .map(char::len_utf8)
        .sum();
    let name = text.get(skipped..skipped + NAME.len());
    name.is_some_and(|name| name.eq_ignore_ascii_case(NAME))
}
