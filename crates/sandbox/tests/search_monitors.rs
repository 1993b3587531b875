//! Search monitors.

use serde_json::{Value, json};

use crate::support::Server;

fn minimal() -> Value {
    json!({ "search": { "query": "heat pumps", "numResults": 3 }, "webhook": { "url": "https://hooks.example/x" } })
}

#[tokio::test]
async fn runs_start_manually_and_on_schedule() {
    let server = Server::start().await;
    let client = server.client();
    let mut args = minimal();
    args["trigger"] = json!({ "type": "interval", "period": "6h" });
    args["outputSchema"] = json!({ "type": "object", "required": ["news"], "properties": { "news": { "type": "string" } } });
    args["search"]["contents"] = json!({ "text": { "maxCharacters": 20 } });
    let created = client.ok("search_monitors.create", args).await;
    assert!(created["webhookSecret"].is_string() && created["nextRunAt"].is_string());
    let id = json!({ "monitorId": created["id"] });
    assert!(
        client
            .ok("search_monitors.get", id.clone())
            .await
            .get("webhookSecret")
            .is_none()
    );
    assert_eq!(
        client.ok("search_monitors.trigger", id.clone()).await["triggered"],
        true
    );
    let pending = client.ok("search_monitors.runs.list", id.clone()).await["data"][0].clone();
    assert_eq!(pending["status"], "pending");
    client.advance(500).await;
    let of_run = json!({ "monitorId": created["id"], "runId": pending["id"] });
    assert_eq!(
        client.ok("search_monitors.runs.get", of_run.clone()).await["status"],
        "running"
    );
    client.advance(3_000).await;
    let run = client.ok("search_monitors.runs.get", of_run).await;
    assert_eq!(run["status"], "completed");
    assert_eq!(run["output"]["results"].as_array().unwrap().len(), 3);
    assert_eq!(
        run["output"]["results"][0]["text"].as_str().unwrap().len(),
        20
    );
    assert!(run["output"]["content"]["news"].is_string());
    assert!(run["durationMs"].as_u64().unwrap() > 0);
    client.advance(6 * 3_600_000).await;
    let runs = client.ok("search_monitors.runs.list", id).await;
    assert_eq!(runs["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn monitors_can_be_updated_listed_and_deleted() {
    let server = Server::start().await;
    let client = server.client();
    let mut args = minimal();
    args["name"] = "Mine".into();
    args["trigger"] = json!({ "type": "interval", "period": "1d" });
    let created = client.ok("search_monitors.create", args).await;
    let change = |more: Value| {
        let mut args = json!({ "monitorId": created["id"] });
        args.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        args
    };
    let updated = client
        .ok(
            "search_monitors.update",
            change(json!({ "search": { "numResults": 9 }, "name": null, "status": "paused" })),
        )
        .await;
    assert_eq!(
        updated["search"],
        json!({ "query": "heat pumps", "numResults": 9 }),
        "other fields do not change"
    );
    assert_eq!(
        (&updated["name"], &updated["nextRunAt"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(
        client
            .ok("search_monitors.list", json!({ "status": "paused" }))
            .await["data"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        client
            .ok("search_monitors.list", json!({ "status": "active" }))
            .await["data"],
        json!([])
    );
    assert_eq!(
        client
            .ok("search_monitors.trigger", change(json!({})))
            .await["triggered"],
        true,
        "paused monitors can be triggered"
    );
    client
        .ok(
            "search_monitors.update",
            change(json!({ "status": "disabled", "trigger": null })),
        )
        .await;
    assert_eq!(
        client
            .ok("search_monitors.trigger", change(json!({})))
            .await["triggered"],
        false
    );
    let deleted = client.ok("search_monitors.delete", change(json!({}))).await;
    assert_eq!(
        deleted["id"], created["id"],
        "the response is the deleted monitor"
    );
    assert_eq!(
        client.fails("search_monitors.get", change(json!({}))).await,
        (404, "NOT_FOUND".into())
    );
}

#[tokio::test]
async fn rejects_invalid_monitors() {
    let server = Server::start().await;
    let client = server.client();
    for (field, value) in [
        ("webhook", json!({ "url": "http://hooks.example" })),
        (
            "webhook",
            json!({ "url": "https://hooks.example", "events": ["nonsense"] }),
        ),
        ("trigger", json!({ "type": "interval", "period": "5m" })),
        ("trigger", json!({ "type": "interval", "period": "0h" })),
        ("search", json!({ "query": "" })),
        ("search", json!({ "query": "x", "numResults": 101 })),
    ] {
        let mut args = minimal();
        args[field] = value.clone();
        assert_eq!(
            client.fails("search_monitors.create", args).await.0,
            400,
            "{field} {value}"
        );
    }
    let mut failing = minimal();
    failing["search"]["query"] = "sandbox-fail".into();
    let created = client.ok("search_monitors.create", failing).await;
    client
        .ok(
            "search_monitors.trigger",
            json!({ "monitorId": created["id"] }),
        )
        .await;
    client.advance(5_000).await;
    let run = client
        .ok(
            "search_monitors.runs.list",
            json!({ "monitorId": created["id"] }),
        )
        .await["data"][0]
        .clone();
    assert_eq!(
        (run["status"].as_str(), run["failReason"].as_str()),
        (Some("failed"), Some("search_failed"))
    );
}
