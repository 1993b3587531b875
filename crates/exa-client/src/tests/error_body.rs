#![allow(clippy::unwrap_used)]

use super::*;
use serde_json::json;

fn error_of(content_type: &str, bytes: &[u8]) -> ExaError {
    let key = ApiKey::new("secret-key-1").unwrap();
    ErrorBody::parse(content_type, bytes).into_error(StatusCode::BAD_REQUEST, Some(&key))
}

fn json_error(value: &Value) -> ExaError {
    error_of("application/json", value.to_string().as_bytes())
}

#[test]
fn parses_flat_errors() {
    let error = json_error(&json!({
        "requestId": "r1", "error": "numResults is too large", "tag": "INVALID_REQUEST_BODY",
        "statusCode": 400, "timestamp": "now", "path": "/search",
    }));
    assert_eq!(error.message, "numResults is too large");
    assert_eq!(error.tag.as_deref(), Some("INVALID_REQUEST_BODY"));
    assert_eq!(error.request_id.as_deref(), Some("r1"));
    assert_eq!(error.kind, ExaErrorKind::Api(400));
    assert_eq!(error.status, Some(400));
    assert!(error.detail.is_none());
}

#[test]
fn prefers_the_more_specific_of_error_and_message() {
    for (error, message, expected) in [
        ("Bad Request", "query is required", "query is required"),
        ("query is required", "Bad request", "query is required"),
        ("Invalid", "Invalid: query", "Invalid: query"),
        ("Invalid: query", "query", "Invalid: query"),
        (
            "Invalid body",
            "query is required",
            "Invalid body: query is required",
        ),
    ] {
        let body = json!({"statusCode": 400, "error": error, "message": message});
        assert_eq!(json_error(&body).message, expected);
    }
}

#[test]
fn parses_error_envelopes() {
    let error = json_error(&json!({
        "error": {"type": "RATE_LIMIT_ERROR", "code": "CONCURRENCY_LIMIT_REACHED",
                  "message": "Too many runs", "detail": {"limit": 5}},
        "requestId": "r2",
    }));
    assert_eq!(error.message, "Too many runs");
    assert_eq!(error.tag.as_deref(), Some("CONCURRENCY_LIMIT_REACHED"));
    assert_eq!(error.request_id.as_deref(), Some("r2"));
    assert_eq!(error.detail.as_deref(), Some(&json!({"limit": 5})));

    let error =
        json_error(&json!({"error": {"type": "NOT_FOUND", "message": "x", "detail": null}}));
    assert_eq!(error.tag.as_deref(), Some("NOT_FOUND"));
    assert!(error.detail.is_none());
}

#[test]
fn describes_an_envelope_without_a_message() {
    let error =
        json_error(&json!({"error": {"type": "T", "detail": [{"msg": "bad", "loc": ["a", 0]}]}}));
    assert_eq!(error.message, "a.0: bad");
    let error = json_error(&json!({"error": {"type": "T"}}));
    assert_eq!(error.message, r#"{"error":{"type":"T"}}"#);
}

#[test]
fn parses_message_strings_and_lists() {
    assert_eq!(json_error(&json!({"message": "no"})).message, "no");
    let error =
        json_error(&json!({"statusCode": 400, "message": ["a", "b"], "error": "Bad Request"}));
    assert_eq!(error.message, "a; b");
    assert_eq!(error.detail.as_deref(), Some(&json!(["a", "b"])));
}

#[test]
fn parses_details() {
    let error = json_error(&json!({"detail": "Not here"}));
    assert_eq!(error.message, "Not here");
    assert!(error.detail.is_none());
    let list = json!([{"loc": ["body", "query"], "msg": "field required", "type": "missing"}]);
    let error = json_error(&json!({"detail": list}));
    assert_eq!(error.message, "body.query: field required");
    assert_eq!(error.detail.as_deref(), Some(&list));
    let issues = json!([{"path": ["numResults"], "message": "too big"}]);
    let error = json_error(&json!({"error": "Invalid body", "issues": issues}));
    assert_eq!(error.message, "Invalid body");
    assert_eq!(error.detail.as_deref(), Some(&issues));
}

#[test]
fn shows_other_json_as_it_is() {
    assert_eq!(
        json_error(&json!({"a": {"b": 1}})).message,
        r#"{"a":{"b":1}}"#
    );
    assert_eq!(json_error(&json!("just text")).message, "just text");
    assert_eq!(json_error(&json!([1, "two"])).message, "1; two");
    assert_eq!(json_error(&json!(null)).message, "Bad Request");
    assert_eq!(
        json_error(&json!({"error": 5, "message": {}})).message,
        "5: {}"
    );
}

#[test]
fn parses_html_plain_text_and_empty_bodies() {
    let error = error_of(
        "text/html; charset=utf-8",
        b"<html><title>502 Oops</title><p>x</p>",
    );
    assert_eq!(error.message, "502 Oops");
    let error = error_of(
        "",
        b"\n<html><body><h1>Blocked</h1>by &quot;proxy&quot;</body></html>",
    );
    assert_eq!(error.message, "Blocked by \"proxy\"");
    assert_eq!(
        error_of("text/plain", b"upstream\r\n error\x1b[0m").message,
        "upstream error"
    );
    assert_eq!(error_of("text/plain", b"").message, "Bad Request");
    assert_eq!(
        error_of("text/html", b"<html></html>").message,
        "Bad Request"
    );
    assert_eq!(
        error_of("text/plain", b"\xff\xfe ok").message,
        "\u{fffd}\u{fffd} ok"
    );
    assert_eq!(error_of("application/json", b"{\"cut").message, "{\"cut");
}

#[test]
fn limits_the_length_of_messages() {
    let error = json_error(&json!({"error": "ü".repeat(9_000), "tag": "T".repeat(900)}));
    assert_eq!(error.message.chars().count(), 2_000);
    assert_eq!(error.tag.unwrap().chars().count(), 200);
}

#[test]
fn redacts_an_echoed_key_everywhere() {
    let bodies = [
        r#"{"error":"key secret-key-1","tag":"secret-key-1","requestId":"secret-key-1"}"#,
        r#"{"error":"key secret\u002dkey-1"}"#,
        r#"{"error":{"message":"m secret-key-1","code":"secret-key-1","detail":{"secret-key-1":["secret-key-1"]}}}"#,
        r#"{"x":"secret-key-1"}"#,
        "plain secret-key-1",
        "<title>secret-key-1</title>",
    ];
    for body in bodies {
        let error = error_of("", body.as_bytes());
        for text in [
            format!("{error:?}"),
            error.to_string(),
            error.detail_lines().join("\n"),
        ] {
            assert!(!text.contains("secret-key-1"), "{text}");
        }
        assert!(error.message.contains("[redacted]"), "{error}");
    }
}
