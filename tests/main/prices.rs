//! Estimates are never below what the sandbox charges, which implements the published prices separately.

use exa_mcp_model::Operation;
use exa_mcp_server::operations::find;
use exa_mcp_server::operations::price::{CostSource, MicroDollars, actual, estimate};
use fastrand::Rng;
use serde_json::{Map, Value, json};

use crate::support::{InProcessClient, Sandbox};

/// The number of calls of each operation, enough to cover every option.
const CALLS: usize = 60;

#[test]
fn an_estimate_is_an_upper_bound() {
    let sandbox = Sandbox::start();
    let client = InProcessClient::with_url(&sandbox.url());
    let mut random = Rng::with_seed(13);
    for (name, make) in [
        ("search", search as fn(&mut Rng) -> Value),
        ("find_similar", similar),
        ("get_contents", contents),
        ("answer", answer),
        ("agent.runs.create", run),
    ] {
        let operation = find(name).expect("an operation");
        let mut exact = 0;
        for _ in 0..CALLS {
            let arguments = make(&mut random);
            let (charged, estimate) = charged(&client, &sandbox, operation, &arguments);
            assert!(
                charged <= estimate,
                "{name} {arguments}: {charged} > {estimate}"
            );
            assert!(
                !charged.is_zero() || name == "agent.runs.create",
                "{name} {arguments}"
            );
            exact += usize::from(charged == estimate);
        }
        assert!(exact > 0, "{name}: the estimate is never what is charged");
    }
}

/// Returns the cost of a call and its estimate.
fn charged(
    client: &InProcessClient,
    sandbox: &Sandbox,
    operation: &'static Operation,
    arguments: &Value,
) -> (MicroDollars, MicroDollars) {
    let sent = arguments.as_object().expect("arguments");
    let expected = estimate(operation, sent);
    let mut response = call(client, operation, arguments.clone());
    if expected.charged == CostSource::AtEndOfJob {
        let marker = operation.behavior.long_running.as_ref().expect("a marker");
        let get = find(&marker.get).expect("an operation");
        let id: Map<String, Value> = marker
            .arguments
            .iter()
            .map(|(name, field)| (name.clone(), response[field].clone()))
            .collect();
        sandbox.advance(60_000);
        response = call(client, get, Value::Object(id));
        let status = response[&marker.status].as_str().expect("a status");
        assert!(
            marker.final_states.iter().any(|it| it == status),
            "{response}"
        );
    }
    let cost = actual(&response).unwrap_or_else(|| panic!("no cost: {response}"));
    (cost, expected.worst)
}

fn call(client: &InProcessClient, operation: &'static Operation, arguments: Value) -> Value {
    let (result, _) = client.call(operation, arguments.clone());
    let response = result.unwrap_or_else(|error| panic!("{arguments}: {error}"));
    response.value
}

/// Adds an argument to half of the calls.
fn maybe(random: &mut Rng, arguments: &mut Value, name: &str, value: Value) {
    if random.bool() {
        arguments[name] = value;
    }
}

fn pick<'a>(random: &mut Rng, values: &[&'a str]) -> &'a str {
    values[random.usize(..values.len())]
}

fn kinds(random: &mut Rng, contents: &mut Value) {
    for (kind, settings) in [
        ("text", json!({"maxCharacters": 9})),
        ("highlights", json!({"query": "x"})),
        ("summary", json!({"query": "x"})),
    ] {
        let value = match random.u8(..4) {
            0 => json!(true),
            1 => settings,
            2 => json!(false),
            _ => continue,
        };
        contents[kind] = value;
    }
    let subpages = random.u64(..4);
    maybe(random, contents, "subpages", json!(subpages));
}

fn search(random: &mut Rng) -> Value {
    let types = [
        "fast",
        "auto",
        "deep",
        "deep-reasoning",
        "instant",
        "deep-lite",
        "lite",
    ];
    let mut arguments = json!({"query": "companies in Berlin"});
    let kind = pick(random, &types);
    maybe(random, &mut arguments, "type", json!(kind));
    results(random, &mut arguments);
    // The cheapest type rejects what needs more than the cache.
    if arguments["type"] == "lite"
        && let Some(contents) = arguments["contents"].as_object_mut()
    {
        contents.retain(|name, _| ["text", "highlights"].contains(&name.as_str()));
    }
    arguments
}

fn similar(random: &mut Rng) -> Value {
    let mut arguments = json!({"url": "https://example.com"});
    results(random, &mut arguments);
    arguments
}

fn results(random: &mut Rng, arguments: &mut Value) {
    let count = random.u64(1..=30);
    maybe(random, arguments, "numResults", json!(count));
    let mut contents = json!({});
    kinds(random, &mut contents);
    maybe(random, arguments, "contents", contents);
}

fn contents(random: &mut Rng) -> Value {
    let pages: Vec<String> = (0..random.usize(1..6))
        .map(|index| format!("https://example.com/{index}"))
        .collect();
    // Exa accepts one of the two.
    let mut arguments = if random.bool() {
        json!({ "urls": pages })
    } else {
        json!({ "ids": pages })
    };
    kinds(random, &mut arguments);
    arguments
}

fn answer(random: &mut Rng) -> Value {
    let mut arguments = json!({"query": "Who founded Exa?"});
    let model = pick(random, &["exa", "exa-pro", "exa-research", "exa-fast"]);
    maybe(random, &mut arguments, "model", json!(model));
    maybe(random, &mut arguments, "text", json!(true));
    arguments
}

fn run(random: &mut Rng) -> Value {
    let mut arguments = json!({"query": format!("companies {}", random.u64(..1_000_000))});
    let effort = pick(
        random,
        &[
            "minimal", "low", "medium", "high", "xhigh", "auto", "ultra", "max",
        ],
    );
    maybe(random, &mut arguments, "effort", json!(effort));
    let is_metered = matches!(
        arguments["effort"].as_str(),
        None | Some("auto" | "ultra" | "max")
    );
    if is_metered {
        let cap = random.u64(100..=2_500) as f64 / 100.0;
        maybe(
            random,
            &mut arguments,
            "budget",
            json!({"maxCostDollars": cap}),
        );
        arguments["betas"] = json!(["agent-max-effort-2026-07-27"]);
    }
    arguments
}
