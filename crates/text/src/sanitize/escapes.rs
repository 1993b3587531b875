//! Takes away what steers terminals: escape sequences as a whole, and all other control characters.

use super::char_class::CharClass;
use super::units::Unit;

const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{7}';
/// Ends a string of control characters, in one character.
const STRING_END: char = '\u{9c}';

/// The units without escape sequences and control characters, and with plain line ends.
pub(super) fn strip(units: &[Unit]) -> Vec<Unit> {
    let mut kept = Vec::with_capacity(units.len());
    let mut rest = units;
    while let Some((unit, tail)) = rest.split_first() {
        let length = match unit.c {
            '\r' => {
                let next = tail.first().map(|unit| unit.c);
                if next != Some('\n') {
                    kept.push(unit.replaced('\n'));
                }
                1
            }
            c if CharClass::of(c) == CharClass::Control => sequence(c, tail),
            _ => {
                kept.push(*unit);
                1
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    kept
}

/// Where in its text a sequence begins whose end may be still to come.
pub(super) fn open(units: &[Unit]) -> Option<usize> {
    let mut rest = units;
    while let Some((unit, tail)) = rest.split_first() {
        let is_control = unit.c != '\r' && CharClass::of(unit.c) == CharClass::Control;
        if is_control && is_open(unit.c, tail) {
            return Some(unit.start());
        }
        let length = match is_control {
            true => sequence(unit.c, tail),
            false => 1,
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    None
}

/// Whether what follows a control character may be but the beginning of its sequence.
fn is_open(control: char, tail: &[Unit]) -> bool {
    let first = tail.first().map(|unit| unit.c);
    let rest = tail.get(1..).unwrap_or_default();
    match (control, first) {
        (ESCAPE, None) => true,
        (ESCAPE, Some('[')) => is_open_command(rest),
        (ESCAPE, Some(']' | 'P' | 'X' | '^' | '_')) => is_open_string(rest),
        (ESCAPE, Some(' '..='/')) => rest.iter().all(|unit| matches!(unit.c, ' '..='/')),
        ('\u{9b}', _) => is_open_command(tail),
        ('\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}', _) => is_open_string(tail),
        _ => false,
    }
}

fn is_open_command(tail: &[Unit]) -> bool {
    tail.iter().all(|unit| matches!(unit.c, ' '..='?'))
}

fn is_open_string(tail: &[Unit]) -> bool {
    let inside = count(tail, |c| {
        c != '\n' && CharClass::of(c) != CharClass::Control
    });
    match tail.get(inside..) {
        None | Some([]) => true,
        // The second half of its end is missing.
        Some([last]) => last.c == ESCAPE,
        Some(_) => false,
    }
}

/// The length of a sequence that begins with a control character, which is at least 1.
fn sequence(control: char, tail: &[Unit]) -> usize {
    match control {
        ESCAPE => 1 + escaped(tail),
        '\u{9b}' => 1 + command(tail),
        '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => 1 + string(tail),
        _ => 1,
    }
}

/// The length of what belongs to an escape character before it.
fn escaped(tail: &[Unit]) -> usize {
    let Some((first, rest)) = tail.split_first() else {
        return 0;
    };
    match first.c {
        '[' => 1 + command(rest),
        ']' | 'P' | 'X' | '^' | '_' => 1 + string(rest),
        ' '..='/' => {
            let more = count(rest, |c| matches!(c, ' '..='/'));
            let last = rest
                .get(more)
                .is_some_and(|unit| matches!(unit.c, '0'..='~'));
            1 + more + usize::from(last)
        }
        '0'..='~' => 1,
        _ => 0,
    }
}

/// The length of parameters and the letter that ends them, as in `31m`.
fn command(tail: &[Unit]) -> usize {
    let parameters = count(tail, |c| matches!(c, '0'..='?'));
    let between = count(tail.get(parameters..).unwrap_or_default(), |c| {
        matches!(c, ' '..='/')
    });
    let last = tail.get(parameters + between);
    match last.is_some_and(|unit| matches!(unit.c, '@'..='~')) {
        true => parameters + between + 1,
        false => parameters,
    }
}

/// The length of a string with its end, as in `8;;https://example.com` and a bell. One without an end
/// loses only its beginning: the rest may be text.
fn string(tail: &[Unit]) -> usize {
    let inside = count(tail, |c| {
        c != '\n' && CharClass::of(c) != CharClass::Control
    });
    let end = tail.get(inside..).unwrap_or_default();
    let mut end = end.iter().map(|unit| unit.c);
    match (end.next(), end.next()) {
        (Some(BELL | STRING_END), _) => inside + 1,
        (Some(ESCAPE), Some('\\')) => inside + 2,
        _ => count(tail, |c| matches!(c, '0'..='9' | ';')),
    }
}

fn count(units: &[Unit], wanted: impl Fn(char) -> bool) -> usize {
    units.iter().take_while(|unit| wanted(unit.c)).count()
}
