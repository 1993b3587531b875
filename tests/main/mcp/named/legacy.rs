//! The fourteen tools of websets-mcp-server 1.x.

use serde_json::{Value, json};

use crate::support::{McpServer, Sandbox};

const TOOLS: [&str; 14] = [
    "create_webset",
    "list_websets",
    "get_webset",
    "update_webset",
    "delete_webset",
    "list_webset_items",
    "get_item",
    "create_search",
    "get_search",
    "cancel_search",
    "create_enrichment",
    "get_enrichment",
    "cancel_enrichment",
    "create_monitor",
];

#[test]
fn legacy_set_has_the_fourteen_tools() {
    let tools = McpServer::sandboxed(&["--tools", "legacy"]).tools();
    let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, TOOLS);
}

#[test]
fn legacy_tools_work_with_their_old_arguments() {
    let sandbox = Sandbox::start();
    let mut server = McpServer::with_upstream(&sandbox.url(), &["--tools", "legacy"]);
    let mut called = Vec::new();
    let mut call = |tool: &'static str, arguments: Value| {
        called.push(tool);
        let response = server.call(tool, arguments).success();
        let result = response.get("result").cloned();
        result.unwrap_or(response)
    };
    let webset = call(
        "create_webset",
        json!({
            "name": "Banks", "description": "Banks of Berlin", "externalId": "banks",
            "searchQuery": "banks in Berlin", "searchCount": 2,
            "searchCriteria": [{"description": "is a bank"}],
            "enrichments": [{"description": "Size", "format": "options", "options": [{"label": "small"}]}],
        }),
    );
    assert_eq!(webset["title"], "Banks", "{webset}");
    assert_eq!(webset["metadata"]["description"], "Banks of Berlin");
    assert_eq!(webset["searches"][0]["count"], 2);
    sandbox.advance(60_000);
    let id = &webset["id"];
    let listed = call("list_websets", json!({"limit": 5}));
    assert_eq!(listed["data"][0]["id"], *id);
    let found = call("get_webset", json!({"id": "banks", "expandItems": true}));
    assert_eq!(found["items"].as_array().map(Vec::len), Some(2), "{found}");
    let updated = call("update_webset", json!({"id": id, "metadata": {"a": "b"}}));
    assert_eq!(updated["metadata"]["a"], "b");
    let items = call("list_webset_items", json!({"websetId": id, "limit": 1}));
    let item = json!({"websetId": id, "itemId": items["data"][0]["id"]});
    assert_eq!(call("get_item", item.clone())["id"], item["itemId"]);
    let search = call(
        "create_search",
        json!({
            "websetId": id, "query": "more banks", "entity": {"type": "company"}, "behavior": "append",
        }),
    );
    assert_eq!(search["count"], 10, "{search}");
    let search = json!({"websetId": id, "searchId": search["id"]});
    call("get_search", search.clone());
    call("cancel_search", search);
    let column = json!({"websetId": id, "description": "Email", "format": "email"});
    let column = call("create_enrichment", column);
    let column = json!({"websetId": id, "enrichmentId": column["id"]});
    call("get_enrichment", column.clone());
    call("cancel_enrichment", column);
    let monitor = call(
        "create_monitor",
        json!({"websetId": id, "cron": "0 9 * * 1", "query": "banks"}),
    );
    assert_eq!(monitor["cadence"]["timezone"], "Etc/UTC", "{monitor}");
    assert_eq!(monitor["behavior"]["config"]["behavior"], "append");
    call("delete_webset", json!({"id": id}));
    called.sort_unstable();
    let mut all = TOOLS;
    all.sort_unstable();
    assert_eq!(called, all);
}
