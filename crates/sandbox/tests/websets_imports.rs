//! Imports and their uploads.

use serde_json::{Value, json};

use crate::support::{Client, HttpResponse, Server};

const CSV: &[u8] =
    b"name,website\nAcme,https://acme.example\n\"Basalt, Inc.\",basalt.example\nCobalt,\n";

async fn create_import(client: &Client, csv: &[u8], more: Value) -> Value {
    let mut args = json!({ "size": csv.len(), "count": 3, "format": "csv", "entity": { "type": "company" }, "title": "Mine" });
    args.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let response = client.call("imports.create", args).await;
    assert_eq!(response.status, 201, "{}", response.text());
    response.json()
}

async fn upload(client: &Client, import: &Value, csv: &[u8]) -> HttpResponse {
    let url = import["uploadUrl"].as_str().unwrap();
    let target = url
        .strip_prefix(&format!("http://{}", client.addr))
        .unwrap();
    assert!(target.starts_with("/sandbox/uploads/"));
    client
        .clone()
        .header("content-type", "text/csv")
        .try_send("PUT", target, Some(csv))
        .await
        .unwrap()
}

async fn import_csv(client: &Client, csv: &[u8], more: Value) -> Value {
    let import = create_import(client, csv, more).await;
    assert_eq!(
        upload(&client.clone().without_key(), &import, csv)
            .await
            .status,
        200
    );
    let id = json!({ "importId": import["id"] });
    assert_eq!(
        client.ok("imports.get", id.clone()).await["status"],
        "processing"
    );
    client.advance(2_000).await;
    client.ok("imports.get", id).await
}

#[tokio::test]
async fn uploads_are_processed() {
    let server = Server::start().await;
    let client = server.client();
    let waiting = create_import(&client, CSV, json!({})).await;
    assert_eq!(waiting["status"], "pending");
    client.advance(60_000).await;
    assert_eq!(
        client
            .ok("imports.get", json!({ "importId": waiting["id"] }))
            .await["status"],
        "pending"
    );
    let import = import_csv(&client, CSV, json!({ "count": 99 })).await;
    assert_eq!(import["status"], "completed");
    assert_eq!(import["count"], 3, "the count of the file");
    assert!(import.get("uploadUrl").is_none());
    let events = client
        .ok("events.list", json!({ "types": ["import.completed"] }))
        .await;
    assert_eq!(events["data"][0]["data"]["id"], import["id"]);
}

#[tokio::test]
async fn upload_url_rejects_keys() {
    let server = Server::start().await;
    let client = server.client();
    let import = create_import(&client, CSV, json!({})).await;
    let leaked = upload(&client, &import, CSV).await;
    assert_eq!(leaked.status, 400);
    assert!(leaked.text().contains("API key"));
    let bearer = client
        .clone()
        .without_key()
        .header("authorization", "Bearer x");
    assert_eq!(upload(&bearer, &import, CSV).await.status, 400);
    assert_eq!(
        client
            .ok("imports.get", json!({ "importId": import["id"] }))
            .await["status"],
        "pending"
    );
}

#[tokio::test]
async fn rejects_uploads_that_differ_from_the_import() {
    let server = Server::start().await;
    let client = server.client();
    let without_key = client.clone().without_key();
    let import = create_import(&client, CSV, json!({})).await;
    assert_eq!(
        upload(&without_key, &import, b"name\nA\n").await.status,
        400,
        "the size differs from the announced one"
    );
    assert_eq!(
        upload(
            &without_key.clone().header("x-sandbox-lenient", "true"),
            &import,
            b"name\nA\n"
        )
        .await
        .status,
        200
    );
    assert_eq!(
        upload(&without_key, &import, CSV).await.status,
        409,
        "a second upload is rejected"
    );
    let expired = create_import(&client, CSV, json!({})).await;
    client.advance(3_600_001).await;
    assert_eq!(
        upload(&without_key, &expired, CSV).await.status,
        403,
        "the URL is valid for an hour"
    );
    let deleted = create_import(&client, CSV, json!({})).await;
    client
        .ok("imports.delete", json!({ "importId": deleted["id"] }))
        .await;
    assert_eq!(upload(&without_key, &deleted, CSV).await.status, 404);
    assert_eq!(
        without_key
            .send("GET", "/sandbox/uploads/x", None)
            .await
            .status,
        405
    );
    assert_eq!(
        without_key
            .send("PUT", "/sandbox/uploads/x", None)
            .await
            .status,
        404
    );
}

#[tokio::test]
async fn invalid_files_fail_with_a_reason() {
    let server = Server::start().await;
    let client = server.client();
    for (csv, more, reason) in [
        (&b"\xff\xfe\x00"[..], json!({}), "invalid_format"),
        (b"name\n\"open\n", json!({}), "invalid_format"),
        (b"a,b\n1\n", json!({}), "invalid_file_content"),
        (b"name\n", json!({}), "invalid_file_content"),
        (b"name,x\n,1\n", json!({}), "missing_identifier"),
        (
            b"name,x\nA,1\n",
            json!({ "csv": { "identifier": 5 } }),
            "missing_identifier",
        ),
    ] {
        let import = import_csv(&client, csv, more).await;
        assert_eq!(import["status"], "failed", "{reason}");
        assert_eq!(import["failedReason"], reason);
        assert!(import["failedMessage"].is_string() && import["failedAt"].is_string());
    }
}

#[tokio::test]
async fn imports_become_items() {
    let server = Server::start().await;
    let client = server.client();
    let import = create_import(&client, CSV, json!({ "csv": { "identifier": 0 } })).await;
    // The webset may be created before the upload; it waits for the file.
    let source = json!([{ "source": "import", "id": import["id"] }]);
    let webset = client
        .ok(
            "websets.create",
            json!({ "import": source, "enrichments": [{ "description": "Email" }] }),
        )
        .await;
    client.advance(5_000).await;
    let waiting = client
        .ok("websets.get", json!({ "websetId": webset["id"] }))
        .await;
    assert_eq!(waiting["status"], "pending");
    assert_eq!(waiting["imports"][0]["id"], import["id"]);
    upload(&client.clone().without_key(), &import, CSV).await;
    client.advance(5_000).await;
    let done = client
        .ok(
            "websets.get",
            json!({ "websetId": webset["id"], "expand": ["items"] }),
        )
        .await;
    assert_eq!(done["status"], "idle");
    let items = done["items"].as_array().unwrap();
    let names: Vec<&str> = items
        .iter()
        .map(|item| item["properties"]["company"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Acme", "Basalt, Inc.", "Cobalt"]);
    assert!(
        items
            .iter()
            .all(|item| item["source"] == "import" && item["sourceId"] == import["id"])
    );
    assert!(
        items
            .iter()
            .all(|item| item["enrichments"][0]["status"] == "completed")
    );
}

#[tokio::test]
async fn imports_can_be_listed_updated_and_deleted() {
    let server = Server::start().await;
    let client = server.client();
    let import = import_csv(&client, CSV, json!({ "metadata": { "a": "b" } })).await;
    let id = json!({ "importId": import["id"] });
    assert_eq!(
        client.ok("imports.list", json!({ "limit": 200 })).await["data"][0]["id"],
        import["id"]
    );
    let updated = client
        .ok(
            "imports.update",
            json!({ "importId": import["id"], "title": "New" }),
        )
        .await;
    assert_eq!(
        (updated["title"].as_str(), updated["metadata"]["a"].as_str()),
        (Some("New"), Some("b"))
    );
    client.ok("imports.delete", id.clone()).await;
    assert_eq!(
        client.fails("imports.get", id).await,
        (404, "NOT_FOUND".into())
    );
    let large =
        json!({ "size": 50_000_001, "count": 1, "format": "csv", "entity": { "type": "company" } });
    assert_eq!(client.fails("imports.create", large).await.0, 400);
    let kind = json!({ "size": 5, "count": 1, "format": "csv", "entity": { "type": "planet" } });
    assert_eq!(client.fails("imports.create", kind).await.0, 400);
}
