//! Replicas with one Redis behind a load balancer, while a replica or Redis fails.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::{bearer, request, search};
use crate::support::{
    Balancer, DEFAULT_VERSION, HttpServer, HttpSession, Program, RedisServer, STATELESS_VERSION,
    Sandbox, eventually, signal, stateless_params,
};

/// The number of concurrent clients.
const CLIENTS: u64 = 64;

/// Servers that share a Redis behind a load balancer.
pub(super) struct Replicas {
    pub(super) servers: Vec<HttpServer>,
    /// The load balancer.
    front: HttpServer,
    redis: Mutex<RedisServer>,
    sandbox: Sandbox,
}

/// The tokens of two users, whose calls use the server's key.
pub(super) const POOL: [(&str, &str); 2] = [
    ("USER_TOKENS", "a-token:ann,b-token:bob"),
    ("EXA_API_KEYS", "pool-key-one"),
];

impl Replicas {
    pub(super) fn start(count: usize) -> Self {
        Self::with(count, &POOL)
    }

    pub(super) fn with(count: usize, variables: &[(&str, &str)]) -> Self {
        let (redis, sandbox) = (RedisServer::start(), Sandbox::start());
        let (url, store) = (sandbox.url(), redis.url());
        let start = |_| {
            let mut variables = variables.to_vec();
            variables.push(("ENABLED_TOOLS", "default,notes,websets"));
            variables.push(("EXA_MCP_LOG_LEVEL", "info"));
            variables.push(("EXA_MCP_STORE", store.as_str()));
            HttpServer::with_upstream(&url, &variables)
        };
        let servers: Vec<HttpServer> = (0..count).map(start).collect();
        let addresses = servers.iter().map(|server| server.address.clone());
        let balancer = Balancer::start(addresses.collect());
        Self {
            front: HttpServer::external(&balancer.address),
            servers,
            redis: Mutex::new(redis),
            sandbox,
        }
    }

    pub(super) fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    pub(super) fn redis(&self) -> MutexGuard<'_, RedisServer> {
        self.redis.lock().expect("Redis")
    }

    /// Returns the request count of a token according to a server.
    fn request_count(&self, server: usize, token: &str) -> Option<u64> {
        let token = bearer(token);
        let response = self.servers[server].get("/mcp/usage", &[("authorization", &token)]);
        response.json()["usageCount"].as_u64()
    }

    /// Makes calls from concurrent clients; returns how many succeeded.
    fn run_calls(&self, calls: u64, during: impl Fn(u64) + Sync) -> u64 {
        let (next, answered) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::SeqCst);
                        if number >= calls {
                            return;
                        }
                        during(number);
                        if search_succeeds(&self.front, "a-token") {
                            answered.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                });
            }
        });
        answered.into_inner()
    }
}

/// Searches, and returns whether the call succeeded.
fn search_succeeds(server: &HttpServer, token: &str) -> bool {
    let params = json!({"name": "web_search_exa", "arguments": search()});
    let body = request(1, "tools/call", stateless_params(params)).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
         mcp-protocol-version: {STATELESS_VERSION}\r\nmcp-method: tools/call\r\nmcp-name: web_search_exa\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    let Some(response) = server.send_raw(head.as_bytes()) else {
        return false;
    };
    let answer: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    assert!(
        answer.is_null() || response.status == 200,
        "{}",
        response.text()
    );
    answer["result"]["isError"] == false
}

fn assert_every_call_is_counted(replicas: usize, calls: u64) {
    let replicas = Replicas::start(replicas);
    let begin = std::time::Instant::now();
    assert_eq!(replicas.run_calls(calls, |_| {}), calls);
    let rate = calls as f64 / begin.elapsed().as_secs_f64();
    eprintln!("{calls} calls, {rate:.0} a second");
    for server in 0..replicas.servers.len() {
        assert_eq!(replicas.request_count(server, "a-token"), Some(calls));
        assert_eq!(replicas.request_count(server, "b-token"), Some(0));
    }
}

#[test]
fn two_servers_count_every_call() {
    assert_every_call_is_counted(2, 2_000);
}

#[test]
fn three_servers_count_every_call() {
    assert_every_call_is_counted(3, 2_000);
}

#[test]
fn twenty_thousand_calls_are_counted_by_two_and_three_servers() {
    assert_every_call_is_counted(2, 20_000);
    assert_every_call_is_counted(3, 20_000);
}

#[test]
fn killed_server_loses_no_counts() {
    let replicas = Replicas::start(3);
    let victim = replicas.servers[0].process_id();
    let answered = replicas.run_calls(2_000, |number| {
        if number == 700 {
            signal(victim, "KILL");
        }
    });
    // Calls in flight to the killed server may be counted although they failed.
    let counted = replicas.request_count(1, "a-token").expect("a count");
    assert_eq!(replicas.request_count(2, "a-token"), Some(counted));
    assert!(
        (answered..=2_000).contains(&counted) && answered > 1_500,
        "{answered} answered, {counted} counted"
    );
}

#[test]
fn task_of_a_killed_server_is_finished_by_another() {
    let replicas = Replicas::start(3);
    let ann = bearer("a-token");
    let mut session = HttpSession::new(&replicas.servers[0], &[("authorization", &ann)]);
    let args = json!({"search": {"query": "companies", "count": 1}});
    let arguments = json!({"operation": "websets.create", "args": args});
    let call = json!({"name": "manage_websets", "arguments": arguments, "task": {}});
    let task = session.request("tools/call", call)["result"]["task"]["taskId"].clone();
    let task = task.as_str().expect("a task").to_owned();
    eventually("the work is started", || {
        replicas.sandbox.count("websets") == 1
    });
    let key = format!("exa-mcp:doc:tasks:user%3Aann:{task}");
    let runner = || {
        let body = replicas
            .redis()
            .command(&["HGET", &key, "b"])
            .expect("Redis");
        let body: Value = serde_json::from_str(body.lines().nth(1).unwrap_or_default()).ok()?;
        let known = !body["work"].is_null();
        known.then(|| body["runner"].as_str().map(str::to_owned))?
    };
    eventually("the work is known", || runner().is_some());
    let first = runner();
    signal(replicas.servers[0].process_id(), "KILL");
    // Exactly one of the others takes over.
    eventually("another server takes over", || runner() != first);
    replicas.sandbox.advance(600_000);
    let mut session = HttpSession::new(&replicas.servers[1], &[("authorization", &ann)]);
    let result = session.request("tasks/result", json!({"taskId": task}));
    assert_eq!(result["result"]["isError"], false, "{result}");
    let took = |server: &&HttpServer| server.log().contains("task resumed");
    assert_eq!(
        replicas.sandbox.count("websets"),
        1,
        "nothing was started twice"
    );
    let logs = replicas.servers[1..].iter().filter(took).count();
    assert_eq!(logs, 1, "servers that took over");
}

#[test]
fn session_continues_on_another_replica_for_its_owner_only() {
    let replicas = Replicas::start(2);
    let ann = bearer("a-token");
    let mut session = HttpSession::new(&replicas.front, &[("authorization", &ann)]);
    for _ in 0..6 {
        let found = session.call("web_search_exa", search());
        assert_eq!(found["isError"], false, "{found}");
    }
    let (one, other) = (&replicas.servers[0], &replicas.servers[1]);
    for server in [one, other] {
        let health = server.get("/health", &[]).json();
        assert_eq!(health["sessions"], 1, "both know it: {health}");
    }
    // A second `initialize` is rejected by the other server, too.
    let again = session.post(&crate::support::initialize(DEFAULT_VERSION));
    assert_eq!(again.status, 400, "{}", again.text());
    let bob = bearer("b-token");
    let list = request(9, "tools/list", json!({}));
    let third = Replicas::send_request(one, &bob, &session.id, &list);
    assert_eq!(third.status, 404, "{}", third.text());
    let ended = one.send(
        "DELETE",
        "/mcp",
        &[("authorization", &ann), ("mcp-session-id", &session.id)],
        b"",
    );
    assert_eq!(ended.status, 204, "{}", ended.text());
    eventually("the session has ended on the other server", || {
        Replicas::send_request(other, &ann, &session.id, &list).status == 404
    });
    assert_eq!(
        Replicas::send_request(one, &ann, &session.id, &list).status,
        404
    );
}

impl Replicas {
    fn send_request(
        server: &HttpServer,
        token: &str,
        session: &str,
        message: &Value,
    ) -> crate::support::HttpResponse {
        server.post(
            &[("authorization", token), ("mcp-session-id", session)],
            message,
        )
    }
}

#[test]
fn session_survives_its_first_server() {
    let replicas = Replicas::start(2);
    let ann = bearer("a-token");
    let session = HttpSession::new(&replicas.servers[0], &[("authorization", &ann)]);
    signal(replicas.servers[0].process_id(), "KILL");
    let (other, ann, id) = (&replicas.servers[1], &ann, &session.id);
    // Concurrent requests restore the session only once.
    thread::scope(|scope| {
        for number in 10..26 {
            scope.spawn(move || {
                let list = request(number, "tools/list", json!({}));
                let response = Replicas::send_request(other, ann, id, &list);
                assert_eq!(response.status, 200, "{}", response.text());
                assert!(response.json()["result"]["tools"].is_array());
            });
        }
    });
    let health = replicas.servers[1].get("/health", &[]).json();
    assert_eq!(health["sessions"], 1, "{health}");
}

#[test]
fn cached_result_is_readable_on_another_replica() {
    let replicas = Replicas::start(2);
    let headers = ["a-token", "b-token"].map(bearer);
    let call = |server: usize, token: &str, arguments: Value| {
        let call = json!({"name": "web_search_exa", "arguments": arguments});
        let response = replicas.servers[server].send_stateless(
            &[("authorization", token)],
            "tools/call",
            call,
        );
        response.json()["result"]["structuredContent"]["metadata"].clone()
    };
    let first = call(0, &headers[0], search());
    let id = first["cacheId"].as_str().expect("an id").to_owned();
    let search_count = || replicas.sandbox.requests("search").len();
    assert_eq!(search_count(), 1);
    let again = call(1, &headers[0], json!({"query": "rust", "cache_id": id}));
    assert_eq!(
        (&again["cached"], &again["cacheId"]),
        (&json!(true), &json!(id))
    );
    let same = call(1, &headers[0], search());
    assert_eq!(same["cached"], true, "{same}");
    assert_eq!(search_count(), 1, "Exa received one request");
    // Another user cannot access it on any server.
    for server in [0, 1] {
        let foreign = call(
            server,
            &headers[1],
            json!({"query": "rust", "cache_id": id}),
        );
        assert!(foreign.is_null() || foreign["cached"] != true, "{foreign}");
    }
    call(1, &headers[1], search());
    assert_eq!(search_count(), 2);
}

/// What one server bought for a cached result is not bought again by another, which has the result as it was.
#[test]
fn contents_of_a_cached_result_are_bought_once() {
    let replicas = Replicas::start(2);
    let call = |server: usize, arguments: Value| {
        let call = json!({"name": "web_search_exa", "arguments": arguments});
        let token = bearer("a-token");
        let headers = [("authorization", token.as_str())];
        let response = replicas.servers[server].send_stateless(&headers, "tools/call", call);
        let result = response.json()["result"].clone();
        assert_eq!(result["isError"], false, "{result}");
        result
    };
    let search = json!({"query": "heat pumps", "numResults": 25, "content_level": "summary"});
    let found = call(0, search);
    let id = &found["structuredContent"]["metadata"]["cacheId"];
    let full = json!({"cache_id": id, "content_level": "full", "max_tokens": 100_000});
    for server in [1, 0, 1, 0] {
        let text = call(server, full.clone())["content"][0]["text"].to_string();
        assert!(text.len() > 10_000, "{text}");
        assert_eq!(replicas.sandbox.requests("get_contents").len(), 1);
    }
    assert_eq!(replicas.sandbox.requests("search").len(), 1);
}

#[test]
fn calls_continue_and_counts_survive_without_redis() {
    let replicas = Replicas::start(2);
    let ann = bearer("a-token");
    let mut expected = replicas.run_calls(100, |_| {});
    assert_eq!(expected, 100);
    let session = HttpSession::new(&replicas.servers[0], &[("authorization", &ann)]);
    expected += 1;
    for way in ["frozen", "killed"] {
        match way {
            "frozen" => replicas.redis().freeze(),
            _ => replicas.redis().kill(),
        }
        assert_eq!(replicas.run_calls(200, |_| {}), 200, "{way}");
        expected += 200;
        // Calls that need the store fail with a clear error.
        let arguments = json!({"title": "a", "content": "b"});
        let call = json!({"name": "create_note", "arguments": arguments});
        let note = session.post(&request(5, "tools/call", call));
        expected += 1;
        let text = note.text();
        assert!(text.contains("\"isError\":true"), "{way}: {text}");
        assert!(text.contains("The store is unavailable"), "{way}: {text}");
        let health = replicas.servers[0].get("/health", &[]);
        assert_eq!(health.status, 200);
        eventually("the outage of the store is reported", || {
            let health = replicas.servers[0].get("/health", &[]).json();
            health["store"] == "unavailable" && health["status"] == "degraded"
        });
        match way {
            "frozen" => replicas.redis().unfreeze(),
            _ => replicas.redis().restart(),
        }
        eventually("everything is counted", || {
            let counted = |server| replicas.request_count(server, "a-token");
            counted(0) == Some(expected) && counted(1) == Some(expected)
        });
        eventually("the store is available again", || {
            let health = replicas.servers[0].get("/health", &[]).json();
            health["store"] == "ok"
        });
        // The count stays the same: nothing is counted twice.
        thread::sleep(Duration::from_secs(2));
        assert_eq!(
            replicas.request_count(0, "a-token"),
            Some(expected),
            "{way}"
        );
    }
}

#[test]
fn redis_outage_does_not_change_counts() {
    let replicas = Replicas::start(3);
    let answered = replicas.run_calls(600, |number| match number {
        100 => replicas.redis().freeze(),
        250 => replicas.redis().unfreeze(),
        350 => replicas.redis().kill(),
        500 => replicas.redis().restart(),
        _ => {}
    });
    assert_eq!(answered, 600);
    for server in 0..3 {
        eventually("everything is counted", || {
            replicas.request_count(server, "a-token") == Some(600)
        });
    }
    thread::sleep(Duration::from_secs(2));
    assert_eq!(
        replicas.request_count(0, "a-token"),
        Some(600),
        "nothing is counted twice"
    );
}

#[test]
fn identity_is_the_same_on_all_replicas() {
    let replicas = Replicas::with(2, &[]);
    let key = ("x-api-key", "the-key-of-ann");
    for credentials in [&[key][..], &[]] {
        let session = HttpSession::new(&replicas.servers[0], credentials);
        let other = &replicas.servers[1];
        let mut headers = vec![("mcp-session-id", session.id.as_str())];
        let list = request(9, "tools/list", json!({}));
        let foreign = [headers[0], ("x-api-key", "the-key-of-bob")];
        assert_eq!(other.post(&foreign, &list).status, 404);
        headers.extend(credentials);
        let level = request(8, "logging/setLevel", json!({"level": "debug"}));
        for (number, server) in [other, &replicas.servers[0], other].into_iter().enumerate() {
            let response = server.post(&headers, &list);
            assert_eq!(
                response.status,
                200,
                "{credentials:?} {number}: {}",
                response.text()
            );
            assert_eq!(server.post(&headers, &level).status, 200);
        }
    }
    for server in &replicas.servers {
        assert!(!server.log().contains("the-key-of"), "{}", server.log());
    }
    let all = replicas.redis().command(&["KEYS", "*"]).expect("keys");
    assert!(!all.contains("the-key-of"), "{all}");
}

#[test]
fn start_without_redis_fails_with_a_reason() {
    let program = Program::new(["http", "--listen", "127.0.0.1:0"])
        .env("USER_TOKENS", "a-token:ann")
        .env("EXA_MCP_STORE", "redis://ann:hunter2@127.0.0.1:1/3");
    let output = program.run();
    assert_ne!(output.code, Some(0));
    assert!(
        output.stderr.contains("Redis at 127.0.0.1:1, database 3"),
        "{}",
        output.stderr
    );
    assert!(!output.stderr.contains("hunter2"), "{}", output.stderr);
}
