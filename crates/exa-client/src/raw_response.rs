//! Responses that are not JSON, as JSON.

use base64::{Engine, engine::general_purpose};
use serde_json::{Value, json};

use super::stream::parse_events;

/// Returns the body as JSON: text as a string, an event stream as a list of its events, and all else as base64.
pub(super) fn as_json(content_type: &str, bytes: &[u8]) -> Vec<u8> {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    let value = match std::str::from_utf8(bytes) {
        _ if essence == "text/event-stream" => parse_events(bytes),
        Ok(text) if is_text(&essence) => json!(text),
        _ => json!({
            "contentType": essence,
            "base64": general_purpose::STANDARD.encode(bytes),
        }),
    };
    Value::to_string(&value).into_bytes()
}

fn is_text(essence: &str) -> bool {
    const TEXT: &[&str] = &[
        "csv",
        "xml",
        "yaml",
        "javascript",
        "x-ndjson",
        "jsonl",
        "x-yaml",
    ];
    let subtype = essence.split('/').next_back().unwrap_or_default();
    let suffix = subtype.rsplit('+').next().unwrap_or_default();
    essence.starts_with("text/") || TEXT.contains(&suffix)
}

/// Returns whether the media type is JSON.
pub(super) fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn value(content_type: &str, bytes: &[u8]) -> Value {
        serde_json::from_slice(&as_json(content_type, bytes)).unwrap()
    }

    #[test]
    fn text_stays_text_and_bytes_become_base64() {
        assert_eq!(
            value("text/csv; charset=utf-8", b"a,b\n1,2"),
            json!("a,b\n1,2")
        );
        assert_eq!(value("application/atom+xml", b"<a/>"), json!("<a/>"));
        let binary = json!({"contentType": "application/pdf", "base64": "AP8="});
        assert_eq!(value("application/pdf", b"\x00\xff"), binary);
        let broken = json!({"contentType": "text/plain", "base64": "/w=="});
        assert_eq!(value("text/plain", b"\xff"), broken);
    }

    #[test]
    fn an_event_stream_becomes_a_list() {
        let events = b"data: {\"a\":1}\n\nevent: done\ndata: [DONE]\n\n";
        let expected = json!([{"event": "message", "data": {"a": 1}},
            {"event": "done", "data": "[DONE]"}]);
        assert_eq!(value("text/event-stream", events), expected);
    }
}
