//! Reads request bodies within limits of size and time, and ties response bodies to guards.

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

use super::admission::client_address;
use super::body_memory::{ReservedMemory, UNTRACKED_BYTES};
use super::fair_slots::Slot;
use super::state::HttpState;
use crate::http_response::{HttpRejection, bad_request, busy, error_without_id};
use exa_mcp_accounts::Credential;

/// The `Retry-After` value when no memory for a large body is free.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A request body in memory.
pub(super) struct RequestBody {
    pub(super) bytes: Bytes,
    /// The memory reserved for a large body.
    pub(super) memory: Option<ReservedMemory>,
}

/// Reads a JSON body. A declared length over the limit is rejected before reading.
pub(super) async fn read_json_body<M>(
    state: &HttpState<M>,
    parts: &Parts,
    body: Body,
) -> Result<RequestBody, HttpRejection> {
    let (headers, limits) = (&parts.headers, &state.config.limits);
    let content = headers.get(header::CONTENT_TYPE);
    let content = content
        .and_then(|content| content.to_str().ok())
        .unwrap_or_default();
    let media_type = content.split(';').next().unwrap_or_default().trim();
    if !media_type.eq_ignore_ascii_case("application/json") {
        let reason = "Invalid request: the content type must be application/json";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(Box::new(error_without_id(
            status,
            ErrorCode::INVALID_REQUEST.0,
            reason,
        )));
    }
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > limits.body as u64) {
        return Err(Box::new(too_large(limits.body)));
    }
    let length = length.and_then(|length| usize::try_from(length).ok());
    let reserve = || {
        let address = client_address(state, parts).into();
        let memory = state
            .body_memory
            .reserve(address, length.unwrap_or(limits.body));
        memory.ok_or_else(|| Box::new(no_memory()))
    };
    match timeout(limits.client_timeout, collect(body, limits.body, reserve)).await {
        Ok(read) => read,
        Err(_) => Err(Box::new(timed_out(limits.client_timeout))),
    }
}

async fn collect(
    mut body: Body,
    limit: usize,
    reserve: impl Fn() -> Result<ReservedMemory, HttpRejection>,
) -> Result<RequestBody, HttpRejection> {
    let mut bytes = BytesMut::new();
    let mut memory = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Box::new(bad_request("the request body is incomplete")))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if data.len() > limit.saturating_sub(bytes.len()) {
            return Err(Box::new(too_large(limit)));
        }
        if memory.is_none() && bytes.len() + data.len() > UNTRACKED_BYTES {
            memory = Some(reserve()?);
        }
        bytes.extend_from_slice(&data);
    }
    let bytes = bytes.freeze();
    Ok(RequestBody { bytes, memory })
}

fn no_memory() -> Response<Body> {
    let reason = "Too many large request bodies in total or from your address; try again shortly";
    busy(StatusCode::SERVICE_UNAVAILABLE, reason, RETRY_AFTER)
}

/// Closes the connection, because the rest of the body is not read.
fn too_large(limit: usize) -> Response<Body> {
    let reason = format!(
        "Invalid request: the body exceeds {limit} bytes (EXA_MCP_MAX_BODY_BYTES); the limit \
         applies to `csvContent` as well. Send less at a time, or ask the operator to raise it"
    );
    with_connection_close(error_without_id(
        StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::INVALID_REQUEST.0,
        reason,
    ))
}

fn timed_out(timeout: Duration) -> Response<Body> {
    let seconds = timeout.as_secs();
    let reason = format!("Invalid request: the body did not arrive within {seconds} seconds");
    with_connection_close(error_without_id(
        StatusCode::REQUEST_TIMEOUT,
        ErrorCode::INVALID_REQUEST.0,
        reason,
    ))
}

fn with_connection_close(mut response: Response<Body>) -> Response<Body> {
    crate::http_response::set_header(&mut response, header::CONNECTION, "close");
    response
}

/// Keeps `guard` alive until the body is sent or the client disconnects.
pub(super) fn with_guard<T: Send + Unpin + 'static>(body: Body, guard: T) -> Body {
    Body::new(GuardedBody {
        body,
        _guard: guard,
    })
}

struct GuardedBody<T> {
    body: Body,
    _guard: T,
}

impl<T: Unpin> HttpBody for GuardedBody<T> {
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

/// Ends the body when the token is cancelled.
pub(super) fn until_cancelled(body: Body, end: CancellationToken) -> Body {
    end_at(body, async move { end.cancelled().await })
}

/// Ends the body when the credential of its request ends. A complete body is unchanged.
pub(super) fn until_credential_ends(body: Body, credential: Option<Credential>) -> Body {
    let is_complete = HttpBody::size_hint(&body).exact().is_some();
    match credential.filter(|_| !is_complete) {
        Some(credential) => end_at(body, async move {
            let reason = credential.wait_until_invalid().await;
            tracing::info!(
                ?reason,
                "closed a stream because its token is no longer valid"
            );
        }),
        None => body,
    }
}

fn end_at(body: Body, end: impl Future<Output = ()> + Send + 'static) -> Body {
    let frames = http_body_util::BodyStream::new(body);
    Body::new(StreamBody::new(frames.take_until(end)))
}

/// Holds the slot while the stream runs, and ends the stream when the slot is taken away.
pub(super) fn with_slot(body: Body, slot: Option<Slot>) -> Body {
    match slot {
        Some(slot) => with_guard(until_cancelled(body, slot.evicted.clone()), slot),
        None => body,
    }
}
