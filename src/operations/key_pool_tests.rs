//! Calls with several keys, each of another Exa team.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::spend::Unlimited;
use super::{JobSearchError, OperationError, OperationExecutor, RemoteJob, find};
use exa_mcp_exa_client::{
    ApiKey, ExaConfig, ExaErrorKind, ExaHttp, KeyOwner, KeyPool, KeyPoolError, RetryPolicy,
};

const KEYS: [&str; 2] = ["key-of-team-a", "key-of-team-b"];

/// Starts a server that responds by path and key; returns its URL and a record of its requests.
fn upstream(
    respond: impl Fn(&str, &str) -> (u16, Value) + Send + 'static,
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
            let (status, body) = respond(&path, &key);
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

/// Reads the path and the key of a request.
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
            Some(("x-api-key", value)) => key = value.to_owned(),
            Some(("content-length", value)) => length = value.parse().unwrap(),
            Some(_) => {}
            None => path = line.split([' ', '?']).nth(1).unwrap_or_default().to_owned(),
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    (path, key)
}

fn executor(url: &str) -> OperationExecutor {
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
    OperationExecutor::new(http, None, Arc::new(Unlimited)).with_keys(pool)
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn run(id: &str, created: &str) -> Value {
    json!({"id": id, "status": "running", "createdAt": created, "request": {"query": "q"}})
}

/// Searches for a run with the query `q`, and returns the ids of the matches.
async fn find_runs(executor: &OperationExecutor) -> Result<Vec<String>, JobSearchError> {
    let start = find("agent.runs.create").unwrap();
    let sent = object(json!({"query": "q"}));
    let deadline = Instant::now() + Duration::from_secs(2);
    let found = RemoteJob::find(executor, start, &sent, 60_000, deadline).await;
    let found = found.unwrap()?;
    assert!(found.possible.is_empty());
    let ids = found.matching.iter().map(|job| job.poll_call().1);
    Ok(ids
        .map(|ids| ids["runId"].as_str().unwrap().to_owned())
        .collect())
}

#[tokio::test]
async fn searches_for_jobs_with_every_key() {
    for home in KEYS {
        let (url, seen) = upstream(move |_, key| {
            let own = run("own", "2026-01-01T00:00:00Z");
            let entries = if key == home { vec![own] } else { Vec::new() };
            (200, json!({"data": entries, "hasMore": false}))
        });
        assert_eq!(find_runs(&executor(&url)).await.unwrap(), ["own"], "{home}");
        assert_eq!(seen.lock().unwrap().len(), 2, "one list for each key");
    }
}

#[tokio::test]
async fn deduplicates_jobs_of_several_keys_and_sorts_by_age() {
    let (url, _) = upstream(|_, key| {
        let both = run("both", "2026-01-01T00:00:02Z");
        let own = if key == KEYS[0] {
            run("newest", "2026-01-01T00:00:03Z")
        } else {
            run("oldest", "2026-01-01T00:00:01Z")
        };
        (200, json!({"data": [own, both], "hasMore": false}))
    });
    let found = find_runs(&executor(&url)).await.unwrap();
    assert_eq!(found, ["oldest", "both", "newest"]);
}

#[tokio::test]
async fn job_search_fails_while_a_key_is_unavailable() {
    for (status, others) in [(401, 0), (403, 0), (429, 0), (429, 1)] {
        let (url, _) = upstream(move |_, key| {
            if key == KEYS[others] {
                (status, json!({"error": "no"}))
            } else {
                (200, json!({"data": [], "hasMore": false}))
            }
        });
        let found = find_runs(&executor(&url)).await;
        assert!(
            matches!(found, Err(JobSearchError::ListFailed { .. })),
            "{status}: {found:?}"
        );
    }
}

#[tokio::test]
async fn a_resource_is_not_missing_while_its_key_cools_down() {
    let status = Arc::new(AtomicU16::new(200));
    let current = Arc::clone(&status);
    let (url, _) = upstream(move |_, key| {
        if key != KEYS[0] {
            return (404, json!({"error": "no such run"}));
        }
        match current.load(Ordering::Relaxed) {
            200 => (200, run("r", "2026-01-01T00:00:00Z")),
            status => (status, json!({"error": "no"})),
        }
    });
    let executor = executor(&url);
    let get = find("agent.runs.get").unwrap();
    let read = async || executor.call(get, json!({"runId": "r"})).await;
    read().await.unwrap();
    status.store(429, Ordering::Relaxed);
    // The first request is rejected with 429; later ones are not sent.
    for _ in 0..3 {
        let error = read().await.unwrap_err();
        let is_cooling_down = matches!(
            error,
            OperationError::KeysUnavailable(KeyPoolError::CoolingDown { .. })
        );
        assert!(is_cooling_down, "{error:?}");
    }
    // A 404 counts for a resource that no key has found before.
    let other = executor.call(get, json!({"runId": "other"})).await;
    assert!(is_missing(&other.unwrap_err()));
    // It does not count for a job that exists: after a restart, its key is unknown.
    let job = RemoteJob::from_poll("agent.runs.get", object(json!({"runId": "other"})));
    let polled = job.unwrap().poll(&executor).await;
    let is_cooling_down = matches!(
        polled,
        Err(OperationError::KeysUnavailable(
            KeyPoolError::CoolingDown { .. }
        ))
    );
    assert!(is_cooling_down, "{polled:?}");
}

#[tokio::test]
async fn a_resource_that_no_key_knows_is_missing() {
    let (url, seen) = upstream(|_, _| (404, json!({"error": "no such run"})));
    let executor = executor(&url);
    let job = RemoteJob::from_poll("agent.runs.get", object(json!({"runId": "r"})));
    let polled = job.unwrap().poll(&executor).await;
    assert!(is_missing(&polled.unwrap_err()));
    assert_eq!(seen.lock().unwrap().len(), 2);
}

fn is_missing(error: &OperationError) -> bool {
    matches!(error, OperationError::Exa(error) if error.kind == ExaErrorKind::Api(404))
}
