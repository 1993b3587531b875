//! Shows the answer of an operation: serialised for the cache, and rendered.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::cache::{CachedResult, Fresh, Wish};
use super::call::OperationCall;
use super::error::ToolError;
use super::operation_run::{Answered, OperationRun};
use super::outcome::ToolResult;
use super::{host, options};
use crate::render::{self, Answer, Envelope, Rendered, View};
use exa_mcp_exa_client::blocking;
use exa_mcp_model::Operation;

impl OperationRun<'_> {
    /// Caches an answer and shows it.
    pub(super) async fn show_new(
        &self,
        sent_filters: Vec<String>,
        answered: Answered,
    ) -> ToolResult {
        let OperationCall {
            operation,
            requested_level,
            view,
            ..
        } = self.call;
        let mut told = match self.call.entry() {
            Some(entry) => host::tell(entry, &answered.arguments, &answered.answer),
            None => Map::new(),
        };
        for (name, value) in answered.work {
            told.entry(name).or_insert(value);
        }
        let answer = answered.answer;
        let is_large = blocking::is_large_value(&answer);
        let max_bytes = self.tools.cache().max_answer_bytes();
        let (text, envelope) = blocking::run(is_large, || {
            let text = json_within(&answer, max_bytes);
            (text, Envelope::open(answer))
        })
        .await;
        let cached = text.and_then(|text| {
            let fresh = Fresh {
                title: title(operation, &answered.arguments),
                operation: operation.name,
                arguments: &answered.arguments,
                results: envelope.results.len(),
                answer: text,
                asked: *requested_level,
                extract: view.extract,
            };
            self.tools.cache().keep(self.owner, fresh)
        });
        let store = self.tools.store();
        if let (Some(cached), Some(shared)) = (&cached, self.shared(&*store)) {
            shared.keep(self.owner, &answered.arguments, cached).await;
        }
        let cache_id = cached.as_ref().map(|cached| cached.id.as_str());
        let mut warnings = answered.warnings;
        let view = match view.within(envelope.results.len()) {
            Ok(view) => view,
            Err(error) if operation.read_only => {
                return Err(Box::new(ToolError::NotInResult {
                    operation: operation.name,
                    error,
                    cache_id: cache_id.map(str::to_owned),
                }));
            }
            // What a change came to must be seen, whatever part of it was asked for.
            Err(error) => {
                warnings.push(format!("{error}; this is the whole answer"));
                Cow::Owned(view.of_all())
            }
        };
        let shown = Answer {
            operation: operation.name,
            envelope,
            told,
            cache_id,
            repeatable: operation.read_only,
            cached: false,
            asked: *requested_level,
            mended: self.call.corrections.clone(),
            warnings,
            sent_filters,
        };
        let rendered = blocking::run(is_large, || render::show(shown, &view)).await;
        rendered.map_err(|error| ToolError::invalid(operation.name, options::unfit(&error)))
    }

    /// Shows a cached result as it was last shown, or anew if that was another way.
    pub(super) async fn show_cached(
        &self,
        cached: &CachedResult,
        view: View,
        sent_filters: Vec<String>,
    ) -> ToolResult {
        let wish = Wish {
            view,
            level: self.call.options.level(),
            mended: self.call.corrections.clone(),
            sent_filters,
        };
        let cache = self.tools.cache();
        if let Some(seen) = cache.seen(self.owner, &cached.id, &wish) {
            return Ok(Rendered::clone(&seen));
        }
        let is_large = blocking::is_large_text(cached.bytes);
        let show = || render::show(look_at(cached, &wish), &wish.view);
        let rendered = blocking::run(is_large, show)
            .await
            .map_err(|error| ToolError::invalid(&cached.operation, options::unfit(&error)))?;
        cache.show(self.owner, &cached.id, wish, Arc::new(rendered.clone()));
        Ok(rendered)
    }
}

/// Returns the JSON of a value, unless it has more than `max` bytes.
fn json_within(value: &Value, max: usize) -> Option<String> {
    let mut text = BoundedText {
        bytes: Vec::new(),
        max,
    };
    serde_json::to_writer(&mut text, value).ok()?;
    String::from_utf8(text.bytes).ok()
}

/// A text that takes no more than so many bytes.
struct BoundedText {
    bytes: Vec<u8>,
    max: usize,
}

impl io::Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.max.saturating_sub(self.bytes.len()) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A kept answer; it has no more than Exa was asked for.
fn look_at<'a>(kept: &'a CachedResult, wish: &Wish) -> Answer<'a> {
    let lacking = kept.asked.filter(|had| Some(*had) < wish.level);
    let warnings = lacking.map(|had| {
        format!(
            "Exa was asked for no more than {} content; for more, call without cache_id and with content_level \"{}\"",
            had.name(),
            wish.view.level.name(),
        )
    });
    Answer {
        mended: wish.mended.clone(),
        warnings: warnings.into_iter().collect(),
        sent_filters: wish.sent_filters.clone(),
        ..kept.opened()
    }
}

/// What was asked, in a line.
fn title(operation: &Operation, arguments: &Map<String, Value>) -> String {
    let told = arguments.values().find_map(|value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(list) => list.first()?.as_str().map(str::to_owned),
        _ => None,
    });
    let title = match told {
        Some(told) => format!("{}: {told}", operation.name),
        None => operation.name.to_owned(),
    };
    title
        .chars()
        .filter(|letter| !letter.is_control())
        .take(120)
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_written_within_its_bound() {
        let value = json!({"a": [1, "ä"]});
        let text = value.to_string();
        assert_eq!(json_within(&value, text.len()), Some(text.clone()));
        assert_eq!(json_within(&value, text.len() - 1), None);
        assert_eq!(json_within(&value, 0), None);
    }
}
