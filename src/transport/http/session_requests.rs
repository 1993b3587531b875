//! Requests of running sessions, passed on in decoded form.
//!
//! rmcp's HTTP service would serialize and parse each request again and send the response in three packets:
//! head, event, end. Most responses are available immediately and are sent as one packet here.

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

use super::admission::VERSION_HEADER;
use super::event_log::{EventKind, SseEvent};
use super::replay_buffer::ReplayPosition;
use super::request_stream::RequestEvents;
use super::response::{EVENT_STREAM, McpResponse};
use super::sessions::Sessions;
use super::shared_replay::SharedEvents;
use super::standalone_stream::StandaloneEvents;
use crate::mcp::request::SharedSessions;

/// A response that completes within this time is sent as a whole. Otherwise the head is sent first.
const SINGLE_WRITE_WINDOW: Duration = Duration::from_millis(10);

/// The maximum size of events joined into one chunk. Larger ones are not copied.
const MAX_SINGLE_WRITE: usize = 64 * 1024;

/// Sent while a stream is silent.
const KEEP_ALIVE_COMMENT: &[u8] = b":\n\n";

/// Returns whether the named protocol version is known, so that the session can take the decoded request.
pub(super) fn supports_version(parts: &Parts) -> bool {
    let named = parts.headers.get(VERSION_HEADER);
    let is_known = |named: &HeaderValue| {
        let mut versions = ProtocolVersion::KNOWN_VERSIONS.iter();
        versions.any(|version| version.as_str().as_bytes() == named.as_bytes())
    };
    named.is_none_or(is_known)
}

/// Sends a request to its session. `parts` identify the requester.
pub(super) async fn send_request(
    sessions: &Arc<Sessions>,
    session: &str,
    id: RequestId,
    mut request: ClientRequest,
    mut parts: Parts,
    keep_alive: Duration,
) -> McpResponse {
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
                .start_stream(&session, Box::pin(messages), reads_priming);
            let stream = events.stream();
            let (response, is_complete) = stream_response(events, keep_alive).await;
            if !is_complete && let Some(replay) = &sessions.shared_replay {
                let owner = sessions.owner(&session);
                if let Some(owner) = owner {
                    replay.publish(&owner, &session, id, stream).await;
                }
            }
            response
        }
        Err(error) => session_failure(&error),
    }
}

/// rmcp no longer runs the session.
fn session_failure(error: &LocalSessionManagerError) -> McpResponse {
    let mut response = Response::new(Full::from(error.to_string()).boxed());
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}

/// Resumes a stream after the client's last event. Without an event, or with one that the session no longer
/// has, the client gets the session's standalone stream.
pub(super) async fn open_event_stream(
    sessions: &Arc<Sessions>,
    session: &str,
    last_event: Option<&str>,
    keep_alive: Duration,
) -> McpResponse {
    let session = SessionId::from(session);
    let position = last_event.and_then(|event| sessions.replay.find(&session, event));
    let after = match position {
        Some(ReplayPosition::Request(events)) => {
            return stream_response(events, keep_alive).await.0;
        }
        Some(ReplayPosition::Standalone(index)) => Some(index),
        None => {
            let shared = find_shared_stream(sessions, &session, last_event).await;
            if let Some(events) = shared {
                let events = EventSource::Shared(events);
                return sse_response(streaming_body(Vec::new(), events, keep_alive), false);
            }
            None
        }
    };
    match sessions.standalone(&session).await {
        Ok(stream) => {
            let events = EventSource::Standalone(stream.listen(after));
            sse_response(streaming_body(Vec::new(), events, keep_alive), false)
        }
        Err(error) => session_failure(&error),
    }
}

/// Returns the remaining events of a stream that started on another server.
async fn find_shared_stream(
    sessions: &Sessions,
    session: &SessionId,
    last_event: Option<&str>,
) -> Option<SharedEvents> {
    let replay = sessions.shared_replay.as_ref()?;
    let owner = sessions.owner(session)?;
    replay.find(&owner, session, last_event?).await
}

/// The events of a connection.
enum EventSource {
    Request(RequestEvents),
    Standalone(StandaloneEvents),
    Shared(SharedEvents),
}

impl EventSource {
    async fn next(&mut self) -> Option<Bytes> {
        match self {
            Self::Request(events) => events.next().await.map(|event| event.text()),
            Self::Standalone(events) => events.next().await.map(|event| event.text()),
            Self::Shared(events) => events.next().await,
        }
    }
}

/// Sends the events of a request. Also returns whether the request is complete.
async fn stream_response(mut events: RequestEvents, keep_alive: Duration) -> (McpResponse, bool) {
    let mut first_events = Vec::new();
    let all_events = async {
        while let Some(event) = events.next().await {
            first_events.push(event);
        }
    };
    let is_complete = timeout(SINGLE_WRITE_WINDOW, all_events).await.is_ok();
    let body = if is_complete {
        complete_body(&first_events)
    } else {
        let first_events = first_events.iter().map(SseEvent::text).collect();
        streaming_body(first_events, EventSource::Request(events), keep_alive)
    };
    (sse_response(body, is_complete), is_complete)
}

/// Returns a body with all events. Errors have no event ids: some clients would otherwise take them for an
/// interrupted stream and reconnect.
fn complete_body(events: &[SseEvent]) -> BoxBody<Bytes, Infallible> {
    let has_failed = matches!(events.last(), Some(event) if event.kind == EventKind::Error);
    let pieces: Vec<Bytes> = if has_failed {
        let messages = events
            .iter()
            .filter(|event| event.kind != EventKind::Priming);
        messages.map(SseEvent::text_without_id).collect()
    } else {
        events.iter().map(SseEvent::text).collect()
    };
    if pieces.iter().map(Bytes::len).sum::<usize>() <= MAX_SINGLE_WRITE {
        return Full::new(Bytes::from(pieces.concat())).boxed();
    }
    let frames = pieces.into_iter().map(|piece| Ok(Frame::data(piece)));
    BodyExt::boxed(StreamBody::new(stream::iter(frames)))
}

/// Returns an event stream response.
fn sse_response(body: BoxBody<Bytes, Infallible>, is_complete: bool) -> McpResponse {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if !is_complete {
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    }
    response
}

/// Returns a body that sends the first events, then further ones as they come.
fn streaming_body(
    first_events: Vec<Bytes>,
    events: EventSource,
    keep_alive: Duration,
) -> BoxBody<Bytes, Infallible> {
    let rest = stream::unfold(events, move |mut events| async move {
        let text = match timeout(keep_alive, events.next()).await {
            Ok(text) => text?,
            Err(_) => Bytes::from_static(KEEP_ALIVE_COMMENT),
        };
        Some((text, events))
    });
    let frames = stream::iter(first_events).chain(rest);
    let frames = frames.map(|text| Ok(Frame::data(text)));
    BodyExt::boxed(StreamBody::new(frames))
}
