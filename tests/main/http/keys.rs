//! The pool of shared API keys: cooldowns and error messages.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::bearer;
use crate::support::{HttpServer, Program, Recorder, Response};

const ADMIN: &str = "admin-0123456789abcdef";

/// Starts a shared server for this upstream with these keys.
fn start_server(exa: &Recorder, keys: &str, variables: &[(&str, &str)]) -> HttpServer {
    let program = Program::new(["http", "--listen", "127.0.0.1:0"]).env_remove("EXA_API_KEY");
    let program = program
        .env("EXA_BASE_URL", &exa.url())
        .env("MCP_AUTH_TOKEN", ADMIN)
        .env("EXA_API_KEYS", keys);
    let program = variables
        .iter()
        .fold(program, |program, (name, value)| program.env(name, value));
    HttpServer::start(program)
}

fn search(server: &HttpServer, query: &str) -> Value {
    let admin = bearer(ADMIN);
    let call = json!({"name": "web_search_exa", "arguments": {"query": query}});
    let response = server.send_stateless(&[("authorization", &admin)], "tools/call", call);
    response.json()["result"]["structuredContent"].clone()
}

fn keys(server: &HttpServer) -> Value {
    let admin = bearer(ADMIN);
    server
        .get("/admin/keys", &[("authorization", &admin)])
        .json()
}

fn refusal(status: u16) -> Response {
    Response::json(status, &json!({"error": "no", "requestId": "req-1"}))
}

#[test]
fn single_shared_key_cools_down_with_retry_after() {
    for (response, seconds, state) in [
        (refusal(429).header("retry-after", "60"), 60, "rate limited"),
        (refusal(402), 60, "out of credits"),
        (
            refusal(402).header("retry-after", "600"),
            600,
            "out of credits",
        ),
    ] {
        let exa = Recorder::always(response);
        let server = start_server(&exa, "the-only-key-of-all", &[]);
        let first = search(&server, "first")["error"].clone();
        assert_eq!(first["retryAfter"], seconds, "{first}");
        assert_eq!(first["requestId"], "req-1", "{first}");
        let message = first["message"].as_str().expect("a message");
        let expected = format!("the next is ready in {seconds} seconds");
        assert!(message.contains(&expected), "{message}");
        assert_eq!(exa.take().len(), 1);
        let second = search(&server, "second")["error"].clone();
        assert_eq!(exa.take().len(), 0, "a key that cools down is not used");
        let wait = second["retryAfter"].as_u64().expect("a time");
        assert!((seconds - 10..=seconds).contains(&wait), "{second}");
        let keys = keys(&server);
        assert_eq!(keys["keys"][0]["state"], "cooling_down", "{keys}");
        assert_eq!(keys["keys"][0]["lastProblem"], state, "{keys}");
        let health = server.get("/health", &[]);
        assert_eq!(health.status, 200);
        assert_eq!(health.json()["status"], "degraded");
        assert_eq!(health.json()["upstream"], "no key ready");
        assert_eq!(health.json()["keys"]["cooling_down"], 1);
    }
}

fn found() -> Response {
    Response::json(200, &json!({"results": [], "requestId": "r"}))
}

/// Searches until one call succeeds; returns the elapsed time.
fn time_until_success(server: &HttpServer, timeout: Duration) -> Duration {
    let start = Instant::now();
    let mut number = 0;
    while start.elapsed() < timeout {
        number += 1;
        let body = search(server, &format!("attempt {number}"));
        if body.get("error").is_none_or(Value::is_null) {
            return start.elapsed();
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("no call succeeded within {timeout:?}: {}", keys(server));
}

#[test]
fn transient_rejections_do_not_disable_a_single_key() {
    for rejections in [3, 4, 5] {
        let exa = Recorder::start(move |_, number| {
            if number < rejections {
                refusal(401)
            } else {
                found()
            }
        });
        let server = start_server(&exa, "the-only-key-of-all", &[]);
        for number in 0..3 {
            assert_eq!(keys(&server)["keys"][0]["state"], "ready");
            search(&server, &number.to_string());
        }
        let out = search(&server, "once more")["error"].clone();
        assert!(out["message"].to_string().contains("EXA_API_KEYS"), "{out}");
        assert_eq!(out["retryAfter"], 1, "{out}");
        let key = keys(&server)["keys"][0].clone();
        assert_eq!(key["state"], "cooling_down", "{key}");
        assert_eq!(key["failures"], 3, "{key}");
        time_until_success(&server, Duration::from_secs(20));
        assert_eq!(keys(&server)["keys"][0]["state"], "ready");
        assert_eq!(server.get("/health", &[]).json()["status"], "ok");
    }
}

#[test]
fn rate_limit_storm_recovers_promptly() {
    let calm = Arc::new(AtomicBool::new(false));
    let is_calm = Arc::clone(&calm);
    let exa = Recorder::start(move |_, _| {
        if is_calm.load(Ordering::SeqCst) {
            found()
        } else {
            refusal(429)
        }
    });
    let server = start_server(&exa, "the-only-key-of-all", &[]);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(4) {
        thread::scope(|scope| {
            for number in 0..4 {
                let server = &server;
                scope.spawn(move || search(server, &format!("storm {number}")));
            }
        });
        thread::sleep(Duration::from_millis(50));
    }
    let sent = exa.take().len();
    assert!(sent < 40, "{sent} requests although all were turned away");
    calm.store(true, Ordering::SeqCst);
    let took = time_until_success(&server, Duration::from_secs(20));
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn half_open_key_gets_one_probe() {
    let in_flight = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (counted, peak) = (Arc::clone(&in_flight), Arc::clone(&most));
    let exa = Recorder::start(move |_, number| {
        if number == 0 {
            return refusal(402).header("retry-after", "1");
        }
        let now = counted.fetch_add(1, Ordering::SeqCst) + 1;
        peak.fetch_max(now, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(1_500));
        counted.fetch_sub(1, Ordering::SeqCst);
        found()
    });
    let server = start_server(&exa, "the-only-key-of-all", &[]);
    search(&server, "first");
    thread::sleep(Duration::from_millis(1_100));
    let bodies: Vec<Value> = thread::scope(|scope| {
        let calls = (0..8).map(|number| {
            let server = &server;
            scope.spawn(move || search(server, &format!("call {number}")))
        });
        let calls: Vec<_> = calls.collect();
        calls
            .into_iter()
            .map(|call| call.join().expect("a response"))
            .collect()
    });
    let refused = bodies.iter().filter(|body| body["error"].is_object());
    assert_eq!(refused.count(), 7, "{bodies:?}");
    assert_eq!(most.load(Ordering::SeqCst), 1);
    assert_eq!(keys(&server)["keys"][0]["state"], "ready");
}

#[test]
fn key_with_server_errors_alone_is_taken_out_of_use() {
    let all_fail = Arc::new(AtomicBool::new(false));
    let outage = Arc::clone(&all_fail);
    let exa = Recorder::start(move |request, _| {
        let is_bad = request.header("x-api-key").contains(&"the-bad-key-of-all");
        if is_bad || outage.load(Ordering::SeqCst) {
            refusal(500)
        } else {
            found()
        }
    });
    let server = start_server(&exa, "the-bad-key-of-all,the-good-key-of-all", &[]);
    let number = AtomicUsize::new(0);
    let failures = |calls: usize| {
        let numbers = (0..calls).map(|_| number.fetch_add(1, Ordering::SeqCst));
        let bodies = numbers.map(|number| search(&server, &format!("call {number}")));
        bodies.filter(|body| body["error"].is_object()).count()
    };
    let failed = failures(40);
    assert!((1..=6).contains(&failed), "{failed} of 40 calls failed");
    let states = keys(&server);
    assert_eq!(states["keys"][0]["state"], "cooling_down", "{states}");
    assert_eq!(states["keys"][0]["lastProblem"], "server errors");
    assert_eq!(states["keys"][1]["state"], "ready");
    // An outage of Exa is nobody's fault: the good key remains in use.
    all_fail.store(true, Ordering::SeqCst);
    assert_eq!(failures(20), 20);
    assert_eq!(keys(&server)["keys"][1]["state"], "ready");
    all_fail.store(false, Ordering::SeqCst);
    assert!(failures(10) <= 1);
}

#[test]
fn one_bad_key_does_not_fail_calls() {
    let exa = Recorder::start(|request, _| {
        if request.header("x-api-key").contains(&"the-bad-key-of-all") {
            refusal(401)
        } else {
            found()
        }
    });
    let listed = "the-bad-key-of-all,first-good-key-of-all,second-good-key-of-all";
    let server = start_server(&exa, listed, &[]);
    for number in 0..30 {
        let body = search(&server, &format!("question {number}"));
        assert!(body["error"].is_null(), "{body}");
    }
    let requests = exa.take();
    let bad = requests.iter().filter(|request| {
        let key = request.header("x-api-key");
        key.contains(&"the-bad-key-of-all")
    });
    let bad = bad.count();
    assert!((3..=8).contains(&bad), "{bad} calls with the bad key");
    let states = keys(&server);
    assert_ne!(states["keys"][0]["state"], "ready", "{states}");
    assert_eq!(states["keys"][1]["state"], "ready", "{states}");
    assert_eq!(states["nextReadyInSeconds"], 0, "{states}");
}

#[test]
fn admin_resets_a_key() {
    let broken = Arc::new(AtomicBool::new(true));
    let is_broken = Arc::clone(&broken);
    let exa = Recorder::start(move |_, _| {
        if is_broken.load(Ordering::SeqCst) {
            refusal(402).header("retry-after", "1800")
        } else {
            found()
        }
    });
    let server = start_server(
        &exa,
        "the-only-key-of-all",
        &[("USER_TOKENS", "user-0123456789abcdef:ann")],
    );
    search(&server, "first");
    broken.store(false, Ordering::SeqCst);
    assert!(search(&server, "second")["error"].is_object());
    let before = keys(&server)["keys"][0].clone();
    assert_eq!(before["state"], "cooling_down", "{before}");
    let id = before["id"].as_str().expect("an id").to_owned();
    assert!(!id.contains("only"), "{id}");
    let path = format!("/admin/keys/{id}/reset");
    let post = |path: &str, token: &str| {
        let header = bearer(token);
        server.post_to(path, &[("authorization", &header)], &json!({}))
    };
    assert_eq!(post(&path, "user-0123456789abcdef").status, 403);
    assert_eq!(server.post_to(&path, &[], &json!({})).status, 401);
    let unknown = post("/admin/keys/nothing/reset", ADMIN);
    assert_eq!(unknown.status, 404);
    assert_eq!(keys(&server)["keys"][0]["state"], "cooling_down");
    let reset = post(&path, ADMIN);
    assert_eq!(reset.status, 200);
    assert_eq!(reset.json()["state"], "ready");
    assert_eq!(reset.json()["id"], id.as_str());
    assert!(search(&server, "third")["error"].is_null());
    let admin = bearer(ADMIN);
    let audit = server.get("/admin/audit", &[("authorization", &admin)]);
    let audit = audit.json();
    let entries = audit["entries"].as_array().expect("entries");
    let resets: Vec<&Value> = entries
        .iter()
        .filter(|entry| entry["action"] == "key.reset")
        .collect();
    assert_eq!(resets.len(), 1, "{audit}");
    assert_eq!(resets[0]["target"], id.as_str());
    assert!(!audit.to_string().contains("only-key"), "{audit}");
}

#[test]
fn last_key_failure_reports_retry_after() {
    let exa = Recorder::always(refusal(429).header("retry-after", "45"));
    let server = start_server(&exa, "first-key-of-all,second-key-of-all", &[]);
    let body = search(&server, "q")["error"].clone();
    assert_eq!(exa.take().len(), 2);
    assert_eq!(body["status"], 429, "{body}");
    assert_eq!(body["retryAfter"], 45, "{body}");
    let what = body["whatToDo"].to_string();
    assert!(!what.contains("a few seconds"), "{what}");
}

#[test]
fn passthrough_key_is_retried_at_once() {
    let exa = Recorder::start(|_, number| match number {
        0 => refusal(402).header("retry-after", "600"),
        1..4 => refusal(401),
        _ => Response::json(200, &json!({"results": [], "requestId": "r"})),
    });
    let server = HttpServer::with_upstream(&exa.url(), &[]);
    let call = json!({"name": "web_search_exa", "arguments": {"query": "q"}});
    let send_request = || {
        let key = [("x-api-key", "some-key-of-mine")];
        let response = server.send_stateless(&key, "tools/call", call.clone());
        response.json()["result"]["isError"].clone()
    };
    for _ in 0..4 {
        assert_eq!(send_request(), true);
    }
    assert_eq!(send_request(), false, "credits were added");
    assert_eq!(exa.take().len(), 5);
    assert_eq!(server.get("/health", &[]).json()["status"], "ok");
}

#[test]
fn requests_per_second_per_key_are_limited() {
    let times = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&times);
    let exa = Recorder::start(move |_, _| {
        recorded.lock().expect("the times").push(Instant::now());
        Response::json(200, &json!({"results": [], "requestId": "r"}))
    });
    let server = start_server(&exa, "the-only-key-of-all", &[("EXA_MCP_RATE_LIMIT", "5")]);
    // The first request is slower, because it opens the connection.
    search(&server, "first");
    thread::sleep(Duration::from_secs(2));
    times.lock().expect("the times").clear();
    thread::scope(|scope| {
        for number in 0..12 {
            let server = &server;
            scope.spawn(move || search(server, &format!("question {number}")));
        }
    });
    let mut times = times.lock().expect("the times").clone();
    times.sort();
    assert_eq!(times.len(), 12);
    // Latency varies between requests, so that the interval is not exactly a second.
    for (earlier, later) in times.iter().zip(times.iter().skip(5)) {
        let apart = *later - *earlier;
        assert!(apart > Duration::from_millis(700), "{apart:?}: {times:?}");
    }
}

#[test]
fn shared_server_without_keys_refers_to_operator() {
    let exa = Recorder::always(refusal(500));
    let server = start_server(&exa, "", &[]);
    let body = search(&server, "q").to_string();
    assert!(
        body.contains("operator") && body.contains("EXA_API_KEYS"),
        "{body}"
    );
    assert_eq!(
        server.get("/health", &[]).json()["upstream"],
        "no key ready"
    );
}
