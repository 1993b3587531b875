//! Faults, requested by the request itself or by a rule.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::Server;

fn query() -> Option<Value> {
    Some(json!({ "query": "x" }))
}

#[tokio::test]
async fn status_fault_has_matching_error_body() {
    let server = Server::start().await;
    let limited = server
        .client()
        .header("x-sandbox-fault", "status=429;retryAfter=7");
    let response = limited.send("POST", "/search", query()).await;
    assert_eq!(
        (response.status, response.tag()),
        (429, "RATE_LIMIT_EXCEEDED".into())
    );
    assert_eq!(response.headers["retry-after"], "7");
    let enveloped = limited.send("POST", "/agent/runs", query()).await;
    assert_eq!(enveloped.json()["error"]["type"], "RATE_LIMIT_ERROR");
    let by_query = server
        .client()
        .send("POST", "/search?sandboxFault=status=503", query())
        .await;
    assert_eq!(
        (by_query.status, by_query.tag()),
        (503, "SERVICE_OVERLOADED".into())
    );
    let credits = server
        .client()
        .send(
            "POST",
            "/search?sandboxFault=%7B%22status%22%3A402%7D",
            query(),
        )
        .await;
    assert_eq!(
        (credits.status, credits.tag()),
        (402, "NO_MORE_CREDITS".into())
    );
    let invalid = server
        .client()
        .send("POST", "/search?sandboxFault=nonsense", query())
        .await;
    assert_eq!(invalid.status, 400);
}

#[tokio::test]
async fn faults_replace_the_body() {
    let server = Server::start().await;
    let with = |fault: &str| server.client().header("x-sandbox-fault", fault);
    let html = with("html").send("POST", "/search", query()).await;
    assert_eq!(html.status, 502);
    assert!(
        html.headers["content-type"].starts_with("text/html") && html.text().contains("<html>")
    );
    let page = with("html=200").send("POST", "/search", query()).await;
    assert_eq!(page.status, 200);
    let empty = with("empty").send("POST", "/search", query()).await;
    assert_eq!((empty.status, empty.body.len()), (200, 0));
    let malformed = with("malformed").send("POST", "/search", query()).await;
    assert_eq!(malformed.status, 200);
    assert!(serde_json::from_slice::<Value>(&malformed.body).is_err());
    let huge = with("huge=3000000").send("POST", "/search", query()).await;
    assert!(huge.body.len() > 3_000_000);
    assert!(huge.json().is_object());
}

#[tokio::test]
async fn hold_delays_the_response_after_execution() {
    let server = Server::start().await;
    let client = server.client().header("x-sandbox-fault", "hold=60000");
    let create = client.try_send("POST", "/websets/v0/websets", Some(b"{}"));
    let response = tokio::time::timeout(Duration::from_millis(500), create).await;
    assert!(response.is_err(), "the response was not delayed");
    let websets = server.client().ok("websets.list", json!({})).await;
    assert_eq!(websets["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn delay_does_not_change_the_response() {
    let server = Server::start().await;
    let started = Instant::now();
    let response = server
        .client()
        .header("x-sandbox-fault", "delay=200")
        .send("POST", "/search", query())
        .await;
    assert_eq!(response.status, 200);
    assert!(started.elapsed() >= Duration::from_millis(200));
}

#[tokio::test]
async fn cut_closes_the_connection() {
    let server = Server::start().await;
    let create = |fault: &str| {
        let client = server.client().header("x-sandbox-fault", fault);
        async move {
            client
                .try_send("POST", "/websets/v0/websets", Some(b"{}"))
                .await
        }
    };
    assert!(create("cut=before").await.is_err());
    let count = || async {
        server.client().ok("websets.list", json!({})).await["data"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(count().await, 0, "the request was not executed");
    assert!(create("cut=after").await.is_err());
    assert_eq!(
        count().await,
        1,
        "the request was executed, but the response was lost"
    );
    let half = create("cut=body").await.unwrap();
    assert_eq!(half.status, 201);
    assert!(!half.is_complete && !half.body.is_empty(), "{half:?}");
    assert_eq!(count().await, 2);
    let stream = server.client().header("x-sandbox-fault", "cut=body");
    let body = br#"{"query": "x", "stream": true}"#;
    let truncated = stream
        .try_send("POST", "/answer", Some(body))
        .await
        .unwrap();
    assert!(!truncated.is_complete);
    assert!(truncated.text().starts_with("data: ") && !truncated.text().contains("[DONE]"));
}

#[tokio::test]
async fn rules_apply_to_future_requests() {
    let server = Server::start().await;
    let client = server.client();
    client
        .fault(json!({ "match": "POST /search", "times": 2, "fault": { "status": 500 } }))
        .await;
    client
        .fault(json!({ "match": "websets.list", "skip": 1, "fault": "status=404" }))
        .await;
    client.fault(json!({ "match": "/websets/v0/imports/**", "times": "always", "key": "test-key", "fault": "empty" })).await;
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(client.send("POST", "/search", query()).await.status);
    }
    assert_eq!(statuses, [500, 500, 200]);
    assert_eq!(
        client.send("GET", "/websets/v0/websets", None).await.status,
        200
    );
    assert_eq!(
        client.send("GET", "/websets/v0/websets", None).await.status,
        404
    );
    assert!(
        client
            .send("GET", "/websets/v0/imports/x", None)
            .await
            .body
            .is_empty()
    );
    assert_eq!(
        server
            .client_with("other")
            .send("GET", "/websets/v0/imports/x", None)
            .await
            .status,
        404
    );
    let rules = client.send("GET", "/sandbox/faults", None).await.json();
    assert_eq!(rules["faults"].as_array().unwrap().len(), 1);
    assert!(!rules.to_string().contains("test-key"));
    client.send("DELETE", "/sandbox/faults", None).await;
    assert_eq!(
        client
            .send("GET", "/websets/v0/imports/x", None)
            .await
            .status,
        404
    );
    for invalid in [
        json!({}),
        json!({ "match": "*" }),
        json!({ "match": "*", "fault": "x" }),
        json!({ "match": "*", "fault": "empty", "times": 0 }),
        json!({ "match": "*", "fault": "empty", "often": 1 }),
    ] {
        assert_eq!(
            client
                .send("POST", "/sandbox/faults", Some(invalid))
                .await
                .status,
            400
        );
    }
}

#[tokio::test]
async fn faults_apply_to_uploads() {
    let server = Server::start().await;
    let client = server.client();
    client
        .fault(json!({ "match": "PUT /sandbox/uploads/*", "fault": "status=503" }))
        .await;
    let import = client
        .ok(
            "imports.create",
            json!({ "size": 8, "count": 1, "format": "csv", "entity": { "type": "company" } }),
        )
        .await;
    let target = import["uploadUrl"]
        .as_str()
        .unwrap()
        .split_once(&server.addr.to_string())
        .unwrap()
        .1
        .to_owned();
    let plain = server
        .client()
        .without_key()
        .header("content-type", "text/csv");
    assert_eq!(
        plain
            .try_send("PUT", &target, Some(b"name\nAcm"))
            .await
            .unwrap()
            .status,
        503
    );
    assert_eq!(
        plain
            .try_send("PUT", &target, Some(b"name\nAcm"))
            .await
            .unwrap()
            .status,
        200
    );
}
