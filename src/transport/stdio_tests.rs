//! The connection with a toy service behind it that answers every request with an empty result.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use rmcp::model::{InitializeResult, ServerCapabilities};
use serde_json::json;
use tokio::io::{AsyncReadExt, DuplexStream};

use super::*;

/// The requests that reach the toy service and are not answered.
const SLOW: &str = "slow";

struct Toy {
    transport: StdioTransport<&'static [u8]>,
    output: DuplexStream,
    /// The methods of the requests and `cancelled N` for the cancellations that came through.
    seen: Vec<String>,
    unanswered: Vec<RequestId>,
}

impl Toy {
    fn new(input: impl Into<Vec<u8>>) -> Self {
        let (ours, output) = tokio::io::duplex(64 * 1024 * 1024);
        let input: &'static [u8] = Vec::leak(input.into());
        let (transport, _) = StdioTransport::new(input, ours, Arc::default());
        Self {
            transport,
            output,
            seen: Vec::new(),
            unanswered: Vec::new(),
        }
    }

    /// Serves until the input ends and gives what was written.
    async fn run(mut self) -> (Vec<Value>, Vec<String>) {
        while let Some(message) = self.transport.receive().await {
            match message {
                JsonRpcMessage::Request(request) => {
                    self.seen.push(request.request.method().to_owned());
                    self.answer(request.request, request.id).await;
                }
                JsonRpcMessage::Notification(notification) => self.note(notification.notification),
                _ => self.seen.push("reply".to_owned()),
            }
        }
        for id in std::mem::take(&mut self.unanswered) {
            self.send(ServerResult::empty(()), id).await;
        }
        self.transport.close().await.unwrap();
        let mut text = String::new();
        self.output.read_to_string(&mut text).await.unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        (lines.collect(), self.seen)
    }

    async fn answer(&mut self, request: ClientRequest, id: RequestId) {
        match request {
            ClientRequest::InitializeRequest(request) => {
                let result = InitializeResult::new(ServerCapabilities::default())
                    .with_protocol_version(request.params.protocol_version);
                let result = ServerResult::InitializeResult(result);
                self.send(result, id).await;
            }
            request if request.method() == SLOW => self.unanswered.push(id),
            _ => self.send(ServerResult::empty(()), id).await,
        }
    }

    fn note(&mut self, notification: ClientNotification) {
        match notification {
            ClientNotification::CancelledNotification(cancelled) => {
                let id = cancelled.params.request_id.unwrap();
                self.seen.push(format!("cancelled {id}"));
            }
            _ => self.seen.push("notification".to_owned()),
        }
    }

    async fn send(&mut self, result: ServerResult, id: RequestId) {
        let message = JsonRpcMessage::response(result, id);
        self.transport.send(message).await.unwrap();
    }
}

fn initialize(version: &str) -> String {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
    request(json!("init"), "initialize", params)
}

fn request(id: Value, method: &str, params: Value) -> String {
    let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    format!("{message}\n")
}

fn ping(id: Value) -> String {
    request(id, "ping", json!({}))
}

fn empty(id: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {}})
}

/// The id and the error code, or 0, of every answer.
fn codes(answers: &[Value]) -> Vec<(Value, i64)> {
    let code = |answer: &Value| answer["error"]["code"].as_i64().unwrap_or(0);
    answers.iter().map(|a| (a["id"].clone(), code(a))).collect()
}

async fn run(input: impl Into<Vec<u8>>) -> Vec<Value> {
    Toy::new(input).run().await.0
}

#[tokio::test]
async fn one_line_in_gives_one_line_out() {
    let input = format!("\u{feff}{}\r\n\n  \n{}", ping(json!(1)), ping(json!("a")));
    assert_eq!(run(input).await, [empty(json!(1)), empty(json!("a"))]);
}

#[tokio::test]
async fn the_last_line_needs_no_line_feed() {
    let input = ping(json!(1));
    assert_eq!(run(input.trim_end()).await, [empty(json!(1))]);
}

#[tokio::test]
async fn nothing_that_is_broken_ends_the_connection() {
    let input = format!("{{\n[1\n\"text\"\n{{\"id\":9}}\n{}", ping(json!(1)));
    let expected = [
        (json!(null), -32700),
        (json!(null), -32700),
        (json!(null), -32600),
        (json!(9), -32600),
        (json!(1), 0),
    ];
    assert_eq!(codes(&run(input).await), expected);
}

#[tokio::test]
async fn a_line_over_the_limit_is_refused_and_skipped() {
    let too_long = ping(json!("x".repeat(LONGEST_LINE)));
    let answers = run(format!("{too_long}{}", ping(json!(2)))).await;
    let expected = [(json!(null), -32600), (json!(2), 0)];
    assert_eq!(codes(&answers), expected);
}

#[tokio::test]
async fn requests_that_share_an_id_are_all_answered() {
    let input = format!("{}{}{}", ping(json!(1)), ping(json!(1)), ping(json!(1)));
    assert_eq!(
        run(input).await,
        [empty(json!(1)), empty(json!(1)), empty(json!(1))]
    );
}

#[tokio::test]
async fn before_the_handshake_only_some_requests_pass() {
    let meta = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}});
    let input = [
        request(json!(1), "tools/list", json!({})),
        ping(json!(2)),
        request(json!(3), "foo", json!({})),
        request(json!(4), "tools/list", meta),
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n".to_owned(),
        initialize("2025-06-18"),
        request(json!(5), "tools/list", json!({})),
        initialize("2025-06-18"),
    ];
    let expected = [
        (json!(1), -32602),
        (json!(2), 0),
        (json!(3), 0),
        (json!(4), 0),
        (json!("init"), 0),
        (json!(5), 0),
        (json!("init"), -32600),
    ];
    assert_eq!(codes(&run(input.concat()).await), expected);
}

#[tokio::test]
async fn a_cancelled_request_is_neither_finished_nor_answered() {
    let cancel = |id: i64| {
        let params = json!({"requestId": id});
        let method = "notifications/cancelled";
        format!(
            "{}\n",
            json!({"jsonrpc": "2.0", "method": method, "params": params})
        )
    };
    let input = [
        request(json!(7), SLOW, json!({})),
        request(json!(8), SLOW, json!({})),
        cancel(7),
        cancel(99),
        cancel(7),
    ];
    let (answers, seen) = Toy::new(input.concat()).run().await;
    assert_eq!(answers, [empty(json!(8))]);
    assert_eq!(seen, [SLOW, SLOW, "cancelled 1"]);
}

#[tokio::test]
async fn batches_belong_to_one_version() {
    let batch = format!("[{}]\n", ping(json!(1)).trim_end());
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let answers = run(format!("{}{batch}", initialize(version))).await;
        assert_eq!(codes(&answers[1..]), [(json!(null), -32600)], "{version}");
    }
    assert_eq!(codes(&run(batch.clone()).await), [(json!(null), -32600)]);
    let answers = run(format!("{}{batch}", initialize("2025-03-26"))).await;
    assert_eq!(answers[1], json!([empty(json!(1))]));
}

#[tokio::test]
async fn the_answers_of_a_batch_leave_together() {
    let note = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
    let slow = request(json!("s"), SLOW, json!({}));
    let batch = format!("[{},{note},3,{}]", slow.trim(), ping(json!(1)).trim());
    let notes = format!("[{note},{note}]");
    let bad = format!(
        "[{},{}]",
        ping(json!(1)).trim(),
        initialize("2025-03-26").trim()
    );
    let many = format!("[{}]", vec!["1"; LARGEST_BATCH + 1].join(","));
    let start = initialize("2025-03-26");
    let answers = run(format!("{start}{batch}\n{notes}\n[]\n{bad}\n{many}\n")).await;
    let refused = (json!(null), -32600);
    let alone = codes(&answers[1..4]);
    assert_eq!(alone, [refused.clone(), refused.clone(), refused.clone()]);
    let together = codes(answers[4].as_array().unwrap());
    assert_eq!(together, [refused, (json!(1), 0), (json!("s"), 0)]);
    assert_eq!(answers.len(), 5);
}

#[tokio::test]
async fn a_closed_output_ends_the_connection() {
    let (ours, output) = tokio::io::duplex(64);
    let (input, _keep_open) = tokio::io::duplex(64);
    let (mut transport, written) = StdioTransport::new(input, ours, Arc::default());
    drop(output);
    transport.refuse(&Value::Null, too_long()).unwrap();
    assert!(transport.receive().await.is_none());
    let error = written.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}
