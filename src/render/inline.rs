//! Inline Markdown that renders as the literal text.

use exa_mcp_text::chars::{all_bytes, is_one_of};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::text::one_line;

/// Appends a text on one line as it is, in a code span if Markdown would interpret it.
pub(super) fn push_inline(out: &mut String, text: &str) {
    let text = one_line(text);
    if is_literal(&text) {
        out.push_str(&text);
    } else {
        push_code(out, &text);
    }
}

/// Appends a text in a cell of a table, where a vertical bar is escaped even in a code span.
pub(super) fn push_cell(out: &mut String, text: &str) {
    if !text.contains('|') {
        return push_inline(out, text);
    }
    push_code(out, &one_line(text).replace('|', "\\|"));
}

/// Appends a text in a code span. Its delimiters are longer than any run of backticks in the text.
pub(super) fn push_code(out: &mut String, text: &str) {
    let delimiter = "`".repeat(longest_run(text, '`') + 1);
    let is_padded = text.starts_with('`') || text.ends_with('`');
    let padding = if is_padded { " " } else { "" };
    for part in [&delimiter, padding, text, padding, &delimiter] {
        out.push_str(part);
    }
}

/// Returns the length of the longest run of a character.
pub(super) fn longest_run(text: &str, wanted: char) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == wanted { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// Returns whether Markdown shows a line as it is, wherever the line stands.
pub(super) fn is_literal(text: &str) -> bool {
    if starts_block(text) {
        return false;
    }
    all_bytes(text, |byte| !may_be_markup(byte))
        || text
            .bytes()
            .enumerate()
            .all(|(at, byte)| !may_be_markup(byte) || !is_markup(text, at, byte))
}

/// Returns whether a line would start a quote, a list or a rule.
fn starts_block(text: &str) -> bool {
    let is_bullet = |rest: &str| rest.is_empty() || rest.starts_with(' ');
    if text.starts_with('>') || text.strip_prefix(['+', '-', '*']).is_some_and(is_bullet) {
        return true;
    }
    if !text.is_empty() && all_bytes(text, |byte| is_one_of(byte, *b"-=+_* :|")) {
        return true;
    }
    // A number with a full stop starts a list.
    let after = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = after.strip_prefix(['.', ')']);
    after.len() < text.len() && rest.is_some_and(is_bullet)
}

/// Returns whether a character is Markdown syntax, always or in some context.
fn may_be_markup(byte: u8) -> bool {
    is_one_of(byte, *b"\\`*[]<_~&#")
}

/// Returns whether Markdown interprets the character at a position, given its neighbors.
fn is_markup(text: &str, at: usize, mark: u8) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let is_blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
    let head = text.get(..at).unwrap_or_default();
    let after = text.get(at + 1..).unwrap_or_default();
    let before = || head.chars().next_back();
    let next = || after.chars().next();
    match mark {
        // Between spaces, neither opens or closes an emphasis; an underscore between letters is part of a name.
        b'*' => !(is_blank(before()) && is_blank(next())),
        b'_' => !(is_word(before()) && is_word(next()) || is_blank(before()) && is_blank(next())),
        // At the end, the punctuation that follows the text would be escaped.
        b'\\' => next().is_none_or(|c| c.is_ascii_punctuation()),
        b'<' => next().is_some_and(|c| c.is_ascii_alphabetic() || "/!?".contains(c)),
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

/// Appends a URL with every character encoded that would end it. Parentheses in pairs do not.
fn push_url(out: &mut String, url: &str) {
    if all_bytes(url, |byte| byte.is_ascii_graphic() & !may_end_url(byte)) {
        return out.push_str(url);
    }
    let is_paired = has_paired_parentheses(url);
    for (at, c) in url.char_indices() {
        match c {
            '&' if is_entity(url.get(at + 1..).unwrap_or_default()) => out.push_str("\\&"),
            '&' => out.push('&'),
            '(' | ')' if is_paired => out.push(c),
            c if c.is_whitespace() => push_encoded(out, c),
            c if u8::try_from(c).is_ok_and(may_end_url) => push_encoded(out, c),
            c => out.push(c),
        }
    }
}

fn has_paired_parentheses(url: &str) -> bool {
    let mut open = 0_usize;
    for c in url.chars() {
        match c {
            '(' => open += 1,
            ')' => match open.checked_sub(1) {
                Some(left) => open = left,
                None => return false,
            },
            _ => {}
        }
    }
    open == 0
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
    fn shows_values_as_they_are() {
        for plain in [
            "0 9 * * 1",
            "a | b",
            "snake_case and a_b",
            "C# and a-b",
            "1.5 and 2)",
            "-5 to +7",
            "a < b, c\\d",
            "&amp &; AT&T",
            "https://a.example/x_y?z=1&w=2~b",
        ] {
            assert_eq!(inline(plain), plain);
        }
    }

    #[test]
    fn puts_markup_into_code() {
        for (text, written) in [
            ("* * * * *", "`* * * * *`"),
            ("*/5 * * * *", "`*/5 * * * *`"),
            ("[link](x)", "`[link](x)`"),
            ("`code` and", "`` `code` and ``"),
            ("a ``two``", "``` a ``two`` ```"),
            ("two\n_lines_", "`two _lines_`"),
            ("# heading", "`# heading`"),
            ("closed ##", "`closed ##`"),
            ("<b>tag</b>", "`<b>tag</b>`"),
            ("1. first, 2. second", "`1. first, 2. second`"),
            ("&lt;", "`&lt;`"),
            ("https://a.example/_a_", "`https://a.example/_a_`"),
        ] {
            assert_eq!(inline(text), written);
        }
        let mut cell = String::new();
        push_cell(&mut cell, "a|b");
        assert_eq!(cell, "`a\\|b`");
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
            "[t](https://a.example/a(b)%20c)"
        );
        assert_eq!(
            link("t", "https://a.example/a)b(c"),
            "[t](https://a.example/a%29b%28c)"
        );
        assert_eq!(
            link("t", "HTTP://a.example/?a=1&b=2&lt;=3\u{a0}"),
            "[t](HTTP://a.example/?a=1&b=2\\&lt;=3%C2%A0)"
        );
        assert_eq!(link("t", "javascript:alert(1)"), "t (javascript:alert(1))");
    }
}
