//! Plain calls, and failures to connect.

use super::*;
use crate::{
    ExaErrorKind,
    test_server::{ScriptedResponse, TestServer},
};
use std::net::TcpListener;

/// Returns the address of a closed port.
fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[tokio::test]
async fn sends_the_key_and_no_api_version() {
    let server = TestServer::start([ScriptedResponse::json(200, r#"{"a":1}"#)]).await;
    let context = context(quick())
        .with_query("flag", "a b")
        .with_header_text("x-exa-websets-priority", "low")
        .unwrap();
    assert!(!format!("{context:?}").contains(KEY));
    let response = call_with(&server.url(), context, Method::POST)
        .await
        .unwrap();
    assert_eq!(response.value, json!({"a": 1}));
    assert_eq!((response.status, response.request_id), (200, None));
    let request = &server.requests()[0];
    assert_eq!(
        (request.method.as_str(), request.target.as_str()),
        ("POST", "/thing?flag=a+b")
    );
    assert_eq!(request.header("x-api-key"), Some(KEY));
    assert_eq!(request.header("api-version"), None);
    assert_eq!(request.header("x-exa-websets-priority"), Some("low"));
    let agent = concat!("exa-mcp-server/", env!("CARGO_PKG_VERSION"));
    assert_eq!(request.header("user-agent"), Some(agent));
    assert_eq!(request.header("accept-encoding"), Some("gzip"));
    assert_eq!(request.body, br#"{"query":"x"}"#);
}

#[tokio::test]
async fn omits_the_body_on_request() {
    let server = TestServer::start([ScriptedResponse::json(200, "{}")]).await;
    let context = context(quick()).with_omit_body(true);
    call_with(&server.url(), context, Method::POST)
        .await
        .unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.header("content-type"), None);
    assert!(request.body.is_empty());
}

#[tokio::test]
async fn uses_the_configured_base_url_with_its_path() {
    let server = TestServer::start([ScriptedResponse::json(200, "{}")]).await;
    let config = ExaConfig {
        base_url: Some(format!("{}/exa/", server.url()).parse().unwrap()),
        ..quick()
    };
    call_with("https://api.exa.ai", context(config), Method::GET)
        .await
        .unwrap();
    assert_eq!(server.requests()[0].target, "/exa/thing");
}

#[tokio::test]
async fn reads_the_request_id_from_the_body_or_the_header() {
    let headers = [("x-request-id", "from-header")];
    let server = TestServer::start([
        ScriptedResponse::new(200, &headers, r#"{"requestId":"from-body"}"#),
        ScriptedResponse::new(200, &headers, "{}"),
        ScriptedResponse::new(404, &headers, r#"{"requestId":"from-body","error":"no"}"#),
        ScriptedResponse::new(404, &headers, r#"{"error":"no"}"#),
    ])
    .await;
    for expected in ["from-body", "from-header"] {
        let response = call(&server.url(), Method::GET).await.unwrap();
        assert_eq!(response.request_id.as_deref(), Some(expected));
    }
    for expected in ["from-body", "from-header"] {
        let error = call(&server.url(), Method::GET).await.unwrap_err();
        assert_eq!(error.request_id.as_deref(), Some(expected));
    }
}

#[tokio::test]
async fn retries_a_refused_connection_even_for_post() {
    let context = context(quick()).with_query("q", "hidden-query");
    let error = call_with(&closed_port(), context, Method::POST)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ExaErrorKind::Connect);
    assert_eq!(error.attempts, 4);
    let text = error.to_string();
    assert!(
        text.contains("127.0.0.1") && text.contains("refused"),
        "{text}"
    );
    assert!(text.contains("EXA_BASE_URL"), "{text}");
}

#[tokio::test]
async fn an_unknown_host_is_a_failure_to_connect() {
    let mut config = quick();
    config.retry.max_retries = 0;
    let error = call_with("http://no-such-host.invalid", context(config), Method::GET)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ExaErrorKind::Connect);
    assert!(
        error.to_string().contains("no-such-host.invalid"),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_without_tls_is_a_failure_to_connect() {
    let server = TestServer::start([ScriptedResponse::json(200, "{}")]).await;
    let base = server.url().replace("http:", "https:");
    // The server does not answer the TLS handshake.
    let mut config = quick();
    config.connect_timeout = Duration::from_millis(200);
    let error = call_with(&base, context(config), Method::GET)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ExaErrorKind::Connect);
    assert_eq!(error.attempts, 1, "a slow connection is not retried");
    assert!(error.to_string().contains("within 200 ms"), "{error}");
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn does_not_retry_a_timeout() {
    let slow = Duration::from_secs(5);
    let late_response = ScriptedResponse::cut().wait(slow);
    let late_body = ScriptedResponse::head(200, &[("content-length", "9")])
        .send("{")
        .wait(slow);
    for scripted in [late_response, late_body] {
        let server = TestServer::start([scripted]).await;
        let http = context(quick()).http().clone();
        let key = ApiKey::new(KEY).unwrap();
        let context = CallContext::new(http, key, Duration::from_millis(400), Arc::new(Unguarded));
        let error = call_with(&server.url(), context, Method::GET)
            .await
            .unwrap_err();
        assert_eq!(error.kind, ExaErrorKind::Timeout);
        assert_eq!((server.count(), error.attempts), (1, 1));
        assert!(error.to_string().contains("within 400 ms"), "{error}");
    }
}

#[tokio::test]
async fn reports_requests_that_cannot_be_built() {
    let error = call("data:text/plain,", Method::GET).await.unwrap_err();
    assert_eq!(error.kind, ExaErrorKind::InvalidRequest);
    assert!(error.to_string().contains("scheme"), "{error}");
    let error = call("not a url", Method::GET).await.unwrap_err();
    assert_eq!(error.kind, ExaErrorKind::InvalidRequest);
    assert!(error.to_string().contains("relative URL"), "{error}");
}

#[tokio::test]
async fn hides_the_url_of_other_reqwest_errors() {
    let client = context(quick()).http().client().unwrap().clone();
    let url = format!("{}/thing?token=hidden-query", closed_port());
    let error = client.get(url).send().await.unwrap_err();
    let error = ExaError::from(Error::<()>::CommunicationError(error));
    assert_eq!(error.kind, ExaErrorKind::Connect);
    assert!(
        !format!("{error} {error:?}").contains("hidden"),
        "{error:?}"
    );
}
