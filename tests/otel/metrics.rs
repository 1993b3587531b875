//! Numbers for a collector.

use std::collections::BTreeMap;

use serde_json::json;

use crate::collector::{Collector, exa, metrics, stdio};

type Points = Vec<BTreeMap<String, String>>;

#[track_caller]
fn points<'a>(metrics: &'a [(String, Points)], name: &str) -> &'a Points {
    let found = metrics.iter().find(|(known, _)| known == name);
    &found.unwrap_or_else(|| panic!("no {name}: {metrics:#?}")).1
}

#[test]
fn otel_metrics_follow_semantic_conventions() {
    let (exa, collector) = (exa(), Collector::start());
    let mut server = stdio(&exa, &collector.url(), &[]);
    let call = json!({"name": "web_search_exa", "arguments": {"query": "nobody may know"}});
    server.request("tools/call", call.clone());
    server.request("tools/call", call);
    server.shut_down();
    let requests = collector.take();
    let metrics = metrics(&requests);
    let served = points(&metrics, "mcp.server.operation.duration");
    let call = served
        .iter()
        .find(|point| point["mcp.method.name"] == "tools/call")
        .expect("a call");
    for (name, value) in [
        ("gen_ai.tool.name", "web_search_exa"),
        ("gen_ai.operation.name", "execute_tool"),
        ("mcp.protocol.version", "2025-11-25"),
        ("network.transport", "pipe"),
    ] {
        assert_eq!(call[name], value, "{call:?}");
    }
    // One series for all requests: their ids are in the spans only.
    assert!(!call.contains_key("jsonrpc.request.id"), "{call:?}");
    let called = points(&metrics, "http.client.request.duration");
    assert_eq!(called[0]["http.response.status_code"], "200");
    for name in [
        "exa_mcp.result.tokens",
        "exa_mcp.answer.tokens",
        "exa_mcp.cost",
        "exa_mcp.cache.hits",
    ] {
        assert_eq!(points(&metrics, name).len(), 1, "{name}");
    }
    for request in &requests {
        let bytes = String::from_utf8_lossy(&request.body);
        assert!(!bytes.contains("nobody may know"), "{bytes}");
    }
}
