//! The retired research API, and what it was.

use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn research_is_retired() {
    let server = Server::start().await;
    let client = server.client();
    for (name, args) in [
        (
            "research.create",
            json!({ "instructions": "Compare heat pumps" }),
        ),
        ("research.get", json!({ "researchId": "r_1" })),
        ("research.list", json!({})),
    ] {
        let response = client.call(name, args).await;
        assert_eq!(
            (response.status, response.tag()),
            (410, "RESEARCH_RETIRED".into()),
            "{name}"
        );
        assert!(
            response.json()["error"].as_str().unwrap().contains("agent"),
            "{name}"
        );
    }
    let invalid = client.fails("research.create", json!({})).await;
    assert_eq!(invalid.0, 400);
}

#[tokio::test]
async fn research_completes() {
    let server = Server::with_research().await;
    let client = server.client();
    let schema = json!({ "type": "object", "required": ["best"], "properties": { "best": { "type": "string" } } });
    let created = client.ok("research.create", json!({ "instructions": "Compare heat pumps", "outputSchema": schema, "model": "exa-research-pro" })).await;
    assert_eq!(
        (created["status"].as_str(), created["model"].as_str()),
        (Some("pending"), Some("exa-research-pro"))
    );
    client.advance(1_000).await;
    let running = client
        .ok(
            "research.get",
            json!({ "researchId": created["researchId"], "events": true }),
        )
        .await;
    assert_eq!(running["status"], "running");
    let seen = running["events"].as_array().unwrap().len();
    client.advance(5_000).await;
    let done = client
        .ok(
            "research.get",
            json!({ "researchId": created["researchId"], "events": true }),
        )
        .await;
    assert_eq!(done["status"], "completed");
    assert!(done["events"].as_array().unwrap().len() > seen);
    assert!(done["output"]["parsed"]["best"].is_string());
    assert_eq!(
        serde_json::from_str::<Value>(done["output"]["content"].as_str().unwrap()).unwrap(),
        done["output"]["parsed"]
    );
    let plain = client
        .ok(
            "research.get",
            json!({ "researchId": created["researchId"] }),
        )
        .await;
    assert!(plain.get("events").is_none());
    let failing = client
        .ok("research.create", json!({ "instructions": "sandbox-fail" }))
        .await;
    client.advance(5_000).await;
    let list = client.ok("research.list", json!({ "limit": 1 })).await;
    assert_eq!(
        (
            &list["data"][0]["researchId"],
            list["data"][0]["status"].as_str()
        ),
        (&failing["researchId"], Some("failed"))
    );
    assert_eq!(list["hasMore"], true);
    assert_eq!(
        client
            .fails("research.get", json!({ "researchId": "research_x" }))
            .await,
        (404, "NOT_FOUND".into())
    );
}
