//! Removes color codes that have lost their escape character: `[31mfailed[0m`.
//!
//! Brackets with digits are common in texts and code, so the conditions are strict: a color code and a reset code
//! in the same text, neither of them part of something else.

use super::source_char::SourceChar;

/// The maximum length of the parameters.
const MAX_LENGTH: usize = 16;

/// Removes color codes if the text has both a color and a reset.
pub(super) fn strip(chars: Vec<SourceChar>) -> Vec<SourceChar> {
    let codes = find_codes(&chars);
    let has_color = codes.iter().any(|code| !code.is_reset);
    let has_reset = codes.iter().any(|code| code.is_reset);
    if !has_color || !has_reset {
        return chars;
    }
    let mut result = Vec::with_capacity(chars.len());
    let mut next = 0;
    for code in &codes {
        result.extend_from_slice(chars.get(next..code.at).unwrap_or_default());
        next = code.at + code.length;
    }
    result.extend_from_slice(chars.get(next..).unwrap_or_default());
    result
}

struct ColorCode {
    at: usize,
    length: usize,
    /// Whether it resets the color.
    is_reset: bool,
}

fn find_codes(chars: &[SourceChar]) -> Vec<ColorCode> {
    let brackets = chars
        .iter()
        .enumerate()
        .filter(|(_, source)| source.c == '[');
    brackets
        .filter_map(|(at, _)| parse_code(chars, at))
        .collect()
}

fn parse_code(chars: &[SourceChar], at: usize) -> Option<ColorCode> {
    let (before, rest) = chars.split_at_checked(at)?;
    let rest = rest.get(1..)?;
    let parameters = rest.iter().take(MAX_LENGTH + 1);
    let length = parameters
        .take_while(|source| matches!(source.c, '0'..='9' | ';'))
        .count();
    if length > MAX_LENGTH || rest.get(length)?.c != 'm' || !stands_alone(before) {
        return None;
    }
    let mut after = rest.iter().skip(length + 1).map(|source| source.c);
    let bracket = after.find(|c| matches!(c, '[' | ']' | '\n'));
    let is_reset = rest.iter().take(length).all(|source| source.c == '0');
    (bracket != Some(']')).then_some(ColorCode {
        at,
        length: length + 2,
        is_reset,
    })
}

/// Returns whether a bracket follows a word, white space or nothing, but not a written escape such as `\e[0m`.
fn stands_alone(before: &[SourceChar]) -> bool {
    let mut back = before.iter().rev().map(|source| source.c);
    match (back.next(), back.next()) {
        (None, _) => true,
        (Some('e' | 'E'), Some('\\')) | (Some('b' | 'B'), Some('1')) | (Some('C'), Some('S')) => {
            false
        }
        (Some(c), _) => c.is_whitespace() || c.is_alphabetic(),
    }
}
