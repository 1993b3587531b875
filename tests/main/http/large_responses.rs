//! Large responses of Exa: other requests are served meanwhile, and memory is bounded.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{HttpServer, HttpSession, Recorder, Response};

const KEY: (&str, &str) = ("x-api-key", "the-key-of-ann");

/// Returns a search response with texts of this many bytes.
fn texts(bytes: usize) -> Value {
    let result = |number: usize| {
        let url = format!("https://a{number}.example/");
        json!({"id": url, "url": url, "title": "t", "text": "some words ".repeat(bytes / 25 / 11)})
    };
    json!({"requestId": "r", "results": (0..25).map(result).collect::<Vec<_>>()})
}

/// Returns a search response with many small values.
fn values(results: usize) -> String {
    let result = r#"{"id":"https://a.example/","url":"https://a.example/","title":"t",
        "highlights":["a","b","c"],"highlightScores":[1,2,3]}"#;
    let results = vec![result; results].join(",");
    format!(r#"{{"requestId":"r","results":[{results}]}}"#)
}

fn search(server: &HttpServer, query: &str) -> Value {
    let mut session = HttpSession::new(server, &[KEY]);
    session.call("web_search_exa", json!({"query": query}))
}

#[test]
fn large_responses_do_not_delay_others() {
    let exa = Recorder::always(Response::json(200, &texts(4_000_000)));
    let server = HttpServer::with_upstream(&exa.url(), &[]);
    let began = Instant::now();
    let mut slowest = Duration::ZERO;
    thread::scope(|scope| {
        let calls: Vec<_> = (0..4)
            .map(|number| {
                let server = &server;
                scope.spawn(move || search(server, &format!("question {number}")))
            })
            .collect();
        while !calls.iter().all(thread::ScopedJoinHandle::is_finished) {
            let started = Instant::now();
            assert_eq!(server.get("/health", &[]).status, 200);
            slowest = slowest.max(started.elapsed());
            thread::sleep(Duration::from_millis(20));
        }
        for call in calls {
            let found = call.join().expect("a result");
            assert_eq!(found["isError"], false, "{found}");
        }
    });
    let took = began.elapsed();
    // Large responses must not block other requests.
    let allowed = Duration::from_secs(1).max(took / 4);
    assert!(slowest < allowed, "{slowest:?} of {took:?}");
}

/// Returns the peak memory of the server in KiB.
#[cfg(target_os = "linux")]
fn peak_memory(server: &HttpServer) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process_id()));
    let status = status.expect("the status of a process");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.expect("a number")
}

#[cfg(target_os = "linux")]
#[test]
fn response_with_too_many_values_is_rejected_early() {
    let body = values(190_000);
    assert!((20_000_000..40_000_000).contains(&body.len()));
    let large = Response::new(200)
        .header("content-type", "application/json")
        .body(body);
    let exa = Recorder::responses([large, Response::json(200, &texts(1_000))]);
    let server = HttpServer::with_upstream(&exa.url(), &[]);
    let before = peak_memory(&server);
    let refused = search(&server, "too much");
    assert_eq!(refused["isError"], true);
    let text = refused["content"][0]["text"].as_str().expect("a string");
    for part in [
        "MB of memory",
        "numResults",
        "maxCharacters",
        "Request less",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let peak = peak_memory(&server) - before;
    assert!(peak < 150 * 1024, "{peak} KiB");
    assert_eq!(search(&server, "less")["isError"], false);
}
