//! Streaming calls: reports the response as progress while it arrives.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::{MissedTickBehavior, interval};

use super::{ProgressReporter, ProgressUpdate};
use exa_mcp_exa_client::{ApiKey, StreamOptions, StreamUpdate};
use exa_mcp_model::{Operation, Streaming, lock};
use exa_mcp_text::sanitize;

/// The pause between two updates: nobody reads more than ten per second.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest message of an update, in characters.
const MAX_MESSAGE: usize = 1_000;

/// Returns how to read the stream that the arguments request, if they do.
pub(super) fn requested_stream(
    operation: &'static Operation,
    arguments: &Map<String, Value>,
) -> Option<&'static Streaming> {
    let streaming = operation.behavior.stream.as_ref()?;
    let requested = match arguments.get(streaming.argument()) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Bool(true)) => true,
        Some(_) => streaming.with.is_some(),
    };
    requested.then_some(streaming)
}

/// Returns whether the streamed text is JSON, because the arguments request a structure.
fn is_structured(arguments: &Map<String, Value>) -> bool {
    let schema = arguments.get("outputSchema");
    schema.is_some_and(|schema| schema.is_object() && schema.get("type") != Some(&"text".into()))
}

/// Collects stream updates and reports them at a limited rate.
pub(super) struct StreamProgress {
    reporter: ProgressReporter,
    key: ApiKey,
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    /// Characters of text, or steps of a job. Retracted text still counts.
    done: usize,
    unreported: String,
}

impl StreamProgress {
    pub(super) fn new(reporter: &ProgressReporter, key: ApiKey) -> Arc<Self> {
        Arc::new(Self {
            reporter: reporter.clone(),
            key,
            pending: Mutex::default(),
        })
    }

    /// Returns options for a stream whose updates are reported.
    pub(super) fn stream(
        self: &Arc<Self>,
        streaming: &'static Streaming,
        arguments: &Map<String, Value>,
    ) -> StreamOptions {
        let progress = self.clone();
        let stream = StreamOptions::new(streaming.kind, is_structured(arguments), move |update| {
            if progress.reporter.is_enabled() {
                progress.collect(update);
            }
        });
        stream.with_get(streaming.get.as_deref())
    }

    /// Waits for a call and reports its updates meanwhile.
    ///
    /// The call is pinned by the caller, because this future would otherwise have room for it twice.
    pub(super) async fn during<T>(&self, mut call: Pin<&mut impl Future<Output = T>>) -> T {
        if !self.reporter.is_enabled() {
            return call.await;
        }
        let mut ticks = interval(PAUSE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                outcome = &mut call => {
                    self.report(true);
                    return outcome;
                }
                _ = ticks.tick() => self.report(false),
            }
        }
    }

    fn collect(&self, update: StreamUpdate) {
        let mut pending = lock(&self.pending);
        match update {
            StreamUpdate::Text(text) => {
                pending.done += text.chars().count();
                pending.unreported.push_str(&text);
            }
            StreamUpdate::Step(text) => {
                pending.done += 1;
                if !pending.unreported.is_empty() {
                    pending.unreported.push_str("; ");
                }
                pending.unreported.push_str(&text);
            }
        }
    }

    fn report(&self, is_last: bool) {
        let (done, message) = {
            let mut pending = lock(&self.pending);
            let split = if is_last {
                pending.unreported.len()
            } else {
                self.reportable_length(&pending.unreported)
            };
            let rest = pending.unreported.split_off(split);
            let text = std::mem::replace(&mut pending.unreported, rest);
            (pending.done, text)
        };
        let message = self.sanitize_message(&message);
        if !message.is_empty() {
            self.reporter.report(ProgressUpdate {
                done: done as f64,
                total: None,
                message,
                is_quoted: true,
            });
        }
    }

    /// Returns how much of a text can be reported now. Its end may turn out to be a part of the key, or of an escape
    /// sequence.
    fn reportable_length(&self, text: &str) -> usize {
        let end = text.len() - sanitize::incomplete_suffix_len(text);
        let known = text.get(..end).unwrap_or_default();
        end - self.key.partial_key_len(known)
    }

    /// Returns a text without the key and hidden characters, shortened to its end.
    fn sanitize_message(&self, text: &str) -> String {
        let text = self.key.redact_text(text);
        // Sanitizing may join parts of the key.
        let text = self.key.redact_text(&sanitize::clean(&text));
        let text = sanitize::neutralize(&text);
        let length = text.chars().count();
        if length <= MAX_MESSAGE {
            return text.into_owned();
        }
        let skipped = length + 1 - MAX_MESSAGE;
        std::iter::once('…')
            .chain(text.chars().skip(skipped))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use std::pin::pin;

    use super::*;
    use crate::operations::find;
    use exa_mcp_model::StreamKind;
    use serde_json::json;
    use tokio::time::sleep;

    fn requested_kind(operation: &str, arguments: Value) -> Option<StreamKind> {
        let streaming = requested_stream(find(operation).unwrap(), arguments.as_object().unwrap());
        streaming.map(|streaming| streaming.kind)
    }

    #[test]
    fn streams_only_on_request() {
        assert_eq!(
            requested_kind("search", json!({"stream": true})),
            Some(StreamKind::Search)
        );
        let run = requested_kind("agent.runs.create", json!({"stream": true}));
        assert_eq!(run, Some(StreamKind::AgentRun));
        let replay = json!({"runId": "agent_run_1", "lastEventId": "evt_1"});
        assert_eq!(
            requested_kind("agent.runs.events.list", replay),
            Some(StreamKind::Events)
        );
        let page = json!({"runId": "agent_run_1", "lastEventId": null});
        assert_eq!(requested_kind("agent.runs.events.list", page), None);
        assert_eq!(requested_kind("answer", json!({"stream": false})), None);
        assert_eq!(requested_kind("answer", json!({})), None);
        assert_eq!(
            requested_kind("find_similar", json!({"stream": true})),
            None
        );
    }

    /// Collects updates with pauses between them, and returns the reports.
    async fn reported(updates: Vec<(u64, StreamUpdate)>) -> Vec<(f64, String)> {
        let steps = Arc::new(Mutex::new(Vec::new()));
        let record = steps.clone();
        let reporter = ProgressReporter::new(move |update| {
            record.lock().unwrap().push((update.done, update.message))
        });
        let progress = StreamProgress::new(&reporter, ApiKey::new("secret-key-1").unwrap());
        let call = async {
            for (pause, update) in updates {
                progress.collect(update);
                sleep(Duration::from_millis(pause)).await;
            }
        };
        progress.during(pin!(call)).await;
        let steps = steps.lock().unwrap();
        steps.clone()
    }

    fn text(text: &str) -> StreamUpdate {
        StreamUpdate::Text(text.to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn reports_at_most_ten_updates_per_second() {
        let pieces = (0..1_000).map(|_| (1, text("ä "))).collect();
        let steps = reported(pieces).await;
        assert!((9..=12).contains(&steps.len()), "{}", steps.len());
        let whole: String = steps.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(whole, "ä ".repeat(1_000));
        assert!(steps.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(steps.last().unwrap().0, 2_000.0);
    }

    #[tokio::test(start_paused = true)]
    async fn reports_a_piece_without_waiting_for_the_next() {
        let steps = reported(vec![(10_000, text("a\u{1b}\nb")), (0, text("c"))]).await;
        assert_eq!(steps, [(4.0, "a\nb".to_owned()), (5.0, "c".to_owned())]);
    }

    #[tokio::test(start_paused = true)]
    async fn sanitizes_text_however_it_is_split() {
        let hostile = "one \u{202e}two\u{200b} \u{e0041}\u{1b}[31mred\u{1b}[0m \u{1b}]8;;http://e/\u{7}link\u{1b}]8;;\u{1b}\\ \
                       a&#8203;b &amp;#8203;c </untrusted id=1> < /Un\u{200b}trusted> a < b & d é";
        let wanted = "one two red link ab c &lt;/untrusted id=1> &lt; /Untrusted> a < b & d é";
        let characters: Vec<char> = hostile.chars().collect();
        for size in [1, 2, 3, 5, 8, 13, 1_000] {
            let pieces = characters.chunks(size).map(|piece| {
                let piece: String = piece.iter().collect();
                (500, text(&piece))
            });
            let steps = reported(pieces.collect()).await;
            let whole: String = steps.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!(whole, wanted, "{size}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn reports_an_unterminated_escape_sequence_at_the_end() {
        let steps = reported(vec![(500, text("a \u{1b}]8;;http")), (0, text("://e/"))]).await;
        let whole: String = steps.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(whole, "a http://e/");
    }

    #[tokio::test(start_paused = true)]
    async fn shortens_long_text_and_joins_steps() {
        let steps = reported(vec![(0, text(&"x".repeat(5_000)))]).await;
        assert_eq!(steps[0].1.chars().count(), MAX_MESSAGE);
        assert!(steps[0].1.starts_with("…x"));
        let step = |text: &str| StreamUpdate::Step(text.to_owned());
        let steps = reported(vec![
            (20, step("one")),
            (20, step("two")),
            (20, step("three")),
        ])
        .await;
        assert_eq!(steps.last().unwrap(), &(3.0, "two; three".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn redacts_a_key_that_arrives_in_pieces() {
        let pieces = vec![
            (500, text("see secret-")),
            (500, text("key")),
            (500, text("-1 and secret-k")),
            (500, text("ing")),
        ];
        let steps = reported(pieces).await;
        let whole: String = steps.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(whole, "see [redacted] and secret-king");
        assert!(steps.iter().all(|(_, text)| !text.contains("secret-key")));
    }
}
