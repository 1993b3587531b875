//! What Unicode says about characters.

use icu_properties::props::{
    DefaultIgnorableCodePoint, Emoji, ExtendedPictographic, GeneralCategory, GeneralCategoryGroup,
    IndicSyllabicCategory, JoiningType, RegionalIndicator,
};
use icu_properties::{CodePointMapData, CodePointSetData};

/// Zero-width joiner: draws its neighbours as one, where they can be.
pub const JOINER: char = '\u{200d}';
/// Zero-width non-joiner: keeps its neighbours apart, where they would join.
pub const NON_JOINER: char = '\u{200c}';
/// Ends a flag that is spelled with tags.
pub const LAST_TAG: char = '\u{e007f}';

/// Whether all bytes of a text pass. Without a way out of the loop, many are looked at in one go.
pub fn all_bytes(text: &str, passes: impl Fn(u8) -> bool) -> bool {
    let failed = text.bytes().map(|byte| u8::from(!passes(byte)));
    failed.fold(0, |any, one| any | one) == 0
}

/// Whether a byte is one of these; comparing with all of them is what several bytes can do in one go.
pub fn is_one_of<const N: usize>(byte: u8, of: [u8; N]) -> bool {
    of.iter().fold(false, |any, one| any | (byte == *one))
}

/// The general category of a character.
pub fn category(c: char) -> GeneralCategory {
    CodePointMapData::<GeneralCategory>::new().get(c)
}

/// A mark that is drawn on, around or beside the character before it.
pub fn is_mark(c: char) -> bool {
    // No mark stands before U+0300, which settles most characters at once.
    c >= '\u{300}' && GeneralCategoryGroup::Mark.contains(category(c))
}

/// A character that programs show nothing for.
pub fn is_ignorable(c: char) -> bool {
    CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
}

/// A character that may be shown as an emoji. Digits are such too, but only in key caps.
pub fn is_emoji(c: char) -> bool {
    !c.is_ascii()
        && (CodePointSetData::new::<Emoji>().contains(c)
            || CodePointSetData::new::<ExtendedPictographic>().contains(c))
}

/// A skin tone.
pub fn is_skin_tone(c: char) -> bool {
    matches!(c, '\u{1f3fb}'..='\u{1f3ff}')
}

/// A letter of a flag: two of them make one.
pub fn is_flag_letter(c: char) -> bool {
    CodePointSetData::new::<RegionalIndicator>().contains(c)
}

/// Says whether an emoji is to be shown as a text or as a picture.
pub fn is_style(c: char) -> bool {
    matches!(c, '\u{fe0e}' | '\u{fe0f}')
}

/// Chooses the form of a Mongolian letter.
pub fn is_mongolian_form(c: char) -> bool {
    matches!(c, '\u{180b}'..='\u{180d}' | '\u{180f}')
}

/// An invisible twin of an ASCII character, meant for flags.
pub fn is_tag(c: char) -> bool {
    matches!(c, '\u{e0001}' | '\u{e0020}'..=LAST_TAG)
}

/// A letter or mark of a script whose writing depends on joiners: Arabic and its kin, Mongolian, the
/// scripts of India and south-east Asia.
pub fn is_joining(c: char) -> bool {
    let joins = || {
        matches!(
            shape(c),
            JoiningType::DualJoining | JoiningType::RightJoining | JoiningType::LeftJoining
        )
    };
    let arabic = matches!(c, '\u{600}'..='\u{8ff}');
    let indic = || indic(c) != IndicSyllabicCategory::Other;
    // Nothing before Arabic joins.
    c >= '\u{600}' && (c.is_alphabetic() || is_mark(c)) && (arabic || joins() || indic())
}

/// A letter that joins on both sides; a joiner after it shows its form in the middle of a word.
pub fn joins_both_sides(c: char) -> bool {
    shape(c) == JoiningType::DualJoining
}

/// The sign that takes its vowel from a letter, so that it joins the next.
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
