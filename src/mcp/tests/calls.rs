//! Listing and calling tools.

use super::*;

#[tokio::test]
async fn paginates_long_lists() {
    let tools = TestTools {
        more: 400,
        ..TestTools::default()
    };
    let mut client = Client::with(tools, pending());
    let mut names = Vec::new();
    let mut params = stateless_params(json!({}));
    loop {
        let response = client.request(json!(1), "tools/list", params.clone()).await;
        let tools = response["result"]["tools"].as_array().unwrap().clone();
        names.push(tools.len());
        let Some(cursor) = response["result"].get("nextCursor") else {
            break;
        };
        params["cursor"] = cursor.clone();
    }
    assert_eq!(names, [200, 200, 4]);
    params["cursor"] = json!("made up");
    let response = client.request(json!(2), "tools/list", params).await;
    assert_eq!(error_code(&response), -32602);
}

#[tokio::test]
async fn a_failed_call_returns_a_result() {
    let mut client = Client::initialized("2025-06-18").await;
    let response = client.call("fail", json!({"why": "because"})).await;
    assert_eq!(response["result"]["isError"], json!(true));
    let error = &response["result"]["structuredContent"]["error"];
    assert_eq!(error["why"], json!("because"));
}

#[tokio::test]
async fn arguments_are_optional_but_must_be_an_object() {
    let mut client = Client::initialized("2025-06-18").await;
    let response = client
        .request(json!(1), "tools/call", json!({"name": "echo"}))
        .await;
    assert_eq!(response["result"]["content"][0]["text"], json!("{}"));
    let response = client.call("echo", Value::Null).await;
    assert_eq!(response["result"]["content"][0]["text"], json!("{}"));
    for arguments in [json!("{}"), json!([]), json!(1), json!(true)] {
        let response = client.call("echo", arguments).await;
        assert_eq!(error_code(&response), -32602);
    }
}

#[tokio::test]
async fn suggests_similar_names_for_an_unknown_tool() {
    let mut client = Client::initialized("2025-06-18").await;
    let response = client.call("slep", json!({})).await;
    assert_eq!(error_code(&response), -32602);
    assert_eq!(response["error"]["message"], json!("Unknown tool: slep"));
    assert_eq!(response["error"]["data"], json!({"nearest": ["sleep"]}));
    let response = client.call(&"x".repeat(10_000), json!({})).await;
    assert!(response.to_string().len() < 300, "{response}");
}

#[tokio::test]
async fn a_panic_is_an_internal_error() {
    let mut client = Client::initialized("2025-06-18").await;
    assert_eq!(error_code(&client.call("panic", json!({})).await), -32603);
    client.call("echo", json!({})).await;
}

#[tokio::test]
async fn calls_run_concurrently() {
    let mut client = Client::initialized("2025-06-18").await;
    let params = json!({"name": "sleep", "_meta": {"progressToken": "p"}});
    client.send(json!(1), "tools/call", params).await;
    client.call("echo", json!({})).await;
    client.expect_sleeping(1).await;
}

#[tokio::test]
async fn a_cancelled_call_stops_without_a_response() {
    let mut client = Client::initialized("2025-06-18").await;
    for id in ["a", "b", "b"] {
        client
            .send(json!(id), "tools/call", json!({"name": "sleep"}))
            .await;
    }
    client.expect_sleeping(3).await;
    let unknown = json!({"requestId": "c"});
    client.notify("notifications/cancelled", unknown).await;
    client
        .notify(
            "notifications/cancelled",
            json!({"requestId": "b", "reason": "r"}),
        )
        .await;
    client.expect_sleeping(1).await;
    client.expect_silence().await;
    client.call("echo", json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn responds_to_all_requests_with_the_same_id() {
    let mut client = Client::initialized("2025-06-18").await;
    for ms in [60, 40, 20, 1] {
        let params = json!({"name": "sleep", "arguments": {"ms": ms}});
        client.send(json!(5), "tools/call", params).await;
    }
    for ms in [1, 20, 40, 60] {
        let response = client.next().await;
        assert_eq!(response["id"], json!(5));
        assert_eq!(response["result"]["structuredContent"], json!({"ms": ms}));
    }
}

#[tokio::test(start_paused = true)]
async fn responds_to_a_batch_at_once() {
    let mut client = Client::initialized("2025-03-26").await;
    let call = |id: i64, ms: i64| {
        let params = json!({"name": "sleep", "arguments": {"ms": ms}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let batch = json!([call(1, 30), call(2, 3_000_000), call(3, 1), {"bad": true}]);
    client.write(&batch.to_string()).await;
    client.expect_sleeping(1).await;
    client.expect_silence().await;
    client
        .notify("notifications/cancelled", json!({"requestId": 2}))
        .await;
    let responses = client.next().await;
    let ids = responses
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a["id"].clone());
    assert_eq!(ids.collect::<Vec<_>>(), [json!(null), json!(3), json!(1)]);
}
