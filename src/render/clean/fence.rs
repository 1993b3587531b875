//! Marks where text from the web begins and ends.

use std::borrow::Cow;

/// The name of the tags.
const NAME: &str = "untrusted";

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
    pub fn begin(&self) -> String {
        format!("<{NAME} id={}>", self.number)
    }

    /// The line after the text.
    #[must_use]
    pub fn end(&self) -> String {
        format!("</{NAME} id={}>", self.number)
    }

    /// The text in which nothing looks like such a line, whatever its number.
    #[must_use]
    pub fn neutral<'a>(&self, text: &'a str) -> Cow<'a, str> {
        // The first bytes of the three brackets; most texts have none of them.
        if !text.bytes().any(|byte| matches!(byte, b'<' | 0xef)) {
            return Cow::Borrowed(text);
        }
        let mut safe = String::new();
        let mut done = 0;
        for (at, bracket) in text.match_indices(['<', '＜', '﹤']) {
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
}

impl Default for Fence {
    fn default() -> Self {
        Fence::new()
    }
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
