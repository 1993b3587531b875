//! Synchronous operations.

use serde_json::{Value, json};

use super::Host;

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
    let preview = host.call(
        tool,
        "preview_webset",
        json!({"search": {"query": "banks"}}),
    );
    assert!(preview["search"]["criteria"].is_array(), "{preview}");
    let suggested = host.call(tool, "suggest_enrichments", json!({"websetId": id}));
    let add = &suggested["addWith"];
    assert_eq!(add["tool"], "websets-async", "{suggested}");
    let arguments = json!({"operation": add["operation"], "params": add["params"]});
    host.server.call("websets-async", arguments).success();
    let stopped = host.call(tool, "cancel_webset", of_webset.clone());
    assert_eq!(stopped["status"], "cancelled", "{stopped}");
    let import = json!({"title": "Customers", "entity": {"type": "company"}, "csvContent": "name,url\nA,https://a.example"});
    let import = host.call(tool, "create_import", import);
    let import = json!({"importId": import["id"]});
    host.call(tool, "get_import", import.clone());
    let imports = host.call(tool, "list_imports", json!({}));
    assert_eq!(imports["data"][0]["id"], import["importId"]);
    host.call(tool, "delete_import", import);
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
    let webhook = json!({"events": ["webset.idle"], "url": "https://hooks.example/x"});
    let webhook = host.call(tool, "create_webhook", webhook);
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
