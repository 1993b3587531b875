//! Decodes a text into the characters that a reader sees: references such as `&#8203;` are decoded, however often
//! they were escaped.

use super::char_class::CharClass;
use super::entity_names;

/// A character and its position in the source text.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceChar {
    pub(super) c: char,
    /// Whether the character replaces its source text.
    is_replaced: bool,
    start: usize,
    end: usize,
    /// The index at which the run of letters and digits starts that this one belongs to.
    run: usize,
    /// Whether that run is contiguous in the source text.
    contiguous: bool,
}

impl SourceChar {
    fn new(c: char, start: usize, end: usize) -> SourceChar {
        SourceChar {
            c,
            is_replaced: false,
            start,
            end,
            run: 0,
            contiguous: true,
        }
    }

    /// Returns its start in the source text.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// Returns another character at the same position.
    pub(super) fn with_char(self, c: char) -> SourceChar {
        SourceChar {
            c,
            is_replaced: true,
            ..self
        }
    }

    /// Appends the source text of the character, or its replacement.
    pub(super) fn write(&self, text: &str, out: &mut String) {
        match text.get(self.start..self.end) {
            Some(source) if !self.is_replaced => out.push_str(source),
            _ => out.push(self.c),
        }
    }

    /// Returns the length of the source text that stays unchanged.
    pub(super) fn source_len(&self) -> usize {
        if self.is_replaced {
            0
        } else {
            self.end - self.start
        }
    }
}

/// Decodes a text, and drops the characters that are always removed.
pub(super) fn decode(text: &str) -> Vec<SourceChar> {
    let mut decoder = Decoder {
        chars: Vec::with_capacity(text.len()),
    };
    let mut chars = text.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        let source = SourceChar::new(c, start, start + c.len_utf8());
        let source = match CharClass::from_char(c) {
            CharClass::Drop => continue,
            CharClass::Line => source.with_char('\n'),
            CharClass::Blank => source.with_char(' '),
            CharClass::Keep | CharClass::Control | CharClass::Context => source,
        };
        decoder.push(source, chars.peek().map(|(_, next)| *next));
    }
    decoder.finish()
}

/// The characters so far. A reference is replaced once it is complete, so that it can be part of another one:
/// `&amp;#8203;` first becomes `&#8203;`.
struct Decoder {
    chars: Vec<SourceChar>,
}

/// A character reference at the end.
#[derive(Clone, Copy, Debug)]
struct Reference {
    /// The decoded character.
    c: char,
    /// The index of its `&`.
    from: usize,
}

/// Longer runs are not decoded again after a removal, to avoid quadratic time.
const MAX_RUN: usize = 32;

impl Decoder {
    /// Adds a character; `next` follows it in the text.
    fn push(&mut self, source: SourceChar, next: Option<char>) {
        while let Some(reference) = self.unterminated_reference(source.c) {
            let closes = source.c == ';';
            if !self.resolve(reference, closes.then_some(source)) {
                break;
            }
            if closes {
                return;
            }
        }
        let named = (source.c == ';')
            .then(|| self.named_reference(next))
            .flatten();
        if named.is_some_and(|reference| self.resolve(reference, Some(source))) {
            return;
        }
        self.add(source);
    }

    fn add(&mut self, source: SourceChar) {
        let here = self.chars.len();
        let before = self.chars.last();
        let (run, contiguous) = match before.filter(|last| last.c.is_ascii_alphanumeric()) {
            Some(last) if source.c.is_ascii_alphanumeric() => {
                (last.run, last.contiguous && last.end == source.start)
            }
            _ => (here, true),
        };
        self.chars.push(SourceChar {
            run,
            contiguous,
            ..source
        });
    }

    fn finish(mut self) -> Vec<SourceChar> {
        if let Some(reference) = self.unterminated_reference('\0') {
            self.resolve(reference, None);
        }
        self.chars
    }

    /// Returns a reference without `;` that the next character ends: `&#8203`, or `&amp` before `#`.
    fn unterminated_reference(&self, next: char) -> Option<Reference> {
        let run = self.run()?;
        let (first, sign) = (run.first()?.c, self.nth_back(run.len() + 1)?);
        let from = self.chars.len().checked_sub(run.len() + 1)?;
        if sign == '&' {
            let ampersand = next == '#' && matches!(text(run).as_str(), "amp" | "AMP");
            return ampersand.then_some(Reference { c: '&', from });
        }
        let from = from.checked_sub(1)?;
        if sign != '#' || self.chars.get(from)?.c != '&' {
            return None;
        }
        let hex = matches!(first, 'x' | 'X');
        if next.is_digit(if hex { 16 } else { 10 }) {
            return None;
        }
        let c = decode_number(run, hex)?;
        Some(Reference { c, from })
    }

    /// Returns a named reference that lacks only the `;`.
    fn named_reference(&self, next: Option<char>) -> Option<Reference> {
        let run = self
            .run()
            .filter(|run| run.len() <= entity_names::MAX_LENGTH)?;
        let from = self.chars.len().checked_sub(run.len() + 1)?;
        let c = match self.chars.get(from)?.c {
            '&' => entity_names::decode(&text(run), next)?,
            _ => return None,
        };
        Some(Reference { c, from })
    }

    /// Removes a reference to a character that is always removed, or replaces it with its character. Returns false
    /// if its parts are not contiguous.
    fn resolve(&mut self, reference: Reference, end: Option<SourceChar>) -> bool {
        let Some(parts) = self.chars.get(reference.from..) else {
            return false;
        };
        let is_removed = matches!(
            CharClass::from_char(reference.c),
            CharClass::Drop | CharClass::Line | CharClass::Blank
        );
        if is_removed || reference.c == '\r' {
            self.chars.truncate(reference.from);
            return true;
        }
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
            return false;
        };
        let heads = parts.iter().zip(parts.iter().skip(1)).take(2);
        let joined = heads.into_iter().all(|(one, other)| one.end == other.start);
        if !joined || !last.contiguous || end.is_some_and(|end| end.start != last.end) {
            return false;
        }
        let source = SourceChar::new(reference.c, first.start, end.unwrap_or(*last).end);
        self.chars.truncate(reference.from);
        self.push(source, None);
        true
    }

    /// Returns the run of letters and digits at the end.
    fn run(&self) -> Option<&[SourceChar]> {
        let last = self.chars.last()?;
        let run = self.chars.get(last.run..)?;
        (last.c.is_ascii_alphanumeric() && (last.contiguous || run.len() <= MAX_RUN)).then_some(run)
    }

    /// Returns the n-th character from the end, starting with 1.
    fn nth_back(&self, n: usize) -> Option<char> {
        let at = self.chars.len().checked_sub(n)?;
        self.chars.get(at).map(|source| source.c)
    }
}

fn text(run: &[SourceChar]) -> String {
    run.iter()
        .take(entity_names::MAX_LENGTH + 1)
        .map(|source| source.c)
        .collect()
}

/// Decodes a numeric reference by the rules of HTML.
fn decode_number(run: &[SourceChar], hex: bool) -> Option<char> {
    let radix = if hex { 16 } else { 10 };
    let digits = run.get(usize::from(hex)..)?;
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
        // These five are control characters; HTML maps the others of this block to quotes and the like.
        0x81 | 0x8d | 0x8f | 0x90 | 0x9d => char::from_u32(value)?,
        0x80..=0x9f => char::REPLACEMENT_CHARACTER,
        _ => char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER),
    })
}
