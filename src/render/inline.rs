//! Inline Markdown that renders as the literal text.

use exa_mcp_text::chars::{all_bytes, is_one_of};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::text::one_line;

/// Appends a text on one line, with Markdown syntax escaped.
pub(super) fn push_inline(out: &mut String, text: &str) {
    let text = one_line(text);
    let mut done = 0;
    let mut escape = |at: usize| {
        out.push_str(text.get(done..at).unwrap_or_default());
        out.push('\\');
        done = at;
    };
    if let Some(at) = block_marker(&text) {
        escape(at);
    }
    if !all_bytes(&text, |byte| !may_be_markup(byte)) {
        for (at, byte) in text.bytes().enumerate() {
            if may_be_markup(byte) && is_markup(&text, at, byte) {
                escape(at);
            }
        }
    }
    out.push_str(text.get(done..).unwrap_or_default());
}

/// Returns the position of a quote or list marker at the start of a line.
fn block_marker(text: &str) -> Option<usize> {
    if text.starts_with(['>', '+', '-']) {
        return Some(0);
    }
    // A number with a full stop starts a list.
    let after = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = text.len() - after.len();
    let rest = after.strip_prefix(['.', ')'])?;
    (number > 0 && (rest.is_empty() || rest.starts_with(' '))).then_some(number)
}

/// Returns whether a character is Markdown syntax, always or in some context.
fn may_be_markup(byte: u8) -> bool {
    is_one_of(byte, *b"\\`*[]<|_~&#")
}

/// Returns whether Markdown interprets the character at a position, given its neighbors.
fn is_markup(text: &str, at: usize, mark: u8) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let head = text.get(..at).unwrap_or_default();
    let after = text.get(at + 1..).unwrap_or_default();
    let before = || head.chars().next_back();
    let next = || after.chars().next();
    match mark {
        // An underscore between letters is part of a name.
        b'_' => !(is_word(before()) && is_word(next())),
        b'~' => before() == Some('~') || next() == Some('~'),
        b'&' => is_entity(after),
        // Markdown strips closing hashes from headings.
        b'#' => at == 0 || before() == Some(' ') && after.bytes().all(|byte| byte == b'#'),
        _ => true,
    }
}

/// Returns whether the text after an `&` completes a character reference.
fn is_entity(after: &str) -> bool {
    let name = after.strip_prefix('#').unwrap_or(after);
    let rest = name.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    rest.len() < name.len() && rest.starts_with(';')
}

/// Appends a link; a URL that is not http or https is written as text.
pub(super) fn push_link(out: &mut String, title: &str, url: &str) {
    let is_web = ["http://", "https://"].iter().any(|scheme| {
        url.get(..scheme.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(scheme))
    });
    let (open, close) = if is_web { ("[", "](") } else { ("", " (") };
    out.push_str(open);
    push_inline(out, title);
    out.push_str(close);
    if is_web {
        push_url(out, url);
    } else {
        push_inline(out, url);
    }
    out.push(')');
}

/// Appends a URL with every character encoded that would end it.
fn push_url(out: &mut String, url: &str) {
    if all_bytes(url, |byte| byte.is_ascii_graphic() & !may_end_url(byte)) {
        return out.push_str(url);
    }
    for (at, c) in url.char_indices() {
        match c {
            '&' if is_entity(url.get(at + 1..).unwrap_or_default()) => out.push_str("\\&"),
            '&' => out.push('&'),
            c if c.is_whitespace() => push_encoded(out, c),
            c if u8::try_from(c).is_ok_and(may_end_url) => push_encoded(out, c),
            c => out.push(c),
        }
    }
}

/// Returns whether a character may end a URL or be interpreted by Markdown.
fn may_end_url(byte: u8) -> bool {
    is_one_of(byte, *b"()<>|\\`&")
}

fn push_encoded(target: &mut String, c: char) {
    let mut bytes = [0; 4];
    let encoded = c.encode_utf8(&mut bytes);
    target.extend(utf8_percent_encode(encoded, NON_ALPHANUMERIC));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_markup_in_titles() {
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
    fn encodes_urls_inside_links() {
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
