//! The event stream of one request in a session.
//!
//! A connection reads the messages at its own pace. If the connection is lost, the remaining messages are
//! still read, because the result may have cost money. A client that reconnects continues after its last
//! event.

use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};

use futures_util::{Stream, StreamExt};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::event_log::{EventKind, EventLog, SseEvent};
use super::replay_buffer::ReplayBuffer;
use exa_mcp_model::lock;

/// The messages of a session as rmcp sends them.
pub(super) type MessageStream = Pin<Box<dyn Stream<Item = ServerSseMessage> + Send + Sync>>;

/// The stream of a request: its recent events and the source of further ones.
pub(super) struct RequestStream {
    /// `None` after the last message.
    source: tokio::sync::Mutex<Option<MessageStream>>,
    state: Mutex<StreamState>,
    changed: Notify,
    buffer: Weak<ReplayBuffer>,
    session: SessionId,
    number: u64,
}

struct StreamState {
    log: EventLog,
    /// The number of connections that read the stream.
    readers: usize,
    has_ended: bool,
}

impl RequestStream {
    pub(super) fn new(
        buffer: Weak<ReplayBuffer>,
        session: SessionId,
        number: u64,
        log: EventLog,
        source: MessageStream,
    ) -> Self {
        let state = StreamState {
            log,
            readers: 0,
            has_ended: false,
        };
        Self {
            source: tokio::sync::Mutex::new(Some(source)),
            state: Mutex::new(state),
            changed: Notify::new(),
            buffer,
            session,
            number,
        }
    }

    /// Reads from the start, for the connection that sent the request.
    pub(super) fn read(self: &Arc<Self>) -> RequestEvents {
        let mut state = lock(&self.state);
        let priming = state.log.push_priming();
        state.readers += 1;
        drop(state);
        RequestEvents {
            stream: Arc::clone(self),
            next: 0,
            priming: Some(priming),
        }
    }

    /// Reads the events after `index`. Returns `None` if there is no such event.
    pub(super) fn read_after(self: &Arc<Self>, index: u64) -> Option<RequestEvents> {
        let mut state = lock(&self.state);
        if index >= state.log.next_index() {
            return None;
        }
        state.readers += 1;
        // Some clients lose the id they reconnected with unless they receive a new one.
        let is_primed = state.log.reads_priming() && !state.has_ended;
        let priming = is_primed.then(|| state.log.push_priming());
        drop(state);
        self.changed.notify_waiters();
        Some(RequestEvents {
            stream: Arc::clone(self),
            next: index + 1,
            priming,
        })
    }

    /// Returns the prefix of the event ids.
    pub(super) fn id(&self) -> String {
        lock(&self.state).log.prefix().to_owned()
    }

    /// Returns the recent events that carry a message.
    pub(super) fn events(&self) -> Vec<SseEvent> {
        lock(&self.state).log.messages()
    }

    /// Waits for the last message.
    pub(super) async fn wait_until_ended(&self) {
        loop {
            let changed = self.changed.notified();
            if lock(&self.state).has_ended {
                return;
            }
            changed.await;
        }
    }

    /// Returns the size of the events in bytes.
    pub(super) fn bytes(&self) -> usize {
        lock(&self.state).log.bytes()
    }

    /// Appends the next message of the session to the log.
    async fn pull(&self) {
        let mut source = self.source.lock().await;
        let event = match source.as_mut() {
            Some(messages) => messages.next().await,
            None => return,
        };
        let has_ended = {
            let mut state = lock(&self.state);
            let message = event.as_ref().and_then(|event| event.message.as_deref());
            let kind = message.map(|message| state.log.push_message(message));
            let is_answer = matches!(kind, Some(EventKind::Result | EventKind::Error));
            state.has_ended |= event.is_none() || is_answer;
            state.has_ended
        };
        if has_ended {
            *source = None;
            if let Some(buffer) = self.buffer.upgrade() {
                buffer.complete(&self.session, self.number, self.bytes());
            }
        }
        self.changed.notify_waiters();
    }

    /// Reads the remaining messages while no connection does.
    async fn drain(self: Arc<Self>) {
        loop {
            let changed = self.changed.notified();
            let is_done = {
                let state = lock(&self.state);
                state.has_ended || state.readers > 0
            };
            if is_done {
                return;
            }
            tokio::select! {
                () = self.pull() => {}
                () = changed => {}
            }
        }
    }
}

/// The events of a request as read by one connection.
pub(super) struct RequestEvents {
    stream: Arc<RequestStream>,
    /// The number of the next event.
    next: u64,
    /// The priming event of this connection.
    priming: Option<u64>,
}

impl RequestEvents {
    /// Returns the underlying stream.
    pub(super) fn stream(&self) -> Arc<RequestStream> {
        Arc::clone(&self.stream)
    }

    /// Returns the next event. This method is cancel safe.
    pub(super) async fn next(&mut self) -> Option<SseEvent> {
        loop {
            let changed = self.stream.changed.notified();
            {
                let state = lock(&self.stream.state);
                if let Some(event) = state.log.first_from(self.next, self.priming) {
                    self.next = event.index + 1;
                    return Some(event.clone());
                }
                if state.has_ended {
                    return None;
                }
            }
            // The first connection to get here pulls the next message for all.
            tokio::select! {
                () = self.stream.pull() => {}
                () = changed => {}
            }
        }
    }
}

impl Drop for RequestEvents {
    fn drop(&mut self) {
        let is_last = {
            let mut state = lock(&self.stream.state);
            state.readers = state.readers.saturating_sub(1);
            state.readers == 0 && !state.has_ended
        };
        if is_last && let Ok(runtime) = Handle::try_current() {
            runtime.spawn(Arc::clone(&self.stream).drain());
        }
    }
}
