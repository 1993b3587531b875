//! Converts rmcp's responses into the format that the client accepts.

use std::convert::Infallible;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::BodyExt;
use http_body_util::combinators::BoxBody;
use rmcp::model::{ErrorCode, ErrorData};
use serde_json::Value;

use crate::http_response::{FORBIDDEN, error_response};

/// A response of rmcp.
pub(crate) type McpResponse = Response<BoxBody<Bytes, Infallible>>;

pub(super) const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";

/// The response format that the client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AcceptedFormat {
    /// An event stream, or a single JSON message.
    Stream,
    /// A single JSON message. Hand-written requests seldom accept event streams.
    Json,
    /// Neither.
    Unsupported,
}

impl AcceptedFormat {
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::ACCEPT).iter();
        let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
        if values.is_empty() {
            return Self::Json;
        }
        let kinds = values.iter().flat_map(|value| value.split(','));
        let kinds = kinds.map(|kind| kind.split(';').next().unwrap_or_default().trim());
        let mut accepts = Self::Unsupported;
        for kind in kinds {
            match kind.to_ascii_lowercase().as_str() {
                EVENT_STREAM | "text/*" => return Self::Stream,
                JSON | "application/*" | "*/*" => accepts = Self::Json,
                _ => {}
            }
        }
        accepts
    }
}

fn has_content_type(response: &McpResponse, kind: &str) -> bool {
    let content = response.headers().get(header::CONTENT_TYPE);
    let content = content.and_then(|content| content.to_str().ok());
    content.is_some_and(|content| content.starts_with(kind))
}

/// Converts a response into the accepted format. `id` is that of the request.
pub(super) async fn convert(
    response: McpResponse,
    id: Option<&Value>,
    accepts: AcceptedFormat,
) -> Response<Body> {
    let failed = response.status().is_client_error() || response.status().is_server_error();
    if failed && !has_content_type(&response, JSON) {
        return json_error(response, id).await;
    }
    match id {
        Some(id)
            if accepts != AcceptedFormat::Stream && has_content_type(&response, EVENT_STREAM) =>
        {
            let (mut parts, body) = response.into_parts();
            let message = extract_response(body, id).await;
            let json = HeaderValue::from_static(JSON);
            parts.headers.insert(header::CONTENT_TYPE, json);
            parts.headers.remove(header::CACHE_CONTROL);
            parts.headers.remove("x-accel-buffering");
            Response::from_parts(parts, Body::from(message))
        }
        _ => response.map(Body::new),
    }
}

/// Extracts the JSON response to a request from an event stream.
pub(super) async fn extract_response(mut body: BoxBody<Bytes, Infallible>, id: &Value) -> Bytes {
    let mut text = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else {
            continue;
        };
        text.extend_from_slice(&data);
        while let Some(end) = find(&text, b"\n\n") {
            let rest = text.split_off(end + 2);
            let event = std::mem::replace(&mut text, rest);
            if let Some(response) = response_in_event(&event, id) {
                return response;
            }
        }
    }
    let reason = "The server stopped before the response was complete";
    let error = ErrorData::internal_error(reason, None);
    let message = serde_json::json!({"jsonrpc": "2.0", "id": id, "error": error});
    message.to_string().into()
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// Returns the message of an event if it is the response to this request.
fn response_in_event(event: &[u8], id: &Value) -> Option<Bytes> {
    let lines = event.split(|byte| *byte == b'\n');
    let mut data = lines.filter_map(|line| line.strip_prefix(b"data:"));
    let data = data.next()?.trim_ascii_start();
    let message: Value = serde_json::from_slice(data).ok()?;
    let is_response = message.get("id") == Some(id) && message.get("method").is_none();
    is_response.then(|| Bytes::copy_from_slice(data))
}

/// Converts rmcp's plain-text errors to JSON-RPC errors.
async fn json_error(response: McpResponse, id: Option<&Value>) -> Response<Body> {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes());
    let message = String::from_utf8_lossy(&body.unwrap_or_default()).into_owned();
    // Internal details are for the log only.
    let (status, code, message) = match parts.status {
        status if status.is_server_error() => {
            let is_session_lost =
                message.contains("Session not found") || message.contains("terminated");
            if is_session_lost {
                (
                    StatusCode::NOT_FOUND,
                    FORBIDDEN,
                    "Session not found".to_owned(),
                )
            } else {
                (
                    status,
                    ErrorCode::INTERNAL_ERROR.0,
                    "Internal error".to_owned(),
                )
            }
        }
        StatusCode::NOT_FOUND => (parts.status, FORBIDDEN, message),
        status => (status, ErrorCode::INVALID_REQUEST.0, message),
    };
    let error = ErrorData::new(ErrorCode(code), message, None);
    let mut rejection = error_response(status, id.unwrap_or(&Value::Null), &error);
    if let Some(allow) = parts.headers.get(header::ALLOW) {
        rejection.headers_mut().insert(header::ALLOW, allow.clone());
    }
    rejection
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use http_body_util::{Full, StreamBody};
    use hyper::body::Frame;
    use serde_json::json;

    use super::*;

    #[test]
    fn parses_accept_headers() {
        for (accept, expected) in [
            (vec![], AcceptedFormat::Json),
            (vec!["*/*"], AcceptedFormat::Json),
            (vec!["application/json"], AcceptedFormat::Json),
            (
                vec!["application/json, text/event-stream"],
                AcceptedFormat::Stream,
            ),
            (
                vec!["application/json;q=0.9", "Text/Event-Stream; q=1"],
                AcceptedFormat::Stream,
            ),
            (vec!["text/html"], AcceptedFormat::Unsupported),
        ] {
            let mut headers = HeaderMap::new();
            for value in &accept {
                headers.append(header::ACCEPT, HeaderValue::from_static(value));
            }
            assert_eq!(
                AcceptedFormat::from_headers(&headers),
                expected,
                "{accept:?}"
            );
        }
    }

    fn stream(pieces: &'static [&'static str]) -> BoxBody<Bytes, Infallible> {
        let frames = pieces
            .iter()
            .map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes()))));
        BodyExt::boxed(StreamBody::new(futures_util::stream::iter(frames)))
    }

    #[tokio::test]
    async fn extracts_the_response_from_a_stream() {
        let body = stream(&[
            "id: 0\nretry: 3000\ndata: \n\n: ping\n\n",
            "data: {\"method\":\"notifications/progress\",\"params\":{}}\n\nda",
            "ta: {\"id\":7,\"method\":\"roots/list\"}\n\n",
            "data: {\"id\":7,\"result\":{\"a\":\"\\n\\n\"}}\n\n",
        ]);
        let found: Value =
            serde_json::from_slice(&extract_response(body, &json!(7)).await).unwrap();
        assert_eq!(found, json!({"id": 7, "result": {"a": "\n\n"}}));
        let none: Value =
            serde_json::from_slice(&extract_response(stream(&[]), &json!("x")).await).unwrap();
        assert_eq!(none["error"]["code"], -32603);
    }

    #[tokio::test]
    async fn reports_failures_as_json_without_internal_details() {
        for (status, message, code, expected) in [
            (
                400,
                "Bad Request: Session ID is required",
                -32600,
                "Session ID",
            ),
            (
                404,
                "Not Found: Session not found",
                -32001,
                "Session not found",
            ),
            (
                500,
                "Encounter an error when x: /etc/secret",
                -32603,
                "Internal error",
            ),
        ] {
            let body = Full::new(Bytes::from_static(message.as_bytes())).boxed();
            let mut response = Response::new(body);
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            let response = convert(response, Some(&json!(3)), AcceptedFormat::Stream).await;
            assert_eq!(response.status().as_u16(), status);
            let body = axum::body::to_bytes(response.into_body(), 10_000)
                .await
                .unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["id"], 3);
            assert_eq!(body["error"]["code"], code);
            let message = body["error"]["message"].as_str().unwrap();
            assert!(
                message.contains(expected) && !message.contains("secret"),
                "{message}"
            );
        }
    }
}
