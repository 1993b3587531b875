//! Comments and string literals made from schema texts, which cannot break out of them.

/// The line width of comments, including indentation.
const WIDTH: usize = 100;

/// Wraps a text into comment lines, without characters that affect a terminal or a compiler.
pub(super) fn lines(text: &str, indent: usize) -> Vec<String> {
    let width = WIDTH.saturating_sub(indent);
    let mut lines: Vec<String> = text
        .split(is_line_end)
        .flat_map(|line| wrap(line, width))
        .collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let blank = lines.iter().take_while(|line| line.is_empty()).count();
    lines.split_off(blank)
}

/// Returns whether a character ends a line in TypeScript, in Python or in an editor.
fn is_line_end(character: char) -> bool {
    matches!(
        character,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// Returns whether a character is invisible or changes the display order of the text.
fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

fn wrap(line: &str, width: usize) -> Vec<String> {
    let indent: String = line.chars().take_while(|c| matches!(c, ' ')).collect();
    let line = line.replace('\t', " ");
    let mut lines = Vec::new();
    let mut current = String::new();
    for word in line.split_whitespace() {
        let word: String = word.chars().filter(|c| !is_invisible(*c)).collect();
        if word.is_empty() {
            continue;
        }
        let length = current.chars().count() + word.chars().count() + 1;
        if !current.is_empty() && length > width {
            lines.push(std::mem::take(&mut current));
        }
        current.push_str(if current.is_empty() { &indent } else { " " });
        current.push_str(&word);
    }
    lines.push(current);
    lines
}

/// Writes a string literal in double quotes; `escape` writes non-ASCII characters.
fn literal(text: &str, escape: fn(u32) -> String) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\n' => out.push_str("\\n"),
            ' '..='~' => out.push(character),
            _ => out.push_str(&escape(u32::from(character))),
        }
    }
    out.push('"');
    out
}

/// Writes a TypeScript string literal.
pub(super) fn typescript_string(text: &str) -> String {
    literal(text, |code| format!("\\u{{{code:x}}}"))
}

/// Writes a Python string literal.
pub(super) fn python_string(text: &str) -> String {
    literal(text, |code| format!("\\U{code:08x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_long_lines_only() {
        assert_eq!(lines("one\n\n  - two\n", 0), ["one", "", "  - two"]);
        let wrapped = lines(&"word ".repeat(30), 20);
        assert_eq!(wrapped.len(), 2);
        assert!(wrapped.iter().all(|line| line.len() <= 80));
    }

    #[test]
    fn drops_invisible_characters() {
        let text = "a\u{202e}b \u{200b} c\u{2028}d\u{1b}[31m\u{e0041}";
        assert_eq!(lines(text, 0), ["ab c", "d[31m"]);
    }

    #[test]
    fn literals_are_plain_ascii() {
        assert_eq!(typescript_string("a\"\\\u{1f600}"), r#""a\"\\\u{1f600}""#);
        assert_eq!(python_string("é\n\u{1f600}"), r#""\U000000e9\n\U0001f600""#);
    }
}
