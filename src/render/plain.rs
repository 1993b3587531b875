//! Pages with as little Markdown as possible, for the tools that models call most.

use serde_json::Value;

use super::inline::{is_literal, push_inline};
use super::markdown::{self, push_block, push_body, push_lines, push_number};
use super::shape::ShapedResult;

/// Appends the results with their fields and as little Markdown as possible.
pub(super) fn push_sections(out: &mut String, results: &[ShapedResult]) {
    push_lines(out, results, push_section);
}

/// Appends a page with its title and its URL on lines of their own; anything else as other results.
pub(super) fn push_section(out: &mut String, result: &ShapedResult) {
    let text = |name: &str| result.value.get(name).and_then(Value::as_str);
    let (Value::Object(map), Some(title), Some(url)) = (
        &result.value,
        text("title"),
        text("url").filter(|it| is_one_word(it)),
    ) else {
        return markdown::push_section(out, result);
    };
    push_number(out, "", result.index, ". ");
    push_inline(out, title);
    out.push('\n');
    out.push_str(url);
    push_body(out, map, push_passage);
}

/// Returns whether a text is one word that Markdown shows as it is.
fn is_one_word(text: &str) -> bool {
    is_literal(text) && !text.contains(char::is_whitespace)
}

/// Appends a text on one line as it is, if it cannot look like a heading or the start of another result.
fn push_passage(out: &mut String, text: &str) {
    let line = text.trim();
    if line.contains(['\n', '\r']) || !is_literal(line) {
        return push_block(out, text);
    }
    out.push('\n');
    out.push_str(line);
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
    fn quotes_what_looks_like_another_result() {
        for text in [
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
