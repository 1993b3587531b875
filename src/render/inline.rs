//! Text on one line of Markdown, written so that it shows exactly what it says.

use super::text::one_line;

/// A text on one line, with everything escaped that Markdown would take for a mark.
pub(super) fn inline(text: &str) -> String {
    let text = one_line(text);
    let mut escaped = String::with_capacity(text.len() + 8);
    let mut before = None;
    for (at, letter) in text.char_indices() {
        let after = text.get(at + letter.len_utf8()..).unwrap_or_default();
        let head = text.get(..at).unwrap_or_default();
        if is_mark(letter, before, head, after) {
            escaped.push('\\');
        }
        escaped.push(letter);
        before = Some(letter);
    }
    escaped
}

/// Whether Markdown would take a letter for a mark, by what stands before and after it.
fn is_mark(letter: char, before: Option<char>, head: &str, after: &str) -> bool {
    let is_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let next = after.chars().next();
    match letter {
        '\\' | '`' | '*' | '[' | ']' | '<' | '|' => true,
        // An underline between letters is part of a name.
        '_' => !(is_word(before) && is_word(next)),
        '~' => before == Some('~') || next == Some('~'),
        '&' => is_entity(after),
        '>' | '+' | '-' => before.is_none(),
        // At its end, a heading loses such marks.
        '#' => before.is_none() || before == Some(' ') && after.bytes().all(|byte| byte == b'#'),
        // A number with a point begins a list.
        '.' | ')' => {
            let is_number = !head.is_empty() && head.bytes().all(|byte| byte.is_ascii_digit());
            is_number && next.is_none_or(|next| next == ' ')
        }
        _ => false,
    }
}

/// Whether what follows an `&` makes it the name of a character.
fn is_entity(after: &str) -> bool {
    let name = after.strip_prefix('#').unwrap_or(after);
    let rest = name.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric());
    rest.len() < name.len() && rest.starts_with(';')
}

/// A link; an address that no browser should follow is only shown.
pub(super) fn link(title: &str, url: &str) -> String {
    let is_web = ["http://", "https://"].iter().any(|scheme| {
        url.get(..scheme.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(scheme))
    });
    match is_web {
        true => format!("[{}]({})", inline(title), target(url)),
        false => format!("{} ({})", inline(title), inline(url)),
    }
}

/// An address with everything encoded that would end it.
fn target(url: &str) -> String {
    let mut target = String::with_capacity(url.len());
    for (at, letter) in url.char_indices() {
        match letter {
            '(' | ')' | '<' | '>' | '|' | '\\' | '`' => push_encoded(&mut target, letter),
            letter if letter.is_whitespace() => push_encoded(&mut target, letter),
            '&' if is_entity(url.get(at + 1..).unwrap_or_default()) => target.push_str("\\&"),
            letter => target.push(letter),
        }
    }
    target
}

fn push_encoded(target: &mut String, letter: char) {
    for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
        target.push_str(&format!("%{byte:02X}"));
    }
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
