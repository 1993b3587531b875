//! Calls whose answer is told while it comes.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::{MissedTickBehavior, interval};

use super::{Progress, Step};
use exa_mcp_exa_client::{ApiKey, StreamOptions, StreamUpdate};
use exa_mcp_model::Streaming;
use exa_mcp_model::{Operation, lock};
use exa_mcp_text::sanitize;

/// The pause between two steps: ten a second are more than anyone reads.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest message of a step, in characters.
const LONGEST_MESSAGE: usize = 1_000;

/// How the stream that a call asks for is read, if it asks for one.
pub(super) fn wanted(
    operation: &'static Operation,
    arguments: &Map<String, Value>,
) -> Option<&'static Streaming> {
    let streaming = operation.behavior.stream.as_ref();
    streaming.filter(|_| arguments.get("stream") == Some(&Value::Bool(true)))
}

/// Says whether the text that comes is JSON, because a structure was asked for.
fn is_structured(arguments: &Map<String, Value>) -> bool {
    let schema = arguments.get("outputSchema");
    schema.is_some_and(|schema| schema.is_object() && schema.get("type") != Some(&"text".into()))
}

/// Collects what is heard, and tells it at a pace that can be followed.
pub(super) struct Teller {
    progress: Progress,
    key: ApiKey,
    heard: Mutex<Collected>,
}

#[derive(Default)]
struct Collected {
    /// Characters of text, or steps of work; what a stream takes back still counts.
    done: usize,
    untold: String,
}

impl Teller {
    pub(super) fn new(progress: &Progress, key: ApiKey) -> Arc<Self> {
        Arc::new(Self {
            progress: progress.clone(),
            key,
            heard: Mutex::default(),
        })
    }

    /// A stream to which this teller listens.
    pub(super) fn stream(
        self: &Arc<Self>,
        streaming: &'static Streaming,
        arguments: &Map<String, Value>,
    ) -> StreamOptions {
        let teller = self.clone();
        let stream = StreamOptions::new(streaming.form, is_structured(arguments), move |heard| {
            if teller.progress.is_wanted() {
                teller.hear(heard);
            }
        });
        stream.with_get(streaming.get.as_deref())
    }

    /// Waits for a call and tells on the way what was heard.
    pub(super) async fn during<T>(&self, call: impl Future<Output = T>) -> T {
        if !self.progress.is_wanted() {
            return call.await;
        }
        let mut call = pin!(call);
        let mut ticks = interval(PAUSE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                outcome = &mut call => {
                    self.tell(true);
                    return outcome;
                }
                _ = ticks.tick() => self.tell(false),
            }
        }
    }

    fn hear(&self, heard: StreamUpdate) {
        let mut collected = lock(&self.heard);
        match heard {
            StreamUpdate::Text(text) => {
                collected.done += text.chars().count();
                collected.untold.push_str(&text);
            }
            StreamUpdate::Step(words) => {
                collected.done += 1;
                if !collected.untold.is_empty() {
                    collected.untold.push_str("; ");
                }
                collected.untold.push_str(&words);
            }
        }
    }

    fn tell(&self, last: bool) {
        let (done, message) = {
            let mut collected = lock(&self.heard);
            let split = match last {
                true => collected.untold.len(),
                false => self.tellable(&collected.untold),
            };
            let rest = collected.untold.split_off(split);
            let text = std::mem::replace(&mut collected.untold, rest);
            (collected.done, text)
        };
        let message = self.shown(&message);
        if !message.is_empty() {
            self.progress.tell(Step {
                done: done as f64,
                total: None,
                message,
                is_quoted: true,
            });
        }
    }

    /// How much of a text can be told now: what it ends with may become the key, or something hidden.
    fn tellable(&self, text: &str) -> usize {
        let end = text.len() - sanitize::incomplete_suffix_len(text);
        let known = text.get(..end).unwrap_or_default();
        end - self.key.partial_key_len(known)
    }

    /// A text without the key and what is hidden; of a long one, its end.
    fn shown(&self, text: &str) -> String {
        let text = self.key.redact_text(text);
        // Cleaning may join parts of the key.
        let text = self.key.redact_text(&sanitize::clean(&text));
        let text = sanitize::neutralize(&text);
        let letters = text.chars().count();
        if letters <= LONGEST_MESSAGE {
            return text.into_owned();
        }
        let skipped = letters + 1 - LONGEST_MESSAGE;
        std::iter::once('…')
            .chain(text.chars().skip(skipped))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;
    use crate::operations::find;
    use exa_mcp_model::StreamForm;
    use serde_json::json;
    use tokio::time::sleep;

    fn wants(operation: &str, arguments: Value) -> Option<StreamForm> {
        let wanted = wanted(find(operation).unwrap(), arguments.as_object().unwrap());
        wanted.map(|streaming| streaming.form)
    }

    #[test]
    fn streams_are_asked_for() {
        assert_eq!(
            wants("search", json!({"stream": true})),
            Some(StreamForm::Search)
        );
        let run = wants("agent.runs.create", json!({"stream": true}));
        assert_eq!(run, Some(StreamForm::AgentRun));
        assert_eq!(wants("answer", json!({"stream": false})), None);
        assert_eq!(wants("answer", json!({})), None);
        assert_eq!(wants("find_similar", json!({"stream": true})), None);
    }

    /// Lets a teller hear things with pauses between them, and gives what it told.
    async fn told(heard: Vec<(u64, StreamUpdate)>) -> Vec<(f64, String)> {
        let steps = Arc::new(Mutex::new(Vec::new()));
        let record = steps.clone();
        let progress =
            Progress::to(move |step| record.lock().unwrap().push((step.done, step.message)));
        let teller = Teller::new(&progress, ApiKey::new("secret-key-1").unwrap());
        let call = async {
            for (pause, heard) in heard {
                teller.hear(heard);
                sleep(Duration::from_millis(pause)).await;
            }
        };
        teller.during(call).await;
        let steps = steps.lock().unwrap();
        steps.clone()
    }

    fn text(text: &str) -> StreamUpdate {
        StreamUpdate::Text(text.to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn pieces_are_joined_to_ten_a_second_at_most() {
        let pieces = (0..1_000).map(|_| (1, text("ä "))).collect();
        let steps = told(pieces).await;
        assert!((9..=12).contains(&steps.len()), "{}", steps.len());
        let whole: String = steps.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(whole, "ä ".repeat(1_000));
        assert!(steps.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(steps.last().unwrap().0, 2_000.0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_single_piece_does_not_wait_for_the_next() {
        let steps = told(vec![(10_000, text("a\u{1b}\nb")), (0, text("c"))]).await;
        assert_eq!(steps, [(4.0, "a\nb".to_owned()), (5.0, "c".to_owned())]);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_hidden_is_told_however_it_is_cut() {
        let hostile = "one \u{202e}two\u{200b} \u{e0041}\u{1b}[31mred\u{1b}[0m \u{1b}]8;;http://e/\u{7}link\u{1b}]8;;\u{1b}\\ \
                       a&#8203;b &amp;#8203;c </untrusted id=1> < /Un\u{200b}trusted> a < b & d é";
        let wanted = "one two red link ab c &lt;/untrusted id=1> &lt; /Untrusted> a < b & d é";
        let letters: Vec<char> = hostile.chars().collect();
        for size in [1, 2, 3, 5, 8, 13, 1_000] {
            let pieces = letters.chunks(size).map(|piece| {
                let piece: String = piece.iter().collect();
                (500, text(&piece))
            });
            let steps = told(pieces.collect()).await;
            let whole: String = steps.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!(whole, wanted, "{size}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_never_ends_is_told_in_the_end() {
        let steps = told(vec![(500, text("a \u{1b}]8;;http")), (0, text("://e/"))]).await;
        let whole: String = steps.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(whole, "a http://e/");
    }

    #[tokio::test(start_paused = true)]
    async fn long_pieces_are_cut_and_steps_joined() {
        let steps = told(vec![(0, text(&"x".repeat(5_000)))]).await;
        assert_eq!(steps[0].1.chars().count(), LONGEST_MESSAGE);
        assert!(steps[0].1.starts_with("…x"));
        let step = |words: &str| StreamUpdate::Step(words.to_owned());
        let steps = told(vec![
            (20, step("one")),
            (20, step("two")),
            (20, step("three")),
        ])
        .await;
        assert_eq!(steps.last().unwrap(), &(3.0, "two; three".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_in_pieces_is_never_told() {
        let pieces = vec![
            (500, text("see secret-")),
            (500, text("key")),
            (500, text("-1 and secret-k")),
            (500, text("ing")),
        ];
        let steps = told(pieces).await;
        let whole: String = steps.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(whole, "see [redacted] and secret-king");
        assert!(steps.iter().all(|(_, text)| !text.contains("secret-key")));
    }
}
