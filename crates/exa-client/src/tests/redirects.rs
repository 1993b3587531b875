//! Redirects, and where the key must not go.

use super::*;
use crate::{
    ExaErrorKind,
    test_server::{Reply, TestServer},
};

fn redirect(status: u16, location: &str) -> Reply {
    Reply::new(status, &[("location", location)], "")
}

#[tokio::test]
async fn no_other_port_is_ever_contacted() {
    let other = TestServer::start([Reply::json(200, "{}")]).await;
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
async fn neither_another_host_nor_another_scheme_is_contacted() {
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
async fn redirects_within_the_origin_are_followed_with_key_and_body() {
    let server = TestServer::start([
        redirect(307, "/other"),
        redirect(308, "third?x=1"),
        Reply::json(200, r#"{"a":1}"#),
    ])
    .await;
    let answer = call(&server.url(), Method::POST).await.unwrap();
    assert_eq!(answer.value, json!({"a": 1}));
    let seen = server.seen();
    let targets: Vec<_> = seen.iter().map(|seen| seen.target.as_str()).collect();
    assert_eq!(targets, ["/thing", "/other", "/third?x=1"]);
    for seen in seen {
        assert_eq!(seen.method, "POST");
        assert_eq!(seen.header("x-api-key"), Some(KEY));
        assert_eq!(seen.header("referer"), None);
        assert_eq!(seen.body, br#"{"query":"x"}"#);
    }
}

#[tokio::test]
async fn a_get_follows_all_redirects_but_a_post_is_not_turned_into_a_get() {
    for status in [301, 302, 303] {
        let replies = || [redirect(status, "/other"), Reply::json(200, "{}")];
        let server = TestServer::start(replies()).await;
        call(&server.url(), Method::GET).await.unwrap();
        let server = TestServer::start(replies()).await;
        let error = call(&server.url(), Method::POST).await.unwrap_err();
        assert_eq!(error.kind, ExaErrorKind::Redirect);
        assert!(error.to_string().contains("POST"), "{error}");
        assert_eq!(server.count(), 1);
    }
}

#[tokio::test]
async fn a_chain_from_the_origin_to_elsewhere_stops_there() {
    let other = TestServer::start([Reply::json(200, "{}")]).await;
    let server = TestServer::start([redirect(302, "/other"), redirect(302, &other.url())]).await;
    let error = call(&server.url(), Method::GET).await.unwrap_err();
    assert_eq!(error.kind, ExaErrorKind::Redirect);
    assert_eq!((server.count(), other.count()), (2, 0));
}

#[tokio::test]
async fn at_most_three_redirects_are_followed() {
    let server = TestServer::start([redirect(302, "/again")]).await;
    let error = call(&server.url(), Method::GET).await.unwrap_err();
    assert_eq!(error.kind, ExaErrorKind::Redirect);
    assert!(error.to_string().contains("after 3 redirects"), "{error}");
    assert_eq!(server.count(), 4);
}

#[tokio::test]
async fn redirects_without_a_usable_target_are_errors() {
    for reply in [
        Reply::new(302, &[], ""),
        redirect(302, "ftp://x/"),
        redirect(302, "http://[bad"),
    ] {
        let server = TestServer::start([reply]).await;
        let error = call(&server.url(), Method::GET).await.unwrap_err();
        assert_eq!(error.kind, ExaErrorKind::Redirect);
        assert!(error.to_string().contains("without a usable"), "{error}");
    }
    let server = TestServer::start([redirect(302, "http://u:p@other.invalid/")]).await;
    let error = call(&server.url(), Method::GET).await.unwrap_err();
    assert!(!error.to_string().contains("u:p"), "{error}");
}

#[tokio::test]
async fn all_hops_of_an_attempt_share_its_time_limit() {
    let wait = Duration::from_millis(600);
    let slow = Reply::cut().wait(wait).send(
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
