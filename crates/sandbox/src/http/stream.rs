//! Server-sent events, known in advance or following work as it proceeds.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream::{self, StreamExt};
use serde_json::Value;

use super::Shared;
use super::answer::mark;
use crate::call::Follow;

/// Pause between events that are known in advance.
const STEP: Duration = Duration::from_millis(10);
/// How often followed work is looked at. The sandbox clock can jump, so there is nothing to wait
/// for but the next look.
const LOOK: Duration = Duration::from_millis(20);
/// Silence after which a comment keeps proxies from closing the connection.
const SILENCE: u32 = 15_000 / 20;

/// One event in the form `data: …`.
pub(crate) fn data(mut value: Value) -> String {
    mark(&mut value);
    format!("data: {value}\n\n")
}

/// One event with a name and, where given, an id.
pub(crate) fn event(id: Option<&str>, name: &str, value: Value) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("{id}event: {name}\n{}", data(value))
}

/// The line that ends an OpenAI-style stream.
pub(crate) fn done() -> String {
    "data: [DONE]\n\n".to_owned()
}

pub(super) fn known(events: Vec<String>) -> Body {
    let paced = stream::iter(events).then(|event| async {
        tokio::time::sleep(STEP).await;
        Ok::<_, Infallible>(Bytes::from(event))
    });
    Body::from_stream(paced)
}

struct Following {
    shared: Arc<Shared>,
    key: String,
    what: Follow,
    sent: usize,
    over: bool,
}

pub(super) fn live(shared: Arc<Shared>, key: String, what: Follow) -> Body {
    let start = Following {
        shared,
        key,
        what,
        sent: 0,
        over: false,
    };
    Body::from_stream(stream::unfold(start, |mut state| async move {
        let piece = state.next().await?;
        Some((Ok::<_, Infallible>(piece), state))
    }))
}

impl Following {
    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        for _ in 0..SILENCE {
            let (events, over) = self.look();
            self.sent += events.len();
            self.over = over;
            if !events.is_empty() {
                return Some(Bytes::from(events.concat()));
            }
            if over {
                return None;
            }
            tokio::time::sleep(LOOK).await;
        }
        Some(Bytes::from_static(b": still working\n\n"))
    }

    /// Events not sent yet, and whether these are the last ones.
    fn look(&self) -> (Vec<String>, bool) {
        self.shared
            .world()
            .account(&self.key)
            .follow(&self.what, self.sent)
    }
}
