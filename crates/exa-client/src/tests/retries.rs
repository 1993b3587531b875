//! Which failures are sent again, how often and when.

use super::*;
use crate::{
    ExaErrorKind,
    test_server::{Reply, TestServer},
};
use std::time::{Instant, SystemTime};

const OK: &str = r#"{"ok":true}"#;

/// How many requests a server sees that always gives this reply.
async fn requests(method: &Method, reply: Reply) -> usize {
    let server = TestServer::start([reply]).await;
    let error = call(&server.url(), method.clone()).await.unwrap_err();
    assert_eq!(error.attempts as usize, server.count());
    server.count()
}

#[tokio::test]
async fn statuses_are_retried_by_method() {
    for method in [Method::GET, Method::HEAD, Method::PUT, Method::DELETE] {
        for status in [408, 429, 500, 501, 502, 503, 504, 599] {
            let count = requests(&method, Reply::json(status, "{}")).await;
            assert_eq!(count, 4, "{method} {status}");
        }
        for status in [304, 400, 401, 402, 403, 404, 409, 422] {
            let count = requests(&method, Reply::json(status, "{}")).await;
            assert_eq!(count, 1, "{method} {status}");
        }
    }
    for method in [Method::POST, Method::PATCH] {
        for status in [429, 503] {
            let count = requests(&method, Reply::json(status, "{}")).await;
            assert_eq!(count, 4, "{method} {status}");
        }
        for status in [400, 408, 500, 501, 502, 504, 599] {
            let count = requests(&method, Reply::json(status, "{}")).await;
            assert_eq!(count, 1, "{method} {status}");
        }
    }
}

#[tokio::test]
async fn lost_connections_are_retried_by_method() {
    let broken = || {
        [
            Reply::cut(),
            Reply::reset(),
            Reply::raw("HTTP/1.1 20"),
            Reply::head(200, &[("content-length", "9")]).send("{"),
            Reply::head(200, &[("transfer-encoding", "chunked")]).chunk("{"),
        ]
    };
    for (method, expected) in [(Method::GET, 4), (Method::DELETE, 4), (Method::POST, 1)] {
        for reply in broken() {
            let name = format!("{method} {reply:?}");
            let server = TestServer::start([reply]).await;
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
async fn a_retry_that_works_gives_its_answer() {
    let server = TestServer::start([
        Reply::cut(),
        Reply::json(500, ""),
        Reply::head(200, &[("content-length", "99")]).send("{"),
        Reply::json(200, OK),
    ])
    .await;
    let answer = call(&server.url(), Method::GET).await.unwrap();
    assert_eq!(answer.value, json!({"ok": true}));
    assert_eq!(server.count(), 4);
}

#[tokio::test]
async fn each_attempt_sends_the_same_request() {
    let server = TestServer::start([Reply::json(503, ""), Reply::json(200, OK)]).await;
    call(&server.url(), Method::POST).await.unwrap();
    for seen in server.seen() {
        assert_eq!(seen.body, br#"{"query":"x"}"#);
        assert_eq!(seen.header("x-api-key"), Some(KEY));
    }
}

#[tokio::test]
async fn retry_after_in_seconds_is_a_minimum() {
    let server = TestServer::start([
        Reply::new(429, &[("retry-after", "1")], ""),
        Reply::json(200, OK),
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
        Reply::new(503, &[("retry-after", &date)], ""),
        Reply::json(200, OK),
    ])
    .await;
    let start = Instant::now();
    call(&server.url(), Method::GET).await.unwrap();
    // Dates have whole seconds, so up to one second may be lost.
    assert!(start.elapsed() >= Duration::from_millis(900));
}

#[tokio::test]
async fn a_wait_beyond_the_total_is_not_begun() {
    let server = TestServer::start([Reply::new(429, &[("retry-after", "31")], "")]).await;
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
    let server = TestServer::start([Reply::new(429, &[("retry-after", "1")], "")]).await;
    let error = call_with(&server.url(), context(config), Method::GET)
        .await
        .unwrap_err();
    assert_eq!((server.count(), error.attempts), (2, 2));
}

#[tokio::test]
async fn retries_can_be_turned_off() {
    let mut config = quick();
    config.retry.max_retries = 0;
    let server = TestServer::start([Reply::json(500, "")]).await;
    let answer = call_with(&server.url(), context(config), Method::GET).await;
    assert!(answer.is_err());
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn a_body_that_cannot_be_cloned_is_sent_once() {
    let server = TestServer::start([Reply::json(503, "")]).await;
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
