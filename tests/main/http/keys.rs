//! The keys that people share: how they rest, and what everybody is told of it.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::bearer;
use crate::support::{HttpServer, Program, Recorder, Reply};

const ADMIN: &str = "admin-0123456789abcdef";

/// A server in front of this upstream that many share, with these keys.
fn shared(exa: &Recorder, keys: &str, variables: &[(&str, &str)]) -> HttpServer {
    let program = Program::new(["http", "--listen", "127.0.0.1:0"]).without("EXA_API_KEY");
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
    let reply = server.stateless(&[("authorization", &admin)], "tools/call", call);
    reply.json()["result"]["structuredContent"].clone()
}

fn keys(server: &HttpServer) -> Value {
    let admin = bearer(ADMIN);
    server
        .get("/admin/keys", &[("authorization", &admin)])
        .json()
}

fn refusal(status: u16) -> Reply {
    Reply::json(status, &json!({"error": "no", "requestId": "req-1"}))
}

#[test]
fn a_single_shared_key_rests_and_everybody_is_told_how_long() {
    for (reply, seconds, state) in [
        (refusal(429).header("retry-after", "60"), 60, "rate limited"),
        (refusal(402), 180, "out of credits"),
        (
            refusal(402).header("retry-after", "600"),
            600,
            "out of credits",
        ),
    ] {
        let exa = Recorder::always(reply);
        let server = shared(&exa, "the-only-key-of-all", &[]);
        let first = search(&server, "first")["error"].clone();
        assert_eq!(first["retryAfter"], seconds, "{first}");
        assert_eq!(first["requestId"], "req-1", "{first}");
        let message = first["message"].as_str().expect("a message");
        let told = format!("the next is ready in {seconds} seconds");
        assert!(message.contains(&told), "{message}");
        assert_eq!(exa.take().len(), 1);
        let second = search(&server, "second")["error"].clone();
        assert_eq!(exa.take().len(), 0, "a key that rests is not used");
        let wait = second["retryAfter"].as_u64().expect("a time");
        assert!((seconds - 10..=seconds).contains(&wait), "{second}");
        let keys = keys(&server);
        assert_eq!(keys["keys"][0]["state"], "resting", "{keys}");
        assert_eq!(keys["keys"][0]["lastProblem"], state, "{keys}");
        let health = server.get("/health", &[]);
        assert_eq!(health.status, 200);
        assert_eq!(health.json()["status"], "degraded");
        assert_eq!(health.json()["upstream"], "no key ready");
    }
}

#[test]
fn a_single_shared_key_is_out_after_three_refusals() {
    let exa = Recorder::always(refusal(401));
    let server = shared(&exa, "the-only-key-of-all", &[]);
    for number in 0..3 {
        assert_eq!(keys(&server)["keys"][0]["state"], "ready");
        search(&server, &number.to_string());
    }
    assert_eq!(exa.take().len(), 3);
    let out = search(&server, "once more");
    let message = out["error"]["message"].to_string();
    assert!(message.contains("EXA_API_KEYS"), "{out}");
    assert_eq!(exa.take().len(), 0);
    assert_eq!(keys(&server)["keys"][0]["state"], "refused");
}

#[test]
fn the_call_that_uses_up_the_last_key_says_when_to_come_back() {
    let exa = Recorder::always(refusal(429));
    let server = shared(&exa, "first-key-of-all,second-key-of-all", &[]);
    let answer = search(&server, "q")["error"].clone();
    assert_eq!(exa.take().len(), 2);
    assert_eq!(answer["status"], 429, "{answer}");
    assert_eq!(answer["retryAfter"], 180, "{answer}");
    let what = answer["whatToDo"].to_string();
    assert!(!what.contains("a few seconds"), "{what}");
}

#[test]
fn a_client_s_own_key_is_tried_again_at_once() {
    let exa = Recorder::start(|_, number| match number {
        0 => refusal(402).header("retry-after", "600"),
        1..4 => refusal(401),
        _ => Reply::json(200, &json!({"results": [], "requestId": "r"})),
    });
    let server = HttpServer::upstream(&exa.url(), &[]);
    let call = json!({"name": "web_search_exa", "arguments": {"query": "q"}});
    let ask = || {
        let key = [("x-api-key", "some-key-of-mine")];
        let reply = server.stateless(&key, "tools/call", call.clone());
        reply.json()["result"]["isError"].clone()
    };
    for _ in 0..4 {
        assert_eq!(ask(), true);
    }
    assert_eq!(ask(), false, "topped up and put right");
    assert_eq!(exa.take().len(), 5);
    assert_eq!(server.get("/health", &[]).json()["status"], "ok");
}

#[test]
fn no_second_has_more_requests_than_a_key_may_make() {
    let times = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&times);
    let exa = Recorder::start(move |_, _| {
        seen.lock().expect("the times").push(Instant::now());
        Reply::json(200, &json!({"results": [], "requestId": "r"}))
    });
    let server = shared(&exa, "the-only-key-of-all", &[("EXA_MCP_RATE_LIMIT", "5")]);
    // The first request is late, because it has to find its way.
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
    // Some take longer on their way here than others, so that it is not quite a second.
    for (earlier, later) in times.iter().zip(times.iter().skip(5)) {
        let apart = *later - *earlier;
        assert!(apart > Duration::from_millis(700), "{apart:?}: {times:?}");
    }
}

#[test]
fn a_shared_server_without_keys_tells_who_can_help() {
    let exa = Recorder::always(refusal(500));
    let server = shared(&exa, "", &[]);
    let answer = search(&server, "q").to_string();
    assert!(
        answer.contains("operator") && answer.contains("EXA_API_KEYS"),
        "{answer}"
    );
    assert_eq!(
        server.get("/health", &[]).json()["upstream"],
        "no key ready"
    );
}
