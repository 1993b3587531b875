//! Search monitors.

use serde_json::{Value, json};

use crate::support::{Server, merged};

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
    let change = |more: Value| merged(json!({ "monitorId": created["id"] }), &more);
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
    let disabled = change(json!({ "status": "disabled" }));
    let refused = client.fails("search_monitors.update", disabled).await;
    assert_eq!(
        refused,
        (400, "INVALID_REQUEST_BODY".into()),
        "only Exa disables"
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

#[tokio::test]
async fn monitors_are_found_by_name_and_metadata() {
    let server = Server::start().await;
    let client = server.client();
    for (name, team) in [("Prices", "a"), ("News", "a"), ("price alerts", "b")] {
        let mut args = minimal();
        args["name"] = name.into();
        args["metadata"] = json!({ "team": team, "kind": "x" });
        client.ok("search_monitors.create", args).await;
    }
    for (filter, expected) in [
        (json!({}), 3),
        (json!({ "name": "PRICE" }), 2),
        (json!({ "metadata": { "team": "a" } }), 2),
        (
            json!({ "metadata": { "team": "a", "kind": "x" }, "name": "news" }),
            1,
        ),
        (json!({ "metadata": { "team": "a", "kind": "y" } }), 0),
        (json!({ "status": "paused" }), 0),
    ] {
        let listed = client.ok("search_monitors.list", filter.clone()).await;
        assert_eq!(
            listed["data"].as_array().unwrap().len(),
            expected,
            "{filter}"
        );
        let args = json!({ "action": "pause", "filter": filter });
        let matched = client.ok("search_monitors.batch", args).await;
        assert_eq!(matched["affected"], expected, "{filter}");
        assert_eq!(matched["dry_run"], true, "a dry run is the default");
    }
}

#[tokio::test]
async fn many_monitors_are_changed_at_once() {
    let server = Server::start().await;
    let client = server.client();
    for number in 0..4 {
        let mut args = minimal();
        args["trigger"] = json!({ "type": "interval", "period": "6h" });
        args["metadata"] = json!({ "half": (number % 2).to_string() });
        client.ok("search_monitors.create", args).await;
    }
    let batch = |action: &str, more: Value| {
        let filter = json!({ "metadata": { "half": "1" } });
        let args = json!({ "action": action, "filter": filter, "dry_run": false });
        let args = merged(args, &more);
        let client = client.clone();
        async move { client.ok("search_monitors.batch", args).await }
    };
    let statuses = || async {
        let list = client.ok("search_monitors.list", json!({})).await;
        let data = list["data"].as_array().unwrap().iter();
        let planned = |monitor: &Value| monitor["nextRunAt"].is_string();
        data.map(|monitor| {
            (
                monitor["status"].as_str().unwrap().to_owned(),
                planned(monitor),
            )
        })
        .collect::<Vec<_>>()
    };
    let (active, paused) = (("active".to_owned(), true), ("paused".to_owned(), false));
    assert_eq!(batch("unpause", json!({})).await["affected"], 0);
    let first = batch("pause", json!({ "limit": 1 })).await;
    assert_eq!(
        (first["affected"].as_u64(), first["has_more"].as_bool()),
        (Some(1), Some(true))
    );
    let second = batch("pause", json!({ "limit": 1 })).await;
    assert_eq!(second["has_more"], false);
    assert_ne!(
        first["ids"], second["ids"],
        "paused monitors are not paused again"
    );
    assert_eq!(
        statuses().await,
        [&paused, &active, &paused, &active].map(Clone::clone)
    );
    assert_eq!(batch("unpause", json!({})).await["affected"], 2);
    assert!(statuses().await.iter().all(|status| *status == active));
    let dry_run = batch("delete", json!({ "dry_run": true })).await;
    assert_eq!(statuses().await.len(), 4, "a dry run deletes nothing");
    let deleted = batch("delete", json!({})).await;
    assert_eq!(deleted["ids"], dry_run["ids"]);
    assert_eq!(statuses().await.len(), 2);
    for args in [
        json!({ "action": "delete" }),
        json!({ "action": "explode", "filter": {} }),
        json!({ "action": "pause", "filter": { "owner": "x" } }),
        json!({ "action": "pause", "filter": {}, "limit": 501 }),
        json!({ "action": "pause", "filter": {}, "dryRun": false }),
    ] {
        let response = client
            .send("POST", "/monitors/batch", Some(args.clone()))
            .await;
        assert_eq!(
            (response.status, response.tag()),
            (400, "INVALID_REQUEST_BODY".into()),
            "{args}"
        );
    }
}
