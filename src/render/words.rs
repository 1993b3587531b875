//! The head in words, and below it what others wrote.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::head::Head;
use super::inline::push_inline;
use super::markdown;
use super::show::as_rows;
use exa_mcp_text::sanitize::Fence;

/// Bytes that the head and the marks seldom exceed, and a result of the usual level.
const ROOM_FOR_HEAD: usize = 1_024;
const ROOM_FOR_RESULT: usize = 1_024;

impl Head<'_> {
    /// The whole answer as Markdown.
    pub(super) fn markdown(&self, metadata: &Map<String, Value>) -> String {
        let fence = Fence::new();
        let body = self.body();
        let mut head = String::with_capacity(body.len() + ROOM_FOR_HEAD);
        self.push_head(&mut head, metadata);
        // Exa and its users have a word in the head as well: no mark of theirs must stand before ours.
        let mut text = match fence.neutralize(&head) {
            Cow::Owned(neutral) => neutral,
            Cow::Borrowed(_) => head,
        };
        // Without an empty line, what follows would belong to the last of these.
        text.push_str("\n\n");
        if body.is_empty() {
            text.push_str("No results.");
            return text;
        }
        // The empty lines keep the marks and the parts apart, whatever kind of Markdown they are.
        for part in [
            &fence.opening_tag(),
            "\n\n",
            &fence.neutralize(&body),
            "\n\n",
            &fence.closing_tag(),
        ] {
            text.push_str(part);
        }
        text
    }

    fn push_head(&self, out: &mut String, metadata: &Map<String, Value>) {
        self.push_headline(out, metadata);
        for (name, label) in [("warnings", "\nWarning: "), ("mended", "\nMended: ")] {
            let list = metadata.get(name).and_then(Value::as_array);
            for entry in list.into_iter().flatten() {
                out.push_str(label);
                match entry {
                    Value::String(text) => push_inline(out, text),
                    other => push_inline(out, &other.to_string()),
                }
            }
        }
        for line in [self.filter_line(), self.left_out_line()].iter().flatten() {
            out.push('\n');
            out.push_str(line);
        }
        if let Some(more) = metadata.get("more").and_then(Value::as_str) {
            out.push_str("\nMore: ");
            out.push_str(more);
        }
        if !self.answer.told.is_empty() {
            out.push('\n');
            markdown::push_all(out, &self.answer.told);
        }
    }

    fn push_headline(&self, out: &mut String, metadata: &Map<String, Value>) {
        let answer = self.answer;
        let told = |name: &str| metadata.get(name).unwrap_or(&Value::Null);
        out.push_str(&format!(
            "{}: {} of {} results · ~{} tokens · {}",
            answer.operation,
            told("returned"),
            told("totalResults"),
            told("tokenEstimate"),
            self.level().name(),
        ));
        if let Some(cost) = metadata.get("costDollars").filter(|cost| cost.is_number()) {
            out.push_str(&format!(" · ${cost}"));
        }
        if let Some(id) = answer.cache_id {
            out.push_str(" · cache_id ");
            out.push_str(id);
        }
        if answer.cached {
            out.push_str(" · from the cache");
        }
        if let Some(id) = metadata.get("requestId").and_then(Value::as_str) {
            out.push_str(" · request ");
            push_inline(out, id);
        }
    }

    /// Which filters were applied where, and what fell out.
    fn filter_line(&self) -> Option<String> {
        let mut parts = Vec::new();
        if !self.answer.sent_filters.is_empty() {
            let sent = self.answer.sent_filters.join(", ");
            parts.push(format!("Exa applied {sent}"));
        }
        for dropped in self.applied_here() {
            let without = match dropped.unknown {
                0 => String::new(),
                unknown => format!(", {unknown} of them without a value"),
            };
            parts.push(format!(
                "{} took away {}{without}",
                dropped.filter,
                dropped.count()
            ));
        }
        (!parts.is_empty()).then(|| format!("Filters: {}", parts.join("; ")))
    }

    fn left_out_line(&self) -> Option<String> {
        let mut parts = Vec::new();
        if let Some(from) = self.fitted.left_out.first() {
            let count = self.fitted.left_out.len();
            parts.push(format!("{count} results from {from} on"));
        }
        let shortened = self.shortened();
        if !shortened.is_empty() {
            parts.push(format!("parts of {}", ranges(&shortened)));
        }
        if self.rest_cut() {
            parts.push("parts of what stands beside the results".to_owned());
        }
        (!parts.is_empty()).then(|| format!("Left out: {}", parts.join("; ")))
    }

    /// Everything that others wrote.
    fn body(&self) -> String {
        let mut body = String::with_capacity(ROOM_FOR_RESULT * self.fitted.shown.len());
        markdown::push_all(&mut body, &self.fitted.rest);
        if !body.is_empty() && !self.fitted.shown.is_empty() {
            body.push_str("\n\n");
        }
        match as_rows(self.view) {
            true => markdown::push_rows(&mut body, &self.fitted.shown),
            false => markdown::push_sections(&mut body, &self.fitted.shown),
        }
        body
    }
}

/// Numbers in ascending order, neighbours together: `0 to 3, 7`.
fn ranges(numbers: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let range = |(first, last): &(usize, usize)| match last - first {
        0 => first.to_string(),
        _ => format!("{first} to {last}"),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_told_together() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0 to 2, 5, 7 to 8");
        assert_eq!(ranges(&[4]), "4");
    }
}
