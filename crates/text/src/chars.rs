//! Unicode properties of characters.

use icu_properties::props::{
    DefaultIgnorableCodePoint, Emoji, ExtendedPictographic, GeneralCategory, GeneralCategoryGroup,
    IndicSyllabicCategory, JoiningType, RegionalIndicator,
};
use icu_properties::{CodePointMapData, CodePointSetData};

/// Zero-width joiner: joins its neighbors where possible.
pub const JOINER: char = '\u{200d}';
/// Zero-width non-joiner: separates neighbors that would join.
pub const NON_JOINER: char = '\u{200c}';
/// The tag that ends a flag sequence.
pub const LAST_TAG: char = '\u{e007f}';

/// Returns whether all bytes of a text pass. There is no early exit, so that the loop is vectorized.
pub fn all_bytes(text: &str, passes: impl Fn(u8) -> bool) -> bool {
    let failed = text.bytes().map(|byte| u8::from(!passes(byte)));
    failed.fold(0, |any, one| any | one) == 0
}

/// Returns whether a byte is one of these. There is no early exit, so that the loop is vectorized.
pub fn is_one_of<const N: usize>(byte: u8, candidates: [u8; N]) -> bool {
    candidates
        .iter()
        .fold(false, |any, one| any | (byte == *one))
}

/// Returns the general category of a character.
pub fn category(c: char) -> GeneralCategory {
    CodePointMapData::<GeneralCategory>::new().get(c)
}

/// Returns whether a character is a combining mark.
pub fn is_mark(c: char) -> bool {
    // There are no marks below U+0300, which covers most characters.
    c >= '\u{300}' && GeneralCategoryGroup::Mark.contains(category(c))
}

/// Returns whether a character is invisible by default.
pub fn is_ignorable(c: char) -> bool {
    CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
}

/// Returns whether a character may be shown as an emoji. Digits, which are emoji only in keycaps, are not
/// included.
pub fn is_emoji(c: char) -> bool {
    !c.is_ascii()
        && (CodePointSetData::new::<Emoji>().contains(c)
            || CodePointSetData::new::<ExtendedPictographic>().contains(c))
}

/// Returns whether a character is a skin tone modifier.
pub fn is_skin_tone(c: char) -> bool {
    matches!(c, '\u{1f3fb}'..='\u{1f3ff}')
}

/// Returns whether a character is a regional indicator, two of which make a flag.
pub fn is_flag_letter(c: char) -> bool {
    CodePointSetData::new::<RegionalIndicator>().contains(c)
}

/// Returns whether a character selects the text or emoji presentation.
pub fn is_style(c: char) -> bool {
    matches!(c, '\u{fe0e}' | '\u{fe0f}')
}

/// Returns whether a character selects the variant of a Mongolian letter.
pub fn is_mongolian_form(c: char) -> bool {
    matches!(c, '\u{180b}'..='\u{180d}' | '\u{180f}')
}

/// Returns whether a character is a tag, the invisible counterpart of an ASCII character for flags.
pub fn is_tag(c: char) -> bool {
    matches!(c, '\u{e0001}' | '\u{e0020}'..=LAST_TAG)
}

/// Returns whether a character belongs to a script that uses joiners: Arabic and related scripts, Mongolian,
/// and the scripts of India and south-east Asia.
pub fn is_joining(c: char) -> bool {
    let joins = || {
        matches!(
            shape(c),
            JoiningType::DualJoining | JoiningType::RightJoining | JoiningType::LeftJoining
        )
    };
    let arabic = matches!(c, '\u{600}'..='\u{8ff}');
    let indic = || indic(c) != IndicSyllabicCategory::Other;
    // No script below Arabic joins.
    c >= '\u{600}' && (c.is_alphabetic() || is_mark(c)) && (arabic || joins() || indic())
}

/// Returns whether a letter joins on both sides, so that a joiner after it selects its medial form.
pub fn joins_both_sides(c: char) -> bool {
    shape(c) == JoiningType::DualJoining
}

/// Returns whether a character is a virama, which suppresses a vowel and joins the next letter.
pub fn is_virama(c: char) -> bool {
    matches!(
        indic(c),
        IndicSyllabicCategory::Virama | IndicSyllabicCategory::InvisibleStacker
    )
}

fn shape(c: char) -> JoiningType {
    CodePointMapData::<JoiningType>::new().get(c)
}

fn indic(c: char) -> IndicSyllabicCategory {
    CodePointMapData::<IndicSyllabicCategory>::new().get(c)
}
