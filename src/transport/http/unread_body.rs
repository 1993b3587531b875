//! Bodies that were not read before the request was answered.
//!
//! A server that closes a connection on which bytes are still to be read makes the client's system
//! discard what has arrived there, the response included. A short body is therefore read to its end
//! before the response leaves, and the connection goes on. After a long or slow one the connection is
//! closed in two steps: the response and the end of the writing side first, the reading side later.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use exa_mcp_model::lock;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The most bytes that are read before a response leaves.
const MAX_BYTES_BEFORE_RESPONSE: u64 = 256 * 1024;

/// How long a response waits for the rest of a body.
const MAX_WAIT_BEFORE_RESPONSE: Duration = Duration::from_millis(250);

/// The most bytes that are read, and thrown away, after the last response of a connection.
const MAX_BYTES_AFTER_RESPONSE: usize = 16 * 1024 * 1024;

/// Bytes that are thrown away at a time.
const DISCARD_BUFFER: usize = 16 * 1024;

/// Where a request leaves a body that nobody read to its end.
type Slot = Arc<Mutex<Option<Incoming>>>;

/// Whether a connection ended with a body that was not read to its end.
#[derive(Clone, Default)]
pub(super) struct UnreadBody(Arc<AtomicBool>);

impl UnreadBody {
    /// Whether the connection has one.
    pub(super) fn is_left(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Answers a request by `respond`, and sees to what that left of the body.
    pub(super) async fn respond<F>(
        &self,
        request: Request<Incoming>,
        respond: impl FnOnce(Request<Body>) -> F,
    ) -> Response<Body>
    where
        F: Future<Output = Response<Body>>,
    {
        let (parts, body) = request.into_parts();
        if body.is_end_stream() {
            return respond(Request::from_parts(parts, Body::empty())).await;
        }
        let waits_for_continue = expects_continue(&parts.headers);
        let slot = Slot::default();
        let body = Body::new(ReturnedBody {
            body: Some(body),
            slot: Arc::clone(&slot),
        });
        let mut response = respond(Request::from_parts(parts, body)).await;
        let left = lock(&slot).take();
        if let Some(body) = left {
            // To read the body now would ask the client to send it.
            let read = !waits_for_continue && discard(body).await;
            if !read {
                self.0.store(true, Ordering::Relaxed);
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
        }
        response
    }
}

fn expects_continue(headers: &HeaderMap) -> bool {
    let expected = headers.get(header::EXPECT);
    expected.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// Reads a short body to its end; gives whether it did.
async fn discard(mut body: Incoming) -> bool {
    if body.size_hint().lower() > MAX_BYTES_BEFORE_RESPONSE {
        return false;
    }
    let mut left = MAX_BYTES_BEFORE_RESPONSE;
    let all = async {
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return false };
            let length = frame.data_ref().map_or(0, Bytes::len);
            let Some(rest) = left.checked_sub(length as u64) else {
                return false;
            };
            left = rest;
        }
        true
    };
    timeout(MAX_WAIT_BEFORE_RESPONSE, all)
        .await
        .unwrap_or(false)
}

/// Ends a connection whose client may still send: first the writing side, so that the client has the
/// whole response, then, once the client has ended or `patience` is over, the other.
pub(super) async fn close_in_two_steps(mut stream: TcpStream, patience: Duration) {
    let closing = async {
        stream.shutdown().await.ok()?;
        let mut buffer = vec![0; DISCARD_BUFFER];
        let mut left = MAX_BYTES_AFTER_RESPONSE;
        while left > 0 {
            let read = stream.read(&mut buffer).await.ok()?;
            if read == 0 {
                break;
            }
            left = left.saturating_sub(read);
        }
        Some(())
    };
    let _ = timeout(patience, closing).await;
}

/// A body that is put back where it came from when its reader is done with it too early.
struct ReturnedBody {
    body: Option<Incoming>,
    slot: Slot,
}

impl HttpBody for ReturnedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let frame = std::task::ready!(Pin::new(body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            self.body = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.as_ref().map(HttpBody::size_hint);
        hint.unwrap_or_else(|| SizeHint::with_exact(0))
    }
}

impl Drop for ReturnedBody {
    fn drop(&mut self) {
        if let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) {
            *lock(&self.slot) = Some(body);
        }
    }
}
