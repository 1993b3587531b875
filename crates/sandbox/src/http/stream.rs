//! Server-sent events, either known in advance or produced while the work proceeds.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream::{self, StreamExt};
use serde_json::Value;

use super::ServerContext;
use super::response::add_marker;
use crate::call::LiveStream;

/// Delay between events that are known in advance.
const EVENT_INTERVAL: Duration = Duration::from_millis(10);
/// Polling interval of live streams. The sandbox clock can jump, so no longer wait can be computed.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Number of polls without events after which a comment is sent, so that proxies keep the connection.
const POLLS_BEFORE_COMMENT: u32 = 15_000 / 20;

/// Formats an event as `data: …`.
pub(crate) fn data(mut value: Value) -> String {
    add_marker(&mut value);
    format!("data: {value}\n\n")
}

/// Formats an event with a name and an optional id.
pub(crate) fn event(id: Option<&str>, name: &str, value: Value) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("{id}event: {name}\n{}", data(value))
}

/// Returns the line that ends an OpenAI-style stream.
pub(crate) fn done() -> String {
    "data: [DONE]\n\n".to_owned()
}

/// Sends events that are known in advance.
pub(super) fn from_events(events: Vec<String>) -> Body {
    let paced = stream::iter(events).then(|event| async {
        tokio::time::sleep(EVENT_INTERVAL).await;
        Ok::<_, Infallible>(Bytes::from(event))
    });
    Body::from_stream(paced)
}

struct LiveState {
    context: Arc<ServerContext>,
    key: String,
    stream: LiveStream,
    sent: usize,
    ended: bool,
}

/// Sends the events of a live stream as they occur.
pub(super) fn from_live(context: Arc<ServerContext>, key: String, live: LiveStream) -> Body {
    let start = LiveState {
        context,
        key,
        stream: live,
        sent: 0,
        ended: false,
    };
    Body::from_stream(stream::unfold(start, |mut state| async move {
        let bytes = state.next().await?;
        Some((Ok::<_, Infallible>(bytes), state))
    }))
}

impl LiveState {
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        for _ in 0..POLLS_BEFORE_COMMENT {
            let (events, ended) = self.poll();
            self.sent += events.len();
            self.ended = ended;
            if !events.is_empty() {
                return Some(Bytes::from(events.concat()));
            }
            if ended {
                return None;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Some(Bytes::from_static(b": still working\n\n"))
    }

    /// Returns the events that have not been sent, and whether they are the last ones.
    fn poll(&self) -> (Vec<String>, bool) {
        let mut state = self.context.state();
        let account = state.account(&self.key);
        account.live_events(&self.stream, self.sent)
    }
}
