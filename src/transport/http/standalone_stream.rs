//! MessageStream of a session outside of any request: the stream of `GET /mcp`.
//!
//! Each message goes to the newest connection. The others wait: a client with several connections gets
//! every message once, and an older connection takes over when the newest is lost.

use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use tokio::sync::Notify;

use super::event_log::{EventLog, SseEvent};
use super::request_stream::MessageStream;
use exa_mcp_model::lock;

/// The maximum number of connections per session. The oldest are closed.
const MAX_CONNECTIONS: usize = 32;

/// The standalone stream of a session.
pub(super) struct StandaloneStream {
    state: Mutex<StreamState>,
    changed: Notify,
}

struct StreamState {
    log: EventLog,
    /// The number of the first unsent event.
    next: u64,
    /// The open connections, newest last.
    connections: Vec<u64>,
    last_connection: u64,
    has_ended: bool,
}

impl StandaloneStream {
    /// Reads messages until the session ends.
    pub(super) fn start(log: EventLog, mut source: MessageStream) -> Arc<Self> {
        let state = StreamState {
            log,
            next: 0,
            connections: Vec::new(),
            last_connection: 0,
            has_ended: false,
        };
        let stream = Arc::new(Self {
            state: Mutex::new(state),
            changed: Notify::new(),
        });
        let reader = Arc::clone(&stream);
        tokio::spawn(async move {
            while let Some(event) = source.next().await {
                if let Some(message) = event.message.as_deref() {
                    lock(&reader.state).log.push_message(message);
                    reader.changed.notify_waiters();
                }
            }
            lock(&reader.state).has_ended = true;
            reader.changed.notify_waiters();
        });
        stream
    }

    /// Returns whether a connection is open.
    pub(super) fn is_open(&self) -> bool {
        !lock(&self.state).connections.is_empty()
    }

    /// Closes all connections.
    pub(super) fn close(&self) {
        lock(&self.state).connections.clear();
        self.changed.notify_waiters();
    }

    /// Opens a connection that continues after an event. An unknown event number is ignored.
    pub(super) fn listen(self: &Arc<Self>, after: Option<u64>) -> StandaloneEvents {
        let mut state = lock(&self.state);
        if let Some(after) = after.filter(|after| *after < state.log.next_index()) {
            state.next = after + 1;
        }
        state.last_connection += 1;
        let connection = state.last_connection;
        state.connections.push(connection);
        if state.connections.len() > MAX_CONNECTIONS {
            state.connections.remove(0);
        }
        let priming = state.log.reads_priming().then(|| state.log.push_priming());
        drop(state);
        self.changed.notify_waiters();
        StandaloneEvents {
            stream: Arc::clone(self),
            connection,
            priming,
        }
    }
}

/// The events of the stream as sent on one connection.
pub(super) struct StandaloneEvents {
    stream: Arc<StandaloneStream>,
    connection: u64,
    /// The unsent priming event of this connection.
    priming: Option<u64>,
}

impl StandaloneEvents {
    /// Returns the next event. This method is cancel safe.
    pub(super) async fn next(&mut self) -> Option<SseEvent> {
        loop {
            let changed = self.stream.changed.notified();
            {
                let mut state = lock(&self.stream.state);
                if !state.connections.contains(&self.connection) {
                    return None;
                }
                let is_newest = state.connections.last() == Some(&self.connection);
                let from = if is_newest {
                    Some(state.next)
                } else {
                    self.priming
                };
                let event = from.and_then(|from| state.log.first_from(from, self.priming));
                let is_own = |event: &&SseEvent| Some(event.index) == self.priming;
                if let Some(event) = event.filter(|event| is_newest || is_own(event)).cloned() {
                    if is_newest {
                        state.next = event.index + 1;
                    }
                    if is_own(&&event) {
                        self.priming = None;
                    }
                    return Some(event);
                }
                if state.has_ended {
                    return None;
                }
            }
            changed.await;
        }
    }
}

impl Drop for StandaloneEvents {
    fn drop(&mut self) {
        let mut state = lock(&self.stream.state);
        state.connections.retain(|other| *other != self.connection);
        drop(state);
        self.stream.changed.notify_waiters();
    }
}
