//! What becomes of a character.

use icu_properties::props::GeneralCategory;

use crate::chars::{
    JOINER, NON_JOINER, category, is_ignorable, is_mongolian_form, is_style, is_tag,
};

/// What becomes of a character that stands in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CharClass {
    /// It stays.
    Keep,
    /// It goes.
    Drop,
    /// It ends a line, so a plain line end takes its place.
    Line,
    /// It looks like a space, so a space takes its place.
    Blank,
    /// It goes, and what it begins or ends goes with it.
    Control,
    /// It depends on its neighbours.
    Context,
}

impl CharClass {
    pub(super) fn of(c: char) -> CharClass {
        match c {
            ' '..='~' | '\n' | '\t' => CharClass::Keep,
            // What most texts consist of, settled without looking anything up.
            '\u{a0}'..='\u{ac}'
            | '\u{ae}'..='\u{2ff}'
            | '\u{370}'..='\u{482}'
            | '\u{3041}'..='\u{3096}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7a3}' => CharClass::Keep,
            '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => CharClass::Line,
            '\r' | '\u{7}' | '\u{1b}' => CharClass::Control,
            '\u{90}' | '\u{98}' | '\u{9b}'..='\u{9f}' => CharClass::Control,
            // The empty pattern of Braille.
            '\u{2800}' => CharClass::Blank,
            JOINER | NON_JOINER => CharClass::Context,
            c if is_style(c) || is_mongolian_form(c) || is_tag(c) => CharClass::Context,
            c if is_hidden(c) => CharClass::Drop,
            _ => CharClass::Keep,
        }
    }
}

/// A character that shows nothing, steers the direction of writing, or is none at all.
fn is_hidden(c: char) -> bool {
    match category(c) {
        GeneralCategory::Control => true,
        GeneralCategory::Format => !is_number_sign(c),
        // Icon fonts and prompts use the private characters of the first plane, which show as a box
        // at worst. Beyond the third plane there are no others: an alphabet that nobody sees.
        _ => c >= '\u{40000}' || is_ignorable(c) || is_noncharacter(c),
    }
}

/// Signs drawn under or around numbers: of the same category as invisible ones, but visible.
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
