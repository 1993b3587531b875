//! A request of a session, handed to the session as it was read.
//!
//! The way through rmcp's service for HTTP leads through bytes a second time, and what comes back leaves
//! in three packets: the head, the answer, the end. Most answers are there at once, and leave as one.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetExtensions, ProtocolVersion, RequestId};
use rmcp::transport::streamable_http_server::session::SessionId;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManagerError;
use tokio::time::timeout;

use super::admission::VERSION;
use super::event_log::{Event, EventKind};
use super::outgoing::{Answer, STREAM};
use super::replay_buffer::Place;
use super::request_stream::RequestEvents;
use super::sessions::Sessions;
use super::shared_replay::SharedEvents;
use super::standalone_stream::StandaloneEvents;
use crate::mcp::request::SharedSessions;

/// An answer that is there within this time leaves as a whole; the head of any other goes ahead of it.
const SOON: Duration = Duration::from_millis(10);

/// The size up to which events leave as one piece. Larger ones are not copied for that.
const ONE_PIECE: usize = 64 * 1024;

/// What keeps a stream open while there is nothing to say.
const STILL_HERE: &[u8] = b":\n\n";

/// Whether a session may take a request of this head as it was read: rmcp has nothing to say about the
/// version that it names.
pub(super) fn suits(parts: &Parts) -> bool {
    let named = parts.headers.get(VERSION);
    let known = |named: &HeaderValue| {
        let mut versions = ProtocolVersion::KNOWN_VERSIONS.iter();
        versions.any(|version| version.as_str().as_bytes() == named.as_bytes())
    };
    named.is_none_or(known)
}

/// Hands a request to its session; `parts` tell who makes it.
pub(super) async fn ask(
    sessions: &Arc<Sessions>,
    session: &str,
    id: RequestId,
    mut request: ClientRequest,
    mut parts: Parts,
    keep_alive: Duration,
) -> Answer {
    if sessions.are_shared() {
        let sessions = SharedSessions(Arc::clone(sessions) as _);
        parts.extensions.insert(sessions);
    }
    request.extensions_mut().insert(parts);
    let message = ClientJsonRpcMessage::request(request, id.clone());
    let session = SessionId::from(session);
    match sessions.open_stream(&session, message).await {
        Ok(messages) => {
            let reads_priming = sessions.reads_priming(&session);
            let events = sessions
                .replay
                .begin(&session, Box::pin(messages), reads_priming);
            let stream = events.stream();
            let (answer, ended) = answer(events, keep_alive).await;
            if !ended && let Some(replay) = &sessions.shared_replay {
                let owner = sessions.owner(&session);
                if let Some(owner) = owner {
                    replay.publish(&owner, &session, id, stream);
                }
            }
            answer
        }
        Err(error) => failed(&error),
    }
}

/// rmcp does not run the session any more.
fn failed(error: &LocalSessionManagerError) -> Answer {
    let mut failed = Response::new(Full::from(error.to_string()).boxed());
    *failed.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    failed
}

/// Continues a stream after the last event that the client has. A client that names no event, or one
/// that its session does not have any more, gets what the session sends from now on.
pub(super) async fn listen(
    sessions: &Arc<Sessions>,
    session: &str,
    last_event: Option<&str>,
    keep_alive: Duration,
) -> Answer {
    let session = SessionId::from(session);
    let place = last_event.and_then(|event| sessions.replay.find(&session, event));
    let after = match place {
        Some(Place::Request(events)) => return answer(events, keep_alive).await.0,
        Some(Place::Standalone(index)) => Some(index),
        None => {
            let shared = elsewhere(sessions, &session, last_event).await;
            if let Some(events) = shared {
                let events = Events::Shared(events);
                return streamed(going_on(Vec::new(), events, keep_alive), false);
            }
            None
        }
    };
    match sessions.standalone(&session).await {
        Ok(stream) => {
            let events = Events::Standalone(stream.listen(after));
            streamed(going_on(Vec::new(), events, keep_alive), false)
        }
        Err(error) => failed(&error),
    }
}

/// The rest of a stream that began at another server.
async fn elsewhere(
    sessions: &Sessions,
    session: &SessionId,
    last_event: Option<&str>,
) -> Option<SharedEvents> {
    let replay = sessions.shared_replay.as_ref()?;
    let owner = sessions.owner(session)?;
    replay.find(&owner, session, last_event?).await
}

/// The events that a connection sends.
enum Events {
    Request(RequestEvents),
    Standalone(StandaloneEvents),
    Shared(SharedEvents),
}

impl Events {
    async fn next(&mut self) -> Option<Bytes> {
        match self {
            Self::Request(events) => events.next().await.map(|event| event.text()),
            Self::Standalone(events) => events.next().await.map(|event| event.text()),
            Self::Shared(events) => events.next().await,
        }
    }
}

/// Sends the events of a request; says whether it has ended.
async fn answer(mut events: RequestEvents, keep_alive: Duration) -> (Answer, bool) {
    let mut begun = Vec::new();
    let all = async {
        while let Some(event) = events.next().await {
            begun.push(event);
        }
    };
    let ended = timeout(SOON, all).await.is_ok();
    let body = if ended {
        whole(&begun)
    } else {
        let begun = begun.iter().map(Event::text).collect();
        going_on(begun, Events::Request(events), keep_alive)
    };
    (streamed(body, ended), ended)
}

/// Events that leave together. A failure has no ids: some clients take it for a stream that was cut, and
/// would come back for the rest.
fn whole(events: &[Event]) -> BoxBody<Bytes, Infallible> {
    let has_failed = matches!(events.last(), Some(event) if event.kind == EventKind::Error);
    let pieces: Vec<Bytes> = if has_failed {
        let messages = events
            .iter()
            .filter(|event| event.kind != EventKind::Priming);
        messages.map(Event::text_without_id).collect()
    } else {
        events.iter().map(Event::text).collect()
    };
    if pieces.iter().map(Bytes::len).sum::<usize>() <= ONE_PIECE {
        return Full::new(Bytes::from(pieces.concat())).boxed();
    }
    let frames = pieces.into_iter().map(|piece| Ok(Frame::data(piece)));
    BodyExt::boxed(StreamBody::new(stream::iter(frames)))
}

/// An answer that is a stream of events.
fn streamed(body: BoxBody<Bytes, Infallible>, ended: bool) -> Answer {
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if !ended {
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    }
    answer
}

/// A stream that has begun, and goes on.
fn going_on(begun: Vec<Bytes>, events: Events, keep_alive: Duration) -> BoxBody<Bytes, Infallible> {
    let rest = stream::unfold(events, move |mut events| async move {
        let text = match timeout(keep_alive, events.next()).await {
            Ok(text) => text?,
            Err(_) => Bytes::from_static(STILL_HERE),
        };
        Some((text, events))
    });
    let frames = stream::iter(begun).chain(rest);
    let frames = frames.map(|text| Ok(Frame::data(text)));
    BodyExt::boxed(StreamBody::new(frames))
}
