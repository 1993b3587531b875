//! A request of a session, handed to the session as it was read.
//!
//! The way through rmcp's service for HTTP leads through bytes a second time, and what comes back leaves
//! in three packets: the head, the answer, the end. Most answers are there at once, and leave as one.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, future, stream};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetExtensions, ProtocolVersion, RequestId};
use rmcp::transport::streamable_http_server::session::SessionId;
use tokio::time::timeout;

use super::events::Events;
use super::kept_answers::EventId;
use super::mcp::VERSION;
use super::outgoing::{Answer, STREAM};
use super::sessions::Sessions;

/// An answer that is there within this time leaves as a whole; the head of any other goes ahead of it.
const SOON: Duration = Duration::from_millis(10);

/// Room for most answers.
const ROOM: usize = 4 * 1024;

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
        parts.extensions.insert(Arc::clone(sessions));
    }
    request.extensions_mut().insert(parts);
    let message = ClientJsonRpcMessage::request(request, id);
    let session = SessionId::from(session);
    match sessions.open_stream(&session, message).await {
        Ok(events) => {
            let events = Events::new(sessions, &session, Box::pin(events), true);
            answer(events, keep_alive).await
        }
        Err(error) => {
            let mut lost = Response::new(Full::from(error.to_string()).boxed());
            *lost.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            lost
        }
    }
}

/// Goes on with a stream that was cut after an event: with what is kept of it, or with the session's own.
/// Of an event that nobody knows there is nothing to go on with.
pub(super) async fn resume(
    sessions: &Arc<Sessions>,
    session: &str,
    last_event: &str,
    keep_alive: Duration,
) -> Option<Answer> {
    if let Some(kept) = sessions.answers.after(session, last_event) {
        return Some(streamed(Full::new(kept).boxed(), true));
    }
    let session = SessionId::from(session);
    let rest = sessions
        .rest_of(&session, last_event.to_owned())
        .await
        .ok()?;
    let awaits_answer = EventId::of_request(last_event).is_some();
    // rmcp begins with the event that the client has.
    let last_event = last_event.to_owned();
    let rest = rest
        .filter(move |event| future::ready(event.event_id.as_deref() != Some(last_event.as_str())));
    let events = Events::new(sessions, &session, Box::pin(rest), awaits_answer);
    Some(answer(events, keep_alive).await)
}

async fn answer(mut events: Events, keep_alive: Duration) -> Answer {
    let mut text = Vec::with_capacity(ROOM);
    let all = async { while events.write_next(&mut text).await.is_some() {} };
    let ended = timeout(SOON, all).await.is_ok();
    let begun = Bytes::from(text);
    let body = match ended {
        true => Full::new(begun).boxed(),
        false => going_on(begun, events, keep_alive),
    };
    streamed(body, ended)
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
fn going_on(begun: Bytes, events: Events, keep_alive: Duration) -> BoxBody<Bytes, Infallible> {
    let begun = stream::iter(Some(begun).filter(|begun| !begun.is_empty()));
    let rest = stream::unfold(events, move |mut events| async move {
        let text = match timeout(keep_alive, events.next()).await {
            Ok(event) => event?,
            Err(_) => Bytes::from_static(STILL_HERE),
        };
        Some((text, events))
    });
    let frames = begun.chain(rest).map(|text| Ok(Frame::data(text)));
    BodyExt::boxed(StreamBody::new(frames))
}
