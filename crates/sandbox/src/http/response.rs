//! HTTP responses.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::stream::{self, StreamExt};
use serde_json::Value;

use super::faults::{Fault, FaultEffect};
use crate::MARKER;
use crate::api_error::{ApiError, ErrorContext, ErrorFormat};
use crate::error_tags;
use crate::json::set;

/// Delay before a body fails, so that the bytes before are really sent.
const FLUSH_DELAY: Duration = Duration::from_millis(40);
/// Chunk size of a huge body.
const CHUNK: usize = 64 * 1024;

const JSON: &str = "application/json; charset=utf-8";

/// Builds a JSON response; objects get the marker.
pub(super) fn json(status: u16, mut value: Value) -> Response {
    add_marker(&mut value);
    build(status, JSON, Body::from(value.to_string()))
}

/// Adds the field that marks generated data.
pub(super) fn add_marker(value: &mut Value) {
    set(value, "sandbox", MARKER);
}

/// Builds the response of a file.
pub(super) fn text(content_type: &str, text: String) -> Response {
    build(200, content_type, Body::from(text))
}

pub(super) fn events(body: Body) -> Response {
    let mut response = build(200, "text/event-stream; charset=utf-8", body);
    set_header(&mut response, "cache-control", "no-cache");
    response
}

pub(super) fn from_error(
    error: &ApiError,
    format: ErrorFormat,
    context: &ErrorContext<'_>,
) -> Response {
    let mut response = json(error.status, error.body(format, context));
    for (name, value) in &error.headers {
        set_header(&mut response, name, value);
    }
    response
}

fn build(status: u16, content_type: &str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    set_header(&mut response, "content-type", content_type);
    response
}

/// Sets a header, unless the value is invalid.
pub(super) fn set_header(response: &mut Response, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
        response.headers_mut().insert(name, value);
    }
}

/// Builds the response of a fault that replaces the normal one.
pub(super) fn from_fault(
    fault: &Fault,
    format: ErrorFormat,
    context: &ErrorContext<'_>,
) -> Response {
    let status = fault.status.unwrap_or(200);
    let mut response = match &fault.effect {
        FaultEffect::Html => {
            let status = fault.status.unwrap_or(502);
            build(status, "text/html; charset=utf-8", Body::from(html(status)))
        }
        FaultEffect::Empty => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
            response
        }
        FaultEffect::Malformed => {
            let text = r#"{"requestId":"0","results":[{"title":"this JSON breaks off"#;
            build(status, JSON, Body::from(text))
        }
        FaultEffect::Huge(bytes) => build(status, JSON, huge(*bytes)),
        FaultEffect::Normal | FaultEffect::Cut(_) => {
            let status = fault.status.or(fault.tag.is_none().then_some(500));
            let error = error_tags::requested(format, status, fault.tag.as_deref());
            from_error(&error, format, context)
        }
    };
    if let Some(after) = &fault.retry_after {
        set_header(&mut response, "retry-after", after);
    }
    response
}

fn html(status: u16) -> String {
    format!(
        "<!DOCTYPE html>\n<html><head><title>{status}</title></head>\
         <body><center><h1>{status}</h1></center><hr><center>sandbox fault</center></body></html>\n"
    )
}

/// Streams a JSON object of about `bytes` bytes.
fn huge(bytes: u64) -> Body {
    let head = Bytes::from(format!(r#"{{"sandbox":"{MARKER}","padding":""#));
    let chunk = Bytes::from(vec![b'x'; CHUNK]);
    let count = usize::try_from(bytes / CHUNK as u64 + 1).unwrap_or(1);
    let middle = stream::repeat(chunk).take(count);
    let all = stream::iter([head])
        .chain(middle)
        .chain(stream::iter([Bytes::from_static(b"\"}")]));
    Body::from_stream(all.map(Ok::<_, Infallible>))
}

/// Truncates the body: in the middle, or after the first event of a stream. The announced length
/// stays, so that the client can notice the loss.
pub(super) async fn truncated(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let is_stream = parts
        .headers
        .get("content-type")
        .is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"));
    if is_stream {
        let first = body
            .into_data_stream()
            .take(1)
            .map(|chunk| chunk.map_err(io::Error::other));
        return Response::from_parts(parts, Body::from_stream(first.chain(abort())));
    }
    // The body is in memory already, so no limit is needed.
    let complete = axum::body::to_bytes(body, usize::MAX)
        .await
        .unwrap_or_default();
    parts
        .headers
        .insert("content-length", HeaderValue::from(complete.len()));
    let half = complete.slice(..complete.len() / 2);
    Response::from_parts(
        parts,
        Body::from_stream(stream::iter([Ok(half)]).chain(abort())),
    )
}

/// Builds a response whose body fails, for servers whose connections cannot be cut.
pub(super) fn aborted() -> Response {
    Response::new(Body::from_stream(abort()))
}

fn abort() -> impl stream::Stream<Item = io::Result<Bytes>> + Send + 'static {
    stream::once(async {
        tokio::time::sleep(FLUSH_DELAY).await;
        Err(io::Error::new(
            io::ErrorKind::ConnectionAborted,
            "cut by a sandbox fault",
        ))
    })
}
