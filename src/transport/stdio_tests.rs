//! Tests of the transport with a service that responds to every request with an empty result.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use rmcp::model::{InitializeResult, ServerCapabilities};
use serde_json::json;
use tokio::io::{AsyncReadExt, DuplexStream};

use super::*;

/// The method of requests that get no immediate response.
const SLOW: &str = "slow";

struct TestService {
    transport: StdioTransport<&'static [u8]>,
    output: DuplexStream,
    /// The methods of the received requests, and `cancelled N` for cancellations.
    received: Vec<String>,
    unanswered: Vec<RequestId>,
}

impl TestService {
    fn new(input: impl Into<Vec<u8>>) -> Self {
        let (ours, output) = tokio::io::duplex(64 * 1024 * 1024);
        let input: &'static [u8] = Vec::leak(input.into());
        let (transport, _) = StdioTransport::new(input, ours, Arc::default());
        Self {
            transport,
            output,
            received: Vec::new(),
            unanswered: Vec::new(),
        }
    }

    /// Serves until the input ends. Returns the responses and what was received.
    async fn run(mut self) -> (Vec<Value>, Vec<String>) {
        while let Some(message) = self.transport.receive().await {
            match message {
                JsonRpcMessage::Request(request) => {
                    self.received.push(request.request.method().to_owned());
                    self.respond(request.request, request.id).await;
                }
                JsonRpcMessage::Notification(notification) => self.note(notification.notification),
                _ => self.received.push("reply".to_owned()),
            }
        }
        for id in std::mem::take(&mut self.unanswered) {
            self.send(ServerResult::empty(()), id).await;
        }
        self.transport.close().await.unwrap();
        let mut text = String::new();
        self.output.read_to_string(&mut text).await.unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        (lines.collect(), self.received)
    }

    async fn respond(&mut self, request: ClientRequest, id: RequestId) {
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
                self.received.push(format!("cancelled {id}"));
            }
            _ => self.received.push("notification".to_owned()),
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

/// Returns the id and the error code, or 0, of every response.
fn codes(responses: &[Value]) -> Vec<(Value, i64)> {
    let code = |response: &Value| response["error"]["code"].as_i64().unwrap_or(0);
    responses
        .iter()
        .map(|a| (a["id"].clone(), code(a)))
        .collect()
}

async fn run(input: impl Into<Vec<u8>>) -> Vec<Value> {
    TestService::new(input).run().await.0
}

#[tokio::test]
async fn responds_with_one_line_per_request() {
    let input = format!("\u{feff}{}\r\n\n  \n{}", ping(json!(1)), ping(json!("a")));
    assert_eq!(run(input).await, [empty(json!(1)), empty(json!("a"))]);
}

#[tokio::test]
async fn accepts_a_last_line_without_line_feed() {
    let input = ping(json!(1));
    assert_eq!(run(input.trim_end()).await, [empty(json!(1))]);
}

#[tokio::test]
async fn invalid_messages_do_not_end_the_connection() {
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
async fn rejects_and_skips_lines_over_the_limit() {
    let long_line = ping(json!("x".repeat(MAX_LINE_BYTES)));
    let responses = run(format!("{long_line}{}", ping(json!(2)))).await;
    let expected = [(json!(null), -32600), (json!(2), 0)];
    assert_eq!(codes(&responses), expected);
}

#[tokio::test]
async fn responds_to_all_requests_that_share_an_id() {
    let input = format!("{}{}{}", ping(json!(1)), ping(json!(1)), ping(json!(1)));
    assert_eq!(
        run(input).await,
        [empty(json!(1)), empty(json!(1)), empty(json!(1))]
    );
}

#[tokio::test]
async fn admits_only_some_requests_before_the_handshake() {
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
async fn cancelled_requests_get_no_response() {
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
    let (responses, received) = TestService::new(input.concat()).run().await;
    assert_eq!(responses, [empty(json!(8))]);
    assert_eq!(received, [SLOW, SLOW, "cancelled 1"]);
}

#[tokio::test]
async fn accepts_batches_only_in_one_version() {
    let batch = format!("[{}]\n", ping(json!(1)).trim_end());
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let responses = run(format!("{}{batch}", initialize(version))).await;
        assert_eq!(codes(&responses[1..]), [(json!(null), -32600)], "{version}");
    }
    assert_eq!(codes(&run(batch.clone()).await), [(json!(null), -32600)]);
    let responses = run(format!("{}{batch}", initialize("2025-03-26"))).await;
    assert_eq!(responses[1], json!([empty(json!(1))]));
}

#[tokio::test]
async fn sends_the_responses_to_a_batch_together() {
    let note = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
    let slow = request(json!("s"), SLOW, json!({}));
    let batch = format!("[{},{note},3,{}]", slow.trim(), ping(json!(1)).trim());
    let notes = format!("[{note},{note}]");
    let bad = format!(
        "[{},{}]",
        ping(json!(1)).trim(),
        initialize("2025-03-26").trim()
    );
    let many = format!("[{}]", vec!["1"; MAX_BATCH_SIZE + 1].join(","));
    let start = initialize("2025-03-26");
    let responses = run(format!("{start}{batch}\n{notes}\n[]\n{bad}\n{many}\n")).await;
    let rejected = (json!(null), -32600);
    let alone = codes(&responses[1..4]);
    assert_eq!(
        alone,
        [rejected.clone(), rejected.clone(), rejected.clone()]
    );
    let together = codes(responses[4].as_array().unwrap());
    assert_eq!(together, [rejected, (json!(1), 0), (json!("s"), 0)]);
    assert_eq!(responses.len(), 5);
}

#[tokio::test]
async fn a_closed_output_ends_the_connection() {
    let (ours, output) = tokio::io::duplex(64);
    let (input, _keep_open) = tokio::io::duplex(64);
    let (mut transport, written) = StdioTransport::new(input, ours, Arc::default());
    drop(output);
    transport.reject(&Value::Null, too_long()).unwrap();
    assert!(transport.receive().await.is_none());
    let error = written.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}
