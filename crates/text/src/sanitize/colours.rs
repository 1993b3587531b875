//! Takes away colours that lost their escape character on the way: `[31mfailed[0m`.
//!
//! Brackets with digits are common in texts and code, so this asks for much: a colour and its end in
//! the same text, neither part of something else.

use super::units::Unit;

/// The longest row of parameters.
const LONGEST: usize = 16;

/// The units without colours, if that is what they are.
pub(super) fn strip(units: Vec<Unit>) -> Vec<Unit> {
    let found = find(&units);
    let begins = found.iter().any(|colour| !colour.ends);
    let ends = found.iter().any(|colour| colour.ends);
    if !begins || !ends {
        return units;
    }
    let mut kept = Vec::with_capacity(units.len());
    let mut next = 0;
    for colour in &found {
        kept.extend_from_slice(units.get(next..colour.at).unwrap_or_default());
        next = colour.at + colour.length;
    }
    kept.extend_from_slice(units.get(next..).unwrap_or_default());
    kept
}

struct Colour {
    at: usize,
    length: usize,
    /// Back to the usual colour.
    ends: bool,
}

fn find(units: &[Unit]) -> Vec<Colour> {
    let brackets = units.iter().enumerate().filter(|(_, unit)| unit.c == '[');
    brackets.filter_map(|(at, _)| colour(units, at)).collect()
}

fn colour(units: &[Unit], at: usize) -> Option<Colour> {
    let (before, rest) = units.split_at_checked(at)?;
    let rest = rest.get(1..)?;
    let parameters = rest.iter().take(LONGEST + 1);
    let length = parameters
        .take_while(|unit| matches!(unit.c, '0'..='9' | ';'))
        .count();
    if length > LONGEST || rest.get(length)?.c != 'm' || !stands_alone(before) {
        return None;
    }
    let mut after = rest.iter().skip(length + 1).map(|unit| unit.c);
    let bracket = after.find(|c| matches!(c, '[' | ']' | '\n'));
    let ends = rest.iter().take(length).all(|unit| unit.c == '0');
    (bracket != Some(']')).then_some(Colour {
        at,
        length: length + 2,
        ends,
    })
}

/// Whether what stands before a bracket is neither a name of the escape character, as in `\e[0m`,
/// nor anything but a word or white space.
fn stands_alone(before: &[Unit]) -> bool {
    let mut back = before.iter().rev().map(|unit| unit.c);
    match (back.next(), back.next()) {
        (None, _) => true,
        (Some('e' | 'E'), Some('\\')) | (Some('b' | 'B'), Some('1')) | (Some('C'), Some('S')) => {
            false
        }
        (Some(c), _) => c.is_whitespace() || c.is_alphabetic(),
    }
}
