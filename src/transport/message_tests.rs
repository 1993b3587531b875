//! Tests of decoding valid and invalid messages.
#![allow(clippy::unwrap_used, clippy::panic)]

use rmcp::model::ErrorCode;
use serde_json::json;

use super::*;

fn decode_text(text: &str) -> IncomingMessage {
    decode(parse_json(text.as_bytes()).unwrap().unwrap())
}

/// Returns the code and the id of an error.
fn rejection(text: &str) -> (i32, Value) {
    match decode_text(text) {
        IncomingMessage::Invalid { id, error } => (error.code.0, id),
        other => panic!("{text} gave {other:?}"),
    }
}

fn accepted(text: &str) -> (Value, ClientRequest) {
    match decode_text(text) {
        IncomingMessage::Request { id, request } => (id, *request),
        other => panic!("{text} gave {other:?}"),
    }
}

#[test]
fn ignores_blank_lines_byte_order_marks_and_line_endings() {
    assert!(parse_json(b"").is_none());
    assert!(parse_json(b" \t\r").is_none());
    assert!(parse_json(b"\xEF\xBB\xBF").is_none());
    let value = parse_json(b"\xEF\xBB\xBF {\"a\":1}\r").unwrap().unwrap();
    assert_eq!(value, json!({"a": 1}));
}

#[test]
fn broken_json_is_a_parse_error() {
    let deep = "[".repeat(10_000);
    for text in ["{", "nonsense", "{\"a\":1}{", "\"\u{1}\"", "1e999", &deep] {
        let error = parse_json(text.as_bytes()).unwrap().unwrap_err();
        assert_eq!(error.code, ErrorCode::PARSE_ERROR, "{text}");
    }
    let error = parse_json(b"\"\xFF\"").unwrap().unwrap_err();
    assert_eq!(error.code, ErrorCode::PARSE_ERROR);
}

#[test]
fn repairs_lone_surrogates() {
    let (_, request) = accepted(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"q":"x\ud83d"}}}"#,
    );
    let ClientRequest::CallToolRequest(call) = request else {
        panic!("not a call")
    };
    let arguments = json!({"q": "x\u{fffd}"});
    assert_eq!(Value::from(call.params.arguments.unwrap()), arguments);
}

#[test]
fn rejects_invalid_messages_with_their_id() {
    assert_eq!(rejection("1"), (-32600, Value::Null));
    assert_eq!(rejection("{}"), (-32600, Value::Null));
    assert_eq!(rejection(r#"{"id":5}"#), (-32600, json!(5)));
    let old = r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#;
    assert_eq!(rejection(old), (-32600, json!("a")));
    let both = r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#;
    assert_eq!(rejection(both), (-32600, json!(1)));
    let number = r#"{"jsonrpc":"2.0","id":1,"method":7}"#;
    assert_eq!(rejection(number), (-32600, json!(1)));
}

#[test]
fn ids_are_strings_or_integers() {
    let ping = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    for id in ["0", "-7", "18446744073709551615", "1.0", "\"\"", "\"a\""] {
        let expected: Value = serde_json::from_str(id).unwrap();
        assert_eq!(accepted(&ping(id)).0, expected, "{id}");
    }
    for id in ["null", "true", "[]", "{}", "123456789012345678901234567890"] {
        assert_eq!(rejection(&ping(id)), (-32600, Value::Null), "{id}");
    }
    assert_eq!(rejection(&ping("1.5")), (-32600, json!(1.5)));
}

#[test]
fn invalid_parameters_are_not_an_unknown_method() {
    let call = |method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
    };
    for (method, params) in [
        ("tools/call", "{}"),
        ("tools/call", "[]"),
        ("tools/call", r#"{"name":5}"#),
        ("tools/call", r#"{"name":"a","arguments":"b"}"#),
        ("tools/call", r#"{"name":"a","_meta":1}"#),
        ("tools/list", "7"),
        ("tools/list", r#"{"cursor":7}"#),
        ("logging/setLevel", r#"{"level":"loud"}"#),
        ("initialize", r#"{"protocolVersion":"2025-06-18"}"#),
        ("ping", "\"a\""),
    ] {
        let text = call(method, params);
        assert_eq!(rejection(&text), (-32602, json!(1)), "{text}");
    }
    let missing = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#;
    assert_eq!(rejection(missing), (-32602, json!(1)));
}

#[test]
fn truncates_long_error_messages() {
    let name = "x".repeat(10_000);
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a","arguments":"{name}"}}}}"#
    );
    let IncomingMessage::Invalid { error, .. } = decode_text(&text) else {
        panic!("not rejected")
    };
    assert!(error.message.chars().count() < 400, "{}", error.message);
}

#[test]
fn passes_on_unknown_methods_with_any_parameters() {
    for params in ["[]", "{}", "3"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"foo/bar","params":{params}}}"#);
        let (_, request) = accepted(&text);
        assert_eq!(request.method(), "foo/bar");
    }
}

#[test]
fn never_rejects_notifications() {
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3,"reason":"r"}}"#;
    let IncomingMessage::Cancelled { id, reason } = decode_text(cancel) else {
        panic!("not a cancellation")
    };
    assert_eq!((id, reason.as_deref()), (json!(3), Some("r")));
    for text in [
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":"x"}"#,
    ] {
        assert!(
            matches!(decode_text(text), IncomingMessage::Ignored),
            "{text}"
        );
    }
    for method in ["notifications/initialized", "foo", "tools/call"] {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
        let read = decode_text(&text);
        assert!(matches!(read, IncomingMessage::Notification(_)), "{read:?}");
    }
}

#[test]
fn never_responds_to_responses() {
    let fit = r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#;
    assert!(matches!(decode_text(fit), IncomingMessage::Response(_)));
    let echo = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#;
    let read = decode_text(echo);
    assert!(matches!(
        read,
        IncomingMessage::Response(_) | IncomingMessage::Ignored
    ));
    for text in [
        r#"{"id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":"bad"}"#,
        r#"{"jsonrpc":"2.0","id":{},"result":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#,
    ] {
        assert!(
            matches!(decode_text(text), IncomingMessage::Ignored),
            "{text}"
        );
    }
}
