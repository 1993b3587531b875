//! Reading bodies: no more than allowed, and not for ever.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::request::Parts;
use http::{Response, StatusCode, header};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use rmcp::model::ErrorCode;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::admission::address;
use super::body_memory::{FREE_BYTES, ReservedMemory};
use super::fair_places::Place;
use super::state::Shared;
use crate::http_response::{bad_request, busy, error_response};
use exa_mcp_accounts::Credential;

/// When to come back to a server that has no memory for a long body.
const COME_BACK: Duration = Duration::from_secs(1);

/// A body that was read.
pub(super) struct ReadBody {
    pub(super) bytes: Bytes,
    /// Memory that it takes, until the request is answered.
    pub(super) memory: Option<ReservedMemory>,
}

/// Reads a body of JSON, or says why not. What is too long is known before it is read, where its
/// length is told.
pub(super) async fn read<M>(
    shared: &Shared<M>,
    parts: &Parts,
    body: Body,
) -> Result<ReadBody, Box<Response<Body>>> {
    let (headers, limits) = (&parts.headers, &shared.config.limits);
    let content = headers.get(header::CONTENT_TYPE);
    let content = content
        .and_then(|content| content.to_str().ok())
        .unwrap_or_default();
    let kind = content.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let why = "Invalid request: the content type must be application/json";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(Box::new(error_response(
            status,
            ErrorCode::INVALID_REQUEST.0,
            why,
        )));
    }
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > limits.body as u64) {
        return Err(Box::new(too_long(limits.body)));
    }
    let length = length.and_then(|length| usize::try_from(length).ok());
    let reserve = || {
        let address = address(shared, parts).into();
        let memory = shared
            .body_memory
            .reserve(address, length.unwrap_or(limits.body));
        memory.ok_or_else(|| Box::new(no_memory()))
    };
    match timeout(limits.client_timeout, collect(body, limits.body, reserve)).await {
        Ok(read) => read,
        Err(_) => Err(Box::new(too_slow(limits.client_timeout))),
    }
}

async fn collect(
    mut body: Body,
    most: usize,
    reserve: impl Fn() -> Result<ReservedMemory, Box<Response<Body>>>,
) -> Result<ReadBody, Box<Response<Body>>> {
    let mut bytes = BytesMut::new();
    let mut memory = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Box::new(bad_request("the body broke off")))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if data.len() > most.saturating_sub(bytes.len()) {
            return Err(Box::new(too_long(most)));
        }
        if memory.is_none() && bytes.len() + data.len() > FREE_BYTES {
            memory = Some(reserve()?);
        }
        bytes.extend_from_slice(&data);
    }
    let bytes = bytes.freeze();
    Ok(ReadBody { bytes, memory })
}

/// Too many long bodies are on their way.
fn no_memory() -> Response<Body> {
    let why = "There are too many long bodies on their way, of everybody or of your address; come back soon";
    busy(StatusCode::SERVICE_UNAVAILABLE, why, COME_BACK)
}

/// The rest is not read, so the connection cannot be used again.
fn too_long(most: usize) -> Response<Body> {
    let why = format!(
        "Invalid request: the body is longer than {most} bytes, which EXA_MCP_MAX_BODY_BYTES allows; this \
         holds for `csvContent` as well. Send less at a time, or have the operator raise it"
    );
    closing(error_response(
        StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::INVALID_REQUEST.0,
        why,
    ))
}

fn too_slow(patience: Duration) -> Response<Body> {
    let seconds = patience.as_secs();
    let why = format!("Invalid request: the body did not arrive within {seconds} seconds");
    closing(error_response(
        StatusCode::REQUEST_TIMEOUT,
        ErrorCode::INVALID_REQUEST.0,
        why,
    ))
}

fn closing(mut answer: Response<Body>) -> Response<Body> {
    crate::http_response::set_header(&mut answer, header::CONNECTION, "close");
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
    cut(body, async move { end.cancelled().await })
}

/// A body that ends with the credential of its request. One that is complete already stays as it is.
pub(super) fn while_valid(body: Body, credential: Option<Credential>) -> Body {
    let is_complete = HttpBody::size_hint(&body).exact().is_some();
    match credential.filter(|_| !is_complete) {
        Some(credential) => cut(body, async move {
            let reason = credential.wait_until_invalid().await;
            tracing::info!(?reason, "a stream was cut: its token has ended");
        }),
        None => body,
    }
}

fn cut(body: Body, end: impl Future<Output = ()> + Send + 'static) -> Body {
    let frames = http_body_util::BodyStream::new(body);
    Body::new(StreamBody::new(frames.take_until(end)))
}

/// A stream that ends when it loses its place among those of guests, and leaves the place when it ends.
pub(super) fn while_placed(body: Body, place: Option<Place>) -> Body {
    match place {
        Some(place) => holding(until(body, place.lost.clone()), place),
        None => body,
    }
}
