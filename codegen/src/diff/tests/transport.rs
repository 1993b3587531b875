//! Hosts, authentication, media types, streams and conditions on the whole body.

use super::{changes_between, input_changes, snapshot};
use serde_json::{Value, json};

fn with(key: &str, value: Value) -> Value {
    let mut result = snapshot(json!({}), json!({}));
    if let Value::Object(fields) = &mut result {
        fields.insert(key.to_owned(), value);
    }
    result
}

#[test]
fn another_host_authentication_or_response_type_is_breaking() {
    for (key, old, new, expected) in [
        (
            "host",
            "https://a.example",
            "https://b.example",
            "breaking: host `https://a.example` → `https://b.example`: requests and the key go to another host",
        ),
        (
            "auth",
            "header x-api-key",
            "bearer token",
            "breaking: authentication `header x-api-key` → `bearer token`: the key is sent in another place",
        ),
        (
            "responseType",
            "application/json",
            "text/csv",
            "breaking: response type `application/json` → `text/csv`: results have another form",
        ),
        (
            "requestType",
            "application/json",
            "multipart/form-data",
            "compatible: request type `application/json` → `multipart/form-data`: the server sends the body in it",
        ),
    ] {
        let changes = changes_between(with(key, json!(old)), with(key, json!(new)));
        assert_eq!(changes, [expected]);
        let older = snapshot(json!({}), json!({}));
        assert!(changes_between(older, with(key, json!(new))).is_empty());
    }
}

#[test]
fn a_lost_long_running_marker_is_breaking() {
    let marked = with("longRunning", json!({"get": "items.get"}));
    let plain = snapshot(json!({}), json!({}));
    assert_eq!(
        changes_between(marked.clone(), plain.clone()),
        [
            "breaking: no longer marked as long-running: calls return the started work instead of its result"
        ]
    );
    let changes = changes_between(plain, marked);
    assert!(
        changes.iter().all(|it| it.starts_with("compatible")),
        "{changes:?}"
    );
}

#[test]
fn streamed_events_are_compared_like_responses() {
    let stream = |properties: Value| {
        with(
            "streamSchema",
            json!({"type": "object", "properties": properties}),
        )
    };
    let old = stream(json!({"delta": {"type": "string"}}));
    assert_eq!(
        changes_between(
            old.clone(),
            stream(json!({"delta": {"type": "string"}, "cost": {"type": "number"}}))
        ),
        ["compatible stream cost: added (number)"]
    );
    assert_eq!(
        changes_between(old.clone(), stream(json!({}))),
        ["breaking stream delta: removed (breaks clients that rely on it)"]
    );
    let none = snapshot(json!({}), json!({}));
    assert_eq!(changes_between(old.clone(), none.clone()).len(), 1);
    assert!(changes_between(none, old)[0].starts_with("compatible: the response can be streamed"));
}

#[test]
fn conditions_on_the_whole_body_are_compared() {
    let body = |extra: Value| {
        let mut schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
        if let (Value::Object(schema), Value::Object(extra)) = (&mut schema, extra) {
            schema.extend(extra);
        }
        schema
    };
    for condition in [
        json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        json!({"dependentRequired": {"a": ["b"]}}),
        json!({"not": {"required": ["a", "b"]}}),
        json!({"if": {"required": ["a"]}, "then": {"required": ["b"]}}),
        json!({"minProperties": 1}),
        json!({"patternProperties": {"^x-": {"type": "string"}}}),
    ] {
        let added = input_changes(body(json!({})), body(condition.clone()));
        assert!(
            added.iter().any(|it| it.starts_with("breaking")),
            "{condition}: {added:?}"
        );
        let removed = input_changes(body(condition.clone()), body(json!({})));
        assert!(!removed.is_empty(), "{condition}");
        assert!(
            !removed.iter().any(|it| it.starts_with("breaking")),
            "{condition}: {removed:?}"
        );
    }
}
