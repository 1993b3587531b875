//! A request of a session, handed to the session as it was read.
//!
//! The way through rmcp's service for HTTP leads through bytes a second time, and what comes back leaves
//! in three packets: the head, the answer, the end. Most answers are there at once, and leave as one.

use std::convert::Infallible;
use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetExtensions, ProtocolVersion, RequestId};
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::time::timeout;

use super::mcp::VERSION;
use super::outgoing::{Answer, STREAM};
use super::sessions::Sessions;

/// An answer that is there within this time leaves as a whole; the head of any other goes ahead of it.
const SOON: Duration = Duration::from_millis(10);

/// Room for most answers.
const ROOM: usize = 4 * 1024;

/// What keeps a stream open while there is nothing to say.
const STILL_HERE: &[u8] = b":\n\n";

type Events = Pin<Box<dyn Stream<Item = ServerSseMessage> + Send + Sync>>;

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
    match sessions.create_stream(&session, message).await {
        Ok(events) => answer(Box::pin(events), keep_alive).await,
        Err(error) => {
            let mut lost = Response::new(Full::from(error.to_string()).boxed());
            *lost.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            lost
        }
    }
}

async fn answer(mut events: Events, keep_alive: Duration) -> Answer {
    let mut text = Vec::with_capacity(ROOM);
    let all = async {
        while let Some(event) = events.next().await {
            push(&mut text, &event);
        }
    };
    let ended = timeout(SOON, all).await.is_ok();
    let begun = Bytes::from(text);
    let body = match ended {
        true => Full::new(begun).boxed(),
        false => going_on(begun, events, keep_alive),
    };
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
            Ok(event) => {
                let mut text = Vec::new();
                push(&mut text, &event?);
                Bytes::from(text)
            }
            Err(_) => Bytes::from_static(STILL_HERE),
        };
        Some((text, events))
    });
    let frames = begun.chain(rest).map(|text| Ok(Frame::data(text)));
    BodyExt::boxed(StreamBody::new(frames))
}

/// Writes an event. Its data is JSON, which has no line ends.
fn push(text: &mut Vec<u8>, event: &ServerSseMessage) {
    if let Some(id) = &event.event_id {
        let _ = writeln!(text, "id: {id}");
    }
    if let Some(retry) = event.retry {
        let _ = writeln!(text, "retry: {}", retry.as_millis());
    }
    text.extend_from_slice(b"data: ");
    if let Some(message) = &event.message {
        // What a handler answers can be written.
        let _ = serde_json::to_writer(&mut *text, &**message);
    }
    text.extend_from_slice(b"\n\n");
}
