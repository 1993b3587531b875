//! Redirects, which must not leak the key.

use super::*;
use crate::{
    ExaErrorKind,
    test_server::{ScriptedResponse, TestServer},
};

fn redirect(status: u16, location: &str) -> ScriptedResponse {
    ScriptedResponse::new(status, &[("location", location)], "")
}

#[tokio::test]
async fn does_not_follow_redirects_to_another_port() {
    let other = TestServer::start([ScriptedResponse::json(200, "{}")]).await;
    for status in [301, 302, 303, 307, 308] {
        for method in [Method::GET, Method::POST, Method::DELETE] {
            let location = format!("{}/thing?token=hidden-query", other.url());
            let server = TestServer::start([redirect(status, &location)]).await;
            let error = call(&server.url(), method).await.unwrap_err();
            assert_eq!(error.kind, ExaErrorKind::Redirect);
            assert_eq!(error.status, Some(status));
            assert_eq!((server.count(), error.attempts), (1, 1));
            let text = error.to_string();
            assert!(text.contains(&other.url()), "{text}");
            assert!(text.contains("EXA_BASE_URL"), "{text}");
        }
    }
    assert_eq!(other.count(), 0);
}

#[tokio::test]
async fn does_not_follow_redirects_to_another_host_or_scheme() {
    for location in [
        "http://other.invalid/thing",
        "//other.invalid/thing",
        "https://127.0.0.1/thing",
    ] {
        let server = TestServer::start([redirect(307, location)]).await;
        let error = call(&server.url(), Method::GET).await.unwrap_err();
        assert_eq!(error.kind, ExaErrorKind::Redirect, "{error}");
    }
}

#[tokio::test]
async fn follows_redirects_within_the_origin() {
    let server = TestServer::start([
        redirect(307, "/other"),
        redirect(308, "third?x=1"),
        ScriptedResponse::json(200, r#"{"a":1}"#),
    ])
    .await;
    let response = call(&server.url(), Method::POST).await.unwrap();
    assert_eq!(response.value, json!({"a": 1}));
    let request = server.requests();
    let targets: Vec<_> = request
        .iter()
        .map(|request| request.target.as_str())
        .collect();
    assert_eq!(targets, ["/thing", "/other", "/third?x=1"]);
    for request in request {
        assert_eq!(request.method, "POST");
        assert_eq!(request.header("x-api-key"), Some(KEY));
        assert_eq!(request.header("referer"), None);
        assert_eq!(request.body, br#"{"query":"x"}"#);
    }
}

#[tokio::test]
async fn does_not_turn_a_post_into_a_get() {
    for status in [301, 302, 303] {
        let responses = || {
            [
                redirect(status, "/other"),
                ScriptedResponse::json(200, "{}"),
            ]
        };
        let server = TestServer::start(responses()).await;
        call(&server.url(), Method::GET).await.unwrap();
        let server = TestServer::start(responses()).await;
        let error = call(&server.url(), Method::POST).await.unwrap_err();
        assert_eq!(error.kind, ExaErrorKind::Redirect);
        assert!(error.to_string().contains("POST"), "{error}");
        assert_eq!(server.count(), 1);
    }
}

#[tokio::test]
async fn stops_when_a_chain_leaves_the_origin() {
    let other = TestServer::start([ScriptedResponse::json(200, "{}")]).await;
    let server = TestServer::start([redirect(302, "/other"), redirect(302, &other.url())]).await;
    let error = call(&server.url(), Method::GET).await.unwrap_err();
    assert_eq!(error.kind, ExaErrorKind::Redirect);
    assert_eq!((server.count(), other.count()), (2, 0));
}

#[tokio::test]
async fn follows_at_most_three_redirects() {
    let server = TestServer::start([redirect(302, "/again")]).await;
    let error = call(&server.url(), Method::GET).await.unwrap_err();
    assert_eq!(error.kind, ExaErrorKind::Redirect);
    assert!(error.to_string().contains("after 3 redirects"), "{error}");
    assert_eq!(server.count(), 4);
}

#[tokio::test]
async fn rejects_redirects_without_a_usable_target() {
    for scripted in [
        ScriptedResponse::new(302, &[], ""),
        redirect(302, "ftp://x/"),
        redirect(302, "http://[bad"),
    ] {
        let server = TestServer::start([scripted]).await;
        let error = call(&server.url(), Method::GET).await.unwrap_err();
        assert_eq!(error.kind, ExaErrorKind::Redirect);
        assert!(error.to_string().contains("without a usable"), "{error}");
    }
    let server = TestServer::start([redirect(302, "http://u:p@other.invalid/")]).await;
    let error = call(&server.url(), Method::GET).await.unwrap_err();
    assert!(!error.to_string().contains("u:p"), "{error}");
}

#[tokio::test]
async fn all_hops_share_one_timeout() {
    let wait = Duration::from_millis(600);
    let slow = ScriptedResponse::cut().wait(wait).send(
        "HTTP/1.1 302 X\r\nlocation: /again\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    );
    let server = TestServer::start([slow]).await;
    let key = ApiKey::new(KEY).unwrap();
    let http = context(quick()).http().clone();
    let context = CallContext::new(http, key, Duration::from_millis(1_000), Arc::new(Unguarded));
    let error = call_with(&server.url(), context, Method::GET)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ExaErrorKind::Timeout);
    assert_eq!(server.count(), 2);
}
