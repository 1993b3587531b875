//! Validates JSON-RPC messages.

use serde_json::Value;

/// Parses a line, which must be one JSON-RPC message or a batch of messages.
#[track_caller]
pub(crate) fn parse(line: &[u8]) -> Value {
    let value = serde_json::from_slice(line);
    let value: Value = value.unwrap_or_else(|error| {
        panic!("{error} in {:?}", String::from_utf8_lossy(line));
    });
    match &value {
        Value::Array(members) => {
            assert!(!members.is_empty(), "an empty batch");
            members.iter().for_each(check);
        }
        single => check(single),
    }
    value
}

/// Asserts that a message is a response, a notification or a request.
#[track_caller]
fn check(message: &Value) {
    let fields = message.as_object().expect("an object");
    assert_eq!(message["jsonrpc"], "2.0", "{message}");
    let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
    names.sort_unstable();
    let known: [&[&str]; 5] = [
        &["id", "jsonrpc", "result"],
        &["error", "id", "jsonrpc"],
        &["jsonrpc", "method", "params"],
        &["jsonrpc", "method"],
        &["id", "jsonrpc", "method", "params"],
    ];
    assert!(known.contains(&names.as_slice()), "{message}");
    if let Some(error) = fields.get("error") {
        assert!(error["code"].is_i64(), "{message}");
        assert!(error["message"].is_string(), "{message}");
    }
}
