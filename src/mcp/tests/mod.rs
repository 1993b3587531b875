//! Tests of the whole server with test tools, over in-memory streams.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod calls;
mod robustness;
mod shutdown;
mod task_input;
mod versions;

use std::{
    future::{Future, pending},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rmcp::model::JsonObject;
use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, Lines,
        ReadHalf, WriteHalf,
    },
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    server::McpServer,
    tools::{ParsedCall, Tools},
};
use crate::render::{OutputFormat, Rendered};
use crate::tools::{ToolContext, ToolDefinition, ToolError, ToolHints, ToolOutcome};
use crate::transport::connection::{FLUSH_TIMEOUT, ServeError, serve_lines};
use exa_mcp_model::LocalUser;

/// The timeout for expected events, and the wait for unexpected ones.
const TIMEOUT: Duration = Duration::from_secs(60);
const SHORT_WAIT: Duration = Duration::from_millis(50);

/// The tools `echo`, `fail`, `panic` and `sleep`, which counts its unfinished calls, and `more` others.
#[derive(Clone, Default)]
struct TestTools {
    sleeping: Arc<AtomicUsize>,
    more: usize,
}

/// A call of a test tool.
struct PlainCall {
    name: String,
    arguments: JsonObject,
    starts_job: bool,
}

impl ParsedCall for PlainCall {
    fn name(&self) -> &str {
        &self.name
    }

    fn arguments(&self) -> &JsonObject {
        &self.arguments
    }

    fn start_cost(&self) -> Option<u64> {
        self.starts_job.then_some(0)
    }
}

/// One unfinished call.
struct SleepGuard(Arc<AtomicUsize>);

impl Drop for SleepGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Tools for TestTools {
    type Call = PlainCall;

    fn instructions(&self) -> String {
        "Use the tools.".to_owned()
    }

    fn definitions(&self) -> Vec<ToolDefinition> {
        let first = ["echo", "fail", "panic", "sleep"].map(str::to_owned);
        let more = (0..self.more).map(|number| format!("more_{number}"));
        let names = first.into_iter().chain(more);
        names.map(definition).collect()
    }

    fn has(&self, name: &str) -> bool {
        self.definitions().iter().any(|tool| tool.name == name)
    }

    fn parse(&self, name: &str, arguments: JsonObject) -> PlainCall {
        PlainCall {
            name: name.to_owned(),
            arguments,
            starts_job: false,
        }
    }

    fn run(
        &self,
        call: PlainCall,
        _context: ToolContext,
    ) -> impl Future<Output = ToolOutcome> + Send + 'static {
        let PlainCall {
            name, arguments, ..
        } = call;
        self.sleeping.fetch_add(1, Ordering::SeqCst);
        let guard = SleepGuard(Arc::clone(&self.sleeping));
        async move {
            let _guard = guard;
            match name.as_str() {
                "panic" => panic!("a planned panic"),
                "sleep" => {
                    let milliseconds = arguments.get("ms").and_then(Value::as_u64);
                    sleep(Duration::from_millis(milliseconds.unwrap_or(3_600_000))).await;
                }
                _ => {}
            }
            let text = Value::Object(arguments.clone()).to_string();
            outcome(text, arguments, name == "fail")
        }
    }
}

/// Returns an outcome with this text.
fn outcome(text: String, structured: JsonObject, is_error: bool) -> ToolOutcome {
    if is_error {
        let error = ToolError::InvalidRequest {
            message: text,
            details: structured,
        };
        return ToolOutcome::Failure(Box::new(error).into());
    }
    ToolOutcome::Success(Rendered {
        text,
        structured,
        links: Vec::new(),
        format: OutputFormat::Markdown,
        stats: None,
        job_end: None,
    })
}

fn definition(name: String) -> ToolDefinition {
    ToolDefinition {
        title: name.to_uppercase(),
        description: "A test tool.".to_owned(),
        input_schema: json!({"type": "object"})
            .as_object()
            .unwrap()
            .clone()
            .into(),
        hints: ToolHints {
            read_only: true,
            destructive: false,
            idempotent: true,
            open_world: false,
        },
        starts_job: false,
        name,
    }
}

/// Serves test tools over a pair of streams.
async fn serve(
    tools: TestTools,
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let server = McpServer::local(tools, LocalUser::of_this_process());
    let settle = server.settle(FLUSH_TIMEOUT);
    let (handler, received) = server.only_handler();
    serve_lines(
        handler,
        input,
        output,
        Arc::default(),
        received,
        stop,
        settle,
    )
    .await
}

/// The client's end of a connection.
struct Client {
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    input: WriteHalf<DuplexStream>,
    server: JoinHandle<Result<(), ServeError>>,
    tools: TestTools,
}

impl Client {
    fn new() -> Self {
        Self::with(TestTools::default(), pending())
    }

    fn with(tools: TestTools, stop: impl Future<Output = ()> + Send + 'static) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (their_input, their_output) = tokio::io::split(theirs);
        let server = serve(tools.clone(), their_input, their_output, stop);
        let (output, input) = tokio::io::split(ours);
        Self {
            output: BufReader::new(output).lines(),
            input,
            server: tokio::spawn(server),
            tools,
        }
    }

    /// Returns a client that has completed the handshake.
    async fn initialized(version: &str) -> Self {
        let mut client = Self::new();
        let response = client
            .request(json!("init"), "initialize", initialize_params(version))
            .await;
        assert_eq!(response["result"]["protocolVersion"], json!(version));
        client.notify("notifications/initialized", json!({})).await;
        client
    }

    async fn write(&mut self, line: &str) {
        self.input.write_all(line.as_bytes()).await.unwrap();
        self.input.write_all(b"\n").await.unwrap();
    }

    async fn send(&mut self, id: Value, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.write(&message.to_string()).await;
    }

    async fn notify(&mut self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.write(&message.to_string()).await;
    }

    async fn next(&mut self) -> Value {
        let line = timeout(TIMEOUT, self.output.next_line()).await;
        serde_json::from_str(&line.unwrap().unwrap().unwrap()).unwrap()
    }

    async fn request(&mut self, id: Value, method: &str, params: Value) -> Value {
        self.send(id.clone(), method, params).await;
        let response = self.next().await;
        assert_eq!(response["id"], id, "{response}");
        response
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.request(json!("call"), "tools/call", params).await
    }

    /// Asserts that the server sends nothing for a moment.
    async fn expect_silence(&mut self) {
        let line = timeout(SHORT_WAIT, self.output.next_line()).await;
        assert!(line.is_err(), "{line:?}");
    }

    /// Waits until this many calls are unfinished.
    async fn expect_sleeping(&self, count: usize) {
        let reached = async {
            while self.tools.sleeping.load(Ordering::SeqCst) != count {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(TIMEOUT, reached).await.unwrap();
    }

    /// Asserts that the server ends without an error.
    async fn expect_end(self) {
        let result = timeout(TIMEOUT, self.server).await;
        result.unwrap().unwrap().unwrap();
    }
}

fn initialize_params(version: &str) -> Value {
    let client = json!({"name": "test", "version": "1"});
    json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client})
}

/// Adds the metadata of a stateless request.
fn stateless_params(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

fn error_code(response: &Value) -> i64 {
    let code = response["error"]["code"].as_i64();
    code.unwrap_or_else(|| panic!("no error: {response}"))
}
