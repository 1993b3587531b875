//! A Redis that lost its data, was replaced, paused, or taken over by a newer release.

use std::time::Duration;

use serde_json::{Value, json};

use super::{bearer, eventually};
use crate::support::{HttpServer, Program, RedisServer, Sandbox};

const ADMIN: &str = "the-admin-token";

/// Servers that can be started one by one on one Redis.
struct Stage {
    redis: RedisServer,
    sandbox: Sandbox,
    secret: Option<&'static str>,
}

impl Stage {
    fn new(secret: Option<&'static str>) -> Self {
        Self {
            redis: RedisServer::start(),
            sandbox: Sandbox::start(),
            secret,
        }
    }

    fn program(&self, secret: Option<&str>) -> Program {
        let program = Program::new(["http", "--listen", "127.0.0.1:0"])
            .env("EXA_BASE_URL", &self.sandbox.url())
            .env("EXA_MCP_STORE", &self.redis.url())
            .env("EXA_API_KEYS", "pool-key-one")
            .env("MCP_AUTH_TOKEN", ADMIN)
            .env("USER_TOKENS", "a-token:ann,b-token:bob");
        match secret {
            Some(secret) => program.env("EXA_MCP_SECRET", secret),
            None => program,
        }
    }

    fn server(&self) -> HttpServer {
        HttpServer::start(self.program(self.secret))
    }

    /// Documents of a kind that Redis holds.
    fn kept(&self, collection: &str) -> usize {
        let keys = format!("exa-mcp:doc:{collection}:*");
        let answer = self.redis.say(&["KEYS", &keys]).expect("an answer");
        let count = answer
            .lines()
            .next()
            .and_then(|line| line.strip_prefix('*'));
        count
            .and_then(|count| count.parse().ok())
            .expect("a number")
    }
}

fn post(server: &HttpServer, path: &str, body: &Value) -> Value {
    let admin = bearer(ADMIN);
    let headers = [
        ("authorization", admin.as_str()),
        ("content-type", "application/json"),
    ];
    let reply = server.send("POST", path, &headers, body.to_string().as_bytes());
    assert!(reply.status < 300, "{} {}", reply.status, reply.text());
    reply.json()
}

/// Makes a token and gives its text.
fn make(server: &HttpServer, user: &str) -> String {
    let made = post(server, "/admin/tokens", &json!({"userId": user}));
    made["token"].as_str().expect("a token").to_owned()
}

fn revoke(server: &HttpServer, user: &str) {
    let admin = bearer(ADMIN);
    let tokens = server
        .get("/admin/tokens", &[("authorization", &admin)])
        .json();
    let tokens = tokens["tokens"].as_array().expect("tokens").clone();
    let token = tokens.iter().find(|token| token["userId"] == user);
    let id = token.expect("the token")["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    post(server, &format!("/admin/tokens/{id}/revoke"), &json!({}));
}

fn status(server: &HttpServer, token: &str) -> u16 {
    let token = bearer(token);
    server
        .get("/mcp/usage", &[("authorization", &token)])
        .status
}

/// Checks that nothing is served, and that everybody is told why.
#[track_caller]
fn assert_refuses(server: &HttpServer, store: &str, part: &str) {
    let token = bearer("a-token");
    let refusal = || server.get("/mcp/usage", &[("authorization", &token)]);
    // While Redis starts again, it does not answer; that is another reason.
    eventually("the server refuses", || {
        let reply = refusal();
        reply.status == 503 && reply.text().contains(part)
    });
    let admin = bearer(ADMIN);
    for path in ["/mcp/usage", "/admin/tokens", "/mcp", "/sse"] {
        let reply = server.get(path, &[("authorization", &admin)]);
        assert_eq!(reply.status, 503, "{path}");
        assert!(reply.text().contains(part), "{path}: {}", reply.text());
    }
    let health = server.get("/health", &[]);
    let told = health.json();
    assert_eq!(health.status, 503, "{told}");
    assert_eq!(
        (&told["status"], &told["store"]),
        (&json!("unhealthy"), &json!(store))
    );
    assert!(told["problem"].to_string().contains(part), "{told}");
    assert!(server.log().contains(part), "{}", server.log());
}

fn assert_serves(server: &HttpServer) {
    // How the store is, is looked at every few seconds.
    eventually("the server serves", || {
        let health = server.get("/health", &[]).json();
        health["status"] == "ok" && status(server, "a-token") == 200
    });
}

const REPLACED: &str = "lost its data or was replaced";

#[test]
fn rejects_redis_that_lost_its_data() {
    let mut stage = Stage::new(None);
    for restarted in [false, true] {
        let (one, two) = (stage.server(), stage.server());
        let made = make(&one, "eve");
        revoke(&one, "bob");
        eventually("the other server hears of it", || {
            status(&two, &made) == 200 && status(&two, "b-token") == 403
        });
        match restarted {
            false => drop(stage.redis.say(&["FLUSHALL"])),
            true => stage.redis.restart_empty(),
        }
        for server in [&one, &two] {
            assert_refuses(server, "replaced", REPLACED);
            // Whoever restarts now should know which tokens come back.
            eventually("the revoked token is named", || {
                let log = server.log();
                log.contains("remove it from USER_TOKENS") && log.contains("bob")
            });
        }
        // Nobody made anything anew.
        for collection in ["secrets", "tokens", "tasks", "audit"] {
            assert_eq!(stage.kept(collection), 0, "{collection}");
        }
        // One that is started now begins anew; those from before do not mix with it.
        let three = stage.server();
        assert_serves(&three);
        assert_eq!(status(&three, &made), 401, "made before, and lost");
        assert_eq!(status(&three, "b-token"), 200, "the revocation is lost");
        let newer = make(&three, "fay");
        std::thread::sleep(Duration::from_secs(3));
        for server in [&one, &two] {
            assert_refuses(server, "replaced", REPLACED);
        }
        drop((one, two));
        // A restart accepts the store as it is.
        let one = stage.server();
        assert_serves(&one);
        assert_eq!((status(&one, &newer), status(&one, &made)), (200, 401));
    }
}

#[test]
fn continues_with_redis_that_retained_its_data() {
    let mut stage = Stage::new(None);
    let (one, two) = (stage.server(), stage.server());
    let made = make(&one, "eve");
    revoke(&one, "bob");
    eventually("the other server hears of it", || {
        status(&two, &made) == 200
    });
    stage.redis.freeze();
    std::thread::sleep(Duration::from_secs(5));
    for server in [&one, &two] {
        // What needs no store goes on; nobody is let in who was not.
        eventually("it is told", || {
            server.get("/health", &[]).json()["store"] == "unavailable"
        });
        assert_eq!(
            (status(server, "b-token"), status(server, "no-token")),
            (403, 401)
        );
    }
    stage.redis.thaw();
    for server in [&one, &two] {
        assert_serves(server);
    }
    stage.redis.kill();
    std::thread::sleep(Duration::from_secs(3));
    stage.redis.restart();
    for server in [&one, &two] {
        assert_serves(server);
        assert_eq!(
            (status(server, &made), status(server, "b-token")),
            (200, 403)
        );
        assert!(!server.log().contains(REPLACED), "{}", server.log());
    }
}

#[test]
fn rejects_redis_upgraded_by_a_newer_release() {
    let stage = Stage::new(None);
    let server = stage.server();
    assert_serves(&server);
    let raise = ["HSET", "exa-mcp:store", "version", "2", "program", "7.8.9"];
    stage.redis.say(&raise).expect("an answer");
    assert_refuses(&server, "newer", "version 2 of the format");
    assert!(server.get("/health", &[]).text().contains("7.8.9"));
    let output = stage.program(None).run();
    assert_ne!(output.code, Some(0));
    for part in ["version 2 of the format", "7.8.9", "Nothing was changed"] {
        assert!(output.stderr.contains(part), "{}", output.stderr);
    }
    // Going back, with the data of before.
    stage
        .redis
        .say(&["HSET", "exa-mcp:store", "version", "1"])
        .expect("an answer");
    assert_serves(&server);
}

#[test]
fn replicas_with_own_secret_agree_on_an_empty_redis() {
    let mut stage = Stage::new(Some("a long secret that the operator chose"));
    let ids = |server: &HttpServer| {
        let admin = bearer(ADMIN);
        let tokens = server
            .get("/admin/tokens", &[("authorization", &admin)])
            .json();
        let tokens = tokens["tokens"].as_array().expect("tokens").clone();
        tokens
            .iter()
            .map(|token| token["id"].clone())
            .collect::<Vec<_>>()
    };
    let (one, two) = (stage.server(), stage.server());
    let before = ids(&one);
    assert_eq!(before, ids(&two));
    let made = make(&one, "eve");
    eventually("the other server hears of it", || {
        status(&two, &made) == 200
    });
    stage.redis.restart_empty();
    for server in [&one, &two] {
        assert_refuses(server, "replaced", REPLACED);
    }
    drop((one, two));
    let (one, two) = (stage.server(), stage.server());
    assert_eq!((ids(&one), ids(&two)), (before.clone(), before));
    for server in [&one, &two] {
        assert_eq!(
            (status(server, "a-token"), status(server, &made)),
            (200, 401)
        );
    }
    let again = make(&two, "eve");
    eventually("the other server hears of it", || {
        status(&one, &again) == 200
    });
    // Whoever has another secret would know none of these tokens.
    for secret in [Some("another secret"), None] {
        let output = stage.program(secret).run();
        assert_ne!(output.code, Some(0));
        assert!(
            output.stderr.contains("EXA_MCP_SECRET"),
            "{}",
            output.stderr
        );
    }
}
