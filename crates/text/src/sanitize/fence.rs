//! Marks the start and the end of untrusted text.

use std::borrow::Cow;

use serde_json::Value;

use crate::chars::{all_bytes, is_one_of};

/// The name of the tags.
const NAME: &str = "untrusted";

/// Characters that look like the start of a tag.
const BRACKETS: [char; 3] = ['<', '＜', '﹤'];

/// A pair of tags around untrusted text. Their random number is used for one result only, so the text cannot
/// contain the closing tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    // Three digits are one token. Whoever guesses them still cannot write the tag: texts are neutralized.
    number: u32,
}

impl Fence {
    /// Creates a fence with a random number.
    #[must_use]
    pub fn new() -> Self {
        Fence {
            number: fastrand::u32(100..1_000),
        }
    }

    /// Returns the line before the text.
    #[must_use]
    pub fn opening_tag(&self) -> String {
        format!("<{NAME} id={}>", self.number)
    }

    /// Returns the line after the text.
    #[must_use]
    pub fn closing_tag(&self) -> String {
        format!("</{NAME} id={}>", self.number)
    }

    /// Escapes everything in a text that looks like a tag of any fence.
    #[must_use]
    pub fn neutralize<'a>(&self, text: &'a str) -> Cow<'a, str> {
        neutralize(text)
    }
}

/// Escapes everything in a text that looks like a tag of a fence.
#[must_use]
pub fn neutralize(text: &str) -> Cow<'_, str> {
    // Most texts contain none of the first bytes of the three brackets.
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

/// Escapes tags in all strings of a value, like [`neutralize`].
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

/// Returns the start of a tag at the end that may be incomplete.
pub(super) fn find_open(text: &str) -> Option<usize> {
    let (at, bracket) = text.match_indices(BRACKETS).next_back()?;
    let rest = super::clean(text.get(at + bracket.len()..)?);
    let name = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
    let prefix = NAME.get(..name.len())?;
    prefix.eq_ignore_ascii_case(name).then_some(at)
}

/// Returns whether a text after a bracket continues as a tag of a fence.
fn is_tag(text: &str) -> bool {
    /// The maximum of white space and slashes that are skipped, to avoid quadratic time.
    const MAX_SKIPPED: usize = 16;
    let skipped: usize = text
        .chars()
        .take(MAX_SKIPPED)
        .take_while(|c| c.is_whitespace() || *c == '/')
        .map(char::len_utf8)
        .sum();
    let name = text.get(skipped..skipped + NAME.len());
    name.is_some_and(|name| name.eq_ignore_ascii_case(NAME))
}
