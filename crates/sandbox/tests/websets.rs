//! Websets and their searches.

use serde_json::{Value, json};

use crate::support::{Client, Server};

pub(crate) async fn webset(client: &Client, count: u64) -> Value {
    client.ok("websets.create", json!({ "search": { "query": "AI startups in Berlin with under 50 employees", "count": count } })).await
}

pub(crate) fn ids(page: &Value) -> Vec<String> {
    page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn search_runs_to_completion() {
    let server = Server::start().await;
    let client = server.client();
    let created = client
        .call(
            "websets.create",
            json!({ "search": { "query": "AI startups in Berlin", "count": 10, "recall": true } }),
        )
        .await;
    assert_eq!(created.status, 201);
    let created = created.json();
    let (id, search) = (created["id"].clone(), created["searches"][0]["id"].clone());
    assert!(
        id.as_str().unwrap().starts_with("webset_")
            && search.as_str().unwrap().starts_with("search_")
    );
    assert_eq!(created["status"], "pending");
    assert_eq!(created["searches"][0]["status"], "created");
    assert_eq!(created["searches"][0]["entity"]["type"], "company");

    client.advance(1_500).await;
    let half = client
        .ok(
            "searches.get",
            json!({ "websetId": id, "searchId": search }),
        )
        .await;
    assert_eq!(half["status"], "running");
    let found = half["progress"]["found"].as_u64().unwrap();
    assert!((1..10).contains(&found), "{half}");
    assert!(half["progress"]["analyzed"].as_u64().unwrap() >= found);
    assert!(half["progress"]["timeLeft"].as_u64().is_some());
    assert_eq!(half["recall"], Value::Null);
    let items = client.ok("items.list", json!({ "websetId": id })).await;
    assert_eq!(
        items["data"].as_array().unwrap().len() as u64,
        found,
        "items appear while the search runs"
    );
    assert_eq!(
        client.ok("websets.get", json!({ "websetId": id })).await["status"],
        "running"
    );

    client.advance(3_000).await;
    let done = client
        .ok(
            "websets.get",
            json!({ "websetId": id, "expand": ["items"] }),
        )
        .await;
    assert_eq!(done["status"], "idle");
    assert_eq!(done["searches"][0]["status"], "completed");
    assert_eq!(done["searches"][0]["progress"]["completion"], 100);
    assert_eq!(done["searches"][0]["progress"]["found"], 10);
    assert!(
        done["searches"][0]["recall"]["expected"]["total"]
            .as_u64()
            .unwrap()
            >= 10
    );
    assert_eq!(done["items"].as_array().unwrap().len(), 10);
    let item = &done["items"][0];
    assert_eq!(item["source"], "search");
    assert_eq!(item["sourceId"], search);
    assert_eq!(
        item["evaluations"].as_array().unwrap().len(),
        done["searches"][0]["criteria"].as_array().unwrap().len()
    );
    assert!(item["properties"]["company"]["name"].is_string());
    let canceled = client
        .ok(
            "searches.cancel",
            json!({ "websetId": id, "searchId": search }),
        )
        .await;
    assert_eq!(
        canceled["status"], "completed",
        "a completed search does not change"
    );
}

#[tokio::test]
async fn time_scale_speeds_up_work() {
    let server = Server::with(exa_mcp_sandbox::Options {
        time_scale: 30.0,
        ..Default::default()
    })
    .await;
    let client = server.client();
    let created = webset(&client, 5).await;
    tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    assert_eq!(
        client
            .ok("websets.get", json!({ "websetId": created["id"] }))
            .await["status"],
        "idle"
    );
}

#[tokio::test]
async fn finds_every_kind_of_entity() {
    let server = Server::start().await;
    let client = server.client();
    for kind in ["company", "person", "article", "research_paper", "custom"] {
        let mut entity = json!({ "type": kind });
        if kind == "custom" {
            entity["description"] = "recipes".into();
        }
        let created = client.ok("websets.create", json!({ "search": { "query": "something worth finding in the long tail of all the things there are", "count": 30, "entity": entity } })).await;
        client.advance(4_000).await;
        let items = client
            .ok(
                "items.list",
                json!({ "websetId": created["id"], "limit": 100 }),
            )
            .await;
        assert_eq!(items["data"].as_array().unwrap().len(), 30, "{kind}");
        assert!(
            items["data"]
                .as_array()
                .unwrap()
                .iter()
                .all(|item| item["properties"]["type"] == kind)
        );
    }
}

#[tokio::test]
async fn external_ids_can_replace_ids() {
    let server = Server::start().await;
    let client = server.client();
    let created = client
        .ok(
            "websets.create",
            json!({ "externalId": "mine/1 ü", "metadata": { "a": "1" } }),
        )
        .await;
    assert_eq!(
        client
            .ok("websets.get", json!({ "websetId": "mine/1 ü" }))
            .await["id"],
        created["id"]
    );
    assert_eq!(
        client
            .fails("websets.create", json!({ "externalId": "mine/1 ü" }))
            .await,
        (409, String::new())
    );
    client
        .ok(
            "searches.create",
            json!({ "websetId": "mine/1 ü", "query": "x", "count": 1 }),
        )
        .await;
    server
        .client_with("other")
        .ok("websets.create", json!({ "externalId": "mine/1 ü" }))
        .await;
    client
        .ok("websets.delete", json!({ "websetId": "mine/1 ü" }))
        .await;
    assert_eq!(
        client
            .fails("websets.get", json!({ "websetId": created["id"] }))
            .await,
        (404, "NOT_FOUND".into())
    );
    client
        .ok("websets.create", json!({ "externalId": "mine/1 ü" }))
        .await;
}

#[tokio::test]
async fn metadata_can_be_set_and_cleared() {
    let server = Server::start().await;
    let client = server.client();
    let created = client
        .ok("websets.create", json!({ "metadata": { "a": "1" } }))
        .await;
    let set = client
        .ok(
            "websets.update",
            json!({ "websetId": created["id"], "metadata": { "b": "2" } }),
        )
        .await;
    assert_eq!(set["metadata"], json!({ "b": "2" }));
    let unchanged = client
        .ok("websets.update", json!({ "websetId": created["id"] }))
        .await;
    assert_eq!(unchanged["metadata"], json!({ "b": "2" }));
    let cleared = client
        .ok(
            "websets.update",
            json!({ "websetId": created["id"], "metadata": null }),
        )
        .await;
    assert_eq!(cleared["metadata"], json!({}));
    let long = json!({ "websetId": created["id"], "metadata": { "b": "x".repeat(1001) } });
    assert_eq!(client.fails("websets.update", long).await.0, 400);
}

#[tokio::test]
async fn lists_are_paginated() {
    let server = Server::start().await;
    let client = server.client();
    let mut created = Vec::new();
    for _ in 0..7 {
        created.push(
            client.ok("websets.create", json!({})).await["id"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    created.reverse();
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let mut args = json!({ "limit": 3 });
        if let Some(cursor) = cursor {
            args["cursor"] = cursor;
        }
        let page = client.ok("websets.list", args).await;
        seen.extend(ids(&page));
        if seen.len() == 3 {
            // Additions and deletions must not shift the pages.
            client
                .ok("websets.delete", json!({ "websetId": created[1] }))
                .await;
            client.ok("websets.create", json!({})).await;
        }
        if page["hasMore"] == false {
            assert_eq!(page["nextCursor"], Value::Null);
            break;
        }
        cursor = Some(page["nextCursor"].clone());
    }
    assert_eq!(seen, created);

    let webset = webset(&client, 45).await;
    client.advance(4_000).await;
    let first = client
        .ok("items.list", json!({ "websetId": webset["id"] }))
        .await;
    assert_eq!(first["data"].as_array().unwrap().len(), 20);
    let second = client
        .ok(
            "items.list",
            json!({ "websetId": webset["id"], "cursor": first["nextCursor"], "limit": 100 }),
        )
        .await;
    assert_eq!(second["data"].as_array().unwrap().len(), 25);
    assert_eq!(second["hasMore"], false);
}

#[tokio::test]
async fn cancel_stops_the_work() {
    let server = Server::start().await;
    let client = server.client();
    let created = client.ok("websets.create", json!({ "search": { "query": "startups", "count": 40 }, "enrichments": [{ "description": "Email" }] })).await;
    let id = created["id"].clone();
    client.advance(1_500).await;
    let canceled = client.ok("websets.cancel", json!({ "websetId": id })).await;
    assert_eq!(canceled["status"], "idle");
    assert_eq!(canceled["searches"][0]["status"], "canceled");
    assert_eq!(canceled["searches"][0]["canceledReason"], "webset_canceled");
    assert!(canceled["searches"][0]["canceledAt"].is_string());
    assert_eq!(canceled["enrichments"][0]["status"], "canceled");
    let count = client
        .ok("items.list", json!({ "websetId": id, "limit": 100 }))
        .await["data"]
        .as_array()
        .unwrap()
        .len();
    client.advance(10_000).await;
    let items = client
        .ok("items.list", json!({ "websetId": id, "limit": 100 }))
        .await;
    assert_eq!(
        items["data"].as_array().unwrap().len(),
        count,
        "items found so far stay, no more come"
    );
    assert!((1..40).contains(&count));

    let search = client
        .ok(
            "searches.create",
            json!({ "websetId": id, "query": "more", "count": 5 }),
        )
        .await;
    let one = client
        .ok(
            "searches.cancel",
            json!({ "websetId": id, "searchId": search["id"] }),
        )
        .await;
    assert_eq!(
        (one["status"].as_str(), &one["canceledReason"]),
        (Some("canceled"), &Value::Null)
    );
}

#[tokio::test]
async fn additional_searches_append_or_override() {
    let server = Server::start().await;
    let client = server.client();
    let created = webset(&client, 12).await;
    let id = created["id"].clone();
    client.advance(4_000).await;
    let before = ids(&client
        .ok("items.list", json!({ "websetId": id, "limit": 100 }))
        .await);
    let append = client
        .ok(
            "searches.create",
            json!({ "websetId": id, "query": "more startups", "count": 6, "behavior": "append" }),
        )
        .await;
    assert_eq!(append["behavior"], "append");
    client.advance(4_000).await;
    let all = ids(&client
        .ok("items.list", json!({ "websetId": id, "limit": 100 }))
        .await);
    assert_eq!(all.len(), 18);
    assert_eq!(all[..12], before[..]);
    let of_search = client
        .ok(
            "items.list",
            json!({ "websetId": id, "sourceId": append["id"], "limit": 100 }),
        )
        .await;
    assert_eq!(of_search["data"].as_array().unwrap().len(), 6);

    let criteria = json!([{ "description": "is in Hamburg" }]);
    let replace = client.ok("searches.create", json!({ "websetId": id, "query": "startups in Hamburg", "count": 3, "criteria": criteria, "priority": "high" })).await;
    assert_eq!(replace["behavior"], "override");
    client.advance(4_000).await;
    let now = client
        .ok("items.list", json!({ "websetId": id, "limit": 100 }))
        .await;
    let items = now["data"].as_array().unwrap();
    assert!(items.len() < 21, "some items do not match the new criteria");
    assert!(
        items
            .iter()
            .all(|item| item["evaluations"][0]["criterion"] == "is in Hamburg")
    );
}

#[tokio::test]
async fn searches_respect_exclusions_and_scope() {
    let server = Server::start().await;
    let client = server.client();
    let first = webset(&client, 8).await;
    client.advance(4_000).await;
    let urls = |page: Value| -> Vec<String> {
        page["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["properties"]["url"].as_str().unwrap().to_owned())
            .collect()
    };
    let known = urls(
        client
            .ok("items.list", json!({ "websetId": first["id"] }))
            .await,
    );
    let source = json!([{ "source": "webset", "id": first["id"] }]);
    let search = json!({ "query": first["searches"][0]["query"], "count": 8 });
    let mut without = search.clone();
    without["exclude"] = source.clone();
    let other = client
        .ok("websets.create", json!({ "search": without }))
        .await;
    let mut within = search.clone();
    within["scope"] = source.clone();
    within["count"] = 20.into();
    let inside = client
        .ok("websets.create", json!({ "search": within }))
        .await;
    let top = client
        .ok(
            "websets.create",
            json!({ "search": search, "exclude": source }),
        )
        .await;
    let copy = client
        .ok("websets.create", json!({ "import": source }))
        .await;
    client.advance(4_000).await;
    let others = urls(
        client
            .ok("items.list", json!({ "websetId": other["id"] }))
            .await,
    );
    assert_eq!(others.len(), 8);
    assert!(!others.iter().any(|url| known.contains(url)));
    let tops = urls(
        client
            .ok("items.list", json!({ "websetId": top["id"] }))
            .await,
    );
    assert!(tops.len() == 8 && !tops.iter().any(|url| known.contains(url)));
    assert_eq!(
        urls(
            client
                .ok("items.list", json!({ "websetId": inside["id"] }))
                .await
        ),
        known
    );
    assert_eq!(
        urls(
            client
                .ok("items.list", json!({ "websetId": copy["id"] }))
                .await
        ),
        known
    );
    let own = json!([{ "source": "webset", "id": first["id"] }]);
    let again = json!({ "websetId": first["id"], "query": "x", "count": 5, "scope": own, "behavior": "append" });
    let again = client.ok("searches.create", again).await;
    client.advance(4_000).await;
    let args = json!({ "websetId": first["id"], "searchId": again["id"] });
    let done = client.ok("searches.get", args).await;
    assert_eq!(done["status"], "completed");
    assert_eq!(
        done["progress"]["found"], 0,
        "a webset contains no entity twice"
    );
    assert_eq!(
        client
            .fails(
                "websets.create",
                json!({ "import": [{ "source": "import", "id": "import_x" }] })
            )
            .await
            .0,
        400
    );
}
