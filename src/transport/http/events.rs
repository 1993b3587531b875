//! The events of a request, written as they come.
//!
//! A client may lose its connection before the answer is there. The events are read to their end all the
//! same, and the answer is kept for a while, because it may have cost money.

use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use rmcp::model::JsonRpcMessage;
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::runtime::Handle;

use super::kept_answers::{EventId, Written};
use super::sessions::Sessions;

/// The most events of one answer that are kept, the latest. Only progress can be so long.
const MOST_EVENTS: usize = 64;

type Messages = Pin<Box<dyn Stream<Item = ServerSseMessage> + Send + Sync>>;

/// The events of a request.
pub(super) struct Events(Option<Reading>);

struct Reading {
    messages: Messages,
    sessions: Arc<Sessions>,
    session: SessionId,
    reads_priming: bool,
    request: Option<u64>,
    /// What was written so far.
    written: Vec<Written>,
    is_answered: bool,
    /// An answer is to come. What a session says by itself never ends, and belongs to the next who
    /// listens.
    awaits_answer: bool,
}

impl Events {
    /// The events of a request, or what a session says by itself.
    pub(super) fn new(
        sessions: &Arc<Sessions>,
        session: &SessionId,
        messages: Messages,
        awaits_answer: bool,
    ) -> Self {
        Self(Some(Reading {
            messages,
            sessions: Arc::clone(sessions),
            session: session.clone(),
            reads_priming: sessions.reads_priming(session),
            request: None,
            written: Vec::new(),
            is_answered: false,
            awaits_answer,
        }))
    }

    /// Writes the next event behind others that leave with it. They leave at once, so that they are not
    /// kept.
    pub(super) async fn write_next(&mut self, text: &mut Vec<u8>) -> Option<()> {
        let reading = self.0.as_mut()?;
        let event = reading.messages.next().await?;
        reading.is_answered |= is_answer(&event);
        write(text, &event, reading.reads_priming);
        Some(())
    }

    /// The next event, as it is sent.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        self.0.as_mut()?.next().await
    }
}

impl Drop for Events {
    /// The client is gone. The session goes on, and so does what it does for it.
    fn drop(&mut self) {
        let unanswered = |reading: &Reading| reading.awaits_answer && !reading.is_answered;
        if let Some(reading) = self.0.take().filter(unanswered)
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(reading.read_on());
        }
    }
}

impl Reading {
    async fn next(&mut self) -> Option<Bytes> {
        let event = self.messages.next().await?;
        let mut text = Vec::new();
        write(&mut text, &event, self.reads_priming);
        let text = Bytes::from(text);
        let id = event.event_id.as_deref().and_then(EventId::of_request);
        if let Some(id) = id {
            self.request = Some(id.request);
            self.written.push(Written {
                index: id.index,
                text: text.clone(),
            });
            if self.written.len() > MOST_EVENTS {
                self.written.remove(0);
            }
        }
        if is_answer(&event) {
            self.is_answered = true;
            self.keep();
        }
        Some(text)
    }

    async fn read_on(mut self) {
        while self.next().await.is_some() {}
    }

    fn keep(&mut self) {
        if let Some(request) = self.request {
            let written = std::mem::take(&mut self.written);
            self.sessions.answers.keep(&self.session, request, written);
        }
    }
}

fn is_answer(event: &ServerSseMessage) -> bool {
    let message = event.message.as_deref();
    matches!(
        message,
        Some(JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_))
    )
}

/// Writes an event. Its data is JSON, which has no line ends. An event without data is not told to those
/// who listen, but tells the client all the same where it is.
fn write(text: &mut Vec<u8>, event: &ServerSseMessage, reads_priming: bool) {
    if let Some(id) = &event.event_id {
        let _ = writeln!(text, "id: {id}");
    }
    if let Some(retry) = event.retry {
        let _ = writeln!(text, "retry: {}", retry.as_millis());
    }
    if let Some(message) = &event.message {
        text.extend_from_slice(b"data: ");
        // What a handler answers can be written.
        let _ = serde_json::to_writer(&mut *text, &**message);
        text.push(b'\n');
    } else if reads_priming {
        text.extend_from_slice(b"data: \n");
    }
    text.push(b'\n');
}
