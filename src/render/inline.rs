//! Text on one line of Markdown, written so that it shows exactly what it says.

use exa_mcp_text::chars::{all_bytes, is_one_of};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::text::one_line;

/// Adds a text on one line, with everything escaped that Markdown would take for a mark.
pub(super) fn push_inline(out: &mut String, text: &str) {
    let text = one_line(text);
    let mut done = 0;
    let mut escape = |at: usize| {
        out.push_str(text.get(done..at).unwrap_or_default());
        out.push('\\');
        done = at;
    };
    if let Some(at) = mark_at_start(&text) {
        escape(at);
    }
    if !all_bytes(&text, |byte| !may_be_mark(byte)) {
        for (at, byte) in text.bytes().enumerate() {
            if may_be_mark(byte) && is_mark(&text, at, byte) {
                escape(at);
            }
        }
    }
    out.push_str(text.get(done..).unwrap_or_default());
}

/// The mark of a quote or list with which a line begins.
fn mark_at_start(text: &str) -> Option<usize> {
    if text.starts_with(['>', '+', '-']) {
        return Some(0);
    }
    // A number with a point begins a list.
    let after = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = text.len() - after.len();
    let rest = after.strip_prefix(['.', ')'])?;
    (number > 0 && (rest.is_empty() || rest.starts_with(' '))).then_some(number)
}

/// Whether a character is a mark wherever it stands, or by what stands around it.
fn may_be_mark(byte: u8) -> bool {
    is_one_of(byte, *b"\\`*[]<|_~&#")
}

/// Whether Markdown would take the mark at a place for one, by what stands before and after it.
fn is_mark(text: &str, at: usize, mark: u8) -> bool {
    let is_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let head = text.get(..at).unwrap_or_default();
    let after = text.get(at + 1..).unwrap_or_default();
    let before = || head.chars().next_back();
    let next = || after.chars().next();
    match mark {
        // An underline between letters is part of a name.
        b'_' => !(is_word(before()) && is_word(next())),
        b'~' => before() == Some('~') || next() == Some('~'),
        b'&' => is_entity(after),
        // At its end, a heading loses such marks.
        b'#' => at == 0 || before() == Some(' ') && after.bytes().all(|byte| byte == b'#'),
        _ => true,
    }
}

/// Whether what follows an `&` makes it the name of a character.
fn is_entity(after: &str) -> bool {
    let name = after.strip_prefix('#').unwrap_or(after);
    let rest = name.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric());
    rest.len() < name.len() && rest.starts_with(';')
}

/// Adds a link; an address that no browser should follow is only shown.
pub(super) fn push_link(out: &mut String, title: &str, url: &str) {
    let is_web = ["http://", "https://"].iter().any(|scheme| {
        url.get(..scheme.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(scheme))
    });
    let (open, close) = if is_web { ("[", "](") } else { ("", " (") };
    out.push_str(open);
    push_inline(out, title);
    out.push_str(close);
    match is_web {
        true => push_target(out, url),
        false => push_inline(out, url),
    }
    out.push(')');
}

/// Adds an address with everything encoded that would end it.
fn push_target(out: &mut String, url: &str) {
    if all_bytes(url, |byte| byte.is_ascii_graphic() & !may_end_target(byte)) {
        return out.push_str(url);
    }
    for (at, letter) in url.char_indices() {
        match letter {
            '&' if is_entity(url.get(at + 1..).unwrap_or_default()) => out.push_str("\\&"),
            '&' => out.push('&'),
            letter if letter.is_whitespace() => push_encoded(out, letter),
            letter if u8::try_from(letter).is_ok_and(may_end_target) => push_encoded(out, letter),
            letter => out.push(letter),
        }
    }
}

/// Whether a character may end an address, or be read as another.
fn may_end_target(byte: u8) -> bool {
    is_one_of(byte, *b"()<>|\\`&")
}

fn push_encoded(target: &mut String, letter: char) {
    let mut bytes = [0; 4];
    let letter = letter.encode_utf8(&mut bytes);
    target.extend(utf8_percent_encode(letter, NON_ALPHANUMERIC));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_in_titles_are_escaped() {
        for (title, escaped) in [
            ("a | b", "a \\| b"),
            ("`code` and [link](x)", "\\`code\\` and \\[link\\](x)"),
            ("two\nlines", "two lines"),
            (
                "snake_case _em_ *strong*",
                "snake_case \\_em\\_ \\*strong\\*",
            ),
            ("# heading", "\\# heading"),
            ("closed ##", "closed \\##"),
            ("<b>tag</b>", "\\<b>tag\\</b>"),
            ("C# and a-b", "C# and a-b"),
            ("1. first, 2. second", "1\\. first, 2. second"),
            ("1.5 and 2)", "1.5 and 2)"),
            ("&lt; &amp &; AT&T", "\\&lt; &amp &; AT&T"),
            (
                "https://a.example/x_y?z=1&w=2;_a_/~b",
                "https://a.example/x_y?z=1&w=2;\\_a\\_/~b",
            ),
        ] {
            assert_eq!(inline(title), escaped);
        }
    }

    fn inline(text: &str) -> String {
        let mut escaped = String::new();
        push_inline(&mut escaped, text);
        escaped
    }

    fn link(title: &str, url: &str) -> String {
        let mut link = String::new();
        push_link(&mut link, title, url);
        link
    }

    #[test]
    fn addresses_stay_inside_their_link() {
        assert_eq!(
            link("t", "https://a.example/a(b) c"),
            "[t](https://a.example/a%28b%29%20c)"
        );
        assert_eq!(
            link("t", "HTTP://a.example/?a=1&b=2&lt;=3\u{a0}"),
            "[t](HTTP://a.example/?a=1&b=2\\&lt;=3%C2%A0)"
        );
        assert_eq!(link("t", "javascript:alert(1)"), "t (javascript:alert(1))");
    }
}
