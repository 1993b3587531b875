//! How a connection ends.

use tokio::{sync::oneshot, time::Instant};

use super::*;

const SLEEP: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sleep"}}"#;

#[tokio::test]
async fn the_end_of_the_input_is_the_end() {
    for handshake in [false, true] {
        let mut client = match handshake {
            true => Client::initialized("2025-06-18").await,
            false => Client::new(),
        };
        client.input.shutdown().await.unwrap();
        client.expect_end().await;
    }
}

#[tokio::test]
async fn running_calls_may_finish_after_the_end_of_the_input() {
    let mut client = Client::initialized("2025-06-18").await;
    let params = json!({"name": "sleep", "arguments": {"ms": 100}});
    client.send(json!(1), "tools/call", params).await;
    client.input.shutdown().await.unwrap();
    assert_eq!(client.next().await["result"]["isError"], json!(false));
    client.expect_end().await;
}

#[tokio::test(start_paused = true)]
async fn but_not_for_ever() {
    let mut client = Client::initialized("2025-06-18").await;
    client.write(SLEEP).await;
    client.expect_sleeping(1).await;
    let start = Instant::now();
    client.input.shutdown().await.unwrap();
    client.expect_end().await;
    assert_eq!(start.elapsed().as_secs(), 5);
}

#[tokio::test]
async fn a_signal_stops_running_calls_and_says_so() {
    let (stop, stopped) = oneshot::channel();
    let mut client = Client::with(Toys::default(), async {
        stopped.await.unwrap();
    });
    client
        .ask(json!(0), "initialize", hello("2025-06-18"))
        .await;
    client.write(SLEEP).await;
    client.expect_sleeping(1).await;
    stop.send(()).unwrap();
    let answer = client.next().await;
    assert_eq!((code(&answer), &answer["id"]), (-32603, &json!(1)));
    client.expect_sleeping(0).await;
    client.expect_end().await;
}

#[tokio::test]
async fn a_closed_output_is_a_quiet_end_even_with_calls_running() {
    let (their_input, mut input) = tokio::io::duplex(1024);
    let (their_output, output) = tokio::io::duplex(1024);
    let server = tokio::spawn(served(
        Toys::default(),
        their_input,
        their_output,
        pending(),
    ));
    let params = modern(json!({"name": "sleep"}));
    let sleep = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    drop(output);
    let start = Instant::now();
    let lines = format!("{sleep}\n{ping}\n");
    input.write_all(lines.as_bytes()).await.unwrap();
    timeout(PATIENCE, server).await.unwrap().unwrap().unwrap();
    // What runs would sleep for an hour.
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn an_answer_longer_than_the_pipe_is_written_whole() {
    let mut client = Client::initialized("2025-06-18").await;
    let text = "x".repeat(1_000_000);
    let params = json!({"name": "echo", "arguments": {"text": text}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    client.write(&message.to_string()).await;
    client.input.shutdown().await.unwrap();
    let answer = client.next().await;
    let length = answer["result"]["structuredContent"]["text"]
        .as_str()
        .unwrap()
        .len();
    assert_eq!(length, 1_000_000);
    client.expect_end().await;
}
