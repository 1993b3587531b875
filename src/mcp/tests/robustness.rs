//! Ten thousand lines, many of them malformed: the server survives, responds to every request exactly once, and writes
//! nothing but messages.

use std::collections::BTreeMap;

use fastrand::Rng;

use super::*;

const LINES: usize = 10_000;

/// The number of actual or expected responses by id.
type Tally = BTreeMap<String, usize>;

#[tokio::test]
async fn responds_once_to_every_random_line() {
    for seed in [1, 2] {
        let mut rng = Rng::with_seed(seed);
        let lines: Vec<_> = (0..LINES).map(|number| line(&mut rng, number)).collect();
        let mut expected = Tally::new();
        lines.iter().for_each(|line| expect(line, &mut expected));
        let mut given = exchange(lines).await;
        // A call may finish before it is cancelled.
        for (id, most) in expected.iter().filter(|(id, _)| id.contains("doomed")) {
            assert!(given.get(id).is_none_or(|count| count <= most), "{id}");
        }
        expected.retain(|id, _| !id.contains("doomed"));
        given.retain(|id, _| !id.contains("doomed"));
        let ids = given.keys().chain(expected.keys());
        let wrong = ids.filter(|id| given.get(*id) != expected.get(*id));
        let wrong: Vec<_> = wrong
            .map(|id| (id, given.get(id), expected.get(id)))
            .collect();
        assert!(
            wrong.is_empty(),
            "seed {seed}: (id, given, expected) {wrong:?}"
        );
    }
}

/// Sends the lines, reads to the end, and counts the responses.
async fn exchange(lines: Vec<Vec<u8>>) -> Tally {
    let Client {
        mut input,
        mut output,
        server,
        ..
    } = Client::initialized("2025-03-26").await;
    let writer = tokio::spawn(async move {
        for line in lines {
            input.write_all(&line).await.unwrap();
            input.write_all(b"\n").await.unwrap();
        }
        input.shutdown().await.unwrap();
    });
    let mut given = Tally::new();
    while let Some(line) = output.next_line().await.unwrap() {
        match serde_json::from_str(&line).unwrap() {
            Value::Array(responses) => responses
                .iter()
                .for_each(|response| count(response, &mut given)),
            response => count(&response, &mut given),
        }
    }
    writer.await.unwrap();
    server.await.unwrap().unwrap();
    given
}

fn count(response: &Value, tally: &mut Tally) {
    assert_eq!(response["jsonrpc"], json!("2.0"));
    let is_valid = response.get("result").is_some() != response.get("error").is_some();
    assert!(is_valid, "{response}");
    *tally.entry(key(&response["id"])).or_default() += 1;
}

/// Formats an id. Rounds fractions, because the parser may change the last digits.
fn key(id: &Value) -> String {
    match id.as_f64() {
        Some(number) if id.is_f64() => format!("{number:.6e}"),
        _ => id.to_string(),
    }
}

/// Adds the responses that a line must get.
fn expect(line: &[u8], expected: &mut Tally) {
    let null = || Some(Value::Null);
    if line.iter().all(|byte| b" \t\r".contains(byte)) {
        return;
    }
    let ids = match serde_json::from_slice(line) {
        Err(_) => vec![null()],
        Ok(Value::Array(members)) if is_rejected_batch(&members) => vec![null()],
        Ok(Value::Array(members)) => members.iter().map(expected_id).collect(),
        Ok(value) => vec![expected_id(&value)],
    };
    for id in ids.into_iter().flatten() {
        *expected.entry(key(&id)).or_default() += 1;
    }
}

fn is_rejected_batch(members: &[Value]) -> bool {
    members.is_empty() || members.iter().any(|m| m["method"] == json!("initialize"))
}

/// Returns the id of the response to a message; `None` if there must be no response.
fn expected_id(message: &Value) -> Option<Value> {
    let is_response = message.get("result").is_some() || message.get("error").is_some();
    let method = message.get("method");
    if is_response && method.is_none() {
        return None;
    }
    match message.get("id") {
        Some(id) if id.is_string() || id.is_i64() || id.is_u64() => Some(id.clone()),
        Some(Value::Number(id)) if id.as_f64()?.abs() < 1e15 => Some(Value::Number(id.clone())),
        Some(_) => Some(Value::Null),
        None => {
            let is_valid = method.is_some_and(Value::is_string) && !is_response;
            let notification = is_valid && message["jsonrpc"] == json!("2.0");
            (!notification).then_some(Value::Null)
        }
    }
}

fn line(rng: &mut Rng, number: usize) -> Vec<u8> {
    match rng.u8(..100) {
        0..40 => message(rng, number).to_string().into_bytes(),
        40..75 => {
            let message = message(rng, number).to_string();
            // A mutated call of `sleep` might never end.
            if message.contains("sleep") {
                message.into_bytes()
            } else {
                mutate(rng, message.into_bytes())
            }
        }
        75..85 => {
            let members: Vec<_> = (0..rng.usize(..6)).map(|_| message(rng, number)).collect();
            Value::Array(members).to_string().into_bytes()
        }
        85..90 => (0..rng.usize(..80)).map(|_| byte(rng)).collect(),
        90..92 => b"{\"a\":".repeat(rng.usize(..400)),
        92..94 => b"\r".to_vec(),
        _ => json_value(rng, 4).to_string().into_bytes(),
    }
}

/// Returns a message that is mostly valid.
fn message(rng: &mut Rng, number: usize) -> Value {
    let methods = [
        "ping",
        "tools/list",
        "tools/call",
        "initialize",
        "server/discover",
        "logging/setLevel",
        "prompts/list",
        "notifications/initialized",
        "notifications/cancelled",
        "no/such",
        "",
    ];
    match rng.u8(..20) {
        0 => doomed_call(number),
        1 => cancel(rng, number),
        2 => json!({"jsonrpc": "2.0", "id": id(rng, number), "result": json_value(rng, 2)}),
        3 => json!({"jsonrpc": "2.0", "method": rng.choice(methods), "params": json_value(rng, 2)}),
        4 => {
            json!({"jsonrpc": json_value(rng, 1), "id": id(rng, number), "method": json_value(rng, 1)})
        }
        5..12 => {
            let params = json!({"name": "echo", "arguments": json_value(rng, 3)});
            json!({"jsonrpc": "2.0", "id": id(rng, number), "method": "tools/call", "params": params})
        }
        _ => {
            let (method, params) = (rng.choice(methods), json_value(rng, 3));
            json!({"jsonrpc": "2.0", "id": id(rng, number), "method": method, "params": params})
        }
    }
}

fn doomed_call(number: usize) -> Value {
    let params = json!({"name": "sleep", "arguments": {"ms": number % 5}});
    let id = format!("doomed {number}");
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

fn cancel(rng: &mut Rng, number: usize) -> Value {
    let id = format!("doomed {}", rng.usize(..=number));
    let method = "notifications/cancelled";
    json!({"jsonrpc": "2.0", "method": method, "params": {"requestId": id}})
}

fn id(rng: &mut Rng, number: usize) -> Value {
    match rng.u8(..20) {
        0 => Value::Null,
        1 => json!(rng.f64() * 10.0),
        2 => json!(1e300),
        3 => json!(u64::MAX - u64::from(rng.u8(..))),
        4 => json_value(rng, 1),
        5 => json!(rng.u8(..4)),
        6 => json!(f64::from(rng.u8(..))),
        7..12 => json!(format!("é{number}")),
        _ => json!(number),
    }
}

fn json_value(rng: &mut Rng, depth: usize) -> Value {
    let kinds = if depth == 0 { 5 } else { 8 };
    match rng.u8(..kinds) {
        0 => Value::Null,
        1 => json!(rng.bool()),
        2 => json!(rng.i64(..)),
        3 => json!(rng.f64()),
        4 => json!(String::from_iter((0..rng.usize(..9)).map(|_| rng.char(..)))),
        5 => (0..rng.usize(..4))
            .map(|_| json_value(rng, depth - 1))
            .collect(),
        _ => {
            let keys = [
                "name",
                "arguments",
                "cursor",
                "_meta",
                "level",
                "method",
                "id",
                "x",
            ];
            let entries = (0..rng.usize(..4)).map(|_| {
                let key = rng.choice(keys).unwrap_or("x").to_owned();
                (key, json_value(rng, depth - 1))
            });
            Value::Object(entries.collect())
        }
    }
}

/// Changes, removes, inserts or truncates a few bytes.
fn mutate(rng: &mut Rng, mut line: Vec<u8>) -> Vec<u8> {
    for _ in 0..rng.usize(1..4) {
        let index = rng.usize(..line.len().max(1));
        match rng.u8(..4) {
            0 if index < line.len() => line[index] = byte(rng),
            1 if index < line.len() => drop(line.remove(index)),
            2 => line.truncate(index.max(line.len().saturating_sub(3))),
            _ => line.insert(index, byte(rng)),
        }
    }
    line
}

/// Returns any byte except a line break; those with a meaning in JSON more often.
fn byte(rng: &mut Rng) -> u8 {
    let syntax = b"{}[]\",:0123456789.eE+-\\nulltrue ";
    let byte = if rng.bool() {
        rng.choice(syntax).copied().unwrap_or(b' ')
    } else {
        rng.u8(..)
    };
    if byte == b'\n' { b' ' } else { byte }
}
