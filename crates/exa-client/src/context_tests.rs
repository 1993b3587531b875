//! Tests of the context of a call.

use super::*;
use crate::{ExaConfig, KeyKind, Unguarded};
use reqwest::{Body, Method, Request};

fn context() -> CallContext {
    let http = ExaHttp::new(ExaConfig::default()).unwrap();
    let key = ApiKey::new("secret-key-1").unwrap();
    CallContext::new(http, key, Duration::from_secs(7), Arc::new(Unguarded))
}

fn request(url: &str) -> Request {
    let mut request = Request::new(Method::POST, url.parse().unwrap());
    let headers = request.headers_mut();
    headers.insert("api-version", HeaderValue::from_static("2.0"));
    headers.insert("accept", HeaderValue::from_static("application/json"));
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    *request.body_mut() = Some(Body::from("{}"));
    request
}

#[test]
fn adds_the_key_and_removes_the_api_version() {
    let mut request = request("https://api.exa.ai/search");
    prepare(&context(), &mut request).unwrap();
    assert_eq!(request.headers()["x-api-key"], "secret-key-1");
    assert!(request.headers()["x-api-key"].is_sensitive());
    assert!(!request.headers().contains_key("api-version"));
    assert!(
        request.headers()["user-agent"]
            .to_str()
            .unwrap()
            .starts_with("exa-mcp-server/")
    );
    assert_eq!(request.timeout(), None);
    assert_eq!(request.url().as_str(), "https://api.exa.ai/search");
    assert!(request.body().is_some());
    assert!(!format!("{request:?}").contains("secret-key-1"));
}

#[test]
fn appends_queries_and_replaces_headers_except_the_key() {
    let context = context()
        .with_query("b", "x y&z")
        .with_query("b", "2")
        .with_header_text("x-exa-websets-priority", "high")
        .unwrap()
        .with_header_text("accept", "text/plain")
        .unwrap()
        .with_header_text("X-Api-Key", "other")
        .unwrap();
    let mut request = request("https://api.exa.ai/search?a=1");
    prepare(&context, &mut request).unwrap();
    assert_eq!(request.url().query(), Some("a=1&b=x+y%26z&b=2"));
    assert_eq!(request.headers()["x-exa-websets-priority"], "high");
    let values = |name: &str| request.headers().get_all(name).iter().count();
    assert_eq!(request.headers()["accept"], "text/plain");
    assert_eq!((values("accept"), values("x-api-key")), (1, 1));
    assert_eq!(request.headers()["x-api-key"], "secret-key-1");
}

#[test]
fn sends_a_key_only_to_apis_that_take_its_kind() {
    let api = |key| Api {
        name: "x",
        base_url: "https://x.exa.ai",
        version: "1",
        key,
        admin_only: false,
    };
    let of_kind = |kind| CallContext {
        key: ApiKey::of_kind(kind, "secret-key-1").unwrap(),
        ..context()
    };
    for own in [KeyKind::Api, KeyKind::Service] {
        for other in [KeyKind::Api, KeyKind::Service] {
            let url = of_kind(own).base_url(&api(other));
            assert_eq!(url.is_ok(), own == other);
            let text = url.unwrap_or_else(|error| error.to_string());
            assert!(!text.contains("secret-key-1"), "{text}");
        }
    }
}

#[test]
fn sends_the_key_where_the_api_expects_it() {
    let prepared = |placement| {
        let mut request = request("https://api.exa.ai/search");
        prepare(&context().with_key_placement(placement), &mut request).unwrap();
        request
    };
    let bearer = prepared(KeyPlacement::Bearer);
    assert_eq!(bearer.headers()["authorization"], "Bearer secret-key-1");
    assert!(bearer.headers()["authorization"].is_sensitive());
    assert!(!bearer.headers().contains_key("x-api-key"));
    let header = prepared(KeyPlacement::Header("X-Token"));
    assert_eq!(header.headers()["x-token"], "secret-key-1");
    let query = prepared(KeyPlacement::Query("key"));
    assert_eq!(query.url().query(), Some("key=secret-key-1"));
}

#[test]
fn replaces_the_body_and_its_type() {
    let content = RequestContent {
        content_type: "text/csv".to_owned(),
        bytes: "a,b".into(),
    };
    let mut request = request("https://api.exa.ai/search");
    prepare(&context().with_content(Some(content)), &mut request).unwrap();
    assert_eq!(request.headers()["content-type"], "text/csv");
    assert_eq!(request.body().unwrap().as_bytes(), Some(&b"a,b"[..]));
}

#[test]
fn drops_the_body_on_request() {
    let mut request = request("https://api.exa.ai/search");
    prepare(&context().with_omit_body(true), &mut request).unwrap();
    assert!(request.body().is_none());
    assert!(!request.headers().contains_key("content-type"));
}

#[test]
fn rejects_invalid_urls_and_headers() {
    let error = prepare(&context(), &mut request("data:text/plain,x")).unwrap_err();
    assert!(error.to_string().contains("EXA_BASE_URL"), "{error}");
    let error = context().with_header_text("x-a", "hid\nden").unwrap_err();
    assert!(error.to_string().contains("x-a"), "{error}");
    assert!(!error.to_string().contains("hid"), "{error}");
    assert!(context().with_header_text("x a", "1").is_err());
}

#[test]
fn debug_hides_values() {
    let context = context()
        .with_query("token", "hidden-1")
        .with_header_text("x-token", "hidden-2")
        .unwrap();
    let text = format!("{context:?}");
    assert!(text.contains("token") && text.contains("x-token"), "{text}");
    assert!(
        !text.contains("hidden") && !text.contains("secret-key"),
        "{text}"
    );
}
