//! Random and damaged lines.

use fastrand::Rng;
use serde_json::{Value, json};

use super::random::{byte, damage, value};
use super::{CANCELLABLE, IdCounts, ResponseTracker, assert_healthy, upstream};
use crate::support::{McpServer, Program};

const LINES: usize = 7_000;

/// Methods of all protocol versions, and unknown ones.
const METHODS: [&str; 14] = [
    "ping",
    "tools/list",
    "tools/call",
    "initialize",
    "server/discover",
    "logging/setLevel",
    "prompts/list",
    "resources/read",
    "completion/complete",
    "tasks/get",
    "notifications/initialized",
    "notifications/cancelled",
    "no/such",
    "",
];

#[test]
fn random_lines_get_exactly_one_response() {
    let upstream = upstream();
    // The only version with batches, and the most verbose log level.
    let program = Program::new(["--tools", "default,classic"])
        .env("EXA_BASE_URL", &upstream.url())
        .env("EXA_MCP_CACHE_TTL", "0")
        .env("EXA_MCP_DEBUG", "true");
    let mut server = McpServer::connect(program, "2025-03-26");
    let mut rng = Rng::with_seed(1);
    let mut tracker = ResponseTracker::default();
    for number in 0..LINES {
        let line = line(&mut rng, number);
        expect(&line, &mut tracker.expected);
        server.write(&line);
    }
    tracker.read_pending(&mut server);
    assert_healthy(server, &mut tracker);
    assert!(
        upstream.take().len() > 100,
        "some calls must have gone through"
    );
}

/// Adds the responses that a line must get.
fn expect(line: &[u8], expected: &mut IdCounts) {
    if line.trim_ascii().is_empty() {
        return;
    }
    let ids = match serde_json::from_slice(line) {
        Err(_) => vec![Some(Value::Null)],
        Ok(Value::Array(members)) => {
            let refused = members.is_empty()
                || members
                    .iter()
                    .any(|member| member["method"] == "initialize");
            if refused {
                vec![Some(Value::Null)]
            } else {
                members.iter().map(expected_id).collect()
            }
        }
        Ok(single) => vec![expected_id(&single)],
    };
    for id in ids.into_iter().flatten() {
        *expected.entry(id.to_string()).or_default() += 1;
    }
}

/// Returns the id of the response to a message; `None` if there must be no response.
fn expected_id(message: &Value) -> Option<Value> {
    let response = message.get("result").is_some() || message.get("error").is_some();
    let method = message.get("method");
    if response && method.is_none() {
        return None;
    }
    match message.get("id") {
        Some(id) if id.is_string() || id.is_i64() || id.is_u64() => Some(id.clone()),
        // A fraction is not a valid id, but can be echoed if it is exact.
        Some(Value::Number(id)) if id.as_f64()?.abs() < 1e15 => Some(Value::Number(id.clone())),
        Some(_) => Some(Value::Null),
        None => {
            let sound = method.is_some_and(Value::is_string) && !response;
            let notification = sound && message["jsonrpc"] == "2.0";
            (!notification).then_some(Value::Null)
        }
    }
}

fn line(rng: &mut Rng, number: usize) -> Vec<u8> {
    match rng.u8(..100) {
        0..40 => message(rng, number).to_string().into_bytes(),
        40..75 => {
            let sound = message(rng, number).to_string();
            damage(rng, sound.into_bytes())
        }
        75..85 => {
            let members: Vec<_> = (0..rng.usize(..6)).map(|_| message(rng, number)).collect();
            Value::Array(members).to_string().into_bytes()
        }
        85..90 => (0..rng.usize(..80)).map(|_| byte(rng)).collect(),
        90..92 => b"{\"a\":[".repeat(rng.usize(..400)),
        92..94 => b"\r".to_vec(),
        _ => value(rng, 4).to_string().into_bytes(),
    }
}

/// Returns a message that is mostly valid.
fn message(rng: &mut Rng, number: usize) -> Value {
    let method = *rng.choice(&METHODS).unwrap_or(&"ping");
    match rng.u8(..20) {
        0 => request(
            json!(format!("{CANCELLABLE} {number}")),
            "tools/call",
            search(),
        ),
        1 => {
            let id = format!("{CANCELLABLE} {}", number.saturating_sub(rng.usize(..20)));
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
        }
        2 => json!({"jsonrpc": "2.0", "id": id(rng, number), "result": value(rng, 2)}),
        3 => {
            json!({"jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": value(rng, 2)})
        }
        4 => json!({"jsonrpc": value(rng, 1), "id": id(rng, number), "method": value(rng, 1)}),
        5 => request(id(rng, number), "tools/call", search()),
        6..12 => {
            let params = json!({"name": "exa_api", "arguments": value(rng, 3)});
            request(id(rng, number), "tools/call", params)
        }
        _ => request(id(rng, number), method, value(rng, 3)),
    }
}

fn request(id: Value, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Returns a valid call.
fn search() -> Value {
    json!({"name": "web_search_exa", "arguments": {"query": "x"}})
}

fn id(rng: &mut Rng, number: usize) -> Value {
    match rng.u8(..20) {
        0 => Value::Null,
        1 => json!(rng.f64() * 10.0),
        2 => json!(1e300),
        3 => json!(u64::MAX - u64::from(rng.u8(..))),
        4 => value(rng, 1),
        5 => json!(rng.u8(..4)),
        6 => json!(f64::from(rng.u8(..))),
        7..12 => json!(format!("é{number}")),
        _ => json!(number),
    }
}
