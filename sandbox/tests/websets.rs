//! Websets, searches, items, enrichments, webhooks and events.

use serde_json::{Value, json};

use crate::support::{Client, Server};

async fn webset(client: &Client, count: u64) -> Value {
    client.ok("websets.create", json!({ "search": { "query": "AI startups in Berlin with under 50 employees", "count": count } })).await
}

fn ids(page: &Value) -> Vec<String> {
    page["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_search_runs_to_its_end() {
    let server = Server::start().await;
    let client = server.client();
    let created = client.call("websets.create", json!({ "search": { "query": "AI startups in Berlin", "count": 10, "recall": true } })).await;
    assert_eq!(created.status, 201);
    let made = created.json();
    let (id, search) = (made["id"].clone(), made["searches"][0]["id"].clone());
    assert!(id.as_str().unwrap().starts_with("webset_") && search.as_str().unwrap().starts_with("search_"));
    assert_eq!(made["status"], "pending");
    assert_eq!(made["searches"][0]["status"], "created");
    assert_eq!(made["searches"][0]["entity"]["type"], "company");

    client.advance(1_500).await;
    let half = client.ok("searches.get", json!({ "websetId": id, "searchId": search })).await;
    assert_eq!(half["status"], "running");
    let found = half["progress"]["found"].as_u64().unwrap();
    assert!((1..10).contains(&found), "{half}");
    assert!(half["progress"]["analyzed"].as_u64().unwrap() >= found);
    assert!(half["progress"]["timeLeft"].as_u64().is_some());
    assert_eq!(half["recall"], Value::Null);
    let items = client.ok("items.list", json!({ "websetId": id })).await;
    assert_eq!(items["data"].as_array().unwrap().len() as u64, found, "items appear while the search runs");
    assert_eq!(client.ok("websets.get", json!({ "websetId": id })).await["status"], "running");

    client.advance(3_000).await;
    let done = client.ok("websets.get", json!({ "websetId": id, "expand": ["items"] })).await;
    assert_eq!(done["status"], "idle");
    assert_eq!(done["searches"][0]["status"], "completed");
    assert_eq!(done["searches"][0]["progress"]["completion"], 100);
    assert_eq!(done["searches"][0]["progress"]["found"], 10);
    assert!(done["searches"][0]["recall"]["expected"]["total"].as_u64().unwrap() >= 10);
    assert_eq!(done["items"].as_array().unwrap().len(), 10);
    let item = &done["items"][0];
    assert_eq!(item["source"], "search");
    assert_eq!(item["sourceId"], search);
    assert_eq!(item["evaluations"].as_array().unwrap().len(), done["searches"][0]["criteria"].as_array().unwrap().len());
    assert!(item["properties"]["company"]["name"].is_string());
    let canceled = client.ok("searches.cancel", json!({ "websetId": id, "searchId": search })).await;
    assert_eq!(canceled["status"], "completed", "what is over stays over");
}

#[tokio::test]
async fn the_time_scale_makes_work_faster() {
    let server = Server::with(sandbox::Options { time_scale: 30.0, ..Default::default() }).await;
    let client = server.client();
    let made = webset(&client, 5).await;
    tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    assert_eq!(client.ok("websets.get", json!({ "websetId": made["id"] })).await["status"], "idle");
}

#[tokio::test]
async fn kinds_of_entities() {
    let server = Server::start().await;
    let client = server.client();
    for kind in ["company", "person", "article", "research_paper", "custom"] {
        let mut entity = json!({ "type": kind });
        if kind == "custom" {
            entity["description"] = "recipes".into();
        }
        let made = client.ok("websets.create", json!({ "search": { "query": "something worth finding in the long tail of all the things there are", "count": 30, "entity": entity } })).await;
        client.advance(4_000).await;
        let items = client.ok("items.list", json!({ "websetId": made["id"], "limit": 100 })).await;
        assert_eq!(items["data"].as_array().unwrap().len(), 30, "{kind}");
        assert!(items["data"].as_array().unwrap().iter().all(|item| item["properties"]["type"] == kind));
    }
}

#[tokio::test]
async fn external_ids_stand_for_ids() {
    let server = Server::start().await;
    let client = server.client();
    let made = client.ok("websets.create", json!({ "externalId": "mine/1 ü", "metadata": { "a": "1" } })).await;
    assert_eq!(client.ok("websets.get", json!({ "websetId": "mine/1 ü" })).await["id"], made["id"]);
    assert_eq!(client.fails("websets.create", json!({ "externalId": "mine/1 ü" })).await, (409, "CONFLICT".into()));
    client.ok("searches.create", json!({ "websetId": "mine/1 ü", "query": "x", "count": 1 })).await;
    server.client_with("other").ok("websets.create", json!({ "externalId": "mine/1 ü" })).await;
    client.ok("websets.delete", json!({ "websetId": "mine/1 ü" })).await;
    assert_eq!(client.fails("websets.get", json!({ "websetId": made["id"] })).await, (404, "NOT_FOUND".into()));
    client.ok("websets.create", json!({ "externalId": "mine/1 ü" })).await;
}

#[tokio::test]
async fn metadata_is_set_and_cleared() {
    let server = Server::start().await;
    let client = server.client();
    let made = client.ok("websets.create", json!({ "metadata": { "a": "1" } })).await;
    let set = client.ok("websets.update", json!({ "websetId": made["id"], "metadata": { "b": "2" } })).await;
    assert_eq!(set["metadata"], json!({ "b": "2" }));
    let kept = client.ok("websets.update", json!({ "websetId": made["id"] })).await;
    assert_eq!(kept["metadata"], json!({ "b": "2" }));
    let cleared = client.ok("websets.update", json!({ "websetId": made["id"], "metadata": null })).await;
    assert_eq!(cleared["metadata"], json!({}));
    let long = json!({ "websetId": made["id"], "metadata": { "b": "x".repeat(1001) } });
    assert_eq!(client.fails("websets.update", long).await.0, 400);
}

#[tokio::test]
async fn lists_come_in_pages() {
    let server = Server::start().await;
    let client = server.client();
    let mut made = Vec::new();
    for _ in 0..7 {
        made.push(client.ok("websets.create", json!({})).await["id"].as_str().unwrap().to_owned());
    }
    made.reverse();
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let mut args = json!({ "limit": 3 });
        if let Some(cursor) = cursor {
            args["cursor"] = cursor;
        }
        let page = client.ok("websets.list", args).await;
        seen.extend(ids(&page));
        if seen.len() == 3 {
            // What comes and goes in between must not shift the pages.
            client.ok("websets.delete", json!({ "websetId": made[1] })).await;
            client.ok("websets.create", json!({})).await;
        }
        if page["hasMore"] == false {
            assert_eq!(page["nextCursor"], Value::Null);
            break;
        }
        cursor = Some(page["nextCursor"].clone());
    }
    assert_eq!(seen, made);

    let webset = webset(&client, 45).await;
    client.advance(4_000).await;
    let first = client.ok("items.list", json!({ "websetId": webset["id"] })).await;
    assert_eq!(first["data"].as_array().unwrap().len(), 20);
    let second = client.ok("items.list", json!({ "websetId": webset["id"], "cursor": first["nextCursor"], "limit": 100 })).await;
    assert_eq!(second["data"].as_array().unwrap().len(), 25);
    assert_eq!(second["hasMore"], false);
}

#[tokio::test]
async fn cancelling_stops_the_work() {
    let server = Server::start().await;
    let client = server.client();
    let made = client.ok("websets.create", json!({ "search": { "query": "startups", "count": 40 }, "enrichments": [{ "description": "Email" }] })).await;
    let id = made["id"].clone();
    client.advance(1_500).await;
    let canceled = client.ok("websets.cancel", json!({ "websetId": id })).await;
    assert_eq!(canceled["status"], "idle");
    assert_eq!(canceled["searches"][0]["status"], "canceled");
    assert_eq!(canceled["searches"][0]["canceledReason"], "webset_canceled");
    assert!(canceled["searches"][0]["canceledAt"].is_string());
    assert_eq!(canceled["enrichments"][0]["status"], "canceled");
    let count = client.ok("items.list", json!({ "websetId": id, "limit": 100 })).await["data"].as_array().unwrap().len();
    client.advance(10_000).await;
    let items = client.ok("items.list", json!({ "websetId": id, "limit": 100 })).await;
    assert_eq!(items["data"].as_array().unwrap().len(), count, "items found so far stay, no more come");
    assert!((1..40).contains(&count));

    let search = client.ok("searches.create", json!({ "websetId": id, "query": "more", "count": 5 })).await;
    let one = client.ok("searches.cancel", json!({ "websetId": id, "searchId": search["id"] })).await;
    assert_eq!((one["status"].as_str(), &one["canceledReason"]), (Some("canceled"), &Value::Null));
}

#[tokio::test]
async fn further_searches_append_or_override() {
    let server = Server::start().await;
    let client = server.client();
    let made = webset(&client, 12).await;
    let id = made["id"].clone();
    client.advance(4_000).await;
    let before = ids(&client.ok("items.list", json!({ "websetId": id, "limit": 100 })).await);
    let append = client.ok("searches.create", json!({ "websetId": id, "query": "more startups", "count": 6, "behavior": "append" })).await;
    assert_eq!(append["behavior"], "append");
    client.advance(4_000).await;
    let all = ids(&client.ok("items.list", json!({ "websetId": id, "limit": 100 })).await);
    assert_eq!(all.len(), 18);
    assert_eq!(all[..12], before[..]);
    let of_search = client.ok("items.list", json!({ "websetId": id, "sourceId": append["id"], "limit": 100 })).await;
    assert_eq!(of_search["data"].as_array().unwrap().len(), 6);

    let criteria = json!([{ "description": "is in Hamburg" }]);
    let replace = client.ok("searches.create", json!({ "websetId": id, "query": "startups in Hamburg", "count": 3, "criteria": criteria, "priority": "high" })).await;
    assert_eq!(replace["behavior"], "override");
    client.advance(4_000).await;
    let now = client.ok("items.list", json!({ "websetId": id, "limit": 100 })).await;
    let items = now["data"].as_array().unwrap();
    assert!(items.len() < 21, "some no longer fit");
    assert!(items.iter().all(|item| item["evaluations"][0]["criterion"] == "is in Hamburg"));
}

#[tokio::test]
async fn exclusion_and_scope() {
    let server = Server::start().await;
    let client = server.client();
    let first = webset(&client, 8).await;
    client.advance(4_000).await;
    let urls = |page: Value| -> Vec<String> {
        page["data"].as_array().unwrap().iter().map(|item| item["properties"]["url"].as_str().unwrap().to_owned()).collect()
    };
    let known = urls(client.ok("items.list", json!({ "websetId": first["id"] })).await);
    let source = json!([{ "source": "webset", "id": first["id"] }]);
    let search = json!({ "query": first["searches"][0]["query"], "count": 8 });
    let mut without = search.clone();
    without["exclude"] = source.clone();
    let other = client.ok("websets.create", json!({ "search": without })).await;
    let mut within = search.clone();
    within["scope"] = source.clone();
    within["count"] = 20.into();
    let inside = client.ok("websets.create", json!({ "search": within })).await;
    let top = client.ok("websets.create", json!({ "search": search, "exclude": source })).await;
    let copy = client.ok("websets.create", json!({ "import": source })).await;
    client.advance(4_000).await;
    let others = urls(client.ok("items.list", json!({ "websetId": other["id"] })).await);
    assert_eq!(others.len(), 8);
    assert!(!others.iter().any(|url| known.contains(url)));
    let tops = urls(client.ok("items.list", json!({ "websetId": top["id"] })).await);
    assert!(tops.len() == 8 && !tops.iter().any(|url| known.contains(url)));
    assert_eq!(urls(client.ok("items.list", json!({ "websetId": inside["id"] })).await), known);
    assert_eq!(urls(client.ok("items.list", json!({ "websetId": copy["id"] })).await), known);
    assert_eq!(client.fails("websets.create", json!({ "import": [{ "source": "import", "id": "import_x" }] })).await.0, 400);
}

#[tokio::test]
async fn enrichments_fill_in() {
    let server = Server::start().await;
    let client = server.client();
    let made = client
        .ok("websets.create", json!({
            "search": { "query": "startups", "count": 6 },
            "enrichments": [{ "description": "Contact email", "format": "email" }, { "description": "Stage", "options": [{ "label": "Seed" }, { "label": "Growth" }] }],
        }))
        .await;
    let id = made["id"].clone();
    assert_eq!(made["enrichments"][0]["status"], "pending");
    assert_eq!(made["enrichments"][1]["format"], "options");
    client.advance(1_000).await;
    let early = client.ok("items.list", json!({ "websetId": id })).await;
    assert!(early["data"].as_array().unwrap().iter().any(|item| item["enrichments"][0]["status"] == "pending"), "{early}");
    client.advance(6_000).await;
    assert_eq!(client.ok("websets.get", json!({ "websetId": id })).await["enrichments"][0]["status"], "completed");
    let later = client.ok("enrichments.create", json!({ "websetId": id, "description": "Number of employees" })).await;
    assert_eq!((later["status"].as_str(), later["format"].as_str()), (Some("pending"), Some("number")));
    assert_eq!(client.ok("websets.get", json!({ "websetId": id })).await["status"], "running");
    client.advance(4_000).await;
    let items = client.ok("items.list", json!({ "websetId": id })).await;
    for item in items["data"].as_array().unwrap() {
        let results = item["enrichments"].as_array().unwrap();
        assert_eq!(results.len(), 3);
        assert!(results.iter().all(|result| result["status"] == "completed"), "{item}");
        assert!(results[0]["result"][0].as_str().unwrap().contains('@'));
        assert!(["Seed", "Growth"].contains(&results[1]["result"][0].as_str().unwrap()));
        assert!(results[2]["result"][0].as_str().unwrap().parse::<u64>().is_ok());
    }
    let args = |more: Value| {
        let mut args = json!({ "websetId": id, "enrichmentId": later["id"] });
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        args
    };
    let changed = client.ok("enrichments.update", args(json!({ "description": "Head count", "metadata": { "a": "b" } }))).await;
    assert_eq!((changed["description"].as_str(), changed["metadata"]["a"].as_str()), (Some("Head count"), Some("b")));
    assert_eq!(client.ok("enrichments.get", args(json!({}))).await["status"], "completed");
    client.ok("enrichments.delete", args(json!({}))).await;
    assert_eq!(client.fails("enrichments.get", args(json!({}))).await.0, 404);
    let item = client.ok("items.list", json!({ "websetId": id, "limit": 1 })).await["data"][0].clone();
    assert_eq!(item["enrichments"].as_array().unwrap().len(), 2, "results go with their enrichment");

    let stopped = client.ok("enrichments.create", json!({ "websetId": id, "description": "Founder" })).await;
    let stopped = client.ok("enrichments.cancel", json!({ "websetId": id, "enrichmentId": stopped["id"] })).await;
    assert_eq!(stopped["status"], "canceled");
    client.advance(4_000).await;
    let item = client.ok("items.get", json!({ "websetId": id, "itemId": item["id"] })).await;
    assert_eq!(item["enrichments"][2]["status"], "canceled");
    assert_eq!(client.fails("enrichments.create", json!({ "websetId": id, "description": "x", "format": "options" })).await.0, 400);
}

#[tokio::test]
async fn items_can_be_removed() {
    let server = Server::start().await;
    let client = server.client();
    let made = webset(&client, 3).await;
    client.advance(4_000).await;
    let items = ids(&client.ok("items.list", json!({ "websetId": made["id"] })).await);
    let gone = json!({ "websetId": made["id"], "itemId": items[1] });
    assert_eq!(client.ok("items.delete", gone.clone()).await["id"].as_str(), Some(items[1].as_str()));
    assert_eq!(client.fails("items.get", gone.clone()).await.0, 404);
    assert_eq!(client.fails("items.delete", gone).await.0, 404);
    assert_eq!(ids(&client.ok("items.list", json!({ "websetId": made["id"] })).await).len(), 2);
}

#[tokio::test]
async fn previews_create_nothing() {
    let server = Server::start().await;
    let client = server.client();
    let plain = client.ok("websets.preview", json!({ "search": { "query": "engineers in Berlin with Rust experience" } })).await;
    assert_eq!(plain["search"]["entity"]["type"], "person");
    assert!(plain["search"]["criteria"].as_array().unwrap().len() >= 2);
    assert_eq!(plain["items"], json!([]));
    assert!(!plain["enrichments"].as_array().unwrap().is_empty());
    let with = client.ok("websets.preview", json!({ "search": { "query": "engineers in Berlin", "count": 4 }, "withItems": true })).await;
    assert_eq!(with["items"].as_array().unwrap().len(), 4);
    assert_eq!(client.ok("websets.list", json!({})).await["data"], json!([]));
    assert_eq!(client.fails("websets.preview", json!({ "search": { "query": "?!" } })).await.0, 422);
}

#[tokio::test]
async fn events_tell_what_happened() {
    let server = Server::start().await;
    let client = server.client();
    let made = client.ok("websets.create", json!({ "search": { "query": "startups", "count": 2 }, "enrichments": [{ "description": "Email" }] })).await;
    client.advance(6_000).await;
    client.ok("websets.delete", json!({ "websetId": made["id"] })).await;
    let page = client.ok("events.list", json!({ "limit": 200 })).await;
    let mut kinds: Vec<&str> = page["data"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    kinds.reverse();
    assert_eq!(kinds[..3], ["webset.created", "webset.search.created", "webset.search.updated"]);
    assert_eq!(kinds[kinds.len() - 2..], ["webset.idle", "webset.deleted"]);
    for (kind, count) in [("webset.item.created", 2), ("webset.item.enriched", 2), ("webset.search.completed", 1)] {
        assert_eq!(kinds.iter().filter(|seen| **seen == kind).count(), count, "{kind}: {kinds:?}");
        let only = client.ok("events.list", json!({ "types": [kind] })).await;
        assert_eq!(only["data"].as_array().unwrap().len(), count);
    }
    let idle = client.ok("events.list", json!({ "types": ["webset.idle"] })).await["data"][0].clone();
    assert_eq!(client.ok("events.get", json!({ "eventId": idle["id"] })).await, {
        let mut event = idle.clone();
        event["sandbox"] = sandbox::MARKER.into();
        event
    });
    let after = client.ok("events.list", json!({ "createdAfter": idle["createdAt"] })).await;
    let before = client.ok("events.list", json!({ "createdBefore": idle["createdAt"], "limit": 200 })).await;
    assert_eq!(after["data"].as_array().unwrap().len(), 2, "idle and deleted");
    assert_eq!(before["data"].as_array().unwrap().len(), kinds.len() - 1);
    assert_eq!(client.fails("events.get", json!({ "eventId": "event_x" })).await, (404, "NOT_FOUND".into()));
}

#[tokio::test]
async fn webhooks_keep_their_secret() {
    let server = Server::start().await;
    let client = server.client();
    let made = client.ok("webhooks.create", json!({ "events": ["webset.created", "webset.idle"], "url": "https://hooks.example/a" })).await;
    assert!(made["secret"].as_str().unwrap().len() > 20);
    let id = json!({ "webhookId": made["id"] });
    assert_eq!(client.ok("webhooks.get", id.clone()).await["secret"], Value::Null);
    assert_eq!(client.ok("webhooks.list", json!({})).await["data"][0]["secret"], Value::Null);
    let failing = client.ok("webhooks.create", json!({ "events": ["webset.created"], "url": "https://hooks.example/fail" })).await;
    client.ok("websets.create", json!({ "search": { "query": "startups", "count": 1 } })).await;
    client.advance(5_000).await;
    let attempts = client.ok("webhooks.list_attempts", id.clone()).await;
    assert_eq!(attempts["data"].as_array().unwrap().len(), 2);
    assert!(attempts["data"].as_array().unwrap().iter().all(|attempt| attempt["successful"] == true));
    let created = client.ok("webhooks.list_attempts", json!({ "webhookId": made["id"], "eventType": "webset.created" })).await;
    assert_eq!(created["data"].as_array().unwrap().len(), 1);
    let event = client.ok("events.get", json!({ "eventId": created["data"][0]["eventId"] })).await;
    assert_eq!(event["type"], "webset.created");
    let failed = client.ok("webhooks.list_attempts", json!({ "webhookId": failing["id"], "successful": false })).await;
    assert_eq!(failed["data"][0]["responseStatusCode"], 500);
    assert_eq!(client.ok("webhooks.list_attempts", json!({ "webhookId": failing["id"], "successful": true })).await["data"], json!([]));
    let changed = client.ok("webhooks.update", json!({ "webhookId": made["id"], "url": "https://hooks.example/b", "events": ["import.created"] })).await;
    assert_eq!((changed["url"].as_str(), &changed["events"]), (Some("https://hooks.example/b"), &json!(["import.created"])));
    client.ok("webhooks.delete", id.clone()).await;
    assert_eq!(client.fails("webhooks.get", id).await.0, 404);
    assert_eq!(client.fails("webhooks.create", json!({ "events": [], "url": "https://hooks.example" })).await.0, 400);
    assert_eq!(client.fails("webhooks.create", json!({ "events": ["webset.idle"], "url": "no address" })).await.0, 400);
}
