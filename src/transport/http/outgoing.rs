//! What rmcp answers, in the form that the client can take.

use std::convert::Infallible;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::BodyExt;
use http_body_util::combinators::BoxBody;
use rmcp::model::{ErrorCode, ErrorData};
use serde_json::Value;

use crate::http_response::{FORBIDDEN, rpc_error};

/// What rmcp answers.
pub(crate) type Answer = Response<BoxBody<Bytes, Infallible>>;

pub(super) const STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";

/// In which forms the client takes an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accepts {
    /// A stream of events, or one message.
    Streams,
    /// One message: those who write requests by hand seldom ask for more.
    Message,
    /// Neither.
    Nothing,
}

impl Accepts {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::ACCEPT).iter();
        let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
        if values.is_empty() {
            return Self::Message;
        }
        let kinds = values.iter().flat_map(|value| value.split(','));
        let kinds = kinds.map(|kind| kind.split(';').next().unwrap_or_default().trim());
        let mut accepts = Self::Nothing;
        for kind in kinds {
            match kind.to_ascii_lowercase().as_str() {
                STREAM | "text/*" => return Self::Streams,
                JSON | "application/*" | "*/*" => accepts = Self::Message,
                _ => {}
            }
        }
        accepts
    }
}

fn is(answer: &Answer, kind: &str) -> bool {
    let content = answer.headers().get(header::CONTENT_TYPE);
    let content = content.and_then(|content| content.to_str().ok());
    content.is_some_and(|content| content.starts_with(kind))
}

/// Brings an answer into the form that the client takes; `id` is that of the request.
pub(super) async fn finish(answer: Answer, id: Option<&Value>, accepts: Accepts) -> Response<Body> {
    let failed = answer.status().is_client_error() || answer.status().is_server_error();
    if failed && !is(&answer, JSON) {
        return in_json(answer, id).await;
    }
    match id {
        Some(id) if accepts != Accepts::Streams && is(&answer, STREAM) => {
            let (mut parts, body) = answer.into_parts();
            let message = only_answer(body, id).await;
            let json = HeaderValue::from_static(JSON);
            parts.headers.insert(header::CONTENT_TYPE, json);
            parts.headers.remove(header::CACHE_CONTROL);
            parts.headers.remove("x-accel-buffering");
            Response::from_parts(parts, Body::from(message))
        }
        _ => answer.map(Body::new),
    }
}

/// The answer to a request out of the stream that carries it, as JSON.
pub(super) async fn only_answer(mut body: BoxBody<Bytes, Infallible>, id: &Value) -> Bytes {
    let mut text = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else {
            continue;
        };
        text.extend_from_slice(&data);
        while let Some(end) = find(&text, b"\n\n") {
            let rest = text.split_off(end + 2);
            let event = std::mem::replace(&mut text, rest);
            if let Some(answer) = answer_in(&event, id) {
                return answer;
            }
        }
    }
    let why = "The server ended before the answer was there";
    let error = ErrorData::internal_error(why, None);
    let message = serde_json::json!({"jsonrpc": "2.0", "id": id, "error": error});
    message.to_string().into()
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// The message of an event, if it answers this request.
fn answer_in(event: &[u8], id: &Value) -> Option<Bytes> {
    let lines = event.split(|byte| *byte == b'\n');
    let mut data = lines.filter_map(|line| line.strip_prefix(b"data:"));
    let data = data.next()?.trim_ascii_start();
    let message: Value = serde_json::from_slice(data).ok()?;
    let answers = message.get("id") == Some(id) && message.get("method").is_none();
    answers.then(|| Bytes::copy_from_slice(data))
}

/// rmcp tells some failures in plain words, which JSON-RPC clients cannot read.
async fn in_json(answer: Answer, id: Option<&Value>) -> Response<Body> {
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes());
    let words = String::from_utf8_lossy(&body.unwrap_or_default()).into_owned();
    // What went wrong inside is for the log alone.
    let (status, code, words) = match parts.status {
        status if status.is_server_error() => {
            let lost = words.contains("Session not found") || words.contains("terminated");
            match lost {
                true => (
                    StatusCode::NOT_FOUND,
                    FORBIDDEN,
                    "Session not found".to_owned(),
                ),
                false => (
                    status,
                    ErrorCode::INTERNAL_ERROR.0,
                    "Internal error".to_owned(),
                ),
            }
        }
        StatusCode::NOT_FOUND => (parts.status, FORBIDDEN, words),
        status => (status, ErrorCode::INVALID_REQUEST.0, words),
    };
    let error = ErrorData::new(ErrorCode(code), words, None);
    let mut refused = rpc_error(status, id.unwrap_or(&Value::Null), &error);
    if let Some(allow) = parts.headers.get(header::ALLOW) {
        refused.headers_mut().insert(header::ALLOW, allow.clone());
    }
    refused
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use http_body_util::{Full, StreamBody};
    use hyper::body::Frame;
    use serde_json::json;

    use super::*;

    #[test]
    fn clients_say_what_they_take() {
        for (accept, expected) in [
            (vec![], Accepts::Message),
            (vec!["*/*"], Accepts::Message),
            (vec!["application/json"], Accepts::Message),
            (
                vec!["application/json, text/event-stream"],
                Accepts::Streams,
            ),
            (
                vec!["application/json;q=0.9", "Text/Event-Stream; q=1"],
                Accepts::Streams,
            ),
            (vec!["text/html"], Accepts::Nothing),
        ] {
            let mut headers = HeaderMap::new();
            for value in &accept {
                headers.append(header::ACCEPT, HeaderValue::from_static(value));
            }
            assert_eq!(Accepts::of(&headers), expected, "{accept:?}");
        }
    }

    fn stream(pieces: &'static [&'static str]) -> BoxBody<Bytes, Infallible> {
        let frames = pieces
            .iter()
            .map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes()))));
        BodyExt::boxed(StreamBody::new(futures_util::stream::iter(frames)))
    }

    #[tokio::test]
    async fn the_answer_is_found_in_the_stream() {
        let body = stream(&[
            "id: 0\nretry: 3000\ndata: \n\n: ping\n\n",
            "data: {\"method\":\"notifications/progress\",\"params\":{}}\n\nda",
            "ta: {\"id\":7,\"method\":\"roots/list\"}\n\n",
            "data: {\"id\":7,\"result\":{\"a\":\"\\n\\n\"}}\n\n",
        ]);
        let found: Value = serde_json::from_slice(&only_answer(body, &json!(7)).await).unwrap();
        assert_eq!(found, json!({"id": 7, "result": {"a": "\n\n"}}));
        let none: Value =
            serde_json::from_slice(&only_answer(stream(&[]), &json!("x")).await).unwrap();
        assert_eq!(none["error"]["code"], -32603);
    }

    #[tokio::test]
    async fn failures_are_told_in_json_without_what_went_wrong_inside() {
        for (status, words, code, told) in [
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
            let body = Full::new(Bytes::from_static(words.as_bytes())).boxed();
            let mut answer = Response::new(body);
            *answer.status_mut() = StatusCode::from_u16(status).unwrap();
            let answer = finish(answer, Some(&json!(3)), Accepts::Streams).await;
            assert_eq!(answer.status().as_u16(), status);
            let body = axum::body::to_bytes(answer.into_body(), 10_000)
                .await
                .unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["id"], 3);
            assert_eq!(body["error"]["code"], code);
            let message = body["error"]["message"].as_str().unwrap();
            assert!(
                message.contains(told) && !message.contains("secret"),
                "{message}"
            );
        }
    }
}
