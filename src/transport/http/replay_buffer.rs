//! Streams that clients may come back to, because their connections may have been cut.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, Weak};

use rmcp::transport::streamable_http_server::session::SessionId;
use tokio::sync::OnceCell;

use super::event_log::EventLog;
use super::request_stream::{Messages, RequestEvents, RequestStream};
use super::standalone_stream::StandaloneStream;
use exa_mcp_model::lock;

/// Bytes of the answered requests of one session; the oldest make room, the latest stays.
const MAX_SESSION_BYTES: usize = 4 * 1024 * 1024;

/// Bytes of the answered requests of all sessions; the oldest make room.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// What an answered request takes besides its events.
const OVERHEAD: usize = 512;

/// The number of the stream of a session that belongs to no request.
const STANDALONE: u64 = 0;

/// The streams of all sessions.
pub(super) struct ReplayBuffer {
    buffered: Mutex<Buffered>,
    own: Weak<Self>,
}

#[derive(Default)]
struct Buffered {
    sessions: HashMap<SessionId, SessionStreams>,
    /// The answered requests, the oldest first.
    finished: BTreeMap<u64, Finished>,
    last_finished: u64,
    bytes: usize,
}

/// The streams of a session.
struct SessionStreams {
    /// Differs between servers that run the same session, so that no two events have the same id.
    nonce: u32,
    last_number: u64,
    requests: HashMap<u64, Arc<RequestStream>>,
    standalone: Standalone,
    /// Those of its requests that are answered, by the order in which they were.
    finished: BTreeSet<u64>,
    bytes: usize,
}

/// A request that is answered.
struct Finished {
    session: SessionId,
    number: u64,
    bytes: usize,
}

/// The stream of a session that belongs to no request, once somebody has listened to it.
pub(super) type Standalone = Arc<OnceCell<Arc<StandaloneStream>>>;

/// Where a client left off.
pub(super) enum Place {
    /// In the stream of a request; what follows.
    Request(RequestEvents),
    /// After an event of the stream that belongs to no request.
    Standalone(u64),
}

impl SessionStreams {
    fn new() -> Self {
        Self {
            nonce: fastrand::u32(..),
            last_number: STANDALONE,
            requests: HashMap::new(),
            standalone: Standalone::default(),
            finished: BTreeSet::new(),
            bytes: 0,
        }
    }

    /// What the ids of the events of a stream begin with.
    fn prefix(&self, number: u64) -> String {
        format!("{:08x}-{number}", self.nonce)
    }

    /// Its oldest answered request, if there are too many bytes of them. The latest one stays.
    fn excess(&self) -> Option<u64> {
        let is_full = self.bytes > MAX_SESSION_BYTES && self.finished.len() > 1;
        self.finished.first().copied().filter(|_| is_full)
    }

    /// Reads the id of an event: the number of its stream, and its own.
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
        Arc::new_cyclic(|own| Self {
            buffered: Mutex::default(),
            own: Weak::clone(own),
        })
    }

    /// Begins the stream of a request, and reads it.
    pub(super) fn begin(
        &self,
        session: &SessionId,
        messages: Messages,
        reads_priming: bool,
    ) -> RequestEvents {
        let mut buffered = lock(&self.buffered);
        let streams = buffered.session(session);
        streams.last_number += 1;
        let number = streams.last_number;
        let log = EventLog::new(streams.prefix(number), reads_priming);
        let own = Weak::clone(&self.own);
        let stream = RequestStream::new(own, session.clone(), number, log, messages);
        let stream = Arc::new(stream);
        streams.requests.insert(number, Arc::clone(&stream));
        drop(buffered);
        stream.read()
    }

    /// The stream of a session that belongs to no request, and the log for its beginning.
    pub(super) fn standalone(
        &self,
        session: &SessionId,
        reads_priming: bool,
    ) -> (Standalone, EventLog) {
        let mut buffered = lock(&self.buffered);
        let streams = buffered.session(session);
        let log = EventLog::new(streams.prefix(STANDALONE), reads_priming);
        (Arc::clone(&streams.standalone), log)
    }

    /// Where a client left off whose last event has this id; None if the session has no such event any
    /// more.
    pub(super) fn find(&self, session: &SessionId, event_id: &str) -> Option<Place> {
        let stream = {
            let buffered = lock(&self.buffered);
            let streams = buffered.sessions.get(session)?;
            match streams.parse(event_id)? {
                (STANDALONE, index) => return Some(Place::Standalone(index)),
                (number, index) => (Arc::clone(streams.requests.get(&number)?), index),
            }
        };
        let (stream, index) = stream;
        stream.read_after(index).map(Place::Request)
    }

    /// Counts the bytes of a request that is answered; older ones make room.
    pub(super) fn finish(&self, session: &SessionId, number: u64, bytes: usize) {
        let mut buffered = lock(&self.buffered);
        let bytes = bytes + OVERHEAD;
        let order = buffered.last_finished + 1;
        let Some(streams) = buffered.sessions.get_mut(session) else {
            return;
        };
        if !streams.requests.contains_key(&number) {
            return;
        }
        streams.bytes += bytes;
        streams.finished.insert(order);
        buffered.bytes += bytes;
        buffered.last_finished = order;
        let finished = Finished {
            session: session.clone(),
            number,
            bytes,
        };
        buffered.finished.insert(order, finished);
        buffered.make_room(session);
    }

    /// Forgets the streams of a session that has ended.
    pub(super) fn forget(&self, session: &SessionId) {
        let mut buffered = lock(&self.buffered);
        if let Some(streams) = buffered.sessions.remove(session) {
            buffered.bytes = buffered.bytes.saturating_sub(streams.bytes);
            for order in streams.finished {
                buffered.finished.remove(&order);
            }
        }
    }

    /// Forgets the streams of sessions that do not live.
    pub(super) fn retain(&self, lives: impl Fn(&SessionId) -> bool) {
        let gone: Vec<SessionId> = {
            let buffered = lock(&self.buffered);
            let gone = buffered.sessions.keys().filter(|session| !lives(session));
            gone.cloned().collect()
        };
        for session in gone {
            self.forget(&session);
        }
    }
}

impl Buffered {
    fn session(&mut self, session: &SessionId) -> &mut SessionStreams {
        let streams = self.sessions.entry(session.clone());
        streams.or_insert_with(SessionStreams::new)
    }

    /// Forgets the oldest answered requests of a session that has too many, and of all.
    fn make_room(&mut self, session: &SessionId) {
        while let Some(order) = self.sessions.get(session).and_then(SessionStreams::excess) {
            self.remove(order);
        }
        while self.bytes > MAX_BYTES
            && let Some((order, _)) = self.finished.first_key_value()
        {
            self.remove(*order);
        }
    }

    fn remove(&mut self, order: u64) {
        let Some(finished) = self.finished.remove(&order) else {
            return;
        };
        self.bytes = self.bytes.saturating_sub(finished.bytes);
        if let Some(streams) = self.sessions.get_mut(&finished.session) {
            streams.bytes = streams.bytes.saturating_sub(finished.bytes);
            streams.finished.remove(&order);
            streams.requests.remove(&finished.number);
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

    fn answer(text: &str) -> Messages {
        let message = serde_json::json!({"jsonrpc": "2.0", "id": 1, "result": {"text": text}});
        let message: ServerJsonRpcMessage = serde_json::from_value(message).unwrap();
        Box::pin(stream::iter([ServerSseMessage::from_message(message)]))
    }

    /// Reads a stream to its end; gives the ids, and all text.
    async fn read(mut events: RequestEvents) -> (Vec<String>, String) {
        let mut text = String::new();
        while let Some(event) = events.next().await {
            text += std::str::from_utf8(&event.text()).unwrap();
        }
        let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
        (ids.map(str::to_owned).collect(), text)
    }

    async fn rest(buffer: &ReplayBuffer, session: &SessionId, id: &str) -> Option<String> {
        match buffer.find(session, id)? {
            Place::Request(events) => Some(read(events).await.1),
            Place::Standalone(index) => Some(format!("standalone {index}")),
        }
    }

    #[tokio::test]
    async fn each_event_is_followed_by_the_later_ones_in_its_session_alone() {
        let buffer = ReplayBuffer::new();
        let (session, other) = (SessionId::from("a"), SessionId::from("b"));
        let (first, text) = read(buffer.begin(&session, answer("one"), true)).await;
        let (second, _) = read(buffer.begin(&session, answer("two"), true)).await;
        let (foreign, _) = read(buffer.begin(&other, answer("three"), true)).await;
        assert_eq!(first.len(), 2);
        let mut all = [first.clone(), second.clone(), foreign.clone()].concat();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 6);
        let (_, answer) = text.split_once("\n\n").unwrap();
        let first_rest = rest(&buffer, &session, first.first().unwrap()).await;
        assert_eq!(first_rest.unwrap(), answer);
        let last = rest(&buffer, &session, first.last().unwrap()).await;
        assert_eq!(last.unwrap(), "");
        let second_rest = rest(&buffer, &session, second.first().unwrap()).await;
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
            assert!(rest(&buffer, &session, &id).await.is_none(), "{id}");
        }
        buffer.forget(&session);
        assert!(
            rest(&buffer, &session, first.first().unwrap())
                .await
                .is_none()
        );
        buffer.retain(|_| false);
        let buffered = lock(&buffer.buffered);
        assert_eq!(
            (
                buffered.bytes,
                buffered.finished.len(),
                buffered.sessions.len()
            ),
            (0, 0, 0)
        );
    }

    #[tokio::test]
    async fn the_oldest_answers_make_room() {
        let buffer = ReplayBuffer::new();
        let mut ids = Vec::new();
        for number in 0..14 {
            let session = SessionId::from(format!("{}", number / 2).as_str());
            let text = "x".repeat(MAX_SESSION_BYTES * 2 / 3);
            let (own, _) = read(buffer.begin(&session, answer(&text), false)).await;
            ids.push((session, own.first().unwrap().clone()));
        }
        let mut left = 0;
        for (session, id) in &ids {
            left += usize::from(rest(&buffer, session, id).await.is_some());
        }
        let (session, id) = ids.last().unwrap();
        assert!(rest(&buffer, session, id).await.is_some());
        assert_eq!(
            left, 5,
            "one of each session, and of all as many as there is room for"
        );
        assert!(lock(&buffer.buffered).bytes <= MAX_BYTES);
    }
}
