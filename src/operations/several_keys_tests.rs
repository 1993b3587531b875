//! Calls with several keys, each of another team of Exa.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::spend::Unlimited;
use super::{Caller, Following, Refusal, Undecided, find};
use exa_mcp_exa_client::{
    ApiKey, ExaConfig, ExaErrorKind, ExaHttp, KeyOwner, KeyPool, KeyPoolError, RetryPolicy,
};

const KEYS: [&str; 2] = ["key-of-team-a", "key-of-team-b"];

/// Answers requests by their path and key; gives its address and what it was asked.
fn upstream(
    answer: impl Fn(&str, &str) -> (u16, Value) + Send + 'static,
) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let record = Arc::clone(&seen);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (path, key) = request(&stream);
            record.lock().unwrap().push(format!("{path} {key}"));
            let (status, body) = answer(&path, &key);
            let body = body.to_string();
            let head = format!(
                "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-type: application/json\r\n\
                 retry-after: 60\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            stream
                .write_all(format!("{head}{body}").as_bytes())
                .unwrap();
        }
    });
    (url, seen)
}

/// The path and the key of a request.
fn request(stream: &TcpStream) -> (String, String) {
    let mut reader = BufReader::new(stream);
    let (mut path, mut key, mut length) = (String::new(), String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        match line.split_once(": ") {
            Some(("x-api-key", shown)) => key = shown.to_owned(),
            Some(("content-length", shown)) => length = shown.parse().unwrap(),
            Some(_) => {}
            None => path = line.split([' ', '?']).nth(1).unwrap_or_default().to_owned(),
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    (path, key)
}

fn caller(url: &str) -> Caller {
    let config = ExaConfig {
        base_url: Some(url.parse().unwrap()),
        retry: RetryPolicy {
            max_retries: 0,
            ..RetryPolicy::default()
        },
        ..ExaConfig::default()
    };
    let keys = KEYS.map(|key| ApiKey::new(key).unwrap());
    let pool = KeyPool::with_rate_limit(keys, None, KeyOwner::Operator);
    let http = ExaHttp::new(config).unwrap();
    Caller::new(http, None, Arc::new(Unlimited)).with_keys(pool)
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn run(id: &str, created: &str) -> Value {
    json!({"id": id, "status": "running", "createdAt": created, "request": {"query": "q"}})
}

/// Looks for a run with the query `q`; the ids of what is found.
async fn look(caller: &Caller) -> Result<Vec<String>, Undecided> {
    let start = find("agent.runs.create").unwrap();
    let sent = object(json!({"query": "q"}));
    let deadline = Instant::now() + Duration::from_secs(2);
    let found = Following::find(caller, start, &sent, 60_000, deadline).await;
    let found = found.unwrap()?;
    assert!(found.unclear.is_empty());
    let ids = found.same.iter().map(|work| work.check_with().1);
    Ok(ids
        .map(|ids| ids["runId"].as_str().unwrap().to_owned())
        .collect())
}

#[tokio::test]
async fn work_is_looked_for_with_every_key() {
    for home in KEYS {
        let (url, seen) = upstream(move |_, key| {
            let own = run("own", "2026-01-01T00:00:00Z");
            let entries = if key == home { vec![own] } else { Vec::new() };
            (200, json!({"data": entries, "hasMore": false}))
        });
        assert_eq!(look(&caller(&url)).await.unwrap(), ["own"], "{home}");
        assert_eq!(seen.lock().unwrap().len(), 2, "one list for each key");
    }
}

#[tokio::test]
async fn work_that_two_keys_list_counts_once_and_the_oldest_comes_first() {
    let (url, _) = upstream(|_, key| {
        let both = run("both", "2026-01-01T00:00:02Z");
        let own = match key == KEYS[0] {
            true => run("newest", "2026-01-01T00:00:03Z"),
            false => run("oldest", "2026-01-01T00:00:01Z"),
        };
        (200, json!({"data": [own, both], "hasMore": false}))
    });
    let found = look(&caller(&url)).await.unwrap();
    assert_eq!(found, ["oldest", "both", "newest"]);
}

#[tokio::test]
async fn nobody_can_tell_what_there_is_while_a_key_cannot_be_asked() {
    for (status, others) in [(401, 0), (403, 0), (429, 0), (429, 1)] {
        let (url, _) = upstream(move |_, key| match key == KEYS[others] {
            true => (status, json!({"error": "no"})),
            false => (200, json!({"data": [], "hasMore": false})),
        });
        let found = look(&caller(&url)).await;
        assert!(
            matches!(found, Err(Undecided::Refused { .. })),
            "{status}: {found:?}"
        );
    }
}

#[tokio::test]
async fn a_thing_is_not_missing_while_the_key_that_knows_it_cools_down() {
    let status = Arc::new(AtomicU16::new(200));
    let answers = Arc::clone(&status);
    let (url, _) = upstream(move |_, key| match key == KEYS[0] {
        true => match answers.load(Ordering::Relaxed) {
            200 => (200, run("r", "2026-01-01T00:00:00Z")),
            status => (status, json!({"error": "no"})),
        },
        false => (404, json!({"error": "no such run"})),
    });
    let caller = caller(&url);
    let get = find("agent.runs.get").unwrap();
    let read = async || caller.call(get, json!({"runId": "r"})).await;
    read().await.unwrap();
    status.store(429, Ordering::Relaxed);
    // First it is asked and turned away, then it is not even asked.
    for _ in 0..3 {
        let refusal = read().await.unwrap_err();
        let out = matches!(refusal, Refusal::KeysOut(KeyPoolError::CoolingDown { .. }));
        assert!(out, "{refusal:?}");
    }
    // Of something that nobody has found before, a 404 is believed.
    let other = caller.call(get, json!({"runId": "other"})).await;
    assert!(is_missing(&other.unwrap_err()));
    // Unless it was started before: after a restart nobody knows with which key.
    let following = Following::again("agent.runs.get", object(json!({"runId": "other"})));
    let look = following.unwrap().look(&caller).await;
    let out = matches!(
        look,
        Err(Refusal::KeysOut(KeyPoolError::CoolingDown { .. }))
    );
    assert!(out, "{look:?}");
}

#[tokio::test]
async fn a_thing_that_no_key_knows_is_missing() {
    let (url, seen) = upstream(|_, _| (404, json!({"error": "no such run"})));
    let caller = caller(&url);
    let following = Following::again("agent.runs.get", object(json!({"runId": "r"})));
    let look = following.unwrap().look(&caller).await;
    assert!(is_missing(&look.unwrap_err()));
    assert_eq!(seen.lock().unwrap().len(), 2);
}

fn is_missing(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Exa(error) if error.kind == ExaErrorKind::Api(404))
}
