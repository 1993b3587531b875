//! Objects of websets: items, enrichments, previews, events and webhooks.

use serde_json::{Value, json};

use crate::support::{Server, merged};
use crate::websets::{ids, webset};

#[tokio::test]
async fn enrichments_fill_in_values() {
    let server = Server::start().await;
    let client = server.client();
    let created = client
        .ok("websets.create", json!({
            "search": { "query": "startups", "count": 6 },
            "enrichments": [{ "description": "Contact email", "format": "email" }, { "description": "Stage", "options": [{ "label": "Seed" }, { "label": "Growth" }] }],
        }))
        .await;
    let id = created["id"].clone();
    assert_eq!(created["enrichments"][0]["status"], "pending");
    assert_eq!(created["enrichments"][1]["format"], "options");
    client.advance(1_000).await;
    let early = client.ok("items.list", json!({ "websetId": id })).await;
    assert!(
        early["data"]
            .as_array()
            .unwrap()
            .iter()
            .any(|item| item["enrichments"][0]["status"] == "pending"),
        "{early}"
    );
    client.advance(6_000).await;
    assert_eq!(
        client.ok("websets.get", json!({ "websetId": id })).await["enrichments"][0]["status"],
        "completed"
    );
    let later = client
        .ok(
            "enrichments.create",
            json!({ "websetId": id, "description": "Number of employees" }),
        )
        .await;
    assert_eq!(
        (later["status"].as_str(), later["format"].as_str()),
        (Some("pending"), Some("number"))
    );
    assert_eq!(
        client.ok("websets.get", json!({ "websetId": id })).await["status"],
        "running"
    );
    client.advance(4_000).await;
    let items = client.ok("items.list", json!({ "websetId": id })).await;
    for item in items["data"].as_array().unwrap() {
        let results = item["enrichments"].as_array().unwrap();
        assert_eq!(results.len(), 3);
        assert!(
            results.iter().all(|result| result["status"] == "completed"),
            "{item}"
        );
        assert!(results[0]["result"][0].as_str().unwrap().contains('@'));
        assert!(["Seed", "Growth"].contains(&results[1]["result"][0].as_str().unwrap()));
        assert!(
            results[2]["result"][0]
                .as_str()
                .unwrap()
                .parse::<u64>()
                .is_ok()
        );
    }
    let args = |more: Value| {
        merged(
            json!({ "websetId": id, "enrichmentId": later["id"] }),
            &more,
        )
    };
    let updated = client
        .ok(
            "enrichments.update",
            args(json!({ "description": "Head count", "metadata": { "a": "b" } })),
        )
        .await;
    assert_eq!(
        (
            updated["description"].as_str(),
            updated["metadata"]["a"].as_str()
        ),
        (Some("Head count"), Some("b"))
    );
    assert_eq!(
        client.ok("enrichments.get", args(json!({}))).await["status"],
        "completed"
    );
    client.ok("enrichments.delete", args(json!({}))).await;
    assert_eq!(
        client.fails("enrichments.get", args(json!({}))).await.0,
        404
    );
    let item = client
        .ok("items.list", json!({ "websetId": id, "limit": 1 }))
        .await["data"][0]
        .clone();
    assert_eq!(
        item["enrichments"].as_array().unwrap().len(),
        2,
        "results are deleted with their enrichment"
    );

    let stopped = client
        .ok(
            "enrichments.create",
            json!({ "websetId": id, "description": "Founder" }),
        )
        .await;
    let stopped = client
        .ok(
            "enrichments.cancel",
            json!({ "websetId": id, "enrichmentId": stopped["id"] }),
        )
        .await;
    assert_eq!(stopped["status"], "canceled");
    client.advance(4_000).await;
    let item = client
        .ok("items.get", json!({ "websetId": id, "itemId": item["id"] }))
        .await;
    assert_eq!(item["enrichments"][2]["status"], "canceled");
    assert_eq!(
        client
            .fails(
                "enrichments.create",
                json!({ "websetId": id, "description": "x", "format": "options" })
            )
            .await
            .0,
        400
    );
}

#[tokio::test]
async fn items_can_be_deleted() {
    let server = Server::start().await;
    let client = server.client();
    let created = webset(&client, 3).await;
    client.advance(4_000).await;
    let items = ids(&client
        .ok("items.list", json!({ "websetId": created["id"] }))
        .await);
    let deleted = json!({ "websetId": created["id"], "itemId": items[1] });
    assert_eq!(
        client.ok("items.delete", deleted.clone()).await["id"].as_str(),
        Some(items[1].as_str())
    );
    assert_eq!(client.fails("items.get", deleted.clone()).await.0, 404);
    assert_eq!(client.fails("items.delete", deleted).await.0, 404);
    assert_eq!(
        ids(&client
            .ok("items.list", json!({ "websetId": created["id"] }))
            .await)
        .len(),
        2
    );
}

#[tokio::test]
async fn previews_create_nothing() {
    let server = Server::start().await;
    let client = server.client();
    let plain = client
        .ok(
            "websets.preview",
            json!({ "search": { "query": "engineers in Berlin with Rust experience" } }),
        )
        .await;
    assert_eq!(plain["search"]["entity"]["type"], "person");
    assert!(plain["search"]["criteria"].as_array().unwrap().len() >= 2);
    assert_eq!(plain["items"], json!([]));
    assert!(!plain["enrichments"].as_array().unwrap().is_empty());
    let with = client
        .ok(
            "websets.preview",
            json!({ "search": { "query": "engineers in Berlin", "count": 4 }, "withItems": true }),
        )
        .await;
    assert_eq!(with["items"].as_array().unwrap().len(), 4);
    assert_eq!(
        client.ok("websets.list", json!({})).await["data"],
        json!([])
    );
    assert_eq!(
        client
            .fails("websets.preview", json!({ "search": { "query": "?!" } }))
            .await
            .0,
        422
    );
}

#[tokio::test]
async fn events_record_changes() {
    let server = Server::start().await;
    let client = server.client();
    let created = client.ok("websets.create", json!({ "search": { "query": "startups", "count": 2 }, "enrichments": [{ "description": "Email" }] })).await;
    client.advance(6_000).await;
    client
        .ok("websets.delete", json!({ "websetId": created["id"] }))
        .await;
    let page = client.ok("events.list", json!({ "limit": 200 })).await;
    let mut kinds: Vec<&str> = page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    kinds.reverse();
    assert_eq!(
        kinds[..3],
        [
            "webset.created",
            "webset.search.created",
            "webset.search.updated"
        ]
    );
    assert_eq!(kinds[kinds.len() - 2..], ["webset.idle", "webset.deleted"]);
    for (kind, count) in [
        ("webset.item.created", 2),
        ("webset.item.enriched", 2),
        ("webset.search.completed", 1),
    ] {
        assert_eq!(
            kinds.iter().filter(|seen| **seen == kind).count(),
            count,
            "{kind}: {kinds:?}"
        );
        let only = client.ok("events.list", json!({ "types": [kind] })).await;
        assert_eq!(only["data"].as_array().unwrap().len(), count);
    }
    let idle = client
        .ok("events.list", json!({ "types": ["webset.idle"] }))
        .await["data"][0]
        .clone();
    assert_eq!(
        client
            .ok("events.get", json!({ "eventId": idle["id"] }))
            .await,
        {
            let mut event = idle.clone();
            event["sandbox"] = exa_mcp_sandbox::MARKER.into();
            event
        }
    );
    let after = client
        .ok("events.list", json!({ "createdAfter": idle["createdAt"] }))
        .await;
    let before = client
        .ok(
            "events.list",
            json!({ "createdBefore": idle["createdAt"], "limit": 200 }),
        )
        .await;
    let at = |event: &Value| event["createdAt"].as_str().unwrap().to_owned();
    let count = |fits: &dyn Fn(String) -> bool| {
        page["data"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|event| fits(at(event)))
            .count()
    };
    assert_eq!(
        after["data"].as_array().unwrap().len(),
        count(&|time| time >= at(&idle))
    );
    assert_eq!(
        before["data"].as_array().unwrap().len(),
        count(&|time| time <= at(&idle))
    );
    assert!(before["data"].as_array().unwrap().len() < kinds.len());
    assert_eq!(
        client
            .fails("events.get", json!({ "eventId": "event_x" }))
            .await,
        (404, "NOT_FOUND".into())
    );
}

#[tokio::test]
async fn webhooks_show_their_secret_only_once() {
    let server = Server::start().await;
    let client = server.client();
    let created = client.ok("webhooks.create", json!({ "events": ["webset.created", "webset.idle"], "url": "https://hooks.example/a" })).await;
    assert!(created["secret"].as_str().unwrap().len() > 20);
    let id = json!({ "webhookId": created["id"] });
    assert_eq!(
        client.ok("webhooks.get", id.clone()).await["secret"],
        Value::Null
    );
    assert_eq!(
        client.ok("webhooks.list", json!({})).await["data"][0]["secret"],
        Value::Null
    );
    let failing = client
        .ok(
            "webhooks.create",
            json!({ "events": ["webset.created"], "url": "https://hooks.example/fail" }),
        )
        .await;
    client
        .ok(
            "websets.create",
            json!({ "search": { "query": "startups", "count": 1 } }),
        )
        .await;
    client.advance(5_000).await;
    let attempts = client.ok("webhooks.list_attempts", id.clone()).await;
    assert_eq!(attempts["data"].as_array().unwrap().len(), 2);
    assert!(
        attempts["data"]
            .as_array()
            .unwrap()
            .iter()
            .all(|attempt| attempt["successful"] == true)
    );
    let attempts = client
        .ok(
            "webhooks.list_attempts",
            json!({ "webhookId": created["id"], "eventType": "webset.created" }),
        )
        .await;
    assert_eq!(attempts["data"].as_array().unwrap().len(), 1);
    let event = client
        .ok(
            "events.get",
            json!({ "eventId": attempts["data"][0]["eventId"] }),
        )
        .await;
    assert_eq!(event["type"], "webset.created");
    let failed = client
        .ok(
            "webhooks.list_attempts",
            json!({ "webhookId": failing["id"], "successful": false }),
        )
        .await;
    assert_eq!(failed["data"][0]["responseStatusCode"], 500);
    assert_eq!(
        client
            .ok(
                "webhooks.list_attempts",
                json!({ "webhookId": failing["id"], "successful": true })
            )
            .await["data"],
        json!([])
    );
    let updated = client.ok("webhooks.update", json!({ "webhookId": created["id"], "url": "https://hooks.example/b", "events": ["import.created"] })).await;
    assert_eq!(
        (updated["url"].as_str(), &updated["events"]),
        (Some("https://hooks.example/b"), &json!(["import.created"]))
    );
    client.ok("webhooks.delete", id.clone()).await;
    assert_eq!(client.fails("webhooks.get", id).await.0, 404);
    assert_eq!(
        client
            .fails(
                "webhooks.create",
                json!({ "events": [], "url": "https://hooks.example" })
            )
            .await
            .0,
        400
    );
    assert_eq!(
        client
            .fails(
                "webhooks.create",
                json!({ "events": ["webset.idle"], "url": "no address" })
            )
            .await
            .0,
        400
    );
}
