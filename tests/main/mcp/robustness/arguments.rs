//! Random and slightly changed arguments for every tool.

use exa_mcp_model::ExampleCall;
use exa_mcp_server::operations::validation::example;
use exa_mcp_server::operations::{all, find};
use fastrand::Rng;
use serde_json::{Value, json};

use super::random::{changed, value};
use super::{Ledger, assert_sound, upstream};
use crate::support::{McpServer, Outcome, Program, USUAL, sample};

const CALLS: usize = 3_000;
/// How many calls are on their way at once.
const AT_ONCE: usize = 50;

#[test]
fn random_arguments_always_get_a_result() {
    let upstream = upstream();
    let program = Program::new(["--tools", "default,toolhost,classic,granular"])
        .env("EXA_BASE_URL", &upstream.url())
        .env("EXA_MCP_LOG_LEVEL", "info");
    let mut server = McpServer::connect(program, USUAL);
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
    let mut ledger = Ledger::default();
    let mut open = Vec::new();
    for _ in 0..CALLS {
        let (tool, schema) = &tools[rng.usize(..tools.len())];
        let arguments = arguments(&mut rng, tool, schema);
        let id = server.send("tools/call", json!({"name": tool, "arguments": arguments}));
        *ledger.owed.entry(id.to_string()).or_default() += 1;
        open.push((id, tool.clone(), arguments));
        if open.len() == AT_ONCE {
            open.drain(..)
                .for_each(|call| check(&mut server, &mut ledger, call));
        }
    }
    open.drain(..)
        .for_each(|call| check(&mut server, &mut ledger, call));
    assert_sound(server, &mut ledger);
    assert!(
        upstream.take().len() > 300,
        "some calls must have gone through"
    );
}

/// Whatever the arguments: an object of them is answered with a result that says the same twice.
fn check(
    server: &mut McpServer,
    ledger: &mut Ledger,
    (id, tool, arguments): (Value, String, Value),
) {
    let answer = server.answer(&id);
    ledger.take(&answer);
    let text = answer.to_string();
    if !arguments.is_object() && !arguments.is_null() {
        assert_eq!(
            answer["error"]["code"], -32602,
            "{tool} with {arguments}: {text}"
        );
        return;
    }
    let outcome = Outcome::of(&answer);
    match (outcome.is_error, &outcome.structured) {
        (true, _) => drop(outcome.failure()),
        (false, Some(_)) if outcome.text.starts_with('{') => drop(outcome.envelope()),
        // Markdown begins with what the data says about itself.
        (false, Some(told)) => {
            let told = &told["metadata"];
            let head = format!(
                "{}: {} of",
                told["operation"].as_str().unwrap_or("?"),
                told["returned"]
            );
            assert!(outcome.text.starts_with(&head), "{head}: {text}");
        }
        // An empty answer has no structured part.
        (false, None) => assert_eq!(outcome.text, "{}", "{tool} with {arguments}"),
    }
}

/// Arguments for a tool: right ones, slightly wrong ones, and nonsense.
fn arguments(rng: &mut Rng, tool: &str, schema: &Value) -> Value {
    let right = match schema["properties"].get("operation") {
        Some(operations) => dispatched(rng, &operations["enum"]),
        None => right(rng, tool, schema),
    };
    match rng.u8(..10) {
        0 => value(rng, 4),
        1..4 => right,
        _ => changed(rng, right),
    }
}

/// Arguments that fit: as few as it takes, or all there are.
fn right(rng: &mut Rng, name: &str, schema: &Value) -> Value {
    match rng.bool() {
        true => match find(name) {
            Some(operation) => example(&operation.behavior.example, schema),
            None => example(&ExampleCall::EMPTY, schema),
        },
        false => sample::full(schema, schema, rng.usize(..6)),
    }
}

/// A call of an operation of the list, with its arguments or with those of any other one.
fn dispatched(rng: &mut Rng, operations: &Value) -> Value {
    let operations = operations.as_array().expect("operations");
    let name = operations[rng.usize(..operations.len())]
        .as_str()
        .expect("a name");
    let any = &all()[rng.usize(..all().len())];
    let meant = find(name).filter(|_| rng.u8(..4) > 0).unwrap_or(any);
    let schema: Value = serde_json::from_str(meant.input_schema).expect("a schema");
    let holder = rng.choice(["args", "params"]).unwrap_or("args");
    json!({"operation": name, holder: right(rng, meant.name, &schema)})
}
