//! What the versions of the protocol see.

use super::*;

const HANDSHAKES: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

#[tokio::test]
async fn every_version_with_a_handshake_is_agreed_on() {
    for version in HANDSHAKES {
        let mut client = Client::new();
        let answer = client.ask(json!(0), "initialize", hello(version)).await;
        let result = &answer["result"];
        assert_eq!(result["protocolVersion"], json!(version));
        let capabilities = json!({"logging": {}, "tools": {"listChanged": false}});
        assert_eq!(result["capabilities"], capabilities);
        assert_eq!(result["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(result["instructions"], json!("Play."));
        assert_eq!(result.get("resultType"), None);
    }
}

#[tokio::test]
async fn other_versions_get_our_newest_handshake() {
    for version in ["1999-01-01", "2026-07-28", "2099-01-01", "", "draft"] {
        let mut client = Client::new();
        let answer = client.ask(json!(0), "initialize", hello(version)).await;
        assert_eq!(answer["result"]["protocolVersion"], json!("2025-11-25"));
        let list = client.ask(json!(1), "tools/list", json!({})).await;
        assert_eq!(list["result"].get("ttlMs"), None);
    }
}

#[tokio::test]
async fn a_failed_handshake_can_be_tried_again() {
    let mut client = Client::new();
    let answer = client.ask(json!(0), "initialize", json!({})).await;
    assert_eq!(code(&answer), -32602);
    let answer = client
        .ask(json!(1), "initialize", hello("2025-06-18"))
        .await;
    assert_eq!(answer["result"]["protocolVersion"], json!("2025-06-18"));
    let answer = client
        .ask(json!(2), "initialize", hello("2024-11-05"))
        .await;
    assert_eq!(code(&answer), -32600);
    let answer = client.call("echo", json!({"a": 1})).await;
    assert_eq!(answer["result"]["structuredContent"], json!({"a": 1}));
}

#[tokio::test]
async fn requests_need_not_wait_for_the_answer_to_initialize() {
    let mut client = Client::new();
    client
        .send(json!(1), "initialize", hello("2025-03-26"))
        .await;
    client.tell("notifications/initialized", json!({})).await;
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
        let list = client.ask(json!(1), "tools/list", json!({})).await;
        let list = list["result"].as_object().unwrap();
        assert_eq!(list.keys().collect::<Vec<_>>(), ["tools"], "{version}");
        let tool = &list["tools"][0];
        assert_eq!(tool["name"], json!("echo"));
        assert_eq!(tool.get("title").is_some(), version >= "2025-06-18");
        assert_eq!(tool.get("annotations").is_some(), version >= "2025-03-26");
        let answer = client.call("echo", json!({"a": 1})).await;
        let mut expected = json!({
            "content": [{"type": "text", "text": "{\"a\":1}"}],
            "isError": false,
        });
        if version >= "2025-06-18" {
            expected["structuredContent"] = json!({"a": 1});
        }
        assert_eq!(answer["result"], expected, "{version}");
    }
}

#[tokio::test]
async fn the_newest_version_needs_no_handshake() {
    let mut client = Client::new();
    let answer = client
        .ask(json!(1), "server/discover", modern(json!({})))
        .await;
    let result = &answer["result"];
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

    let list = client.ask(json!(2), "tools/list", modern(json!({}))).await;
    assert_eq!(list["result"]["resultType"], json!("complete"));
    assert_eq!(list["result"]["cacheScope"], json!("private"));
    assert!(list["result"]["ttlMs"].as_u64().unwrap() > 0);

    let params = modern(json!({"name": "echo", "arguments": {"a": 1}}));
    let answer = client.ask(json!(3), "tools/call", params).await;
    let server = &answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(server["name"], json!("exa-mcp-server"));
    assert_eq!(answer["result"]["resultType"], json!("complete"));
    assert_eq!(answer["result"]["structuredContent"], json!({"a": 1}));
}

#[tokio::test]
async fn the_newest_version_lacks_what_it_dropped() {
    let mut client = Client::new();
    let ping = client.ask(json!(1), "ping", modern(json!({}))).await;
    assert_eq!(code(&ping), -32601);
    let params = modern(json!({"level": "debug"}));
    let level = client.ask(json!(2), "logging/setLevel", params).await;
    assert_eq!(code(&level), -32601);
}

#[tokio::test]
async fn metadata_must_be_whole_and_the_version_known() {
    let mut client = Client::new();
    let bare = client.ask(json!(1), "server/discover", json!({})).await;
    assert_eq!(code(&bare), -32602);
    let mut params = modern(json!({}));
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!(7);
    let half = client.ask(json!(2), "tools/list", params).await;
    assert_eq!(code(&half), -32602);
    let mut params = modern(json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2030-01-01");
    let unknown = client.ask(json!(3), "tools/list", params).await;
    assert_eq!(code(&unknown), -32022);
    assert_eq!(unknown["error"]["data"]["requested"], json!("2030-01-01"));
}

#[tokio::test]
async fn one_connection_serves_both_eras() {
    let mut client = Client::new();
    client.ask(json!(1), "tools/list", modern(json!({}))).await;
    client
        .ask(json!(2), "initialize", hello("2024-11-05"))
        .await;
    let old = client.ask(json!(3), "tools/list", json!({})).await;
    assert_eq!(old["result"]["tools"][0].get("title"), None);
    let new = client.ask(json!(4), "tools/list", modern(json!({}))).await;
    assert_eq!(new["result"]["tools"][0]["title"], json!("ECHO"));
}

#[tokio::test]
async fn log_levels_are_accepted_where_they_exist() {
    let mut client = Client::initialized("2025-06-18").await;
    let params = json!({"level": "warning"});
    let answer = client.ask(json!(1), "logging/setLevel", params).await;
    assert_eq!(answer["result"], json!({}));
    let params = json!({"level": "shouting"});
    let answer = client.ask(json!(2), "logging/setLevel", params).await;
    assert_eq!(code(&answer), -32602);
}

#[tokio::test]
async fn what_is_not_offered_is_unknown() {
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
        let answer = client.ask(json!(1), method, fit_for_all()).await;
        assert_eq!(code(&answer), -32601, "{method}");
        let text = format!("Method not found: {method}");
        assert_eq!(answer["error"]["message"], json!(text));
    }
}

/// Parameters that fit every method there is.
fn fit_for_all() -> Value {
    json!({
        "name": "x",
        "uri": "note:///x",
        "ref": {"type": "ref/prompt", "name": "x"},
        "argument": {"name": "x", "value": ""},
        "notifications": {},
    })
}
