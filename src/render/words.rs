//! The head in words, and below it what others wrote.

use serde_json::{Map, Value};

use super::clean::Fence;
use super::head::Head;
use super::inline::inline;
use super::markdown;
use super::show::as_rows;

impl Head<'_> {
    /// The whole answer as Markdown.
    pub(super) fn markdown(&self, metadata: &Map<String, Value>) -> String {
        let mut lines = vec![self.headline(metadata)];
        for (name, label) in [("warnings", "Warning"), ("mended", "Mended")] {
            let list = metadata.get(name).and_then(Value::as_array);
            lines.extend(list.into_iter().flatten().map(|entry| {
                let text = entry
                    .as_str()
                    .map_or_else(|| entry.to_string(), str::to_owned);
                format!("{label}: {}", inline(&text))
            }));
        }
        lines.extend(self.filter_line());
        lines.extend(self.left_out_line());
        if let Some(more) = metadata.get("more").and_then(Value::as_str) {
            lines.push(format!("More: {more}"));
        }
        if !self.answer.told.is_empty() {
            lines.push(markdown::fields(&self.answer.told));
        }
        let fence = Fence::new();
        // Exa and its users have a word in the head as well: no mark of theirs must stand before ours.
        let head = lines.join("\n");
        // Without an empty line, what follows would belong to the last of these.
        format!("{}\n\n{}", fence.neutral(&head), self.body(fence))
    }

    fn headline(&self, metadata: &Map<String, Value>) -> String {
        let answer = self.answer;
        let told = |name: &str| metadata.get(name).cloned().unwrap_or_default();
        let mut head = format!(
            "{}: {} of {} results · ~{} tokens · {}",
            answer.operation,
            told("returned"),
            told("totalResults"),
            told("tokenEstimate"),
            self.view.level.name(),
        );
        if let Some(cost) = metadata.get("costDollars").filter(|cost| cost.is_number()) {
            head.push_str(&format!(" · ${cost}"));
        }
        if let Some(id) = answer.cache_id {
            head.push_str(&format!(" · cache_id {id}"));
        }
        if answer.cached {
            head.push_str(" · from the cache");
        }
        if let Some(id) = metadata.get("requestId").and_then(Value::as_str) {
            head.push_str(&format!(" · request {}", inline(id)));
        }
        head
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

    /// Everything that others wrote, between marks that they cannot know.
    fn body(&self, fence: Fence) -> String {
        let shown = &self.fitted.shown;
        let results = match as_rows(self.view) {
            true => markdown::rows(shown),
            false => shown
                .iter()
                .map(markdown::section)
                .collect::<Vec<_>>()
                .join("\n"),
        };
        let mut parts = vec![markdown::fields(&self.fitted.rest), results];
        parts.retain(|part| !part.is_empty());
        if parts.is_empty() {
            return "No results.".to_owned();
        }
        // The empty lines keep the marks and the parts apart, whatever kind of Markdown they are.
        format!(
            "{}\n\n{}\n\n{}",
            fence.begin(),
            fence.neutral(&parts.join("\n\n")),
            fence.end()
        )
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
