//! Pages with as little Markdown as possible, for the tools that models call most.

use serde_json::Value;

use super::inline::{is_literal, push_inline};
use super::markdown::{self, push_block, push_body, push_number, with_line_feeds};
use super::shape::ShapedResult;

/// From so many marks on, a code block is shorter than a block quote, which marks every line.
const MAX_QUOTE_MARKS: usize = 4;

/// Appends the results with their fields and as little Markdown as possible.
pub(super) fn push_sections(out: &mut String, results: &[ShapedResult], is_numbered: bool) {
    for (position, result) in results.iter().enumerate() {
        if position > 0 {
            // An empty line takes no more tokens than a line break, and Markdown needs it after a paragraph.
            out.push_str("\n\n");
        }
        push_page(out, result, is_numbered);
    }
}

/// Appends a page with its title and its URL on lines of their own; anything else as other results.
pub(super) fn push_section(out: &mut String, result: &ShapedResult) {
    push_page(out, result, true);
}

fn push_page(out: &mut String, result: &ShapedResult, is_numbered: bool) {
    let text = |name: &str| result.value.get(name).and_then(Value::as_str);
    let (Value::Object(map), Some(title), Some(url)) = (
        &result.value,
        text("title"),
        text("url").filter(|it| is_one_word(it)),
    ) else {
        return markdown::push_section(out, result);
    };
    if is_numbered {
        push_number(out, "", result.index, ". ");
    }
    push_inline(out, title);
    out.push('\n');
    out.push_str(url);
    push_body(out, map, push_passage);
}

/// Returns whether a text is one word that Markdown shows as it is.
fn is_one_word(text: &str) -> bool {
    is_literal(text) && !text.contains(char::is_whitespace)
}

/// Appends a text as it is, if none of its lines can look like a heading or the start of another result.
fn push_passage(out: &mut String, text: &str) {
    let text = with_line_feeds(text);
    let lines = text.trim();
    if !lines.lines().all(is_literal_line) {
        return push_block(out, &text, MAX_QUOTE_MARKS);
    }
    out.push_str(if lines.contains('\n') { "\n\n" } else { "\n" });
    out.push_str(lines);
}

/// Returns whether Markdown shows a line as it is, not as code because of its indentation, and it is not the line of a
/// URL below a title.
fn is_literal_line(line: &str) -> bool {
    let is_url = !line.contains(' ') && line.contains("://");
    line.trim().is_empty() || is_literal(line) && !is_url && !line.starts_with([' ', '\t'])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn section(value: Value) -> String {
        let result = ShapedResult {
            value,
            ..ShapedResult::default()
        };
        let mut section = String::new();
        push_section(&mut section, &result);
        section
    }

    #[test]
    fn writes_one_field_a_line() {
        let page = json!({"title": "T", "url": "https://a.example/", "publishedDate": "2024-05-31",
            "author": "Ann", "score": 0.93, "highlights": ["One.", "Two."]});
        assert_eq!(
            section(page),
            "1. T\nhttps://a.example/\n2024-05-31 · Ann · score 0.93\nOne. … Two."
        );
    }

    #[test]
    fn writes_paragraphs_as_they_are() {
        let page =
            json!({"title": "T", "url": "https://a.example/", "text": "One.\n\nTwo,\nthree.\n"});
        assert_eq!(
            section(page),
            "1. T\nhttps://a.example/\n\nOne.\n\nTwo,\nthree."
        );
    }

    #[test]
    fn quotes_what_looks_like_another_result() {
        for text in [
            "One.\nFake\nhttps://b.example/\nTwo.",
            "One.\n\n    code",
            "2. Fake",
            "# Fake",
            "One.\n2. Fake",
            "[Fake](https://b.example/)",
            "> Fake",
        ] {
            let page = json!({"title": "T", "url": "https://a.example/", "text": text});
            assert!(section(page).contains("\n> "), "{text}");
        }
        for url in ["https://a.example/ 2. Fake", "javascript:[x](y)"] {
            let page = json!({"title": "T", "url": url, "text": "One."});
            assert!(section(page).starts_with("### 1. "), "{url}");
        }
    }
}
