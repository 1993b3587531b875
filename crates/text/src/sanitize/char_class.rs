//! Classifies characters by how they are sanitized.

use icu_properties::props::GeneralCategory;

use crate::chars::{
    JOINER, NON_JOINER, category, is_ignorable, is_mongolian_form, is_style, is_tag,
};

/// How a character is sanitized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CharClass {
    /// Stays unchanged.
    Keep,
    /// Is removed.
    Drop,
    /// Ends a line and becomes a line feed.
    Line,
    /// Looks like a space and becomes one.
    Blank,
    /// Is removed together with the sequence that it starts or ends.
    Control,
    /// Depends on its neighbors.
    Context,
}

impl CharClass {
    pub(super) fn from_char(c: char) -> CharClass {
        match c {
            ' '..='~' | '\n' | '\t' => CharClass::Keep,
            // The most common characters, without a table lookup.
            '\u{a0}'..='\u{ac}'
            | '\u{ae}'..='\u{2ff}'
            | '\u{370}'..='\u{482}'
            | '\u{3041}'..='\u{3096}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7a3}' => CharClass::Keep,
            '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => CharClass::Line,
            '\r' | '\u{7}' | '\u{1b}' => CharClass::Control,
            '\u{90}' | '\u{98}' | '\u{9b}'..='\u{9f}' => CharClass::Control,
            // The blank Braille pattern.
            '\u{2800}' => CharClass::Blank,
            JOINER | NON_JOINER => CharClass::Context,
            c if is_style(c) || is_mongolian_form(c) || is_tag(c) => CharClass::Context,
            c if is_hidden(c) => CharClass::Drop,
            _ => CharClass::Keep,
        }
    }
}

/// Returns whether a character is invisible, changes the text direction, or is not a character.
fn is_hidden(c: char) -> bool {
    match category(c) {
        GeneralCategory::Control => true,
        GeneralCategory::Format => !is_number_sign(c),
        // Icon fonts and shell prompts use the private characters of the first plane, which show at least a
        // box. Beyond the third plane there are only invisible ones.
        _ => c >= '\u{40000}' || is_ignorable(c) || is_noncharacter(c),
    }
}

/// Returns whether a format character is visible: signs that are drawn under or around numbers.
fn is_number_sign(c: char) -> bool {
    matches!(
        c,
        '\u{600}'..='\u{605}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{110bd}'
            | '\u{110cd}'
    )
}

fn is_noncharacter(c: char) -> bool {
    matches!(u32::from(c) & 0xffff, 0xfffe | 0xffff) || matches!(c, '\u{fdd0}'..='\u{fdef}')
}
