//! Streams that clients can resume after a lost connection.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, Weak};

use rmcp::transport::streamable_http_server::session::SessionId;
use tokio::sync::OnceCell;

use super::event_log::EventLog;
use super::request_stream::{MessageStream, RequestEvents, RequestStream};
use super::standalone_stream::StandaloneStream;
use exa_mcp_model::lock;

/// The size limit for completed requests of one session. The oldest are evicted, the latest stays.
const MAX_SESSION_BYTES: usize = 4 * 1024 * 1024;

/// The size limit for completed requests of all sessions. The oldest are evicted.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The size of a completed request besides its events.
const OVERHEAD: usize = 512;

/// The number of the standalone stream of a session.
const STANDALONE: u64 = 0;

/// The streams of all sessions.
pub(super) struct ReplayBuffer {
    state: Mutex<BufferState>,
    weak: Weak<Self>,
}

#[derive(Default)]
struct BufferState {
    sessions: HashMap<SessionId, SessionStreams>,
    /// The completed requests, oldest first.
    completed: BTreeMap<u64, CompletedRequest>,
    last_completed: u64,
    bytes: usize,
}

/// The streams of a session.
struct SessionStreams {
    /// Differs between servers that run the same session, so that event ids are unique.
    nonce: u32,
    last_number: u64,
    requests: HashMap<u64, Arc<RequestStream>>,
    standalone: StandaloneCell,
    /// The completed requests of this session, in order of completion.
    completed: BTreeSet<u64>,
    bytes: usize,
}

/// A completed request.
struct CompletedRequest {
    session: SessionId,
    number: u64,
    bytes: usize,
}

/// The standalone stream of a session, once a client has listened to it.
pub(super) type StandaloneCell = Arc<OnceCell<Arc<StandaloneStream>>>;

/// The position after a client's last event.
pub(super) enum ReplayPosition {
    /// The remaining events of a request.
    Request(RequestEvents),
    /// After this event of the standalone stream.
    Standalone(u64),
}

impl SessionStreams {
    fn new() -> Self {
        Self {
            nonce: fastrand::u32(..),
            last_number: STANDALONE,
            requests: HashMap::new(),
            standalone: StandaloneCell::default(),
            completed: BTreeSet::new(),
            bytes: 0,
        }
    }

    /// Returns the prefix of the event ids of a stream.
    fn prefix(&self, number: u64) -> String {
        format!("{:08x}-{number}", self.nonce)
    }

    /// Returns the oldest completed request if the session is over its limit. The latest one stays.
    fn excess(&self) -> Option<u64> {
        let is_full = self.bytes > MAX_SESSION_BYTES && self.completed.len() > 1;
        self.completed.first().copied().filter(|_| is_full)
    }

    /// Parses an event id into the numbers of its stream and of the event.
    fn parse(&self, event_id: &str) -> Option<(u64, u64)> {
        let mut parts = event_id.splitn(3, '-');
        let (nonce, number, index) = (parts.next()?, parts.next()?, parts.next()?);
        let (number, index) = (number.parse().ok()?, index.parse().ok()?);
        let is_own = u32::from_str_radix(nonce, 16).ok()? == self.nonce;
        is_own.then_some((number, index))
    }
}

impl ReplayBuffer {
    pub(super) fn new() -> Arc<Self> {
        Arc::new_cyclic(|weak| Self {
            state: Mutex::default(),
            weak: Weak::clone(weak),
        })
    }

    /// Starts the stream of a request and reads it.
    pub(super) fn start_stream(
        &self,
        session: &SessionId,
        messages: MessageStream,
        reads_priming: bool,
    ) -> RequestEvents {
        let mut state = lock(&self.state);
        let streams = state.session(session);
        streams.last_number += 1;
        let number = streams.last_number;
        let log = EventLog::new(streams.prefix(number), reads_priming);
        let weak = Weak::clone(&self.weak);
        let stream = RequestStream::new(weak, session.clone(), number, log, messages);
        let stream = Arc::new(stream);
        streams.requests.insert(number, Arc::clone(&stream));
        drop(state);
        stream.read()
    }

    /// Returns the standalone stream of a session, and the log to start it with.
    pub(super) fn standalone(
        &self,
        session: &SessionId,
        reads_priming: bool,
    ) -> (StandaloneCell, EventLog) {
        let mut state = lock(&self.state);
        let streams = state.session(session);
        let log = EventLog::new(streams.prefix(STANDALONE), reads_priming);
        (Arc::clone(&streams.standalone), log)
    }

    /// Returns the standalone stream of a session, if a client has listened to it.
    pub(super) fn open_standalone(&self, session: &SessionId) -> Option<Arc<StandaloneStream>> {
        let state = lock(&self.state);
        state.sessions.get(session)?.standalone.get().cloned()
    }

    /// Returns the position after an event, or `None` if the session no longer has the event.
    pub(super) fn find(&self, session: &SessionId, event_id: &str) -> Option<ReplayPosition> {
        let stream = {
            let state = lock(&self.state);
            let streams = state.sessions.get(session)?;
            match streams.parse(event_id)? {
                (STANDALONE, index) => return Some(ReplayPosition::Standalone(index)),
                (number, index) => (Arc::clone(streams.requests.get(&number)?), index),
            }
        };
        let (stream, index) = stream;
        stream.read_after(index).map(ReplayPosition::Request)
    }

    /// Records the size of a completed request and evicts older ones if necessary.
    pub(super) fn complete(&self, session: &SessionId, number: u64, bytes: usize) {
        let mut state = lock(&self.state);
        let bytes = bytes + OVERHEAD;
        let order = state.last_completed + 1;
        let Some(streams) = state.sessions.get_mut(session) else {
            return;
        };
        if !streams.requests.contains_key(&number) {
            return;
        }
        streams.bytes += bytes;
        streams.completed.insert(order);
        state.bytes += bytes;
        state.last_completed = order;
        let completed = CompletedRequest {
            session: session.clone(),
            number,
            bytes,
        };
        state.completed.insert(order, completed);
        state.evict_excess(session);
    }

    /// Removes the streams of a session.
    pub(super) fn remove_session(&self, session: &SessionId) {
        let mut state = lock(&self.state);
        if let Some(streams) = state.sessions.remove(session) {
            state.bytes = state.bytes.saturating_sub(streams.bytes);
            for order in streams.completed {
                state.completed.remove(&order);
            }
        }
    }

    /// Removes the streams of all sessions that are not alive.
    pub(super) fn retain(&self, is_alive: impl Fn(&SessionId) -> bool) {
        let gone: Vec<SessionId> = {
            let state = lock(&self.state);
            let gone = state.sessions.keys().filter(|session| !is_alive(session));
            gone.cloned().collect()
        };
        for session in gone {
            self.remove_session(&session);
        }
    }
}

impl BufferState {
    fn session(&mut self, session: &SessionId) -> &mut SessionStreams {
        let streams = self.sessions.entry(session.clone());
        streams.or_insert_with(SessionStreams::new)
    }

    /// Evicts the oldest completed requests, first of this session, then of all.
    fn evict_excess(&mut self, session: &SessionId) {
        while let Some(order) = self.sessions.get(session).and_then(SessionStreams::excess) {
            self.remove(order);
        }
        while self.bytes > MAX_BYTES
            && let Some((order, _)) = self.completed.first_key_value()
        {
            self.remove(*order);
        }
    }

    fn remove(&mut self, order: u64) {
        let Some(completed) = self.completed.remove(&order) else {
            return;
        };
        self.bytes = self.bytes.saturating_sub(completed.bytes);
        if let Some(streams) = self.sessions.get_mut(&completed.session) {
            streams.bytes = streams.bytes.saturating_sub(completed.bytes);
            streams.completed.remove(&order);
            streams.requests.remove(&completed.number);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use futures_util::stream;
    use rmcp::model::ServerJsonRpcMessage;
    use rmcp::transport::streamable_http_server::session::ServerSseMessage;

    use super::*;

    fn response(text: &str) -> MessageStream {
        let message = serde_json::json!({"jsonrpc": "2.0", "id": 1, "result": {"text": text}});
        let message: ServerJsonRpcMessage = serde_json::from_value(message).unwrap();
        Box::pin(stream::iter([ServerSseMessage::from_message(message)]))
    }

    /// Reads a stream to its end. Returns the event ids and the whole text.
    async fn read(mut events: RequestEvents) -> (Vec<String>, String) {
        let mut text = String::new();
        while let Some(event) = events.next().await {
            text += std::str::from_utf8(&event.text()).unwrap();
        }
        let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
        (ids.map(str::to_owned).collect(), text)
    }

    async fn remaining(buffer: &ReplayBuffer, session: &SessionId, id: &str) -> Option<String> {
        match buffer.find(session, id)? {
            ReplayPosition::Request(events) => Some(read(events).await.1),
            ReplayPosition::Standalone(index) => Some(format!("standalone {index}")),
        }
    }

    #[tokio::test]
    async fn resumes_after_an_event_of_the_same_session_only() {
        let buffer = ReplayBuffer::new();
        let (session, other) = (SessionId::from("a"), SessionId::from("b"));
        let (first, text) = read(buffer.start_stream(&session, response("one"), true)).await;
        let (second, _) = read(buffer.start_stream(&session, response("two"), true)).await;
        let (foreign, _) = read(buffer.start_stream(&other, response("three"), true)).await;
        assert_eq!(first.len(), 2);
        let mut all = [first.clone(), second.clone(), foreign.clone()].concat();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 6);
        let (_, response) = text.split_once("\n\n").unwrap();
        let first_rest = remaining(&buffer, &session, first.first().unwrap()).await;
        assert_eq!(first_rest.unwrap(), response);
        let last = remaining(&buffer, &session, first.last().unwrap()).await;
        assert_eq!(last.unwrap(), "");
        let second_rest = remaining(&buffer, &session, second.first().unwrap()).await;
        assert!(second_rest.unwrap().contains("two"));
        let nonce = first.first().unwrap().split('-').next().unwrap();
        let unknown = [
            format!("{nonce}-9-0"),
            format!("{nonce}-1-9"),
            format!("{nonce}-1"),
        ];
        let garbage = [
            "",
            "0",
            "1/1",
            "x-1-0",
            "-1-0",
            "00000000-1-18446744073709551616",
        ];
        let garbage = garbage.iter().map(|id| (*id).to_owned());
        for id in foreign.into_iter().chain(unknown).chain(garbage) {
            assert!(remaining(&buffer, &session, &id).await.is_none(), "{id}");
        }
        buffer.remove_session(&session);
        assert!(
            remaining(&buffer, &session, first.first().unwrap())
                .await
                .is_none()
        );
        buffer.retain(|_| false);
        let state = lock(&buffer.state);
        assert_eq!(
            (state.bytes, state.completed.len(), state.sessions.len()),
            (0, 0, 0)
        );
    }

    #[tokio::test]
    async fn evicts_the_oldest_responses() {
        let buffer = ReplayBuffer::new();
        let mut ids = Vec::new();
        for number in 0..14 {
            let session = SessionId::from(format!("{}", number / 2).as_str());
            let text = "x".repeat(MAX_SESSION_BYTES * 2 / 3);
            let (event_ids, _) = read(buffer.start_stream(&session, response(&text), false)).await;
            ids.push((session, event_ids.first().unwrap().clone()));
        }
        let mut left = 0;
        for (session, id) in &ids {
            left += usize::from(remaining(&buffer, session, id).await.is_some());
        }
        let (session, id) = ids.last().unwrap();
        assert!(remaining(&buffer, session, id).await.is_some());
        assert_eq!(left, 5, "one per session, within the total limit");
        assert!(lock(&buffer.state).bytes <= MAX_BYTES);
    }
}
