//! Removes terminal escape sequences and all other control characters.

use super::char_class::CharClass;
use super::source_char::SourceChar;

const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{7}';
/// The single-character string terminator.
const STRING_END: char = '\u{9c}';

/// Removes escape sequences and control characters, and normalizes line ends.
pub(super) fn strip(chars: &[SourceChar]) -> Vec<SourceChar> {
    let mut result = Vec::with_capacity(chars.len());
    let mut rest = chars;
    while let Some((source, tail)) = rest.split_first() {
        let length = match source.c {
            '\r' => {
                let next = tail.first().map(|source| source.c);
                if next != Some('\n') {
                    result.push(source.with_char('\n'));
                }
                1
            }
            c if CharClass::from_char(c) == CharClass::Control => sequence_len(c, tail),
            _ => {
                result.push(*source);
                1
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    result
}

/// Returns the start of an escape sequence at the end that may be incomplete.
pub(super) fn find_open(chars: &[SourceChar]) -> Option<usize> {
    let mut rest = chars;
    while let Some((source, tail)) = rest.split_first() {
        let is_control = source.c != '\r' && CharClass::from_char(source.c) == CharClass::Control;
        if is_control && is_open(source.c, tail) {
            return Some(source.start());
        }
        let length = if is_control {
            sequence_len(source.c, tail)
        } else {
            1
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    None
}

/// Returns whether the sequence after a control character may be incomplete.
fn is_open(control: char, tail: &[SourceChar]) -> bool {
    let first = tail.first().map(|source| source.c);
    let rest = tail.get(1..).unwrap_or_default();
    match (control, first) {
        (ESCAPE, None) => true,
        (ESCAPE, Some('[')) => is_open_command(rest),
        (ESCAPE, Some(']' | 'P' | 'X' | '^' | '_')) => is_open_string(rest),
        (ESCAPE, Some(' '..='/')) => rest.iter().all(|source| matches!(source.c, ' '..='/')),
        ('\u{9b}', _) => is_open_command(tail),
        ('\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}', _) => is_open_string(tail),
        _ => false,
    }
}

fn is_open_command(tail: &[SourceChar]) -> bool {
    tail.iter().all(|source| matches!(source.c, ' '..='?'))
}

fn is_open_string(tail: &[SourceChar]) -> bool {
    let inside = count(tail, |c| {
        c != '\n' && CharClass::from_char(c) != CharClass::Control
    });
    match tail.get(inside..) {
        None | Some([]) => true,
        // The second character of the terminator is missing.
        Some([last]) => last.c == ESCAPE,
        Some(_) => false,
    }
}

/// Returns the length of a sequence that starts with a control character, which is at least 1.
fn sequence_len(control: char, tail: &[SourceChar]) -> usize {
    match control {
        ESCAPE => 1 + escaped_len(tail),
        '\u{9b}' => 1 + command_len(tail),
        '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => 1 + string_len(tail),
        _ => 1,
    }
}

/// Returns the length of the sequence after an escape character.
fn escaped_len(tail: &[SourceChar]) -> usize {
    let Some((first, rest)) = tail.split_first() else {
        return 0;
    };
    match first.c {
        '[' => 1 + command_len(rest),
        ']' | 'P' | 'X' | '^' | '_' => 1 + string_len(rest),
        ' '..='/' => {
            let more = count(rest, |c| matches!(c, ' '..='/'));
            let last = rest
                .get(more)
                .is_some_and(|source| matches!(source.c, '0'..='~'));
            1 + more + usize::from(last)
        }
        '0'..='~' => 1,
        _ => 0,
    }
}

/// Returns the length of parameters and the final letter, as in `31m`.
fn command_len(tail: &[SourceChar]) -> usize {
    let parameters = count(tail, |c| matches!(c, '0'..='?'));
    let between = count(tail.get(parameters..).unwrap_or_default(), |c| {
        matches!(c, ' '..='/')
    });
    let last = tail.get(parameters + between);
    if last.is_some_and(|source| matches!(source.c, '@'..='~')) {
        parameters + between + 1
    } else {
        parameters
    }
}

/// Returns the length of a string with its terminator, as in `8;;https://example.com` and a bell. Of a string
/// without a terminator only the start is removed, because the remainder may be text.
fn string_len(tail: &[SourceChar]) -> usize {
    let inside = count(tail, |c| {
        c != '\n' && CharClass::from_char(c) != CharClass::Control
    });
    let end = tail.get(inside..).unwrap_or_default();
    let mut end = end.iter().map(|source| source.c);
    match (end.next(), end.next()) {
        (Some(BELL | STRING_END), _) => inside + 1,
        (Some(ESCAPE), Some('\\')) => inside + 2,
        _ => count(tail, |c| matches!(c, '0'..='9' | ';')),
    }
}

fn count(chars: &[SourceChar], matches: impl Fn(char) -> bool) -> usize {
    chars.iter().take_while(|source| matches(source.c)).count()
}
