//! Several servers on one Redis, behind a balancer, while one of them or Redis goes away.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::{bearer, eventually, request, search};
use crate::support::{
    Balancer, HttpServer, HttpSession, Program, RedisServer, STATELESS, Sandbox, USUAL, introduced,
    signal,
};

/// Clients at once.
const CLIENTS: u64 = 64;

/// Servers that share a Redis, and the balancer before them.
pub(super) struct Replicas {
    pub(super) servers: Vec<HttpServer>,
    /// What clients talk to.
    front: HttpServer,
    redis: Mutex<RedisServer>,
    sandbox: Sandbox,
}

/// Whoever shows one of these tokens is let in, and their calls use the server's key.
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
            HttpServer::upstream(&url, &variables)
        };
        let servers: Vec<HttpServer> = (0..count).map(start).collect();
        let addresses = servers.iter().map(|server| server.address.clone());
        let balancer = Balancer::start(addresses.collect());
        Self {
            front: HttpServer::at(&balancer.address),
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

    /// How many requests are counted for a token, as any of the servers tells it.
    fn counted(&self, server: usize, token: &str) -> Option<u64> {
        let token = bearer(token);
        let reply = self.servers[server].get("/mcp/usage", &[("authorization", &token)]);
        reply.json()["usageCount"].as_u64()
    }

    /// Makes calls from many clients at once; gives how many were answered well.
    fn storm(&self, calls: u64, during: impl Fn(u64) + Sync) -> u64 {
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
                        if is_answered(&self.front, "a-token") {
                            answered.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                });
            }
        });
        answered.into_inner()
    }
}

/// Searches, and says whether there was an answer.
fn is_answered(server: &HttpServer, token: &str) -> bool {
    let params = json!({"name": "web_search_exa", "arguments": search()});
    let body = request(1, "tools/call", introduced(params)).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
         mcp-protocol-version: {STATELESS}\r\nmcp-method: tools/call\r\nmcp-name: web_search_exa\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    let Some(reply) = server.raw(head.as_bytes()) else {
        return false;
    };
    let answer: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    assert!(answer.is_null() || reply.status == 200, "{}", reply.text());
    answer["result"]["isError"] == false
}

fn every_call_is_counted(replicas: usize, calls: u64) {
    let replicas = Replicas::start(replicas);
    let begin = std::time::Instant::now();
    assert_eq!(replicas.storm(calls, |_| {}), calls);
    let rate = calls as f64 / begin.elapsed().as_secs_f64();
    eprintln!("{calls} calls, {rate:.0} a second");
    for server in 0..replicas.servers.len() {
        assert_eq!(replicas.counted(server, "a-token"), Some(calls));
        assert_eq!(replicas.counted(server, "b-token"), Some(0));
    }
}

#[test]
fn two_servers_count_every_call() {
    every_call_is_counted(2, 2_000);
}

#[test]
fn three_servers_count_every_call() {
    every_call_is_counted(3, 2_000);
}

#[test]
fn twenty_thousand_calls_are_counted_by_two_and_three_servers() {
    every_call_is_counted(2, 20_000);
    every_call_is_counted(3, 20_000);
}

#[test]
fn killed_server_loses_no_counts() {
    let replicas = Replicas::start(3);
    let victim = replicas.servers[0].id();
    let answered = replicas.storm(2_000, |number| {
        if number == 700 {
            signal(victim, "KILL");
        }
    });
    // Those that were on their way to it may be counted without having been answered.
    let counted = replicas.counted(1, "a-token").expect("a count");
    assert_eq!(replicas.counted(2, "a-token"), Some(counted));
    assert!(
        (answered..=2_000).contains(&counted) && answered > 1_500,
        "{answered} answered, {counted} counted"
    );
}

#[test]
fn task_of_a_killed_server_is_finished_by_another() {
    let replicas = Replicas::start(3);
    let ann = bearer("a-token");
    let mut session = HttpSession::usual(&replicas.servers[0], &[("authorization", &ann)]);
    let args = json!({"search": {"query": "companies", "count": 1}});
    let arguments = json!({"operation": "websets.create", "args": args});
    let call = json!({"name": "manage_websets", "arguments": arguments, "task": {}});
    let task = session.ask("tools/call", call)["result"]["task"]["taskId"].clone();
    let task = task.as_str().expect("a task").to_owned();
    eventually("the work is begun", || {
        replicas.sandbox.count("websets") == 1
    });
    let key = format!("exa-mcp:doc:tasks:user%3Aann:{task}");
    let runner = || {
        let body = replicas.redis().say(&["HGET", &key, "b"]).expect("Redis");
        let body: Value = serde_json::from_str(body.lines().nth(1).unwrap_or_default()).ok()?;
        let known = !body["work"].is_null();
        known.then(|| body["runner"].as_str().map(str::to_owned))?
    };
    eventually("the work is known", || runner().is_some());
    let first = runner();
    signal(replicas.servers[0].id(), "KILL");
    // One of the others takes it up, and only one.
    eventually("it is taken up", || runner() != first);
    replicas.sandbox.advance(600_000);
    let mut session = HttpSession::usual(&replicas.servers[1], &[("authorization", &ann)]);
    let result = session.ask("tasks/result", json!({"taskId": task}));
    assert_eq!(result["result"]["isError"], false, "{result}");
    let took = |server: &&HttpServer| server.log().contains("task resumed");
    assert_eq!(
        replicas.sandbox.count("websets"),
        1,
        "nothing was begun twice"
    );
    let logs = replicas.servers[1..].iter().filter(took).count();
    assert_eq!(logs, 1, "servers that took it up");
}

#[test]
fn session_continues_on_another_replica_for_its_owner_only() {
    let replicas = Replicas::start(2);
    let ann = bearer("a-token");
    let mut session = HttpSession::usual(&replicas.front, &[("authorization", &ann)]);
    for _ in 0..6 {
        let found = session.call("web_search_exa", search());
        assert_eq!(found["isError"], false, "{found}");
    }
    let (one, other) = (&replicas.servers[0], &replicas.servers[1]);
    for server in [one, other] {
        let health = server.get("/health", &[]).json();
        assert_eq!(health["sessions"], 1, "both know it: {health}");
    }
    // What a client may say only once it may not say at the other server either.
    let again = session.post(&crate::support::initialize(USUAL));
    assert_eq!(again.status, 400, "{}", again.text());
    let bob = bearer("b-token");
    let list = request(9, "tools/list", json!({}));
    let third = Replicas::ask(one, &bob, &session.id, &list);
    assert_eq!(third.status, 404, "{}", third.text());
    let ended = one.send(
        "DELETE",
        "/mcp",
        &[("authorization", &ann), ("mcp-session-id", &session.id)],
        b"",
    );
    assert_eq!(ended.status, 204, "{}", ended.text());
    eventually("it has ended at the other server", || {
        Replicas::ask(other, &ann, &session.id, &list).status == 404
    });
    assert_eq!(Replicas::ask(one, &ann, &session.id, &list).status, 404);
}

impl Replicas {
    fn ask(
        server: &HttpServer,
        token: &str,
        session: &str,
        message: &Value,
    ) -> crate::support::HttpReply {
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
    let session = HttpSession::usual(&replicas.servers[0], &[("authorization", &ann)]);
    signal(replicas.servers[0].id(), "KILL");
    let (other, ann, id) = (&replicas.servers[1], &ann, &session.id);
    // Many at once: it is begun here once.
    thread::scope(|scope| {
        for number in 10..26 {
            scope.spawn(move || {
                let list = request(number, "tools/list", json!({}));
                let reply = Replicas::ask(other, ann, id, &list);
                assert_eq!(reply.status, 200, "{}", reply.text());
                assert!(reply.json()["result"]["tools"].is_array());
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
        let reply =
            replicas.servers[server].stateless(&[("authorization", token)], "tools/call", call);
        reply.json()["result"]["structuredContent"]["metadata"].clone()
    };
    let first = call(0, &headers[0], search());
    let id = first["cacheId"].as_str().expect("an id").to_owned();
    let asked = || replicas.sandbox.requests("search").len();
    assert_eq!(asked(), 1);
    let again = call(1, &headers[0], json!({"query": "rust", "cache_id": id}));
    assert_eq!(
        (&again["cached"], &again["cacheId"]),
        (&json!(true), &json!(id))
    );
    let same = call(1, &headers[0], search());
    assert_eq!(same["cached"], true, "{same}");
    assert_eq!(asked(), 1, "Exa was asked once");
    // It is another's, wherever they ask.
    for server in [0, 1] {
        let foreign = call(
            server,
            &headers[1],
            json!({"query": "rust", "cache_id": id}),
        );
        assert!(foreign.is_null() || foreign["cached"] != true, "{foreign}");
    }
    call(1, &headers[1], search());
    assert_eq!(asked(), 2);
}

#[test]
fn calls_continue_and_counts_survive_without_redis() {
    let replicas = Replicas::start(2);
    let ann = bearer("a-token");
    let mut expected = replicas.storm(100, |_| {});
    assert_eq!(expected, 100);
    let session = HttpSession::usual(&replicas.servers[0], &[("authorization", &ann)]);
    expected += 1;
    for way in ["frozen", "killed"] {
        match way {
            "frozen" => replicas.redis().freeze(),
            _ => replicas.redis().kill(),
        }
        assert_eq!(replicas.storm(200, |_| {}), 200, "{way}");
        expected += 200;
        // What needs the store says so.
        let arguments = json!({"title": "a", "content": "b"});
        let call = json!({"name": "create_note", "arguments": arguments});
        let note = session.post(&request(5, "tools/call", call));
        expected += 1;
        let text = note.text();
        assert!(text.contains("\"isError\":true"), "{way}: {text}");
        assert!(text.contains("The store is unavailable"), "{way}: {text}");
        let health = replicas.servers[0].get("/health", &[]);
        assert_eq!(health.status, 200);
        eventually("the store is seen to be away", || {
            let health = replicas.servers[0].get("/health", &[]).json();
            health["store"] == "unavailable" && health["status"] == "degraded"
        });
        match way {
            "frozen" => replicas.redis().thaw(),
            _ => replicas.redis().restart(),
        }
        eventually("everything is counted", || {
            let counted = |server| replicas.counted(server, "a-token");
            counted(0) == Some(expected) && counted(1) == Some(expected)
        });
        eventually("the store is there again", || {
            let health = replicas.servers[0].get("/health", &[]).json();
            health["store"] == "ok"
        });
        // And it stays so: nothing is counted twice.
        thread::sleep(Duration::from_secs(2));
        assert_eq!(replicas.counted(0, "a-token"), Some(expected), "{way}");
    }
}

#[test]
fn redis_outage_does_not_change_counts() {
    let replicas = Replicas::start(3);
    let answered = replicas.storm(600, |number| match number {
        100 => replicas.redis().freeze(),
        250 => replicas.redis().thaw(),
        350 => replicas.redis().kill(),
        500 => replicas.redis().restart(),
        _ => {}
    });
    assert_eq!(answered, 600);
    for server in 0..3 {
        eventually("everything is counted", || {
            replicas.counted(server, "a-token") == Some(600)
        });
    }
    thread::sleep(Duration::from_secs(2));
    assert_eq!(
        replicas.counted(0, "a-token"),
        Some(600),
        "and nothing twice"
    );
}

#[test]
fn identity_is_the_same_on_all_replicas() {
    let replicas = Replicas::with(2, &[]);
    let key = ("x-api-key", "the-key-of-ann");
    for shown in [&[key][..], &[]] {
        let session = HttpSession::usual(&replicas.servers[0], shown);
        let other = &replicas.servers[1];
        let mut headers = vec![("mcp-session-id", session.id.as_str())];
        let list = request(9, "tools/list", json!({}));
        let foreign = [headers[0], ("x-api-key", "the-key-of-bob")];
        assert_eq!(other.post(&foreign, &list).status, 404);
        headers.extend(shown);
        let level = request(8, "logging/setLevel", json!({"level": "debug"}));
        for (number, server) in [other, &replicas.servers[0], other].into_iter().enumerate() {
            let reply = server.post(&headers, &list);
            assert_eq!(reply.status, 200, "{shown:?} {number}: {}", reply.text());
            assert_eq!(server.post(&headers, &level).status, 200);
        }
    }
    for server in &replicas.servers {
        assert!(!server.log().contains("the-key-of"), "{}", server.log());
    }
    let all = replicas.redis().say(&["KEYS", "*"]).expect("keys");
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
