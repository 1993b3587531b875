//! Handles request bodies that were not fully read.
//!
//! If a server closes a connection with unread bytes, the client's system discards what it has received,
//! including the response. A short body is therefore read to its end before the response, and the
//! connection stays open. After a long or slow body the connection is closed in two steps: first the
//! response and the writing side, later the reading side.

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

/// The maximum number of bytes to read before a response.
const MAX_BYTES_BEFORE_RESPONSE: u64 = 256 * 1024;

/// How long a response waits for the rest of the body.
const MAX_WAIT_BEFORE_RESPONSE: Duration = Duration::from_millis(250);

/// The maximum number of bytes to discard after the last response of a connection.
const MAX_BYTES_AFTER_RESPONSE: usize = 16 * 1024 * 1024;

/// The buffer size for discarding.
const DISCARD_BUFFER: usize = 16 * 1024;

/// Holds a body that was not fully read.
type Slot = Arc<Mutex<Option<Incoming>>>;

/// Whether a connection ended with a body that was not fully read.
#[derive(Clone, Default)]
pub(super) struct UnreadBody(Arc<AtomicBool>);

impl UnreadBody {
    /// Returns whether the connection has an unread body.
    pub(super) fn is_left(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Calls `respond`, then discards or marks the unread body.
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
            // Reading the body now would ask the client to send it.
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

/// Reads a short body to its end. Returns whether that succeeded.
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

/// Closes a connection whose client may still be sending: first the writing side, so that the client
/// receives the whole response, then the reading side once the client has finished or `max_wait` has
/// passed.
pub(super) async fn close_in_two_steps(mut stream: TcpStream, max_wait: Duration) {
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
    let _ = timeout(max_wait, closing).await;
}

/// A body that returns to its slot when its reader drops it early.
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
