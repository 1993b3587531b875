//! Showing an answer to its caller: serialised for the cache, and rendered.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::answer::{Answered, Asked};
use super::cache::{Fresh, Kept, Wish};
use super::outcome::Outcome;
use super::{Call, Catalogue, host, options};
use crate::blocking;
use crate::operations::Operation;
use crate::render::{self, Answer, Envelope, Rendered, View};

impl Catalogue {
    /// Caches an answer and shows it.
    pub(super) async fn show_new(
        &self,
        call: &Call,
        asked: Asked<'_>,
        view: &View,
        sent_filters: Vec<String>,
        answered: Answered,
    ) -> Outcome {
        let mut told = match asked.entry {
            Some(entry) => host::tell(entry, &answered.arguments, &answered.answer),
            None => Map::new(),
        };
        for (name, value) in answered.work {
            told.entry(name).or_insert(value);
        }
        let answer = answered.answer;
        let is_large = blocking::is_large_value(&answer);
        let max_bytes = self.cache.max_answer_bytes();
        let (text, envelope) = blocking::run(is_large, || {
            let text = json_within(&answer, max_bytes);
            (text, Envelope::open(answer))
        })
        .await;
        let kept = text.and_then(|text| {
            let fresh = Fresh {
                title: title(asked.operation, &answered.arguments),
                operation: asked.operation.name,
                arguments: &answered.arguments,
                results: envelope.results.len(),
                answer: text,
                asked: asked.asked_for,
                extract: view.extract,
            };
            self.cache.keep(call.owner.identity(), fresh)
        });
        if let (Some(kept), Some(shared)) = (&kept, self.shared()) {
            shared
                .keep(call.owner.identity(), &answered.arguments, kept)
                .await;
        }
        let cache_id = kept.as_ref().map(|kept| kept.id.as_str());
        let mut warnings = answered.warnings;
        let view = match view.within(envelope.results.len()) {
            Ok(view) => view,
            Err(error) if asked.operation.read_only => {
                return Outcome::not_in_answer(asked.operation.name, &error, cache_id);
            }
            // What a change came to must be seen, whatever part of it was asked for.
            Err(error) => {
                warnings.push(format!("{error}; this is the whole answer"));
                Cow::Owned(view.of_all())
            }
        };
        let shown = Answer {
            operation: asked.operation.name,
            envelope,
            told,
            cache_id,
            repeatable: asked.operation.read_only,
            cached: false,
            asked: asked.asked_for,
            mended: asked.mended,
            warnings,
            sent_filters,
        };
        match blocking::run(is_large, || render::show(shown, &view)).await {
            Ok(rendered) => rendered.into(),
            Err(error) => Outcome::refused(asked.operation.name, &options::unfit(&error)),
        }
    }

    /// Shows a kept answer as it was last shown, or anew if that was another way.
    pub(super) async fn show_kept(
        &self,
        call: &Call,
        kept: &Kept,
        view: View,
        asked: Asked<'_>,
        sent_filters: Vec<String>,
    ) -> Outcome {
        let wish = Wish {
            view,
            level: asked.options.level(),
            mended: asked.mended,
            sent_filters,
        };
        if let Some(seen) = self.cache.seen(call.owner.identity(), &kept.id, &wish) {
            return Rendered::clone(&seen).into();
        }
        let is_large = blocking::is_large_text(kept.bytes);
        let show = || render::show(look_at(kept, &wish), &wish.view);
        match blocking::run(is_large, show).await {
            Ok(rendered) => {
                let shown = Arc::new(rendered.clone());
                self.cache
                    .show(call.owner.identity(), &kept.id, wish, shown);
                rendered.into()
            }
            Err(error) => Outcome::refused(&kept.operation, &options::unfit(&error)),
        }
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
fn look_at<'a>(kept: &'a Kept, wish: &Wish) -> Answer<'a> {
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
