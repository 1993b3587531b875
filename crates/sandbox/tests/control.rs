//! `/sandbox/…`, limits and determinism.

use exa_mcp_sandbox::Options;
use serde_json::{Value, json};

use crate::support::{Client, Server};

#[tokio::test]
async fn request_log_omits_keys() {
    let server = Server::start().await;
    let client = server
        .client_with("very-secret")
        .header("x-custom", "seen")
        .header("authorization", "Bearer very-secret");
    client
        .send(
            "POST",
            "/search?sandboxFault=status=500",
            Some(json!({ "query": "x" })),
        )
        .await;
    client
        .send(
            "GET",
            "/websets/v0/events?types=webset.created&types=webset.idle",
            None,
        )
        .await;
    let log = client.send("GET", "/sandbox/requests", None).await;
    assert!(!log.text().contains("very-secret"));
    let requests = log.json()["requests"].as_array().unwrap().clone();
    assert_eq!(requests.len(), 2, "control requests are not logged");
    let first = &requests[0];
    assert_eq!(first["method"], "POST");
    assert_eq!(first["path"], "/search");
    assert_eq!(first["operation"], "search");
    assert_eq!(first["body"], json!({ "query": "x" }));
    assert_eq!(first["hasKey"], true);
    assert_eq!(first["headers"]["x-custom"], "seen");
    assert_eq!(first["status"], 500);
    assert_eq!(
        requests[1]["query"],
        json!([["types", "webset.created"], ["types", "webset.idle"]])
    );
    let last = client
        .send("GET", "/sandbox/requests?limit=1", None)
        .await
        .json();
    assert_eq!(last["requests"].as_array().unwrap().len(), 1);
    assert_eq!(last["requests"][0]["path"], "/websets/v0/events");
}

#[tokio::test]
async fn state_can_be_inspected_and_reset() {
    let server = Server::start().await;
    let client = server.client();
    client.ok("websets.create", json!({})).await;
    server
        .client_with("other")
        .ok(
            "webhooks.create",
            json!({ "events": ["webset.idle"], "url": "https://hooks.example" }),
        )
        .await;
    let state = client.send("GET", "/sandbox/state", None).await.json();
    assert_eq!(state["keys"], 2);
    assert_eq!(
        state["operations"].as_u64().unwrap() as usize,
        crate::support::specs().len()
    );
    let sum = |state: &Value, name: &str| {
        state["objects"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one[name].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!((sum(&state, "websets"), sum(&state, "webhooks")), (1, 1));
    assert_eq!(
        client.send("POST", "/sandbox/reset", None).await.status,
        200
    );
    let state = client.send("GET", "/sandbox/state", None).await.json();
    assert_eq!(state["keys"], 0);
    assert_eq!(
        client.ok("websets.list", json!({})).await["data"],
        json!([])
    );
}

#[tokio::test]
async fn clock_can_be_frozen_and_advanced() {
    let server = Server::start().await;
    let client = server.client();
    let before = client.send("GET", "/sandbox/clock", None).await.json()["now"]
        .as_str()
        .unwrap()
        .to_owned();
    client.advance(86_400_000).await;
    let after = client.send("GET", "/sandbox/clock", None).await.json()["now"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(after > before);
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let still = client.send("GET", "/sandbox/clock", None).await.json();
    assert_eq!(
        (still["now"].as_str(), &still["frozen"]),
        (Some(after.as_str()), &json!(true))
    );
    let free = Some(json!({ "freeze": false }));
    assert_eq!(
        client.send("POST", "/sandbox/clock", free).await.json()["frozen"],
        false
    );
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let later = client.send("GET", "/sandbox/clock", None).await.json();
    assert!(later["now"].as_str().unwrap() > after.as_str());
    for invalid in [
        json!({}),
        json!({ "advanceMs": -1 }),
        json!({ "advanceMs": 1e18 }),
    ] {
        assert_eq!(
            client
                .send("POST", "/sandbox/clock", Some(invalid))
                .await
                .status,
            400
        );
    }
    assert_eq!(
        client.send("DELETE", "/sandbox/clock", None).await.status,
        405
    );
    assert_eq!(
        client.send("GET", "/sandbox/nothing", None).await.status,
        404
    );
}

async fn items_of_a_search(client: &Client) -> Value {
    let webset = client.ok("websets.create", json!({ "search": { "query": "startups in Berlin", "count": 4 }, "enrichments": [{ "description": "Email" }] })).await;
    client.advance(20_000).await;
    let items = client
        .ok("items.list", json!({ "websetId": webset["id"] }))
        .await;
    let part = |item: &Value| json!([item["properties"], item["enrichments"][0]["result"]]);
    items["data"].as_array().unwrap().iter().map(part).collect()
}

#[tokio::test]
async fn same_seed_gives_same_data() {
    let (one, two) = (Server::start().await, Server::start().await);
    let other = Server::with(Options {
        seed: 42,
        ..Options::default()
    })
    .await;
    let first = items_of_a_search(&one.client()).await;
    assert_eq!(first.as_array().unwrap().len(), 4);
    assert_eq!(first, items_of_a_search(&two.client()).await);
    assert_eq!(
        first,
        items_of_a_search(&one.client_with("another key")).await
    );
    assert_ne!(first, items_of_a_search(&other.client()).await);
}

#[tokio::test]
async fn state_is_bounded() {
    let server = Server::start().await;
    let client = server.client();
    let webset = client
        .ok(
            "websets.create",
            json!({ "search": { "query": "startups", "count": 1_000_000 } }),
        )
        .await;
    client.advance(60_000).await;
    let state = client.send("GET", "/sandbox/state", None).await.json();
    let items = state["objects"][0]["items"].as_u64().unwrap();
    assert!((9_000..=10_000).contains(&items), "{items}");
    assert!(state["objects"][0]["events"].as_u64().unwrap() <= 5_000);
    let search = client
        .ok(
            "searches.get",
            json!({ "websetId": webset["id"], "searchId": webset["searches"][0]["id"] }),
        )
        .await;
    assert_eq!(
        search["status"], "completed",
        "a search may find fewer items than requested"
    );
    let full = client.call("websets.create", json!({})).await;
    assert_eq!(full.status, 400);
    assert!(full.text().contains("/sandbox/reset"));
    server
        .client_with("other")
        .ok("websets.create", json!({}))
        .await;
}

#[tokio::test]
async fn shutdown_ends_the_server() {
    let sandbox =
        exa_mcp_sandbox::Sandbox::new(crate::support::specs().to_vec(), Options::default())
            .unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(sandbox.serve(listener, async move {
        let _ = stopped.await;
    }));
    let client = Client {
        addr,
        key: Some("k".into()),
        headers: vec![("x-sandbox-fault".into(), "delay=60000".into())],
    };
    // A slow request must not delay the shutdown forever.
    tokio::spawn(async move { client.try_send("POST", "/search", Some(b"{}")).await });
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    stop.send(()).unwrap();
    tokio::time::timeout(std::time::Duration::from_secs(10), serving)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
}
