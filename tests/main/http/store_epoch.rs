//! A Redis that lost its data, was replaced or paused, or was upgraded by a newer release.

use std::time::Duration;

use serde_json::{Value, json};

use super::bearer;
use crate::support::{HttpServer, Program, RedisServer, Sandbox, eventually};

const ADMIN: &str = "the-admin-token";

/// Servers that are started one by one with the same Redis.
struct Fixture {
    redis: RedisServer,
    sandbox: Sandbox,
    secret: Option<&'static str>,
}

impl Fixture {
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

    /// Returns the number of documents in a collection.
    fn document_count(&self, collection: &str) -> usize {
        let keys = format!("exa-mcp:doc:{collection}:*");
        let answer = self.redis.command(&["KEYS", &keys]).expect("a response");
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
    let response = server.send("POST", path, &headers, body.to_string().as_bytes());
    assert!(
        response.status < 300,
        "{} {}",
        response.status,
        response.text()
    );
    response.json()
}

/// Creates a token and returns its text.
fn create_token(server: &HttpServer, user: &str) -> String {
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

/// Asserts that the server rejects all requests and gives the reason.
#[track_caller]
fn assert_unavailable(server: &HttpServer, store: &str, part: &str) {
    let token = bearer("a-token");
    let refusal = || server.get("/mcp/usage", &[("authorization", &token)]);
    // While Redis restarts, the reason is that it does not respond.
    eventually("the server rejects requests", || {
        let response = refusal();
        response.status == 503 && response.text().contains(part)
    });
    let admin = bearer(ADMIN);
    for path in ["/mcp/usage", "/admin/tokens", "/mcp", "/sse"] {
        let response = server.get(path, &[("authorization", &admin)]);
        assert_eq!(response.status, 503, "{path}");
        assert!(
            response.text().contains(part),
            "{path}: {}",
            response.text()
        );
    }
    let health = server.get("/health", &[]);
    let body = health.json();
    assert_eq!(health.status, 503, "{body}");
    assert_eq!(
        (&body["status"], &body["store"]),
        (&json!("unhealthy"), &json!(store))
    );
    assert!(body["problem"].to_string().contains(part), "{body}");
    assert!(server.log().contains(part), "{}", server.log());
}

fn assert_serves(server: &HttpServer) {
    // The server checks the store every few seconds.
    eventually("the server accepts requests", || {
        let health = server.get("/health", &[]).json();
        health["status"] == "ok" && status(server, "a-token") == 200
    });
}

const REPLACED: &str = "lost its data or was replaced";

#[test]
fn rejects_redis_that_lost_its_data() {
    let mut fixture = Fixture::new(None);
    for restarted in [false, true] {
        let (one, two) = (fixture.server(), fixture.server());
        let made = create_token(&one, "eve");
        revoke(&one, "bob");
        eventually("the other server learns about it", || {
            status(&two, &made) == 200 && status(&two, "b-token") == 403
        });
        if restarted {
            fixture.redis.restart_empty()
        } else {
            drop(fixture.redis.command(&["FLUSHALL"]))
        }
        for server in [&one, &two] {
            assert_unavailable(server, "replaced", REPLACED);
            // An operator who restarts now should know which tokens become valid again.
            eventually("the revoked token is named", || {
                let log = server.log();
                log.contains("remove it from USER_TOKENS") && log.contains("bob")
            });
        }
        // No server created new documents.
        for collection in ["secrets", "tokens", "tasks", "audit"] {
            assert_eq!(fixture.document_count(collection), 0, "{collection}");
        }
        // A server that starts now initializes the store; the old ones must not use it.
        let three = fixture.server();
        assert_serves(&three);
        assert_eq!(status(&three, &made), 401, "the token was lost");
        assert_eq!(status(&three, "b-token"), 200, "the revocation is lost");
        let newer = create_token(&three, "fay");
        std::thread::sleep(Duration::from_secs(3));
        for server in [&one, &two] {
            assert_unavailable(server, "replaced", REPLACED);
        }
        drop((one, two));
        // A restart accepts the current store.
        let one = fixture.server();
        assert_serves(&one);
        assert_eq!((status(&one, &newer), status(&one, &made)), (200, 401));
    }
}

#[test]
fn continues_with_redis_that_retained_its_data() {
    let mut fixture = Fixture::new(None);
    let (one, two) = (fixture.server(), fixture.server());
    let made = create_token(&one, "eve");
    revoke(&one, "bob");
    eventually("the other server learns about it", || {
        status(&two, &made) == 200
    });
    fixture.redis.freeze();
    std::thread::sleep(Duration::from_secs(5));
    for server in [&one, &two] {
        // Requests that need no store succeed; invalid tokens stay rejected.
        eventually("the problem is reported", || {
            server.get("/health", &[]).json()["store"] == "unavailable"
        });
        assert_eq!(
            (status(server, "b-token"), status(server, "no-token")),
            (403, 401)
        );
    }
    fixture.redis.unfreeze();
    for server in [&one, &two] {
        assert_serves(server);
    }
    fixture.redis.kill();
    std::thread::sleep(Duration::from_secs(3));
    fixture.redis.restart();
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
    let fixture = Fixture::new(None);
    let server = fixture.server();
    assert_serves(&server);
    let raise = ["HSET", "exa-mcp:store", "version", "2", "program", "7.8.9"];
    fixture.redis.command(&raise).expect("a response");
    assert_unavailable(&server, "newer", "version 2 of the format");
    assert!(server.get("/health", &[]).text().contains("7.8.9"));
    let output = fixture.program(None).run();
    assert_ne!(output.code, Some(0));
    for part in ["version 2 of the format", "7.8.9", "Nothing was changed"] {
        assert!(output.stderr.contains(part), "{}", output.stderr);
    }
    // A downgrade, with the earlier data.
    fixture
        .redis
        .command(&["HSET", "exa-mcp:store", "version", "1"])
        .expect("a response");
    assert_serves(&server);
}

#[test]
fn replicas_with_own_secret_agree_on_an_empty_redis() {
    let mut fixture = Fixture::new(Some("a long secret that the operator chose"));
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
    let (one, two) = (fixture.server(), fixture.server());
    let before = ids(&one);
    assert_eq!(before, ids(&two));
    let made = create_token(&one, "eve");
    eventually("the other server learns about it", || {
        status(&two, &made) == 200
    });
    fixture.redis.restart_empty();
    for server in [&one, &two] {
        assert_unavailable(server, "replaced", REPLACED);
    }
    drop((one, two));
    let (one, two) = (fixture.server(), fixture.server());
    assert_eq!((ids(&one), ids(&two)), (before.clone(), before));
    for server in [&one, &two] {
        assert_eq!(
            (status(server, "a-token"), status(server, &made)),
            (200, 401)
        );
    }
    let again = create_token(&two, "eve");
    eventually("the other server learns about it", || {
        status(&one, &again) == 200
    });
    // With another secret, none of these tokens would be valid.
    for secret in [Some("another secret"), None] {
        let output = fixture.program(secret).run();
        assert_ne!(output.code, Some(0));
        assert!(
            output.stderr.contains("EXA_MCP_SECRET"),
            "{}",
            output.stderr
        );
    }
}
