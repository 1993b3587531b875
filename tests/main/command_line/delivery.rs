//! Safe requests are retried, and the key is never sent to another host.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{API_KEY, Output, Program, Recorder, Response};

fn success_response() -> Response {
    Response::json(200, &json!({"fine": true}))
}

/// Returns one call of each HTTP method.
fn calls() -> [(&'static str, Value); 4] {
    [
        ("websets.get", json!({"websetId": "w"})),
        ("websets.delete", json!({"websetId": "w"})),
        (
            "webhooks.update",
            json!({"webhookId": "w", "url": "https://e.example"}),
        ),
        ("search", json!({"query": "q"})),
    ]
}

/// Runs a call against a server with these responses and counts its requests.
fn call(
    operation: &str,
    arguments: &Value,
    replies: impl IntoIterator<Item = Response>,
) -> (Output, usize) {
    let server = Recorder::responses(replies);
    let output = Program::call(&server, operation, arguments).run();
    let requests = server.take();
    for request in &requests {
        assert_eq!(
            (&request.target, &request.body),
            (&requests[0].target, &requests[0].body)
        );
        assert_eq!(request.header("x-api-key"), [API_KEY]);
    }
    (output, requests.len())
}

#[test]
fn only_idempotent_calls_are_retried_after_5xx() {
    for (operation, arguments) in calls() {
        let (output, sent) = call(
            operation,
            &arguments,
            [Response::new(502), success_response()],
        );
        if ["websets.get", "websets.delete"].contains(&operation) {
            assert_eq!(
                (output.json(), sent),
                (json!({"fine": true}), 2),
                "{operation}"
            );
        } else {
            output.assert_failed(1, &["502"]);
            assert_eq!(sent, 1, "{operation}");
        }
    }
}

#[test]
fn create_is_not_retried_after_500() {
    let body = json!({"error": "boom", "tag": "INTERNAL_ERROR", "requestId": "r-500"});
    let (output, sent) = call(
        "websets.create",
        &json!({}),
        [Response::json(500, &body), success_response()],
    );
    output.assert_failed(1, &["500", "boom", "INTERNAL_ERROR", "r-500"]);
    assert_eq!(sent, 1);
}

#[test]
fn read_gives_up_after_all_retries() {
    let (output, sent) = call("websets.list", &json!({}), [Response::new(500)]);
    output.assert_failed(1, &["500", "attempts"]);
    assert!((2..=5).contains(&sent), "{sent} attempts");
}

#[test]
fn every_call_is_retried_after_429_and_503() {
    let busy = Response::json(
        429,
        &json!({"error": "slow down", "tag": "RATE_LIMIT_EXCEEDED"}),
    );
    let started = Instant::now();
    let (output, sent) = call(
        "search",
        &json!({"query": "q"}),
        [busy.header("retry-after", "1"), success_response()],
    );
    assert_eq!((output.json(), sent), (json!({"fine": true}), 2));
    assert!(
        started.elapsed() >= Duration::from_secs(1),
        "the client did not wait"
    );
    let (output, sent) = call(
        "search",
        &json!({"query": "q"}),
        [Response::new(503), success_response()],
    );
    assert_eq!((output.json(), sent), (json!({"fine": true}), 2));
}

#[test]
fn long_retry_after_is_reported_instead_of_awaited() {
    let busy = Response::json(
        429,
        &json!({"error": "slow down", "tag": "RATE_LIMIT_EXCEEDED"}),
    );
    let started = Instant::now();
    let (output, sent) = call(
        "websets.list",
        &json!({}),
        [busy.header("retry-after", "3600"), success_response()],
    );
    output.assert_failed(1, &["429", "slow down", "RATE_LIMIT_EXCEEDED", "3600"]);
    assert_eq!(sent, 1);
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn client_errors_are_not_retried() {
    for status in [400, 401, 402, 403, 404, 409, 422] {
        let (output, sent) = call(
            "websets.list",
            &json!({}),
            [Response::new(status), success_response()],
        );
        output.assert_failed(1, &[&status.to_string()]);
        assert_eq!(sent, 1, "{status}");
    }
}

#[test]
fn only_reads_are_retried_after_a_lost_connection() {
    for (operation, arguments) in calls() {
        let (output, sent) = call(
            operation,
            &arguments,
            [Response::disconnect(), success_response()],
        );
        if ["websets.get", "websets.delete"].contains(&operation) {
            assert_eq!(
                (output.json(), sent),
                (json!({"fine": true}), 2),
                "{operation}"
            );
        } else {
            output.assert_failed(1, &["127.0.0.1"]);
            assert_eq!(sent, 1, "{operation}");
        }
    }
}

#[test]
fn closed_port_is_reported_clearly() {
    // No other test can open this port, unlike one that was free a moment ago.
    let output = Program::new(["call", "search", r#"{"query":"q"}"#])
        .env("EXA_BASE_URL", "http://127.0.0.1:1")
        .run();
    output.assert_failed(1, &["connection", "127.0.0.1", "refused", "EXA_BASE_URL"]);
}

#[test]
fn key_is_not_sent_to_another_port_on_redirect() {
    for status in [301, 302, 303, 307, 308] {
        for (operation, arguments) in calls() {
            let other = Recorder::always(success_response());
            let location = format!("{}/elsewhere", other.url());
            let reply = Response::new(status).header("location", &location);
            let (output, sent) = call(operation, &arguments, [reply]);
            output.assert_failed(1, &["redirect", &other.url()]);
            assert_eq!(sent, 1, "{operation} after {status}");
            assert!(other.take().is_empty(), "{operation} after {status}");
        }
    }
}

#[test]
fn same_origin_redirect_preserves_method_body_and_key() {
    let server = Recorder::responses([
        Response::new(308).header("location", "/moved/search?x=1"),
        success_response(),
    ]);
    let output = Program::call(&server, "search", &json!({"query": "q"})).run();
    assert_eq!(output.json(), json!({"fine": true}));
    let last = server.take().pop().expect("a request");
    assert_eq!(
        (last.method.as_str(), last.target.as_str()),
        ("POST", "/moved/search?x=1")
    );
    assert_eq!(last.json(), Some(json!({"query": "q"})));
    assert_eq!(last.header("x-api-key"), [API_KEY]);
}
