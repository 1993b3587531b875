//! Response bodies: limits, compression, empty bodies, and bodies that are not JSON.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::sleep;

use super::*;
use crate::{
    ExaErrorKind, hold_response_memory,
    test_server::{ScriptedResponse, TestServer, gzip, gzip_bomb},
};

const GZIP: &[(&str, &str)] = &[("content-encoding", "gzip")];

fn small() -> CallContext {
    context(ExaConfig {
        max_response_bytes: 1_000,
        ..quick()
    })
}

async fn response_of(scripted: ScriptedResponse) -> Result<ExaResponse, ExaError> {
    let server = TestServer::start([scripted]).await;
    call_with(&server.url(), small(), Method::GET).await
}

async fn error_of(scripted: ScriptedResponse) -> ExaError {
    response_of(scripted).await.unwrap_err()
}

#[tokio::test]
async fn reads_a_body_up_to_the_limit() {
    let body = format!("{:?}", "x".repeat(998));
    assert_eq!(body.len(), 1_000);
    let response = response_of(ScriptedResponse::json(200, &body))
        .await
        .unwrap();
    assert_eq!(response.value, Value::String("x".repeat(998)));
    let halves = body.as_bytes().split_at(500);
    let chunked = ScriptedResponse::head(200, &[("transfer-encoding", "chunked")])
        .chunk(halves.0)
        .chunk(halves.1)
        .chunk("");
    assert_eq!(response_of(chunked).await.unwrap().value, response.value);
}

#[tokio::test]
async fn rejects_a_longer_body_with_and_without_its_length() {
    let body = format!("{:?}", "x".repeat(999));
    let chunked = ScriptedResponse::head(200, &[("transfer-encoding", "chunked")])
        .chunk(&body[..500])
        .chunk(&body[500..])
        .chunk("");
    let open_ended = ScriptedResponse::head(200, &[]).send(&body);
    for scripted in [ScriptedResponse::json(200, &body), chunked, open_ended] {
        let error = error_of(scripted).await;
        assert_eq!(error.kind, ExaErrorKind::TooLarge);
        assert_eq!((error.status, error.attempts), (Some(200), 1));
        assert!(error.to_string().contains("1000 bytes"), "{error}");
        assert!(error.to_string().contains("fewer results"), "{error}");
    }
}

#[tokio::test]
async fn rejects_a_content_length_beyond_the_limit() {
    let scripted =
        ScriptedResponse::head(200, &[("content-length", "1001")]).wait(Duration::from_secs(60));
    assert_eq!(error_of(scripted).await.kind, ExaErrorKind::TooLarge);
}

/// Returns bodies of 2 MiB with and without a content length.
fn large() -> [ScriptedResponse; 2] {
    let body = format!("{:?}", "x".repeat(2 * 1024 * 1024 - 2));
    let chunked = ScriptedResponse::head(200, &[("transfer-encoding", "chunked")])
        .chunk(&body[..1_000_000])
        .chunk(&body[1_000_000..])
        .chunk("");
    [ScriptedResponse::json(200, &body), chunked]
}

#[tokio::test]
async fn limits_concurrent_large_bodies() {
    for scripted in large() {
        let server = TestServer::start(vec![scripted; 8]).await;
        let context = context(ExaConfig {
            max_response_bytes: 3 * 1024 * 1024,
            max_response_memory: 5 * 1024 * 1024,
            ..quick()
        });
        let held = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (url, context) = (server.url(), context.clone());
            let (held, most) = (Arc::clone(&held), Arc::clone(&most));
            calls.spawn(hold_response_memory(async move {
                let response = call_with(&url, context, Method::GET).await;
                most.fetch_max(held.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                sleep(Duration::from_millis(30)).await;
                held.fetch_sub(1, Ordering::SeqCst);
                response.map(|response| response.value.as_str().map(str::len))
            }));
        }
        for length in calls.join_all().await {
            assert_eq!(length.unwrap(), Some(2 * 1024 * 1024 - 2));
        }
        let most = most.load(Ordering::SeqCst);
        assert!((1..=2).contains(&most), "{most} bodies at once");
    }
}

#[tokio::test]
async fn waiting_for_memory_does_not_count_as_a_timeout() {
    for scripted in large() {
        let server = TestServer::start(vec![scripted; 4]).await;
        let http = context(ExaConfig {
            max_response_bytes: 3 * 1024 * 1024,
            max_response_memory: 3 * 1024 * 1024,
            ..quick()
        });
        let http = http.http().clone();
        let key = ApiKey::new(KEY).unwrap();
        let context = CallContext::new(http, key, Duration::from_secs(3), Arc::new(Unguarded));
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let (url, context) = (server.url(), context.clone());
            calls.spawn(hold_response_memory(async move {
                let response = call_with(&url, context, Method::GET).await;
                sleep(Duration::from_millis(1_500)).await;
                response.map(drop)
            }));
        }
        for response in calls.join_all().await {
            response.unwrap();
        }
    }
}

#[tokio::test]
async fn counts_the_memory_of_many_small_values() {
    let body = format!("[{}]", vec![r#"{"a":1}"#; 50_000].join(","));
    let server = TestServer::start(vec![ScriptedResponse::json(200, &body); 4]).await;
    // Enough for many of these bodies, but not for the values of two.
    let context = context(ExaConfig {
        max_response_memory: 30 * 1024 * 1024,
        ..quick()
    });
    let held = Arc::new(AtomicUsize::new(0));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (url, context, held) = (server.url(), context.clone(), Arc::clone(&held));
        calls.spawn(hold_response_memory(async move {
            let response = call_with(&url, context, Method::GET).await;
            let others = held.fetch_add(1, Ordering::SeqCst);
            sleep(Duration::from_millis(30)).await;
            held.fetch_sub(1, Ordering::SeqCst);
            response.map(|_| others)
        }));
    }
    for others in calls.join_all().await {
        assert_eq!(others.unwrap(), 0);
    }
}

#[tokio::test]
async fn small_bodies_do_not_wait_for_large_ones() {
    let [large, _] = large();
    let server = TestServer::start([large, ScriptedResponse::json(200, "{}")]).await;
    let context = context(ExaConfig {
        max_response_memory: 2 * 1024 * 1024,
        ..quick()
    });
    hold_response_memory(async {
        let url = server.url();
        call_with(&url, context.clone(), Method::GET).await.unwrap();
        let other = tokio::spawn(async move { call_with(&url, context, Method::GET).await });
        other.await.unwrap().unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_failed_large_body_releases_its_memory() {
    let cut = ScriptedResponse::head(200, &[("content-length", "2000000")]).send("x");
    let [large, chunked] = large();
    let server = TestServer::start([cut.clone(), cut, large, chunked]).await;
    let context = context(ExaConfig {
        max_response_memory: 2 * 1024 * 1024,
        retry: RetryPolicy {
            max_retries: 0,
            ..quick().retry
        },
        ..quick()
    });
    for _ in 0..2 {
        call_with(&server.url(), context.clone(), Method::GET)
            .await
            .unwrap_err();
    }
    for _ in 0..2 {
        call_with(&server.url(), context.clone(), Method::GET)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn limits_apply_after_decompression() {
    let scripted = ScriptedResponse::new(200, GZIP, gzip(br#"{"a":[1,2]}"#));
    assert_eq!(
        response_of(scripted).await.unwrap().value,
        json!({"a": [1, 2]})
    );
    let bomb = gzip_bomb(100_000);
    assert!(bomb.len() < 1_000);
    let error = error_of(ScriptedResponse::new(200, GZIP, bomb)).await;
    assert_eq!(error.kind, ExaErrorKind::TooLarge);
}

#[tokio::test]
async fn corrupt_gzip_counts_as_a_lost_connection() {
    let mut data = gzip(b"{}");
    data[10] = 7;
    let server = TestServer::start([
        ScriptedResponse::new(200, GZIP, data),
        ScriptedResponse::json(200, "{}"),
    ])
    .await;
    call(&server.url(), Method::GET).await.unwrap();
    assert_eq!(server.count(), 2);
    let half = &gzip(br#"{"a":1}"#)[..15];
    let error = error_of(ScriptedResponse::new(200, GZIP, half)).await;
    assert_eq!(error.kind, ExaErrorKind::ConnectionLost, "{error}");
}

#[tokio::test]
async fn an_empty_body_is_null() {
    let empty_gzip = ScriptedResponse::new(200, GZIP, gzip(b""));
    for (scripted, status) in [
        (ScriptedResponse::new(200, &[], ""), 200),
        (
            ScriptedResponse::new(200, &[("content-type", "text/plain")], " \n"),
            200,
        ),
        (ScriptedResponse::head(204, &[]), 204),
        (ScriptedResponse::new(202, &[], ""), 202),
        (empty_gzip, 200),
    ] {
        let response = response_of(scripted).await.unwrap();
        assert_eq!((response.value, response.status), (Value::Null, status));
    }
}

#[tokio::test]
async fn accepts_an_undeclared_success_status() {
    let headers = [("x-request-id", "r7")];
    let response = response_of(ScriptedResponse::new(201, &headers, r#"{"id":"w1"}"#))
        .await
        .unwrap();
    assert_eq!(response.value, json!({"id": "w1"}));
    assert_eq!(
        (response.status, response.request_id.as_deref()),
        (201, Some("r7"))
    );
}

#[tokio::test]
async fn rejects_a_success_that_is_not_json() {
    let html = [("content-type", "text/html"), ("x-request-id", "r8")];
    let error = error_of(ScriptedResponse::new(200, &html, "<title>Log in</title>")).await;
    assert_eq!(error.kind, ExaErrorKind::NotJson);
    assert_eq!(
        (error.status, error.request_id.as_deref()),
        (Some(200), Some("r8"))
    );
    let text = error.to_string();
    assert!(
        text.contains("text/html") && text.contains("Log in"),
        "{text}"
    );
    assert!(text.contains("EXA_BASE_URL"), "{text}");

    let echo = format!("hello {KEY} {}", "y".repeat(800));
    let error = error_of(ScriptedResponse::new(200, &[], echo)).await;
    let text = error.to_string();
    assert!(text.contains("hello [redacted]"), "{text}");
    assert!(text.len() < 600, "{text}");

    let error = error_of(ScriptedResponse::json(200, r#"{"a":1,"#)).await;
    assert!(error.to_string().contains("cut off"), "{error}");
}

#[tokio::test]
async fn rejects_json_that_cannot_be_represented() {
    let deep = "[".repeat(400) + &"]".repeat(400);
    for body in [deep.as_str(), "[1e999]"] {
        let error = error_of(ScriptedResponse::json(200, body)).await;
        assert_eq!(error.kind, ExaErrorKind::NotJson, "{error}");
        assert!(error.to_string().contains("could not be read"), "{error}");
    }
}

#[tokio::test]
async fn rejects_an_unexpected_event_stream() {
    let headers = [("content-type", "text/event-stream; charset=utf-8")];
    let scripted = ScriptedResponse::head(200, &headers)
        .send("data: {}\n\n")
        .wait(Duration::from_secs(60));
    let error = error_of(scripted).await;
    assert_eq!(error.kind, ExaErrorKind::NotJson);
    assert!(error.to_string().contains("Leave `stream` out"), "{error}");
}

#[tokio::test]
async fn numbers_stay_exact() {
    let text = r#"{"a":18446744073709551615,"b":-9223372036854775808,"c":0.005}"#;
    let response = response_of(ScriptedResponse::json(200, text))
        .await
        .unwrap();
    assert_eq!(response.value.to_string(), text);
}

#[tokio::test]
async fn reports_the_message_of_the_api() {
    let body =
        json!({"requestId": "r9", "error": format!("bad key {KEY}"), "tag": "INVALID_API_KEY"});
    let error = error_of(ScriptedResponse::json(401, &body.to_string())).await;
    assert_eq!(error.kind, ExaErrorKind::Api(401));
    assert_eq!(error.message, "bad key [redacted]");
    assert_eq!(
        error.detail_lines(),
        ["tag: INVALID_API_KEY", "request id: r9"]
    );
    assert!(error.to_string().contains("EXA_API_KEY"), "{error}");
    let html = [("content-type", "text/html")];
    let page = "<html><head><title>403 Forbidden</title></head></html>";
    let error = error_of(ScriptedResponse::new(403, &html, page)).await;
    assert_eq!(error.message, "403 Forbidden");
    let error = error_of(ScriptedResponse::new(404, &[], "")).await;
    assert!(
        error
            .to_string()
            .starts_with("The Exa API returned 404 Not Found."),
        "{error}"
    );
}

#[tokio::test]
async fn limits_error_bodies() {
    let chunk = "z".repeat(30_000);
    let scripted = ScriptedResponse::head(400, &[])
        .send(&chunk)
        .send(&chunk)
        .send(&chunk);
    let error = error_of(scripted.wait(Duration::from_secs(60))).await;
    assert_eq!(error.message.chars().count(), 2_000);
    let cut = ScriptedResponse::head(400, &[("content-length", "999")]).send("half of it");
    assert_eq!(error_of(cut).await.message, "half of it");
}
