//! The end of a connection.

use tokio::{sync::oneshot, time::Instant};

use super::*;

const SLEEP: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sleep"}}"#;

#[tokio::test]
async fn ends_when_the_input_ends() {
    for handshake in [false, true] {
        let mut client = if handshake {
            Client::initialized("2025-06-18").await
        } else {
            Client::new()
        };
        client.input.shutdown().await.unwrap();
        client.expect_end().await;
    }
}

#[tokio::test]
async fn running_calls_may_finish_after_the_input_ends() {
    let mut client = Client::initialized("2025-06-18").await;
    let params = json!({"name": "sleep", "arguments": {"ms": 100}});
    client.send(json!(1), "tools/call", params).await;
    client.input.shutdown().await.unwrap();
    assert_eq!(client.next().await["result"]["isError"], json!(false));
    client.expect_end().await;
}

#[tokio::test(start_paused = true)]
async fn stops_running_calls_after_the_grace_period() {
    let mut client = Client::initialized("2025-06-18").await;
    client.write(SLEEP).await;
    client.expect_sleeping(1).await;
    let start = Instant::now();
    client.input.shutdown().await.unwrap();
    client.expect_end().await;
    assert_eq!(start.elapsed().as_secs(), 5);
}

#[tokio::test]
async fn a_signal_stops_running_calls_with_an_error() {
    let (stop, stopped) = oneshot::channel();
    let mut client = Client::with(TestTools::default(), async {
        stopped.await.unwrap();
    });
    client
        .request(json!(0), "initialize", initialize_params("2025-06-18"))
        .await;
    client.write(SLEEP).await;
    client.expect_sleeping(1).await;
    stop.send(()).unwrap();
    let response = client.next().await;
    assert_eq!(
        (error_code(&response), &response["id"]),
        (-32603, &json!(1))
    );
    client.expect_sleeping(0).await;
    client.expect_end().await;
}

#[tokio::test]
async fn a_closed_output_ends_the_server_without_an_error() {
    let (their_input, mut input) = tokio::io::duplex(1024);
    let (their_output, output) = tokio::io::duplex(1024);
    let server = tokio::spawn(serve(
        TestTools::default(),
        their_input,
        their_output,
        pending(),
    ));
    let params = stateless_params(json!({"name": "sleep"}));
    let sleep = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    drop(output);
    let start = Instant::now();
    let lines = format!("{sleep}\n{ping}\n");
    input.write_all(lines.as_bytes()).await.unwrap();
    timeout(TIMEOUT, server).await.unwrap().unwrap().unwrap();
    // The running call would sleep for an hour.
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn writes_responses_that_exceed_the_pipe_buffer() {
    let mut client = Client::initialized("2025-06-18").await;
    let text = "x".repeat(1_000_000);
    let params = json!({"name": "echo", "arguments": {"text": text}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    client.write(&message.to_string()).await;
    client.input.shutdown().await.unwrap();
    let response = client.next().await;
    let length = response["result"]["structuredContent"]["text"]
        .as_str()
        .unwrap()
        .len();
    assert_eq!(length, 1_000_000);
    client.expect_end().await;
}
