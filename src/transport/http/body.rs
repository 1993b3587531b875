//! Reading bodies: no more than allowed, and not for ever.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::{HeaderMap, Response, StatusCode, header};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use rmcp::model::ErrorCode;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::answers::{bad_request, refuse};
use super::config::HttpLimits;

/// Reads a body of JSON, or says why not. What is too long is known before it is read, where its
/// length is told.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    limits: &HttpLimits,
) -> Result<Bytes, Box<Response<Body>>> {
    let content = headers.get(header::CONTENT_TYPE);
    let content = content
        .and_then(|content| content.to_str().ok())
        .unwrap_or_default();
    let kind = content.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let why = "Invalid request: the content type must be application/json";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(Box::new(refuse(status, ErrorCode::INVALID_REQUEST.0, why)));
    }
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > limits.body as u64) {
        return Err(Box::new(too_long(limits.body)));
    }
    match timeout(limits.client_timeout, collect(body, limits.body)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(answer)) => Err(answer),
        Err(_) => Err(Box::new(too_slow(limits.client_timeout))),
    }
}

async fn collect(mut body: Body, most: usize) -> Result<Bytes, Box<Response<Body>>> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Box::new(bad_request("the body broke off")))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if data.len() > most.saturating_sub(bytes.len()) {
            return Err(Box::new(too_long(most)));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

/// The rest is not read, so the connection cannot be used again.
fn too_long(most: usize) -> Response<Body> {
    let why = format!("Invalid request: the body is longer than {most} bytes");
    closing(refuse(
        StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::INVALID_REQUEST.0,
        why,
    ))
}

fn too_slow(patience: Duration) -> Response<Body> {
    let seconds = patience.as_secs();
    let why = format!("Invalid request: the body did not arrive within {seconds} seconds");
    closing(refuse(
        StatusCode::REQUEST_TIMEOUT,
        ErrorCode::INVALID_REQUEST.0,
        why,
    ))
}

fn closing(mut answer: Response<Body>) -> Response<Body> {
    super::answers::set(&mut answer, header::CONNECTION, "close");
    answer
}

/// A body that keeps something alive until it has been sent or the client is gone.
pub(super) fn holding<T: Send + Unpin + 'static>(body: Body, held: T) -> Body {
    Body::new(Holding { body, _held: held })
}

struct Holding<T> {
    body: Body,
    _held: T,
}

impl<T: Unpin> HttpBody for Holding<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A body that ends when it is told to.
pub(super) fn until(body: Body, end: CancellationToken) -> Body {
    let frames = http_body_util::BodyStream::new(body);
    let frames = frames.take_until(async move { end.cancelled().await });
    Body::new(StreamBody::new(frames))
}
