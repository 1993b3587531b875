//! The error bodies of the APIs.

use serde_json::{Value, json};

use crate::support::{HttpResponse, Server};

/// Returns the names of the fields of a body, apart from the marker.
fn fields(body: &Value) -> Vec<&str> {
    let names = body.as_object().unwrap().keys().map(String::as_str);
    let mut names: Vec<&str> = names.filter(|name| *name != "sandbox").collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn every_api_has_its_own_format() {
    let server = Server::start().await;
    let client = server.client();
    let standard = ["error", "requestId", "tag"];
    for path in [
        "/search",
        "/contents",
        "/answer",
        "/findSimilar",
        "/monitors",
    ] {
        let response = client.send("POST", path, Some(json!({}))).await;
        assert_eq!(response.status, 400, "{path}");
        assert_eq!(fields(&response.json()), standard, "{path}");
        let id = response.json()["requestId"].clone();
        assert_eq!(id, response.headers["x-request-id"].as_str(), "{path}");
    }
    let batch = client.send("GET", "/batches/x", None).await;
    assert_eq!(
        (batch.status, fields(&batch.json())),
        (400, standard.to_vec())
    );

    let agent = client.send("GET", "/agent/runs/x", None).await.json();
    assert_eq!(fields(&agent), ["error", "requestId"]);
    assert_eq!(fields(&agent["error"]), ["code", "message", "type"]);

    let websets = client
        .send("GET", "/websets/v0/websets/x", None)
        .await
        .json();
    assert_eq!(websets["error"], "Not Found");
    assert_eq!(websets["message"], "Webset x not found");
    assert_eq!(websets["statusCode"], 404);
    assert_eq!(websets["path"], "/websets/v0/websets/x");
    assert!(websets["timestamp"].is_string());

    let team = server.team_client();
    let team = team.send("GET", "/team-management/api-keys/x", None).await;
    assert_eq!((team.status, fields(&team.json())), (404, vec!["error"]));
}

#[tokio::test]
async fn invalid_agent_requests_have_specific_codes() {
    let server = Server::start().await;
    let client = server.client();
    for (body, code) in [
        (json!({ "query": "x", "effort": "huge" }), "INVALID_REQUEST"),
        (
            json!({ "query": "x", "dataSources": [{ "provider": "gossip" }] }),
            "INVALID_DATA_SOURCE",
        ),
        (
            json!({ "query": "x", "outputSchema": { "type": 5 } }),
            "INVALID_OUTPUT_SCHEMA",
        ),
        (json!({}), "INVALID_REQUEST"),
    ] {
        let response = client.send("POST", "/agent/runs", Some(body.clone())).await;
        assert_eq!(
            (response.status, response.tag().as_str()),
            (400, code),
            "{body}"
        );
        assert_eq!(
            response.json()["error"]["type"],
            "INVALID_REQUEST",
            "{body}"
        );
    }
    let query = client.send("GET", "/agent/runs?limit=many", None).await;
    assert_eq!((query.status, query.tag()), (400, "INVALID_REQUEST".into()));
}

#[tokio::test]
async fn faults_name_documented_tags() {
    let server = Server::start().await;
    let send = |path: &'static str, fault: &'static str| {
        let client = server.client().header("x-sandbox-fault", fault);
        async move {
            client
                .send("POST", path, Some(json!({ "query": "x" })))
                .await
        }
    };
    let outcome = |response: &HttpResponse| (response.status, response.tag());
    for (fault, expected) in [
        ("tag=API_KEY_BUDGET_EXCEEDED", "402 API_KEY_BUDGET_EXCEEDED"),
        ("tag=TEAM_BUDGET_EXCEEDED", "402 TEAM_BUDGET_EXCEEDED"),
        ("tag=FEATURE_DISABLED", "403 FEATURE_DISABLED"),
        (
            "tag=X402_TOO_MANY_UNPAID;retryAfter=1",
            "429 X402_TOO_MANY_UNPAID",
        ),
        ("status=400;tag=NO_MORE_CREDITS", "400 NO_MORE_CREDITS"),
        ("tag=BRAND_NEW", "500 BRAND_NEW"),
        ("status=500", "500 DEFAULT_ERROR"),
        ("status=504", "504 "),
    ] {
        let (status, tag) = outcome(&send("/search", fault).await);
        assert_eq!(format!("{status} {tag}"), expected, "{fault}");
    }
    let challenge = send("/search", "tag=X402_PAYMENT_REQUIRED").await;
    assert_eq!(challenge.json()["accepts"].as_array().unwrap().len(), 1);
    let busy = send("/agent/runs", "status=429").await;
    assert_eq!(outcome(&busy), (429, "CONCURRENCY_LIMIT_REACHED".into()));
    assert_eq!(busy.json()["error"]["type"], "RATE_LIMIT_ERROR");
    let timeout = send("/agent/runs", "tag=TIMEOUT").await;
    assert_eq!(outcome(&timeout), (500, "TIMEOUT".into()));
    let runs = server.client().ok("agent.runs.list", json!({})).await;
    assert_eq!(runs["data"], json!([]), "nothing was executed");
}
