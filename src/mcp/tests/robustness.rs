//! Ten thousand lines of which many are broken: the server lives, answers every request exactly once,
//! and writes nothing but messages.

use std::collections::BTreeMap;

use fastrand::Rng;

use super::*;

const LINES: usize = 10_000;

/// How often each id is or must be answered.
type Tally = BTreeMap<String, usize>;

#[tokio::test]
async fn random_lines_are_all_answered_once() {
    for seed in [1, 2] {
        let mut rng = Rng::with_seed(seed);
        let lines: Vec<_> = (0..LINES).map(|number| line(&mut rng, number)).collect();
        let mut owed = Tally::new();
        lines.iter().for_each(|line| expect(line, &mut owed));
        let mut given = exchange(lines).await;
        // Whether a cancelled call is answered depends on who was first.
        for (id, most) in owed.iter().filter(|(id, _)| id.contains("doomed")) {
            assert!(given.get(id).is_none_or(|count| count <= most), "{id}");
        }
        owed.retain(|id, _| !id.contains("doomed"));
        given.retain(|id, _| !id.contains("doomed"));
        let ids = given.keys().chain(owed.keys());
        let wrong = ids.filter(|id| given.get(*id) != owed.get(*id));
        let wrong: Vec<_> = wrong.map(|id| (id, given.get(id), owed.get(id))).collect();
        assert!(wrong.is_empty(), "seed {seed}: (id, given, owed) {wrong:?}");
    }
}

/// Sends the lines, reads to the end, and counts the answers.
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
            Value::Array(answers) => answers.iter().for_each(|answer| count(answer, &mut given)),
            answer => count(&answer, &mut given),
        }
    }
    writer.await.unwrap();
    server.await.unwrap().unwrap();
    given
}

fn count(answer: &Value, tally: &mut Tally) {
    assert_eq!(answer["jsonrpc"], json!("2.0"));
    let fit = answer.get("result").is_some() != answer.get("error").is_some();
    assert!(fit, "{answer}");
    *tally.entry(key(&answer["id"])).or_default() += 1;
}

/// An id as text; of a fraction not all digits, because the parser may change the last ones.
fn key(id: &Value) -> String {
    match id.as_f64() {
        Some(number) if id.is_f64() => format!("{number:.6e}"),
        _ => id.to_string(),
    }
}

/// Adds the answers that a line must get.
fn expect(line: &[u8], owed: &mut Tally) {
    let null = || Some(Value::Null);
    if line.iter().all(|byte| b" \t\r".contains(byte)) {
        return;
    }
    let ids = match serde_json::from_slice(line) {
        Err(_) => vec![null()],
        Ok(Value::Array(members)) => match refused_batch(&members) {
            true => vec![null()],
            false => members.iter().map(owed_id).collect(),
        },
        Ok(value) => vec![owed_id(&value)],
    };
    for id in ids.into_iter().flatten() {
        *owed.entry(key(&id)).or_default() += 1;
    }
}

fn refused_batch(members: &[Value]) -> bool {
    members.is_empty() || members.iter().any(|m| m["method"] == json!("initialize"))
}

/// The id that the answer to a message must carry; `None` if it must not be answered.
fn owed_id(message: &Value) -> Option<Value> {
    let reply = message.get("result").is_some() || message.get("error").is_some();
    let method = message.get("method");
    if reply && method.is_none() {
        return None;
    }
    match message.get("id") {
        Some(id) if id.is_string() || id.is_i64() || id.is_u64() => Some(id.clone()),
        Some(Value::Number(id)) if id.as_f64()?.abs() < 1e15 => Some(Value::Number(id.clone())),
        Some(_) => Some(Value::Null),
        None => {
            let sound = method.is_some_and(Value::is_string) && !reply;
            let notification = sound && message["jsonrpc"] == json!("2.0");
            (!notification).then_some(Value::Null)
        }
    }
}

fn line(rng: &mut Rng, number: usize) -> Vec<u8> {
    match rng.u8(..100) {
        0..40 => message(rng, number).to_string().into_bytes(),
        40..75 => {
            let sound = message(rng, number).to_string();
            // A changed call of `sleep` might never end.
            match sound.contains("sleep") {
                true => sound.into_bytes(),
                false => mutated(rng, sound.into_bytes()),
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

/// A message that is mostly sound.
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

/// Changes, removes, inserts or cuts a few bytes.
fn mutated(rng: &mut Rng, mut line: Vec<u8>) -> Vec<u8> {
    for _ in 0..rng.usize(1..4) {
        let place = rng.usize(..line.len().max(1));
        match rng.u8(..4) {
            0 if place < line.len() => line[place] = byte(rng),
            1 if place < line.len() => drop(line.remove(place)),
            2 => line.truncate(place.max(line.len().saturating_sub(3))),
            _ => line.insert(place, byte(rng)),
        }
    }
    line
}

/// Any byte but the end of a line; the telling ones more often.
fn byte(rng: &mut Rng) -> u8 {
    let telling = b"{}[]\",:0123456789.eE+-\\nulltrue ";
    let byte = match rng.bool() {
        true => rng.choice(telling).copied().unwrap_or(b' '),
        false => rng.u8(..),
    };
    if byte == b'\n' { b' ' } else { byte }
}
