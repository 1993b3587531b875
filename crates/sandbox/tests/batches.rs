//! Batches.

use serde_json::{Value, json};

use crate::support::{Client, Server};

const BETA: &str = "batches-2026-06-06";

fn item(name: &str, url: &str, body: Value) -> Value {
    json!({ "customId": name, "method": "POST", "url": url, "body": body })
}

fn requests(list: Vec<Value>) -> Value {
    json!({ "requests": list, "betas": [BETA] })
}

fn searches(count: usize) -> Value {
    let item = |number: usize| {
        let query = format!("subject {number}");
        item(&number.to_string(), "/search", json!({ "query": query }))
    };
    requests((0..count).map(item).collect())
}

fn of(batch: &Value) -> Value {
    json!({ "batchId": batch["id"], "betas": [BETA] })
}

/// Follows the link to the results, without a key.
async fn results(client: &Client, batch: &Value) -> Vec<Value> {
    let address = format!("http://{}", client.addr);
    let url = batch["resultsUrl"].as_str().unwrap();
    let path = url.strip_prefix(&address).unwrap();
    let file = client.clone().without_key().send("GET", path, None).await;
    assert_eq!(file.status, 200, "{}", file.text());
    let lines = file.text();
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn items_are_executed_and_counted() {
    let server = Server::start().await;
    let client = server.client();
    let mut args = requests(vec![
        item(
            "good",
            "/search",
            json!({ "query": "heat pumps", "numResults": 2 }),
        ),
        item(
            "typo",
            "/search",
            json!({ "query": "heat pumps", "numResult": 2 }),
        ),
        item(
            "rule",
            "/search",
            json!({ "query": "x", "category": "people", "excludeDomains": ["a.example"] }),
        ),
        item("failing", "/search", json!({ "query": "sandbox-fail" })),
        item(
            "run",
            "/agent/runs",
            json!({ "query": "makers", "effort": "high" }),
        ),
        item(
            "failing run",
            "/agent/runs",
            json!({ "query": "sandbox-fail" }),
        ),
    ]);
    args["metadata"] = json!({ "job": "nightly" });
    let created = client.ok("batches.create", args).await;
    assert!(created["id"].as_str().unwrap().starts_with("batch_"));
    assert_eq!(created["status"], "in_progress");
    assert_eq!(
        created["requestCounts"],
        json!({ "total": 6, "completed": 0, "failed": 0 })
    );
    for name in ["expiresAt", "endedAt", "resultsUrl"] {
        assert_eq!(created[name], Value::Null, "{name}");
    }
    client.advance(1_500).await;
    let running = client.ok("batches.get", of(&created)).await;
    assert_eq!(running["status"], "in_progress");
    assert!(
        running["requestCounts"]["failed"].as_u64().unwrap() >= 1,
        "{running}"
    );
    client.advance(20_000).await;
    let done = client.ok("batches.get", of(&created)).await;
    assert_eq!(done["status"], "completed");
    assert_eq!(
        done["requestCounts"],
        json!({ "total": 6, "completed": 2, "failed": 4 })
    );
    assert_eq!(done["metadata"]["job"], "nightly");
    let lines = results(&client, &done).await;
    let ids: Vec<&str> = lines
        .iter()
        .map(|line| line["customId"].as_str().unwrap())
        .collect();
    assert_eq!(
        ids,
        ["good", "typo", "rule", "failing", "run", "failing run"]
    );
    assert_eq!(lines[0]["response"]["statusCode"], 200);
    let body = &lines[0]["response"]["body"];
    assert_eq!(body["results"].as_array().unwrap().len(), 2);
    assert_eq!(lines[1]["error"]["code"], "API_ERROR");
    assert!(
        lines[1]["error"]["message"]
            .as_str()
            .unwrap()
            .contains("numResult")
    );
    assert_eq!(lines[4]["response"]["body"]["status"], "completed");
    assert!(lines[5]["error"]["message"].is_string());
}

#[tokio::test]
async fn links_expire_and_take_no_key() {
    let server = Server::start().await;
    let client = server.client();
    let created = client.ok("batches.create", searches(1)).await;
    client.advance(2_000).await;
    let done = client.ok("batches.get", of(&created)).await;
    let again = client.ok("batches.get", of(&created)).await;
    assert_eq!(
        done["resultsUrl"], again["resultsUrl"],
        "a fresh link is used again"
    );
    let url = done["resultsUrl"].as_str().unwrap();
    let path = format!("/sandbox/results/{}", url.rsplit('/').next().unwrap());
    assert_eq!(
        client.send("GET", &path, None).await.status,
        400,
        "with a key"
    );
    let keyless = client.clone().without_key();
    assert_eq!(keyless.send("POST", &path, None).await.status, 405);
    let unknown = keyless.send("GET", "/sandbox/results/made-up", None).await;
    assert_eq!(unknown.status, 404);
    client.advance(3_600_000).await;
    assert_eq!(
        keyless.send("GET", &path, None).await.status,
        403,
        "after an hour"
    );
    let later = client.ok("batches.get", of(&created)).await;
    assert_ne!(done["resultsUrl"], later["resultsUrl"]);
    assert_eq!(results(&client, &later).await.len(), 1);
    client.advance(30 * 86_400_000).await;
    let expired = client.ok("batches.get", of(&created)).await;
    assert_eq!(
        (expired["status"].as_str(), &expired["resultsUrl"]),
        (Some("expired"), &Value::Null)
    );
}

#[tokio::test]
async fn batches_can_be_canceled_and_deleted() {
    let server = Server::start().await;
    let client = server.client();
    let conflict = (409, "INVALID_REQUEST".to_owned());
    let mut args = searches(8);
    args["requests"][0] = item(
        "run",
        "/agent/runs",
        json!({ "query": "x", "effort": "high" }),
    );
    let created = client.ok("batches.create", args).await;
    assert_eq!(client.fails("batches.delete", of(&created)).await, conflict);
    client.advance(600).await;
    let canceling = client.ok("batches.cancel", of(&created)).await;
    assert_eq!(canceling["status"], "cancelling");
    assert_eq!(
        client.ok("batches.cancel", of(&created)).await["status"],
        "cancelling"
    );
    client.advance(10_000).await;
    let canceled = client.ok("batches.cancel", of(&created)).await;
    assert_eq!(canceled["status"], "cancelled");
    assert_eq!(
        canceled["requestCounts"],
        json!({ "total": 8, "completed": 2, "failed": 0 })
    );
    assert_eq!(results(&client, &canceled).await.len(), 2);
    let deleted = client.ok("batches.delete", of(&created)).await;
    assert_eq!(
        (deleted["object"].as_str(), deleted["deleted"].as_bool()),
        (Some("batch.deleted"), Some(true))
    );
    let not_found = (404, "NOT_FOUND".to_owned());
    for name in ["batches.get", "batches.cancel", "batches.delete"] {
        assert_eq!(client.fails(name, of(&created)).await, not_found, "{name}");
    }

    let completed = client.ok("batches.create", searches(1)).await;
    client.advance(2_000).await;
    assert_eq!(
        client.fails("batches.cancel", of(&completed)).await,
        conflict
    );
    client.advance(30 * 86_400_000).await;
    assert_eq!(
        client.fails("batches.cancel", of(&completed)).await,
        conflict,
        "expired"
    );
    client.ok("batches.delete", of(&completed)).await;
}

#[tokio::test]
async fn lists_have_their_own_order_and_cursors() {
    let server = Server::start().await;
    let client = server.client();
    let long = client.ok("batches.create", searches(40)).await;
    let short = client.ok("batches.create", searches(1)).await;
    client.advance(10_000).await;
    let open = client.ok("batches.create", searches(4)).await;
    let ids = |page: &Value| -> Vec<Value> {
        let data = page["data"].as_array().unwrap().iter();
        data.map(|batch| batch["id"].clone()).collect()
    };
    let all = client.ok("batches.list", json!({ "betas": [BETA] })).await;
    assert_eq!(all["object"], "list");
    assert_eq!(
        ids(&all),
        [&open, &short, &long].map(|batch| batch["id"].clone())
    );
    let completed = json!({ "betas": [BETA], "status": "completed", "limit": 1 });
    let first = client.ok("batches.list", completed.clone()).await;
    assert_eq!(
        ids(&first),
        [short["id"].clone()],
        "the one that expires first"
    );
    let mut next = completed;
    next["cursor"] = first["nextCursor"].clone();
    assert_eq!(
        ids(&client.ok("batches.list", next.clone()).await),
        [long["id"].clone()]
    );
    next.as_object_mut().unwrap().remove("status");
    let mixed = client.fails("batches.list", next).await;
    assert_eq!(
        mixed,
        (400, "INVALID_REQUEST_QUERY".into()),
        "a cursor of the other list"
    );
    let status = json!({ "betas": [BETA], "status": "in_progress" });
    assert_eq!(client.fails("batches.list", status).await.0, 400);
}

#[tokio::test]
async fn rejects_invalid_batches() {
    let server = Server::start().await;
    let client = server.client();
    let good = || item("a", "/search", json!({ "query": "x" }));
    let mut put = good();
    put["method"] = "PUT".into();
    for list in [
        vec![],
        vec![good(), good()],
        vec![item("a", "/answer", json!({ "query": "x" }))],
        vec![item(
            "a",
            "/search",
            json!({ "query": "x", "stream": true }),
        )],
        vec![item("", "/search", json!({ "query": "x" }))],
        vec![item(&"a".repeat(65), "/search", json!({ "query": "x" }))],
        vec![json!({ "customId": "a", "method": "POST", "url": "/search" })],
        vec![put],
    ] {
        let refused = client.fails("batches.create", requests(list.clone())).await;
        assert_eq!(refused, (400, "INVALID_REQUEST_BODY".into()), "{list:?}");
    }
    let body = Some(json!({ "requests": [good()] }));
    for beta in [None, Some("batches-2025-01-01")] {
        let mut client = client.clone();
        if let Some(beta) = beta {
            client = client.header("exa-beta", beta);
        }
        for (method, path, body) in [
            ("POST", "/batches", body.clone()),
            ("GET", "/batches", None),
            ("GET", "/batches/x", None),
            ("DELETE", "/batches/x", None),
            ("POST", "/batches/x/cancel", None),
        ] {
            let refused = client.send(method, path, body).await;
            let outcome = (refused.status, refused.tag());
            assert_eq!(
                outcome,
                (400, "INVALID_REQUEST".into()),
                "{method} {path} {beta:?}"
            );
        }
    }
    let list = client.ok("batches.list", json!({ "betas": [BETA] })).await;
    assert_eq!(list["data"], json!([]), "nothing was created");
}
