//! Which failures are retried, how often and when.

use super::*;
use crate::{
    ExaErrorKind,
    test_server::{ScriptedResponse, TestServer},
};
use std::time::{Instant, SystemTime};

const OK: &str = r#"{"ok":true}"#;

/// Returns the number of requests that a server receives if it always responds like this.
async fn requests(method: &Method, scripted: ScriptedResponse) -> usize {
    let server = TestServer::start([scripted]).await;
    let error = call(&server.url(), method.clone()).await.unwrap_err();
    assert_eq!(error.attempts as usize, server.count());
    server.count()
}

#[tokio::test]
async fn retries_statuses_depending_on_the_method() {
    for method in [Method::GET, Method::HEAD, Method::PUT, Method::DELETE] {
        for status in [408, 429, 500, 501, 502, 503, 504, 599] {
            let count = requests(&method, ScriptedResponse::json(status, "{}")).await;
            assert_eq!(count, 4, "{method} {status}");
        }
        for status in [304, 400, 401, 402, 403, 404, 409, 422] {
            let count = requests(&method, ScriptedResponse::json(status, "{}")).await;
            assert_eq!(count, 1, "{method} {status}");
        }
    }
    for method in [Method::POST, Method::PATCH] {
        for status in [429, 503] {
            let count = requests(&method, ScriptedResponse::json(status, "{}")).await;
            assert_eq!(count, 4, "{method} {status}");
        }
        for status in [400, 408, 500, 501, 502, 504, 599] {
            let count = requests(&method, ScriptedResponse::json(status, "{}")).await;
            assert_eq!(count, 1, "{method} {status}");
        }
    }
}

#[tokio::test]
async fn retries_lost_connections_depending_on_the_method() {
    let broken = || {
        [
            ScriptedResponse::cut(),
            ScriptedResponse::reset(),
            ScriptedResponse::raw("HTTP/1.1 20"),
            ScriptedResponse::head(200, &[("content-length", "9")]).send("{"),
            ScriptedResponse::head(200, &[("transfer-encoding", "chunked")]).chunk("{"),
        ]
    };
    for (method, expected) in [(Method::GET, 4), (Method::DELETE, 4), (Method::POST, 1)] {
        for scripted in broken() {
            let name = format!("{method} {scripted:?}");
            let server = TestServer::start([scripted]).await;
            let error = call(&server.url(), method.clone()).await.unwrap_err();
            assert_eq!(error.kind, ExaErrorKind::ConnectionLost, "{name}");
            assert_eq!(server.count(), expected, "{name}");
            let text = error.to_string();
            assert!(
                text.contains("127.0.0.1") && text.contains("took effect"),
                "{text}"
            );
        }
    }
}

#[tokio::test]
async fn returns_the_response_of_a_successful_retry() {
    let server = TestServer::start([
        ScriptedResponse::cut(),
        ScriptedResponse::json(500, ""),
        ScriptedResponse::head(200, &[("content-length", "99")]).send("{"),
        ScriptedResponse::json(200, OK),
    ])
    .await;
    let response = call(&server.url(), Method::GET).await.unwrap();
    assert_eq!(response.value, json!({"ok": true}));
    assert_eq!(server.count(), 4);
}

#[tokio::test]
async fn each_attempt_sends_the_same_request() {
    let server = TestServer::start([
        ScriptedResponse::json(503, ""),
        ScriptedResponse::json(200, OK),
    ])
    .await;
    call(&server.url(), Method::POST).await.unwrap();
    for request in server.requests() {
        assert_eq!(request.body, br#"{"query":"x"}"#);
        assert_eq!(request.header("x-api-key"), Some(KEY));
    }
}

#[tokio::test]
async fn retry_after_in_seconds_is_a_minimum() {
    let server = TestServer::start([
        ScriptedResponse::new(429, &[("retry-after", "1")], ""),
        ScriptedResponse::json(200, OK),
    ])
    .await;
    let start = Instant::now();
    call(&server.url(), Method::POST).await.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn retry_after_as_a_date_is_a_minimum() {
    let date = SystemTime::now() + Duration::from_secs(2);
    let date = httpdate::fmt_http_date(date);
    let server = TestServer::start([
        ScriptedResponse::new(503, &[("retry-after", &date)], ""),
        ScriptedResponse::json(200, OK),
    ])
    .await;
    let start = Instant::now();
    call(&server.url(), Method::GET).await.unwrap();
    // Dates have whole seconds, so up to one second may be lost.
    assert!(start.elapsed() >= Duration::from_millis(900));
}

#[tokio::test]
async fn does_not_wait_longer_than_the_total() {
    let server =
        TestServer::start([ScriptedResponse::new(429, &[("retry-after", "31")], "")]).await;
    let start = Instant::now();
    let error = call(&server.url(), Method::GET).await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(20));
    assert_eq!(error.retry_after, Some(Duration::from_secs(31)));
    assert_eq!(server.count(), 1);
    assert!(error.to_string().contains("at least 31 s"), "{error}");
    assert!(error.is_retryable());
}

#[tokio::test]
async fn all_waits_share_the_total() {
    let mut config = quick();
    config.retry.max_total_wait = Duration::from_millis(1_500);
    let server = TestServer::start([ScriptedResponse::new(429, &[("retry-after", "1")], "")]).await;
    let error = call_with(&server.url(), context(config), Method::GET)
        .await
        .unwrap_err();
    assert_eq!((server.count(), error.attempts), (2, 2));
}

#[tokio::test]
async fn retries_can_be_disabled() {
    let mut config = quick();
    config.retry.max_retries = 0;
    let server = TestServer::start([ScriptedResponse::json(500, "")]).await;
    let response = call_with(&server.url(), context(config), Method::GET).await;
    assert!(response.is_err());
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn sends_a_streaming_body_once() {
    let server = TestServer::start([ScriptedResponse::json(503, "")]).await;
    let context = context(quick());
    let client = context.http().client().unwrap();
    let parts = [Ok::<_, std::io::Error>("{}")];
    let body = reqwest::Body::wrap_stream(futures_util::stream::iter(parts));
    let request = client.put(server.url()).body(body).build().unwrap();
    let response = send(client, &context, request).await.unwrap();
    assert_eq!(response.status().as_u16(), 503);
    let error = ExaError::from(Error::<()>::UnexpectedResponse(response));
    assert_eq!((error.status, error.attempts), (Some(503), 1));
    assert_eq!(server.count(), 1);
}
