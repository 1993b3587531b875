//! Synchronous operations.

use serde_json::{Value, json};

use super::Host;
use crate::support::McpServer;

#[test]
fn synchronous_websets_operations_work() {
    let mut host = Host::start();
    let tool = "websets-sync";
    let search = json!({"query": "startups in Berlin", "count": 2});
    let enrichments = json!([{"description": "Email"}]);
    let webset = host.call(
        tool,
        "create_webset",
        json!({"search": search, "enrichments": enrichments}),
    );
    let id = webset["id"].clone();
    let inner = |name: &str, part: &Value| json!({"websetId": id, name: part});
    host.sandbox.advance(30_000);
    let of_webset = json!({"id": id});
    assert_eq!(
        host.call(tool, "get_webset", of_webset.clone())["status"],
        "idle"
    );
    assert_eq!(
        host.call(tool, "list_websets", json!({"limit": 1}))["data"][0]["id"],
        id
    );
    let updated = host.call(
        tool,
        "update_webset",
        json!({"id": id, "metadata": {"a": "b"}}),
    );
    assert_eq!(updated["metadata"], json!({"a": "b"}));
    let search = inner("searchId", &webset["searches"][0]["id"]);
    assert_eq!(host.call(tool, "get_search", search)["status"], "completed");
    let enrichment = inner("enrichmentId", &webset["enrichments"][0]["id"]);
    assert_eq!(
        host.call(tool, "get_enrichment", enrichment)["status"],
        "completed"
    );
    let items = host.call(tool, "list_items", json!({"websetId": id, "limit": 2}));
    let item = inner("itemId", &items["data"][0]["id"]);
    assert_eq!(
        host.call(tool, "get_item", item.clone())["id"],
        item["itemId"]
    );
    host.call(tool, "delete_item", item);
    let events = host.call(
        tool,
        "list_events",
        json!({"type": "webset.created", "limit": 1}),
    );
    assert_eq!(events["data"][0]["type"], "webset.created");
    // `websets-sync` cannot create monitors and webhooks.
    let monitor = host.call(
        "websets-async",
        "start_monitor",
        json!({
        "websetId": id, "cadence": {"cron": "0 9 * * 1"}, "searchParams": {"query": "banks"}}),
    );
    let monitor = json!({"monitorId": monitor["operationId"]});
    assert_eq!(
        host.call(tool, "get_monitor", monitor.clone())["websetId"],
        id
    );
    assert_eq!(
        host.call(tool, "list_monitors", json!({}))["data"][0]["id"],
        monitor["monitorId"]
    );
    host.call(tool, "delete_monitor", monitor);
    let mut creator = McpServer::with_upstream(&host.sandbox.url(), &["--tools", "webhooks"]);
    let webhook = json!({"events": ["webset.idle"], "url": "https://hooks.example/x"});
    let webhook = creator.call("webhooks_create", webhook).success();
    let webhook = json!({"webhookId": webhook["id"]});
    host.call(tool, "get_webhook", webhook.clone());
    assert_eq!(
        host.call(tool, "list_webhooks", json!({}))["data"][0]["id"],
        webhook["webhookId"]
    );
    host.call(tool, "delete_webhook", webhook);
    host.call(tool, "delete_webset", of_webset);
    host.assert_all_called(tool);
}

#[test]
fn synchronous_exa_operations_work() {
    let mut host = Host::start();
    let tool = "exa-sync";
    let filters = json!({"includeDomains": ["a.example"], "category": "news"});
    let search =
        json!({"query": "x", "numResults": 2, "contents": {"text": true}, "filters": filters});
    assert_eq!(
        host.call(tool, "search", search)["results"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
    let similar = json!({"url": "https://a.example/x", "numResults": 3, "filters": {"excludeDomains": ["b.example"]}});
    assert_eq!(
        host.call(tool, "find_similar", similar)["results"]
            .as_array()
            .map(Vec::len),
        Some(3)
    );
    let contents = host.call(
        tool,
        "get_contents",
        json!({"urls": ["https://a.example/x"], "text": true}),
    );
    assert!(contents["results"][0]["text"].is_string(), "{contents}");
    let response = host.call(tool, "answer", json!({"question": "Who?"}));
    assert!(response["answer"].is_string(), "{response}");
    assert_eq!(
        response.get("corrections"),
        None,
        "the name of the specification is no slip"
    );
    host.assert_all_called(tool);
}
