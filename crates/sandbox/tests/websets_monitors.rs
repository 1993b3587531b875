//! Monitors of websets.

use serde_json::{Value, json};

use crate::support::{Client, Server};

async fn setup(client: &Client, config: Value) -> (Value, Value) {
    let webset = client
        .ok(
            "websets.create",
            json!({ "search": { "query": "startups in Berlin", "count": 2 } }),
        )
        .await;
    client.advance(4_000).await;
    let args = json!({ "websetId": webset["id"], "cadence": { "cron": "0 9 * * *" }, "behavior": { "type": "search", "config": config } });
    let response = client.call("monitors.create", args).await;
    assert_eq!(response.status, 201, "{}", response.text());
    (webset, response.json())
}

#[tokio::test]
async fn monitor_runs_search_the_webset() {
    let server = Server::start().await;
    let client = server.client();
    let (webset, monitor) = setup(
        &client,
        json!({ "count": 3, "query": "startups in Hamburg" }),
    )
    .await;
    assert_eq!(monitor["status"], "enabled");
    assert_eq!(monitor["lastRun"], Value::Null);
    assert!(
        monitor["nextRunAt"]
            .as_str()
            .unwrap()
            .ends_with("T09:00:00.000Z")
    );
    assert_eq!(monitor["cadence"]["timezone"], "Etc/UTC");
    assert_eq!(monitor["behavior"]["config"]["behavior"], "append");
    let id = json!({ "monitorId": monitor["id"] });
    assert_eq!(
        client.ok("monitors.runs.list", id.clone()).await["data"],
        json!([])
    );
    client.advance(1_300).await;
    let run = client.ok("monitors.runs.list", id.clone()).await["data"][0].clone();
    assert_eq!(run["status"], "running");
    client.advance(6_000).await;
    let run = client
        .ok(
            "monitors.runs.get",
            json!({ "monitorId": monitor["id"], "runId": run["id"] }),
        )
        .await;
    assert_eq!(run["status"], "completed");
    assert!(run["completedAt"].is_string());
    assert_eq!(
        client.ok("monitors.get", id.clone()).await["lastRun"]["id"],
        run["id"]
    );
    let now = client
        .ok(
            "websets.get",
            json!({ "websetId": webset["id"], "expand": ["items"] }),
        )
        .await;
    assert_eq!(now["items"].as_array().unwrap().len(), 5);
    assert_eq!(now["searches"].as_array().unwrap().len(), 2);
    assert_eq!(now["monitors"][0]["id"], monitor["id"]);
    let kinds = client
        .ok(
            "events.list",
            json!({ "types": ["monitor.created", "monitor.run.created", "monitor.run.completed"] }),
        )
        .await;
    assert_eq!(kinds["data"].as_array().unwrap().len(), 3);

    client.advance(86_400_000).await;
    client.ok("monitors.get", id.clone()).await;
    client.advance(10_000).await;
    let runs = client.ok("monitors.runs.list", id).await;
    assert_eq!(
        runs["data"].as_array().unwrap().len(),
        2,
        "the next run follows the schedule"
    );
}

#[tokio::test]
async fn monitors_can_be_updated_and_deleted() {
    let server = Server::start().await;
    let client = server.client();
    let (webset, monitor) = setup(&client, json!({ "count": 1, "query": "startups" })).await;
    let id = json!({ "monitorId": monitor["id"] });
    let off = client
        .ok(
            "monitors.update",
            json!({ "monitorId": monitor["id"], "status": "disabled" }),
        )
        .await;
    assert_eq!(
        (off["status"].as_str(), &off["nextRunAt"]),
        (Some("disabled"), &Value::Null)
    );
    client.advance(10_000).await;
    assert_eq!(
        client.ok("monitors.runs.list", id.clone()).await["data"],
        json!([]),
        "a disabled monitor does not run"
    );
    let updated = client
        .ok("monitors.update", json!({ "monitorId": monitor["id"], "status": "enabled", "cadence": { "cron": "30 6 * * 1" }, "metadata": { "a": "b" } }))
        .await;
    assert!(
        updated["nextRunAt"]
            .as_str()
            .unwrap()
            .ends_with("T06:30:00.000Z")
    );
    for (filter, count) in [
        (json!({ "websetId": webset["id"] }), 1),
        (json!({ "websetId": "webset_x" }), 0),
        (json!({}), 1),
    ] {
        assert_eq!(
            client.ok("monitors.list", filter).await["data"]
                .as_array()
                .unwrap()
                .len(),
            count
        );
    }
    client.ok("monitors.delete", id.clone()).await;
    assert_eq!(
        client.fails("monitors.get", id).await,
        (404, "NOT_FOUND".into())
    );
    client.advance(10_000).await;
    client.ok("websets.list", json!({})).await;
}

#[tokio::test]
async fn rejects_invalid_monitors() {
    let server = Server::start().await;
    let client = server.client();
    let behavior = json!({ "type": "search", "config": { "count": 1 } });
    let args = |webset: &str, cron: &str| json!({ "websetId": webset, "cadence": { "cron": cron }, "behavior": behavior });
    assert_eq!(
        client
            .fails("monitors.create", args("webset_x", "0 9 * * *"))
            .await,
        (404, "NOT_FOUND".into())
    );
    let webset = client
        .ok("websets.create", json!({ "externalId": "e" }))
        .await;
    assert_eq!(
        client
            .fails("monitors.create", args("e", "every day"))
            .await
            .0,
        400
    );
    let created = client.ok("monitors.create", args("e", "0 9 * * *")).await;
    assert_eq!(created["websetId"], webset["id"]);
    client
        .ok("websets.delete", json!({ "websetId": "e" }))
        .await;
    assert_eq!(
        client
            .fails("monitors.get", json!({ "monitorId": created["id"] }))
            .await
            .0,
        404,
        "it is deleted with its webset"
    );
}

#[tokio::test]
async fn runs_can_fail() {
    let server = Server::start().await;
    let client = server.client();
    let (_, monitor) = setup(
        &client,
        json!({ "count": 1, "query": "sandbox-fail please" }),
    )
    .await;
    client.advance(5_000).await;
    let run = client
        .ok("monitors.runs.list", json!({ "monitorId": monitor["id"] }))
        .await["data"][0]
        .clone();
    assert_eq!(run["status"], "failed");
    assert!(run["failedReason"].is_string() && run["failedAt"].is_string());
}
