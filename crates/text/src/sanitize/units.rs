//! Characters as a reader gets to see them: references such as `&#8203;` count as what they stand
//! for, however often they were escaped.

use super::char_class::CharClass;
use super::names;

/// A character, and where in the text it comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) c: char,
    /// It is written in place of its source.
    fresh: bool,
    start: usize,
    end: usize,
    /// Where, among the units, the row of letters and digits begins that this one belongs to.
    row: usize,
    /// Whether that row has no gaps in the text.
    whole: bool,
}

impl Unit {
    fn new(c: char, start: usize, end: usize) -> Unit {
        Unit {
            c,
            fresh: false,
            start,
            end,
            row: 0,
            whole: true,
        }
    }

    /// Where in the text it begins.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// Another character in the same place.
    pub(super) fn replaced(self, c: char) -> Unit {
        Unit {
            c,
            fresh: true,
            ..self
        }
    }

    /// Appends the unit the way it stands in its text.
    pub(super) fn write(&self, text: &str, out: &mut String) {
        match text.get(self.start..self.end) {
            Some(source) if !self.fresh => out.push_str(source),
            _ => out.push(self.c),
        }
    }

    /// How many bytes of its text the unit keeps.
    pub(super) fn kept(&self) -> usize {
        if self.fresh { 0 } else { self.end - self.start }
    }
}

/// The units of a text, without those that go in any case.
pub(super) fn of(text: &str) -> Vec<Unit> {
    let mut stack = Stack {
        units: Vec::with_capacity(text.len()),
    };
    let mut chars = text.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        let unit = Unit::new(c, start, start + c.len_utf8());
        let unit = match CharClass::of(c) {
            CharClass::Drop => continue,
            CharClass::Line => unit.replaced('\n'),
            CharClass::Blank => unit.replaced(' '),
            CharClass::Keep | CharClass::Control | CharClass::Context => unit,
        };
        stack.push(unit, chars.peek().map(|(_, next)| *next));
    }
    stack.finish()
}

/// The units so far. A reference is replaced as soon as it is complete, so that it can be a part of
/// another: `&amp;#8203;` becomes `&#8203;` first.
struct Stack {
    units: Vec<Unit>,
}

/// A reference at the end of the units.
#[derive(Clone, Copy, Debug)]
struct Reference {
    /// What it stands for.
    c: char,
    /// Where its `&` is.
    from: usize,
}

/// Rows longer than this are not read again and again after something behind them fell out.
const LONG_ROW: usize = 32;

impl Stack {
    /// Adds a unit; `next` is the character that follows it in the text.
    fn push(&mut self, unit: Unit, next: Option<char>) {
        while let Some(reference) = self.before(unit.c) {
            let closes = unit.c == ';';
            if !self.resolve(reference, closes.then_some(unit)) {
                break;
            }
            if closes {
                return;
            }
        }
        let named = (unit.c == ';').then(|| self.named(next)).flatten();
        if named.is_some_and(|reference| self.resolve(reference, Some(unit))) {
            return;
        }
        self.add(unit);
    }

    fn add(&mut self, unit: Unit) {
        let here = self.units.len();
        let before = self.units.last();
        let (row, whole) = match before.filter(|last| last.c.is_ascii_alphanumeric()) {
            Some(last) if unit.c.is_ascii_alphanumeric() => {
                (last.row, last.whole && last.end == unit.start)
            }
            _ => (here, true),
        };
        self.units.push(Unit { row, whole, ..unit });
    }

    fn finish(mut self) -> Vec<Unit> {
        if let Some(reference) = self.before('\0') {
            self.resolve(reference, None);
        }
        self.units
    }

    /// A reference that needs no `;` because the next character is not a part of it: `&#8203` or,
    /// before a number sign, `&amp`.
    fn before(&self, next: char) -> Option<Reference> {
        let row = self.row()?;
        let (first, sign) = (row.first()?.c, self.at_back(row.len() + 1)?);
        let from = self.units.len().checked_sub(row.len() + 1)?;
        if sign == '&' {
            let ampersand = next == '#' && matches!(text(row).as_str(), "amp" | "AMP");
            return ampersand.then_some(Reference { c: '&', from });
        }
        let from = from.checked_sub(1)?;
        if sign != '#' || self.units.get(from)?.c != '&' {
            return None;
        }
        let hex = matches!(first, 'x' | 'X');
        if next.is_digit(if hex { 16 } else { 10 }) {
            return None;
        }
        let c = number(row, hex)?;
        Some(Reference { c, from })
    }

    /// A named reference, of which only the `;` is missing.
    fn named(&self, next: Option<char>) -> Option<Reference> {
        let row = self.row().filter(|row| row.len() <= names::LONGEST)?;
        let from = self.units.len().checked_sub(row.len() + 1)?;
        let c = match self.units.get(from)?.c {
            '&' => names::decode(&text(row), next)?,
            _ => return None,
        };
        Some(Reference { c, from })
    }

    /// Takes away a reference to something that goes, or makes one unit of it. Not so if parts of it
    /// are scattered: then they have to come together first.
    fn resolve(&mut self, reference: Reference, end: Option<Unit>) -> bool {
        let Some(parts) = self.units.get(reference.from..) else {
            return false;
        };
        let gone = matches!(
            CharClass::of(reference.c),
            CharClass::Drop | CharClass::Line | CharClass::Blank
        );
        if gone || reference.c == '\r' {
            self.units.truncate(reference.from);
            return true;
        }
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
            return false;
        };
        let heads = parts.iter().zip(parts.iter().skip(1)).take(2);
        let joined = heads.into_iter().all(|(one, other)| one.end == other.start);
        if !joined || !last.whole || end.is_some_and(|end| end.start != last.end) {
            return false;
        }
        let unit = Unit::new(reference.c, first.start, end.unwrap_or(*last).end);
        self.units.truncate(reference.from);
        self.push(unit, None);
        true
    }

    /// The row of letters and digits at the end.
    fn row(&self) -> Option<&[Unit]> {
        let last = self.units.last()?;
        let row = self.units.get(last.row..)?;
        (last.c.is_ascii_alphanumeric() && (last.whole || row.len() <= LONG_ROW)).then_some(row)
    }

    /// The n-th character from the end, beginning with 1.
    fn at_back(&self, n: usize) -> Option<char> {
        let at = self.units.len().checked_sub(n)?;
        self.units.get(at).map(|unit| unit.c)
    }
}

fn text(row: &[Unit]) -> String {
    row.iter()
        .take(names::LONGEST + 1)
        .map(|unit| unit.c)
        .collect()
}

/// What a number stands for, by the rules of HTML.
fn number(row: &[Unit], hex: bool) -> Option<char> {
    let radix = if hex { 16 } else { 10 };
    let digits = row.get(usize::from(hex)..)?;
    if digits.is_empty() {
        return None;
    }
    let mut value: u32 = 0;
    for digit in digits {
        value = value
            .saturating_mul(radix)
            .saturating_add(digit.c.to_digit(radix)?);
    }
    Some(match value {
        // These five are control characters, the rest of their block are quotes and the like.
        0x81 | 0x8d | 0x8f | 0x90 | 0x9d => char::from_u32(value)?,
        0x80..=0x9f => char::REPLACEMENT_CHARACTER,
        _ => char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER),
    })
}
