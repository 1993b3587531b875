//! Behavior that depends on the protocol version.

use super::*;

const HANDSHAKES: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

#[tokio::test]
async fn negotiates_every_version_with_a_handshake() {
    for version in HANDSHAKES {
        let mut client = Client::new();
        let response = client
            .request(json!(0), "initialize", initialize_params(version))
            .await;
        let result = &response["result"];
        assert_eq!(result["protocolVersion"], json!(version));
        let capabilities = json!({"logging": {}, "tools": {"listChanged": false}});
        assert_eq!(result["capabilities"], capabilities);
        assert_eq!(result["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(result["instructions"], json!("Use the tools."));
        assert_eq!(result.get("resultType"), None);
    }
}

#[tokio::test]
async fn falls_back_to_the_newest_handshake_version() {
    for version in ["1999-01-01", "2026-07-28", "2099-01-01", "", "draft"] {
        let mut client = Client::new();
        let response = client
            .request(json!(0), "initialize", initialize_params(version))
            .await;
        assert_eq!(response["result"]["protocolVersion"], json!("2025-11-25"));
        let list = client.request(json!(1), "tools/list", json!({})).await;
        assert_eq!(list["result"].get("ttlMs"), None);
    }
}

#[tokio::test]
async fn a_failed_handshake_can_be_repeated() {
    let mut client = Client::new();
    let response = client.request(json!(0), "initialize", json!({})).await;
    assert_eq!(error_code(&response), -32602);
    let response = client
        .request(json!(1), "initialize", initialize_params("2025-06-18"))
        .await;
    assert_eq!(response["result"]["protocolVersion"], json!("2025-06-18"));
    let response = client
        .request(json!(2), "initialize", initialize_params("2024-11-05"))
        .await;
    assert_eq!(error_code(&response), -32600);
    let response = client.call("echo", json!({"a": 1})).await;
    assert_eq!(response["result"]["structuredContent"], json!({"a": 1}));
}

#[tokio::test]
async fn requests_need_not_wait_for_the_answer_to_initialize() {
    let mut client = Client::new();
    client
        .send(json!(1), "initialize", initialize_params("2025-03-26"))
        .await;
    client.notify("notifications/initialized", json!({})).await;
    client
        .write(r#"[{"jsonrpc":"2.0","id":2,"method":"ping"}]"#)
        .await;
    assert_eq!(client.next().await["id"], json!(1));
    let expected = json!([{"jsonrpc": "2.0", "id": 2, "result": {}}]);
    assert_eq!(client.next().await, expected);
}

#[tokio::test]
async fn lists_and_results_have_the_fields_of_the_version() {
    for version in HANDSHAKES {
        let mut client = Client::initialized(version).await;
        let list = client.request(json!(1), "tools/list", json!({})).await;
        let list = list["result"].as_object().unwrap();
        assert_eq!(list.keys().collect::<Vec<_>>(), ["tools"], "{version}");
        let tool = &list["tools"][0];
        assert_eq!(tool["name"], json!("echo"));
        assert_eq!(tool.get("title").is_some(), version >= "2025-06-18");
        assert_eq!(tool.get("annotations").is_some(), version >= "2025-03-26");
        let response = client.call("echo", json!({"a": 1})).await;
        let mut expected = json!({
            "content": [{"type": "text", "text": "{\"a\":1}"}],
            "isError": false,
        });
        if version >= "2025-06-18" {
            expected["structuredContent"] = json!({"a": 1});
        }
        assert_eq!(response["result"], expected, "{version}");
    }
}

#[tokio::test]
async fn the_newest_version_needs_no_handshake() {
    let mut client = Client::new();
    let response = client
        .request(json!(1), "server/discover", stateless_params(json!({})))
        .await;
    let result = &response["result"];
    let versions = json!([
        "2024-11-05",
        "2025-03-26",
        "2025-06-18",
        "2025-11-25",
        "2026-07-28"
    ]);
    assert_eq!(result["supportedVersions"], versions);
    assert_eq!(
        result["capabilities"],
        json!({"logging": {}, "tools": {"listChanged": false}})
    );
    assert_eq!(result["resultType"], json!("complete"));
    assert_eq!(result["cacheScope"], json!("private"));
    assert!(result["ttlMs"].as_u64().unwrap() > 0);
    let server = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(server["name"], json!("exa-mcp-server"));

    let list = client
        .request(json!(2), "tools/list", stateless_params(json!({})))
        .await;
    assert_eq!(list["result"]["resultType"], json!("complete"));
    assert_eq!(list["result"]["cacheScope"], json!("private"));
    assert!(list["result"]["ttlMs"].as_u64().unwrap() > 0);

    let params = stateless_params(json!({"name": "echo", "arguments": {"a": 1}}));
    let response = client.request(json!(3), "tools/call", params).await;
    let server = &response["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(server["name"], json!("exa-mcp-server"));
    assert_eq!(response["result"]["resultType"], json!("complete"));
    assert_eq!(response["result"]["structuredContent"], json!({"a": 1}));
}

#[tokio::test]
async fn the_newest_version_rejects_removed_methods() {
    let mut client = Client::new();
    let ping = client
        .request(json!(1), "ping", stateless_params(json!({})))
        .await;
    assert_eq!(error_code(&ping), -32601);
    let params = stateless_params(json!({"level": "debug"}));
    let level = client.request(json!(2), "logging/setLevel", params).await;
    assert_eq!(error_code(&level), -32601);
}

#[tokio::test]
async fn rejects_incomplete_metadata_and_unknown_versions() {
    let mut client = Client::new();
    let bare = client.request(json!(1), "server/discover", json!({})).await;
    assert_eq!(error_code(&bare), -32602);
    let mut params = stateless_params(json!({}));
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!(7);
    let half = client.request(json!(2), "tools/list", params).await;
    assert_eq!(error_code(&half), -32602);
    let mut params = stateless_params(json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2030-01-01");
    let unknown = client.request(json!(3), "tools/list", params).await;
    assert_eq!(error_code(&unknown), -32022);
    assert_eq!(unknown["error"]["data"]["requested"], json!("2030-01-01"));
}

#[tokio::test]
async fn one_connection_serves_both_generations() {
    let mut client = Client::new();
    client
        .request(json!(1), "tools/list", stateless_params(json!({})))
        .await;
    client
        .request(json!(2), "initialize", initialize_params("2024-11-05"))
        .await;
    let old = client.request(json!(3), "tools/list", json!({})).await;
    assert_eq!(old["result"]["tools"][0].get("title"), None);
    let new = client
        .request(json!(4), "tools/list", stateless_params(json!({})))
        .await;
    assert_eq!(new["result"]["tools"][0]["title"], json!("ECHO"));
}

#[tokio::test]
async fn accepts_only_valid_log_levels() {
    let mut client = Client::initialized("2025-06-18").await;
    let params = json!({"level": "warning"});
    let response = client.request(json!(1), "logging/setLevel", params).await;
    assert_eq!(response["result"], json!({}));
    let params = json!({"level": "shouting"});
    let response = client.request(json!(2), "logging/setLevel", params).await;
    assert_eq!(error_code(&response), -32602);
}

#[tokio::test]
async fn rejects_methods_that_are_not_available() {
    let mut client = Client::initialized("2025-11-25").await;
    for method in [
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "resources/subscribe",
        "completion/complete",
        "tasks/list",
        "subscriptions/listen",
        "notifications/initialized",
        "no/such",
        "",
    ] {
        let response = client
            .request(json!(1), method, params_for_any_method())
            .await;
        assert_eq!(error_code(&response), -32601, "{method}");
        let text = format!("Method not found: {method}");
        assert_eq!(response["error"]["message"], json!(text));
    }
}

/// Returns parameters that are valid for every method.
fn params_for_any_method() -> Value {
    json!({
        "name": "x",
        "uri": "note:///x",
        "ref": {"type": "ref/prompt", "name": "x"},
        "argument": {"name": "x", "value": ""},
        "notifications": {},
    })
}
