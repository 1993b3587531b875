//! Stores written by an earlier release, opened by this one. `tests/fixtures/upgrade/README.md` says how they
//! were made.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use super::{bearer, request};
#[cfg(unix)]
use crate::support::RedisServer;
use crate::support::{DEFAULT_VERSION, HttpServer, HttpSession, Recorder, Response, eventually};

const RELEASE: &str = "912abe7";

/// The responses of the earlier release about its store, and the time since then.
struct Fixture {
    expected: Value,
    /// The time since then, in milliseconds.
    later: i64,
    /// The time of the recording, and now.
    made: DateTime<Utc>,
    now: DateTime<Utc>,
}

fn folder() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("tests/fixtures/upgrade").join(RELEASE)
}

impl Fixture {
    fn read(name: &str) -> Self {
        let text = std::fs::read_to_string(folder().join(name)).expect("the fixture");
        let expected: Value = serde_json::from_str(&text).expect("JSON");
        let made = expected["madeAt"].as_i64().expect("a time");
        let made = DateTime::from_timestamp_millis(made).expect("a time");
        let now = Utc::now();
        Self {
            expected,
            later: (now - made).num_milliseconds(),
            made,
            now,
        }
    }

    /// Returns a document with its times moved to the present, because tasks expire after a day.
    fn with_current_times(&self, collection: &str, body: &str) -> String {
        let Ok(Value::Object(mut body)) = serde_json::from_str(body) else {
            return body.to_owned();
        };
        let later = |map: &mut Map<String, Value>, name: &str| {
            if let Some(time) = map.get_mut(name).filter(|time| time.is_number()) {
                *time = json!(time.as_i64().expect("a time") + self.later);
            }
        };
        match collection {
            "tasks" => {
                later(&mut body, "created");
                later(&mut body, "updated");
            }
            "tokens" => {
                if let Some(Value::Object(former)) = body.get_mut("former") {
                    later(former, "until");
                }
            }
            _ => {}
        }
        Value::Object(body).to_string()
    }

    /// Returns a counter key with the current day and month.
    fn subject(&self, subject: &str) -> String {
        let day = |time: DateTime<Utc>| format!("day:{}", time.format("%Y-%m-%d"));
        let month = |time: DateTime<Utc>| format!("spent:{}:", time.format("%Y-%m"));
        match subject.strip_prefix(&month(self.made)) {
            Some(token) => format!("{}{token}", month(self.now)),
            None if subject == day(self.made) => day(self.now),
            None => subject.to_owned(),
        }
    }

    fn name(&self, subject: &str, name: &str) -> String {
        let day = |time: DateTime<Utc>| time.format("%d").to_string();
        if subject.starts_with("spent:") && name == day(self.made) {
            day(self.now)
        } else {
            name.to_owned()
        }
    }

    fn token(&self, user: &str) -> &str {
        self.expected["made"][user]["token"]
            .as_str()
            .expect("a token")
    }
}

/// Asserts that a response contains everything that the earlier release returned; new fields are allowed.
#[track_caller]
fn assert_contains(now: &Value, then: &Value, what: &str) {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            for (name, then) in then {
                let now = now.get(name).unwrap_or(&Value::Null);
                assert_contains(now, then, &format!("{what}.{name}"));
            }
        }
        (Value::Array(now), Value::Array(then)) => {
            assert_eq!(now.len(), then.len(), "{what}: {now:?}");
            for (number, (now, then)) in now.iter().zip(then).enumerate() {
                assert_contains(now, then, &format!("{what}[{number}]"));
            }
        }
        _ => assert_eq!(now, then, "{what}"),
    }
}

/// Starts a mock of Exa with one running operation.
fn exa(is_done: &Arc<AtomicBool>) -> Recorder {
    let is_done = Arc::clone(is_done);
    Recorder::start(move |request, _| {
        let Some(id) = request.path().strip_prefix("/research/v1/") else {
            return Response::json(404, &json!({"error": "not found"}));
        };
        let status = if is_done.load(Ordering::SeqCst) {
            "completed"
        } else {
            "running"
        };
        let work = json!({"researchId": id, "status": status, "createdAt": 1, "model": "exa-research",
            "instructions": "one that goes on", "output": {"content": "done"}});
        Response::json(200, &work)
    })
}

fn assert_intact(fixture: &Fixture, store: &str) {
    let is_done = Arc::new(AtomicBool::new(false));
    let exa = exa(&is_done);
    let environment = &fixture.expected["environment"];
    let text = |name: &str| environment[name].as_str().expect("a string");
    let variables = [
        ("EXA_API_KEYS", "pool-key-one"),
        ("MCP_AUTH_TOKEN", text("admin")),
        ("USER_TOKENS", text("users")),
        ("ENABLED_TOOLS", "default,notes"),
        ("EXA_MCP_STORE", store),
    ];
    let server = HttpServer::with_upstream(&exa.url(), &variables);
    let get = |path: &str, token: &str| {
        let token = bearer(token);
        server.get(path, &[("authorization", &token)])
    };
    let admin = |path: &str| get(path, text("admin")).json();

    // Usage, tokens and the audit log.
    let mut tokens = admin("/admin/tokens")["tokens"].clone();
    assert_contains(&tokens, &fixture.expected["tokens"], "tokens");
    let mut usage = fixture.expected["usage"].clone();
    usage["days"][0]["day"] = json!(fixture.now.format("%Y-%m-%d").to_string());
    assert_contains(&admin("/admin/usage?days=1"), &usage, "usage");
    let audit = admin("/admin/audit?limit=100");
    assert_contains(
        &audit["entries"],
        &fixture.expected["audit"]["entries"],
        "audit",
    );

    // Authentication.
    let status = |token: &str| get("/mcp/usage", token).status;
    let former = |user: &str| {
        fixture.expected["made"][user]["former"]
            .as_str()
            .expect("one")
    };
    for token in ["ann-token", "bob-token", former("gus")] {
        assert_eq!(status(token), 200, "{token}");
    }
    for user in ["eve", "fay", "gus", "jon"] {
        assert_eq!(status(fixture.token(user)), 200, "{user}");
    }
    assert_eq!(status(former("fay")), 401);
    for token in [
        "carl-token",
        "dora-token",
        fixture.token("hal"),
        fixture.token("ida"),
    ] {
        assert_eq!(status(token), 403, "{token}");
    }
    assert_eq!(get("/admin/tokens", fixture.token("jon")).status, 200);
    assert_eq!(get("/admin/tokens", fixture.token("eve")).status, 403);

    // Limits.
    let bob = bearer("bob-token");
    let mut bob = HttpSession::new(&server, &[("authorization", &bob)]);
    let tools = bob.request("tools/list", json!({}));
    let tools = tools["result"]["tools"].as_array().expect("tools");
    let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["web_search_exa"]);
    let ping = request(9, "ping", json!({}));
    let refused = (0..8).any(|_| bob.post(&ping).status == 429);
    assert!(refused, "five requests a minute");

    assert_tasks_and_notes(fixture, &server, &is_done);
    // New usage is added to the stored usage.
    tokens = admin("/admin/tokens")["tokens"].clone();
    let ann = |tokens: &Value| {
        let tokens = tokens.as_array().expect("tokens");
        let ann = tokens.iter().find(|token| token["userId"] == "ann");
        ann.expect("Ann's")["usageCount"]
            .as_u64()
            .expect("a number")
    };
    assert!(ann(&tokens) > ann(&fixture.expected["tokens"]));
}

fn assert_tasks_and_notes(fixture: &Fixture, server: &HttpServer, is_done: &AtomicBool) {
    let token = bearer("ann-token");
    let headers = [("authorization", token.as_str())];
    let mut ann = HttpSession::with_capabilities(server, &headers, json!({"elicitation": {}}));
    for note in fixture.expected["notes"].as_array().expect("notes") {
        let read = ann.request("resources/read", json!({"uri": note["uri"]}));
        // The fixture has the note as an earlier release showed it, with its title and its sources.
        let shown = note["text"].as_str().expect("a text");
        let content = read["result"]["contents"][0]["text"].as_str();
        let content = content.expect("a text");
        assert!(
            !content.is_empty() && shown.contains(content),
            "{content} is not in {shown}"
        );
    }
    let then = &fixture.expected["tasks"];
    let listed = ann.request("tasks/list", json!({}));
    let listed = listed["result"]["tasks"].as_array().expect("tasks").clone();
    let ids: Vec<&Value> = listed.iter().map(|task| &task["taskId"]).collect();
    assert_eq!(json!(ids), then["listed"]);
    let id = |status: &str| json!({"taskId": then["ids"][status]});
    for status in ["completed", "failed", "cancelled"] {
        let state = ann.request("tasks/get", id(status))["result"].clone();
        let before = &then["states"][status];
        for field in ["status", "statusMessage", "ttl"] {
            assert_eq!(state[field], before[field], "{status}: {state}");
        }
    }
    for status in ["completed", "failed"] {
        let result = ann.request("tasks/result", id(status));
        assert_eq!(result["result"], then["results"][status], "{status}");
    }
    // Running tasks continue, and tasks that need input wait again.
    assert_eq!(
        ann.request("tasks/get", id("working"))["result"]["status"],
        "working"
    );
    is_done.store(true, Ordering::SeqCst);
    let result = ann.request("tasks/result", id("working"));
    assert_eq!(result["result"]["isError"], false, "{result}");
    eventually("the input is requested again", || {
        let state = ann.request("tasks/get", id("input_required"));
        state["result"]["status"] == "input_required"
    });
}

#[test]
fn opens_sqlite_file_of_an_earlier_release() {
    let fixture = Fixture::read("sqlite.expected.json");
    let copy = tempfile::tempdir().expect("a folder");
    let path = copy.path().join("store.db");
    std::fs::copy(folder().join("store.db"), &path).expect("a copy");
    let file = rusqlite::Connection::open(&path).expect("the file");
    let rows: Vec<(i64, String, String)> = {
        let sql = "SELECT number, collection, body FROM documents";
        let mut rows = file.prepare(sql).expect("documents");
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        rows.expect("rows").map(|row| row.expect("a row")).collect()
    };
    for (number, collection, body) in rows {
        let body = fixture.with_current_times(&collection, &body);
        let sql = "UPDATE documents SET body = ?, expires = expires + ? WHERE number = ?";
        let changed = file.execute(sql, (body, fixture.later, number));
        assert_eq!(changed, Ok(1));
    }
    let counts: Vec<(String, String)> = {
        let mut rows = file
            .prepare("SELECT subject, name FROM counters")
            .expect("numbers");
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.expect("rows").map(|row| row.expect("a row")).collect()
    };
    for (subject, name) in counts {
        let sql = "UPDATE counters SET subject = ?, name = ? WHERE subject = ? AND name = ?";
        let new = (fixture.subject(&subject), fixture.name(&subject, &name));
        let changed = file.execute(sql, (new.0, new.1, &subject, &name));
        assert_eq!(changed, Ok(1));
    }
    drop(file);
    assert_intact(&fixture, &format!("sqlite:{}", path.display()));
}

#[cfg(unix)]
#[test]
fn opens_redis_data_of_an_earlier_release() {
    let fixture = Fixture::read("redis.expected.json");
    let redis = RedisServer::start();
    let text = std::fs::read_to_string(folder().join("redis.jsonl")).expect("the fixture");
    for line in text.lines() {
        let entry: Value = serde_json::from_str(line).expect("an entry");
        restore(&fixture, &redis, &entry);
    }
    assert_intact(&fixture, &redis.url());
    // A session of the earlier release continues.
    let variables = [
        ("EXA_API_KEYS", "pool-key-one"),
        ("USER_TOKENS", "ann-token:ann"),
        ("EXA_MCP_STORE", &redis.url()),
    ];
    let server = HttpServer::with_upstream("http://127.0.0.1:1", &variables);
    let session = fixture.expected["session"].as_str().expect("a session");
    let token = bearer("ann-token");
    let headers = [
        ("authorization", token.as_str()),
        ("mcp-session-id", session),
        ("mcp-protocol-version", DEFAULT_VERSION),
    ];
    let response = server.post(&headers, &request(1, "tools/list", json!({})));
    assert_eq!(response.status, 200, "{}", response.text());
}

/// Restores one key, with its times moved to the present.
#[cfg(unix)]
fn restore(fixture: &Fixture, redis: &RedisServer, entry: &Value) {
    let key = entry["key"].as_str().expect("a key");
    let text = |value: &Value| value.as_str().expect("a string").to_owned();
    let values: Vec<String> = match &entry["value"] {
        Value::Array(values) => values.iter().map(text).collect(),
        value => vec![text(value)],
    };
    let decoded = crate::support::percent_decode(key);
    let pairs = || {
        values
            .chunks(2)
            .map(|pair| (pair[0].clone(), pair[1].clone()))
    };
    let later = |time: &str| {
        let time: i64 = time.parse().expect("a time");
        (time + fixture.later).to_string()
    };
    let mut command = vec![];
    match entry["type"].as_str().expect("a type") {
        "string" => command.extend(["SET".to_owned(), key.to_owned(), values[0].clone()]),
        "set" => {
            command.extend(["SADD".to_owned(), key.to_owned()]);
            command.extend(values.iter().map(|subject| fixture.subject(subject)));
        }
        "zset" => {
            command.extend(["ZADD".to_owned(), key.to_owned()]);
            for (member, score) in pairs() {
                let score = if key == "exa-mcp:ends" {
                    later(&score)
                } else {
                    score
                };
                command.extend([score, member]);
            }
        }
        "hash" => {
            let subject = decoded.strip_prefix("exa-mcp:count:");
            let parts: Vec<&str> = decoded.split(':').collect();
            let collection = if parts[1] == "doc" { parts[2] } else { "" };
            let renamed = subject.map(|subject| {
                let subject = fixture.subject(subject);
                let encoded: String = subject
                    .bytes()
                    .map(|byte| {
                        if byte.is_ascii_alphanumeric() {
                            char::from(byte).to_string()
                        } else {
                            format!("%{byte:02X}")
                        }
                    })
                    .collect();
                format!("exa-mcp:count:{encoded}")
            });
            command.extend(["HSET".to_owned(), renamed.unwrap_or(key.to_owned())]);
            for (field, value) in pairs() {
                let (field, value) = match field.as_str() {
                    "e" => (field, later(&value)),
                    "b" => (field, fixture.with_current_times(collection, &value)),
                    _ => (fixture.name(subject.unwrap_or_default(), &field), value),
                };
                command.extend([field, value]);
            }
        }
        other => panic!("{other}"),
    }
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let answer = redis.command(&words).expect("a response");
    assert!(!answer.starts_with('-'), "{answer}");
}
