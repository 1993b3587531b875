//! Random and mutated arguments for every tool.

use exa_mcp_model::ExampleCall;
use exa_mcp_server::operations::validation::example;
use exa_mcp_server::operations::{all, find};
use fastrand::Rng;
use serde_json::{Value, json};

use super::random::{mutate, value};
use super::{ResponseTracker, assert_healthy, upstream};
use crate::support::{DEFAULT_VERSION, McpServer, Outcome, Program, sample};

const CALLS: usize = 3_000;
/// The number of concurrent calls.
const CONCURRENCY: usize = 50;

#[test]
fn random_arguments_always_get_a_result() {
    let upstream = upstream();
    let program = Program::new(["--tools", "default,toolhost,classic,granular"])
        .env("EXA_BASE_URL", &upstream.url())
        .env("EXA_MCP_LOG_LEVEL", "info");
    let mut server = McpServer::connect(program, DEFAULT_VERSION);
    let tools: Vec<(String, Value)> = server
        .tools()
        .into_iter()
        .map(|tool| {
            (
                tool["name"].as_str().expect("a name").to_owned(),
                tool["inputSchema"].clone(),
            )
        })
        .collect();
    let mut rng = Rng::with_seed(2);
    let mut tracker = ResponseTracker::default();
    let mut open = Vec::new();
    for _ in 0..CALLS {
        let (tool, schema) = &tools[rng.usize(..tools.len())];
        let arguments = arguments(&mut rng, tool, schema);
        let id = server.send("tools/call", json!({"name": tool, "arguments": arguments}));
        *tracker.expected.entry(id.to_string()).or_default() += 1;
        open.push((id, tool.clone(), arguments));
        if open.len() == CONCURRENCY {
            open.drain(..)
                .for_each(|call| check(&mut server, &mut tracker, call));
        }
    }
    open.drain(..)
        .for_each(|call| check(&mut server, &mut tracker, call));
    assert_healthy(server, &mut tracker);
    assert!(
        upstream.take().len() > 300,
        "some calls must have gone through"
    );
}

/// Asserts that a call has a result whose text and structured content agree.
fn check(
    server: &mut McpServer,
    tracker: &mut ResponseTracker,
    (id, tool, arguments): (Value, String, Value),
) {
    let body = server.response(&id);
    tracker.take(&body);
    let text = body.to_string();
    if !arguments.is_object() && !arguments.is_null() {
        assert_eq!(
            body["error"]["code"], -32602,
            "{tool} with {arguments}: {text}"
        );
        return;
    }
    let outcome = Outcome::from_response(&body);
    match (outcome.is_error, &outcome.structured) {
        (true, _) => drop(outcome.failure()),
        (false, Some(_)) if outcome.text.starts_with('{') => drop(outcome.envelope()),
        // Markdown starts with the metadata, except for pages about which there is nothing to remark.
        (false, Some(structured)) => {
            let metadata = &structured["metadata"];
            if outcome.text.starts_with("<untrusted id=") {
                assert_eq!(metadata["operation"], "get_contents", "{text}");
                assert_eq!(metadata["returned"], metadata["totalResults"], "{text}");
                for remarks in ["warnings", "corrections"] {
                    assert_eq!(metadata[remarks], json!([]), "{text}");
                }
                return;
            }
            let operation = metadata["operation"].as_str().unwrap_or("?");
            let returned = &metadata["returned"];
            let heads = ["of", "result"].map(|next| format!("{operation}: {returned} {next}"));
            let is_head = |head: &String| outcome.text.starts_with(head);
            assert!(heads.iter().any(is_head), "{heads:?}: {text}");
        }
        // An empty response has no structured content.
        (false, None) => assert_eq!(outcome.text, "{}", "{tool} with {arguments}"),
    }
}

/// Returns valid, mutated or random arguments for a tool.
fn arguments(rng: &mut Rng, tool: &str, schema: &Value) -> Value {
    let valid = match schema["properties"].get("operation") {
        Some(operations) => dispatcher_call(rng, &operations["enum"]),
        None => valid_arguments(rng, tool, schema),
    };
    match rng.u8(..10) {
        0 => value(rng, 4),
        1..4 => valid,
        _ => mutate(rng, valid),
    }
}

/// Returns valid arguments: the required ones, or all.
fn valid_arguments(rng: &mut Rng, name: &str, schema: &Value) -> Value {
    if rng.bool() {
        return sample::full(schema, schema, rng.usize(..6));
    }
    match find(name) {
        Some(operation) => example(&operation.behavior.example, schema),
        None => example(&ExampleCall::EMPTY, schema),
    }
}

/// Returns a call of a listed operation, with its arguments or those of another one.
fn dispatcher_call(rng: &mut Rng, operations: &Value) -> Value {
    let operations = operations.as_array().expect("operations");
    let name = operations[rng.usize(..operations.len())]
        .as_str()
        .expect("a name");
    let any = &all()[rng.usize(..all().len())];
    let meant = find(name).filter(|_| rng.u8(..4) > 0).unwrap_or(any);
    let schema: Value = serde_json::from_str(meant.input_schema).expect("a schema");
    let holder = rng.choice(["args", "params"]).unwrap_or("args");
    json!({"operation": name, holder: valid_arguments(rng, meant.name, &schema)})
}
