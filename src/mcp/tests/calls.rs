//! Listing and calling tools.

use super::*;

#[tokio::test]
async fn long_lists_come_in_pages() {
    let toys = Toys {
        more: 400,
        ..Toys::default()
    };
    let mut client = Client::with(toys, pending());
    let mut names = Vec::new();
    let mut params = modern(json!({}));
    loop {
        let answer = client.ask(json!(1), "tools/list", params.clone()).await;
        let tools = answer["result"]["tools"].as_array().unwrap().clone();
        names.push(tools.len());
        let Some(cursor) = answer["result"].get("nextCursor") else {
            break;
        };
        params["cursor"] = cursor.clone();
    }
    assert_eq!(names, [200, 200, 4]);
    params["cursor"] = json!("made up");
    let answer = client.ask(json!(2), "tools/list", params).await;
    assert_eq!(code(&answer), -32602);
}

#[tokio::test]
async fn a_failed_call_is_a_result() {
    let mut client = Client::initialized("2025-06-18").await;
    let answer = client.call("fail", json!({"why": "because"})).await;
    assert_eq!(answer["result"]["isError"], json!(true));
    let error = &answer["result"]["structuredContent"]["error"];
    assert_eq!(error["why"], json!("because"));
}

#[tokio::test]
async fn arguments_may_be_left_out_but_not_be_something_else() {
    let mut client = Client::initialized("2025-06-18").await;
    let answer = client
        .ask(json!(1), "tools/call", json!({"name": "echo"}))
        .await;
    assert_eq!(answer["result"]["content"][0]["text"], json!("{}"));
    let answer = client.call("echo", Value::Null).await;
    assert_eq!(answer["result"]["content"][0]["text"], json!("{}"));
    for arguments in [json!("{}"), json!([]), json!(1), json!(true)] {
        let answer = client.call("echo", arguments).await;
        assert_eq!(code(&answer), -32602);
    }
}

#[tokio::test]
async fn an_unknown_tool_is_an_error_with_the_nearest_names() {
    let mut client = Client::initialized("2025-06-18").await;
    let answer = client.call("slep", json!({})).await;
    assert_eq!(code(&answer), -32602);
    assert_eq!(answer["error"]["message"], json!("Unknown tool: slep"));
    assert_eq!(answer["error"]["data"], json!({"nearest": ["sleep"]}));
    let answer = client.call(&"x".repeat(10_000), json!({})).await;
    assert!(answer.to_string().len() < 300, "{answer}");
}

#[tokio::test]
async fn a_crash_is_an_internal_error_and_no_more() {
    let mut client = Client::initialized("2025-06-18").await;
    assert_eq!(code(&client.call("panic", json!({})).await), -32603);
    client.call("echo", json!({})).await;
}

#[tokio::test]
async fn calls_run_side_by_side() {
    let mut client = Client::initialized("2025-06-18").await;
    let params = json!({"name": "sleep", "_meta": {"progressToken": "p"}});
    client.send(json!(1), "tools/call", params).await;
    client.call("echo", json!({})).await;
    client.expect_sleeping(1).await;
}

#[tokio::test]
async fn a_cancelled_call_stops_and_is_not_answered() {
    let mut client = Client::initialized("2025-06-18").await;
    for id in ["a", "b", "b"] {
        client
            .send(json!(id), "tools/call", json!({"name": "sleep"}))
            .await;
    }
    client.expect_sleeping(3).await;
    let unknown = json!({"requestId": "c"});
    client.tell("notifications/cancelled", unknown).await;
    client
        .tell(
            "notifications/cancelled",
            json!({"requestId": "b", "reason": "r"}),
        )
        .await;
    client.expect_sleeping(1).await;
    client.expect_silence().await;
    client.call("echo", json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn requests_that_share_an_id_are_all_answered() {
    let mut client = Client::initialized("2025-06-18").await;
    for ms in [60, 40, 20, 1] {
        let params = json!({"name": "sleep", "arguments": {"ms": ms}});
        client.send(json!(5), "tools/call", params).await;
    }
    for ms in [1, 20, 40, 60] {
        let answer = client.next().await;
        assert_eq!(answer["id"], json!(5));
        assert_eq!(answer["result"]["structuredContent"], json!({"ms": ms}));
    }
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_a_batch_are_answered_together() {
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
        .tell("notifications/cancelled", json!({"requestId": 2}))
        .await;
    let answers = client.next().await;
    let ids = answers.as_array().unwrap().iter().map(|a| a["id"].clone());
    assert_eq!(ids.collect::<Vec<_>>(), [json!(null), json!(3), json!(1)]);
}
