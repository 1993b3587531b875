//! Putting answers on the wire.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::stream::{self, StreamExt};
use serde_json::Value;

use super::faults::{Fault, Shape};
use crate::MARKER;
use crate::failure::{Circumstances, Failure, Form};

/// Pause before a body breaks off, so that what comes before it really leaves.
const FLUSH: Duration = Duration::from_millis(40);
/// Piece of a made-up huge body.
const PIECE: usize = 64 * 1024;

/// A JSON answer; objects get the marker.
pub(super) fn json(status: u16, mut value: Value) -> Response {
    mark(&mut value);
    build(
        status,
        "application/json; charset=utf-8",
        Body::from(value.to_string()),
    )
}

/// Adds the field that says where the data comes from.
pub(super) fn mark(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.insert("sandbox".to_owned(), MARKER.into());
    }
}

pub(super) fn events(body: Body) -> Response {
    let mut response = build(200, "text/event-stream; charset=utf-8", body);
    set(&mut response, "cache-control", "no-cache");
    response
}

pub(super) fn failure(failure: &Failure, form: Form, at: &Circumstances<'_>) -> Response {
    let mut response = json(failure.status, failure.body(form, at));
    for (name, value) in &failure.headers {
        set(&mut response, name, value);
    }
    response
}

pub(super) fn build(status: u16, content_type: &str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    set(&mut response, "content-type", content_type);
    response
}

/// Sets a header; a value that cannot be one is left out.
pub(super) fn set(response: &mut Response, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
        response.headers_mut().insert(name, value);
    }
}

/// The answer of a fault that replaces the usual one.
pub(super) fn of_fault(fault: &Fault, form: Form, at: &Circumstances<'_>) -> Response {
    let mut response = match (&fault.shape, fault.status) {
        (Shape::Html, status) => {
            let status = status.unwrap_or(502);
            build(status, "text/html; charset=utf-8", Body::from(html(status)))
        }
        (Shape::Empty, status) => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() =
                StatusCode::from_u16(status.unwrap_or(200)).unwrap_or_default();
            response
        }
        (Shape::Malformed, status) => {
            let text = r#"{"requestId":"0","results":[{"title":"this JSON breaks off"#;
            build(
                status.unwrap_or(200),
                "application/json; charset=utf-8",
                Body::from(text),
            )
        }
        (Shape::Huge(bytes), status) => build(
            status.unwrap_or(200),
            "application/json; charset=utf-8",
            huge(*bytes),
        ),
        (_, status) => failure(&error_of(status.unwrap_or(500)), form, at),
    };
    if let Some(after) = &fault.retry_after {
        set(&mut response, "retry-after", after);
    }
    response
}

/// The error the API would send with a status.
fn error_of(status: u16) -> Failure {
    let (tag, message) = match status {
        400 => ("INVALID_REQUEST", "Invalid request"),
        401 => ("INVALID_API_KEY", "Invalid API key"),
        402 => ("NO_MORE_CREDITS", "You have run out of credits"),
        403 => ("INSUFFICIENT_SCOPE", "This key may not do that"),
        404 => ("NOT_FOUND", "Not found"),
        408 | 504 => ("TIMEOUT", "The request took too long"),
        409 => ("CONFLICT", "The request conflicts with another"),
        413 => ("PAYLOAD_TOO_LARGE", "The body is too large"),
        422 => (
            "UNABLE_TO_GENERATE_RESPONSE",
            "The request cannot be processed",
        ),
        429 => ("RATE_LIMIT_EXCEEDED", "You have exceeded your rate limit"),
        500.. => ("INTERNAL_ERROR", "Something went wrong on our side"),
        _ => ("DEFAULT_ERROR", "An error was asked for"),
    };
    Failure::new(
        status,
        tag,
        format!("{message} (a fault asked for from the sandbox)"),
    )
}

fn html(status: u16) -> String {
    format!(
        "<!DOCTYPE html>\n<html><head><title>{status}</title></head>\
         <body><center><h1>{status}</h1></center><hr><center>sandbox fault</center></body></html>\n"
    )
}

/// A JSON object of about `bytes` bytes, made as it is sent.
fn huge(bytes: u64) -> Body {
    let head = Bytes::from(format!(r#"{{"sandbox":"{MARKER}","padding":""#));
    let piece = Bytes::from(vec![b'x'; PIECE]);
    let count = usize::try_from(bytes / PIECE as u64 + 1).unwrap_or(1);
    let middle = stream::repeat(piece).take(count);
    let all = stream::iter([head])
        .chain(middle)
        .chain(stream::iter([Bytes::from_static(b"\"}")]));
    Body::from_stream(all.map(Ok::<_, Infallible>))
}

/// The same answer with a body that breaks off: in the middle when it is known, after the first
/// event when it is a stream. The length it announces stays, so the loss can be noticed.
pub(super) async fn broken(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let streamed = parts
        .headers
        .get("content-type")
        .is_some_and(|v| v.as_bytes().starts_with(b"text/event-stream"));
    if streamed {
        let first = body
            .into_data_stream()
            .take(1)
            .map(|piece| piece.map_err(io::Error::other));
        return Response::from_parts(parts, Body::from_stream(first.chain(rupture())));
    }
    // The body was built in memory a moment ago, so no limit is needed.
    let whole = axum::body::to_bytes(body, usize::MAX)
        .await
        .unwrap_or_default();
    parts
        .headers
        .insert("content-length", HeaderValue::from(whole.len()));
    let half = whole.slice(..whole.len() / 2);
    Response::from_parts(
        parts,
        Body::from_stream(stream::iter([Ok(half)]).chain(rupture())),
    )
}

/// An empty body that fails, for servers whose connection cannot be cut.
pub(super) fn nothing() -> Response {
    Response::new(Body::from_stream(rupture()))
}

fn rupture() -> impl stream::Stream<Item = io::Result<Bytes>> + Send + 'static {
    stream::once(async {
        tokio::time::sleep(FLUSH).await;
        Err(io::Error::new(
            io::ErrorKind::ConnectionAborted,
            "cut by a sandbox fault",
        ))
    })
}
