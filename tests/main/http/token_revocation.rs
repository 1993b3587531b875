//! Streams, calls and tasks of a token that is revoked or expires.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use chrono::{SecondsFormat, Utc};
use serde_json::{Value, json};

use super::admin::{ADMIN, Admin};
#[cfg(unix)]
use super::replicas::Replicas;
use super::{ACCEPT_EVENTS, bearer, request};
use crate::support::{
    Events, HttpServer, HttpSession, Recorder, Response, STATELESS_VERSION, stateless_params,
};

/// How long streams may outlive their token: one second, and more on a busy machine.
const GRACE_PERIOD: Duration = Duration::from_secs(6);

/// Starts an upstream whose searches outlast any test and whose websets never finish.
fn upstream() -> Recorder {
    Recorder::start(|request, _| {
        if request.path().ends_with("/search") {
            thread::sleep(Duration::from_secs(120));
        }
        let status = if request.path().ends_with("/cancel") {
            "idle"
        } else {
            "running"
        };
        let webset =
            json!({"id": "webset_1", "object": "webset", "status": status, "searches": []});
        Response::json(200, &webset)
    })
}

fn start(exa: &Recorder, variables: &[(&str, &str)]) -> HttpServer {
    let mut all = vec![
        ("MCP_AUTH_TOKEN", ADMIN),
        ("EXA_API_KEYS", "the-only-key-of-all"),
        ("EXA_MCP_KEEP_ALIVE", "1"),
    ];
    all.extend_from_slice(variables);
    HttpServer::with_upstream(&exa.url(), &all)
}

/// Opens one stream of every kind with a token; returns them by name, with the session id.
fn streams(server: &HttpServer, token: &str) -> (Vec<(&'static str, Events)>, String) {
    let authorization = bearer(token);
    let session = HttpSession::new(server, &[("authorization", &authorization)]);
    let json = ("content-type", "application/json");
    let search = json!({"name": "web_search_exa", "arguments": {"query": "slow"}});

    let mut own = session.headers();
    own.push(("accept", "text/event-stream"));
    let standing = server.events("GET", "/mcp", &own, b"");

    let mut own = session.headers();
    own.extend([ACCEPT_EVENTS, json]);
    let call = request(7, "tools/call", search).to_string();
    let called = server.events("POST", "/mcp", &own, call.as_bytes());

    let wanted = stateless_params(json!({"notifications": {"resourcesListChanged": true}}));
    let listen = request(1, "subscriptions/listen", wanted).to_string();
    let headers = [
        ("authorization", authorization.as_str()),
        ("mcp-protocol-version", STATELESS_VERSION),
        ("mcp-method", "subscriptions/listen"),
        json,
        ACCEPT_EVENTS,
    ];
    let listening = server.events("POST", "/mcp", &headers, listen.as_bytes());
    let oldest = server.events("GET", "/sse", &[("authorization", &authorization)], b"");
    let mut streams = vec![
        ("GET of a session", standing),
        ("call of a session", called),
        ("listen", listening),
        ("/sse", oldest),
    ];
    for (name, events) in &mut streams {
        // Each stream is open and sends pings.
        assert_eq!(events.head.status, 200, "{name}");
        assert!(events.line().is_some(), "{name}");
        assert!(events.line().is_some(), "{name}");
    }
    (streams, session.id.clone())
}

/// Starts stateless calls that do not finish by themselves, as JSON and as an event stream.
fn calls(server: &HttpServer, token: &str) -> Vec<TcpStream> {
    let params = json!({"name": "web_search_exa", "arguments": {"query": "slow"}});
    let body = request(1, "tools/call", stateless_params(params)).to_string();
    let accepts = ["application/json", ACCEPT_EVENTS.1];
    let call = |accept: &str| {
        let mut stream = server.connect();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\naccept: {accept}\r\n\
             mcp-protocol-version: {STATELESS_VERSION}\r\nmcp-method: tools/call\r\n\
             mcp-name: web_search_exa\r\n\r\n",
            server.address,
            body.len()
        );
        let request = head + &body;
        stream.write_all(request.as_bytes()).expect("a request");
        stream
    };
    let calls = accepts.map(call).into_iter().collect();
    thread::sleep(Duration::from_millis(500));
    calls
}

/// Asserts that calls fail with this status as soon as their token ends.
#[track_caller]
fn assert_all_rejected(calls: Vec<TcpStream>, status: u16, since: Instant) {
    for mut call in calls {
        let mut answer = String::new();
        call.read_to_string(&mut answer).expect("a response");
        assert!(since.elapsed() < GRACE_PERIOD, "{answer}");
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{answer}");
    }
}

#[track_caller]
fn assert_all_end(streams: Vec<(&'static str, Events)>, since: Instant) {
    for (name, mut events) in streams {
        while events.line().is_some() {
            assert!(since.elapsed() < GRACE_PERIOD, "{name} is still open");
        }
    }
}

#[track_caller]
fn assert_all_open(streams: &mut [(&'static str, Events)]) {
    for (name, events) in streams {
        assert!(events.line().is_some(), "{name} has ended");
    }
}

fn in_seconds(seconds: i64) -> String {
    let end = Utc::now() + chrono::Duration::seconds(seconds);
    end.to_rfc3339_opts(SecondsFormat::Millis, true)
}

#[test]
fn revocation_ends_every_stream() {
    let exa = upstream();
    let server = start(&exa, &[]);
    let admin = Admin(&server);
    let (text, id) = admin.create(&json!({"userId": "ann"}));
    let (other, _) = admin.create(&json!({"userId": "ann"}));
    let (ending, _) = streams(&server, &text);
    let (mut staying, _) = streams(&server, &other);
    let calls = calls(&server, &text);
    admin.post(&id, "revoke", &json!({}));
    let revoked = Instant::now();
    assert_all_end(ending, revoked);
    assert_all_rejected(calls, 403, revoked);
    assert_all_open(&mut staying);
}

#[test]
fn rotation_ends_streams_of_the_old_token_but_no_session() {
    let exa = upstream();
    let server = start(&exa, &[]);
    let admin = Admin(&server);
    let (text, id) = admin.create(&json!({"userId": "ann"}));
    let (ending, session) = streams(&server, &text);
    let calls = calls(&server, &text);
    let rotated = admin.post(&id, "rotate", &json!({}));
    let since = Instant::now();
    assert_all_end(ending, since);
    assert_all_rejected(calls, 401, since);
    let authorization = bearer(rotated["token"].as_str().expect("a token"));
    let headers = [
        ("authorization", authorization.as_str()),
        ("mcp-session-id", session.as_str()),
    ];
    let response = server.post(&headers, &request(9, "ping", json!({})));
    assert_eq!(response.status, 200, "{}", response.text());
    let (mut staying, _) = streams(&server, rotated["token"].as_str().expect("a token"));
    assert_all_open(&mut staying);
}

#[test]
fn rotation_with_a_grace_period_ends_streams_after_it() {
    let exa = upstream();
    let server = start(&exa, &[]);
    let admin = Admin(&server);
    let (text, id) = admin.create(&json!({"userId": "ann"}));
    let (mut ending, _) = streams(&server, &text);
    admin.post(&id, "rotate", &json!({"graceSeconds": 4}));
    let rotated = Instant::now();
    assert_all_open(&mut ending);
    assert_all_end(ending, rotated + Duration::from_secs(4));
    assert!(rotated.elapsed() > Duration::from_secs(3));
}

#[test]
fn expiry_ends_every_stream() {
    let exa = upstream();
    let end = in_seconds(15);
    let tokens = format!("token-of-the-environment:eve:{end}");
    let server = start(&exa, &[("USER_TOKENS", &tokens)]);
    let expires = Instant::now() + Duration::from_secs(15);
    let admin = Admin(&server);
    let (text, _) = admin.create(&json!({"userId": "ann", "expiresAt": end}));
    let (sooner, sooner_id) = admin.create(&json!({"userId": "ben"}));
    let (mut made, _) = streams(&server, &text);
    let (mut of_environment, _) = streams(&server, "token-of-the-environment");
    let (ending_now, _) = streams(&server, &sooner);
    let calls = calls(&server, &text);
    // An expiry that is set while streams are open takes effect, too.
    admin.post(&sooner_id, "expire", &json!({}));
    assert_all_end(ending_now, Instant::now());
    if Instant::now() + Duration::from_secs(3) < expires {
        assert_all_open(&mut made);
        assert_all_open(&mut of_environment);
    }
    thread::sleep(expires.saturating_duration_since(Instant::now()));
    assert_all_end(made, expires);
    assert_all_rejected(calls, 403, expires);
    assert_all_end(of_environment, expires);
}

#[cfg(unix)]
#[test]
fn revocation_at_one_replica_ends_the_streams_at_another() {
    let keys = ("EXA_API_KEYS", "pool-key-one");
    let alive = ("EXA_MCP_KEEP_ALIVE", "1");
    let replicas = Replicas::with(2, &[("MCP_AUTH_TOKEN", ADMIN), keys, alive]);
    let (here, there) = (&replicas.servers[0], &replicas.servers[1]);
    let (text, id) = Admin(here).create(&json!({"userId": "ann"}));
    let authorization = bearer(&text);
    let started = Instant::now();
    while there
        .get("/mcp/usage", &[("authorization", &authorization)])
        .status
        != 200
    {
        assert!(started.elapsed() < Duration::from_secs(20));
        thread::sleep(Duration::from_millis(500));
    }
    let session = HttpSession::new(there, &[("authorization", &authorization)]);
    let mut own = session.headers();
    own.push(("accept", "text/event-stream"));
    let wanted = stateless_params(json!({"notifications": {"resourcesListChanged": true}}));
    let listen = request(1, "subscriptions/listen", wanted).to_string();
    let headers = [
        ("authorization", authorization.as_str()),
        ("mcp-protocol-version", STATELESS_VERSION),
        ("mcp-method", "subscriptions/listen"),
        ("content-type", "application/json"),
        ACCEPT_EVENTS,
    ];
    let mut streams = vec![
        ("GET", there.events("GET", "/mcp", &own, b"")),
        (
            "/sse",
            there.events("GET", "/sse", &[("authorization", &authorization)], b""),
        ),
        (
            "listen",
            there.events("POST", "/mcp", &headers, listen.as_bytes()),
        ),
    ];
    assert_all_open(&mut streams);
    Admin(here).post(&id, "revoke", &json!({}));
    assert_all_end(streams, Instant::now() + Duration::from_secs(2));
}

fn start_task(server: &HttpServer, token: &str) -> String {
    let authorization = bearer(token);
    let mut session = HttpSession::new(server, &[("authorization", &authorization)]);
    let args = json!({"search": {"query": "companies", "count": 1}});
    let call = json!({
        "name": "manage_websets",
        "arguments": {"operation": "websets.create", "args": args},
        "task": {"ttl": 600_000},
    });
    let task = session.request("tools/call", call)["result"]["task"].clone();
    task["taskId"].as_str().expect("a task").to_owned()
}

fn task(server: &HttpServer, token: &str, id: &str) -> Value {
    let authorization = bearer(token);
    let mut session = HttpSession::new(server, &[("authorization", &authorization)]);
    session.request("tasks/get", json!({"taskId": id}))["result"].clone()
}

/// Waits until the only task of a server is cancelled.
#[track_caller]
fn is_cancelled(admin: &Admin) {
    let started = Instant::now();
    while admin.get("/admin/state")["tasks"]["cancelled"] != 1 {
        assert!(started.elapsed() < GRACE_PERIOD, "the task continues");
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn tasks_are_cancelled_with_the_last_token_of_their_owner() {
    let ends: [fn(&Admin, &str); 3] = [
        |admin, id| drop(admin.post(id, "revoke", &json!({}))),
        |admin, id| drop(admin.post(id, "expire", &json!({}))),
        |admin, id| {
            let end = json!({"expiresAt": in_seconds(1)});
            drop(admin.post(id, "expire", &end));
        },
    ];
    for (end, word) in ends.into_iter().zip(["revoked", "expired", "expired"]) {
        let exa = upstream();
        let server = start(&exa, &[("ENABLED_TOOLS", "default")]);
        let admin = Admin(&server);
        let (first, first_id) = admin.create(&json!({"userId": "ann"}));
        let (second, second_id) = admin.create(&json!({"userId": "ann"}));
        let (_, other_id) = admin.create(&json!({"userId": "ben"}));
        let id = start_task(&server, &first);
        end(&admin, &first_id);
        end(&admin, &other_id);
        let rotated = admin.post(&second_id, "rotate", &json!({"graceSeconds": 0}));
        assert_ne!(rotated["token"], second.as_str());
        thread::sleep(Duration::from_secs(3));
        let text = rotated["token"].as_str().expect("a token");
        assert_eq!(task(&server, text, &id)["status"], "working");
        end(&admin, &second_id);
        is_cancelled(&admin);
        // The work is cancelled at Exa and no longer polled.
        thread::sleep(Duration::from_secs(1));
        let requests = exa.take();
        let cancels = requests
            .iter()
            .filter(|request| request.path().ends_with("/cancel"));
        assert_eq!(cancels.count(), 1, "{requests:?}");
        thread::sleep(Duration::from_secs(4));
        assert_eq!(exa.take().len(), 0);
        // A user with a new token learns the reason.
        let (third, _) = admin.create(&json!({"userId": "ann"}));
        let ended = task(&server, &third, &id);
        assert_eq!(ended["status"], "cancelled", "{ended}");
        assert!(ended["statusMessage"].to_string().contains(word), "{ended}");
    }
}

#[test]
fn tasks_are_cancelled_when_the_last_token_is_reassigned() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = super::admin::store(&folder);
    let variables = [("EXA_MCP_STORE", store.as_str())];
    for (user, other) in [
        (json!({"userId": "ann"}), json!({"userId": "other"})),
        (json!({"userId": "bea"}), json!({"userId": null})),
        (json!({}), json!({"userId": "carl"})),
    ] {
        let exa = upstream();
        let server = start(&exa, &[("ENABLED_TOOLS", "default")]);
        let admin = Admin(&server);
        let (text, id) = admin.create(&user);
        let task_id = start_task(&server, &text);
        thread::sleep(Duration::from_secs(2));
        assert_eq!(task(&server, &text, &task_id)["status"], "working");
        let path = format!("/admin/tokens/{id}");
        assert_eq!(admin.send("PATCH", &path, &other).status, 200);
        is_cancelled(&admin);
        thread::sleep(Duration::from_secs(1));
        exa.take();
        thread::sleep(Duration::from_secs(4));
        assert_eq!(exa.take().len(), 0, "{user}");
        // With the reactivated or a new token, tasks can be started again.
        if user["userId"].is_string() {
            assert_eq!(admin.send("PATCH", &path, &user).status, 200);
            let next = start_task(&server, &text);
            thread::sleep(Duration::from_secs(2));
            let ended = task(&server, &text, &task_id);
            let why = ended["statusMessage"].to_string();
            assert!(why.contains("given to another user"), "{ended}");
            assert_eq!(task(&server, &text, &next)["status"], "working");
        }
    }
    // The server is killed right after the change.
    let exa = upstream();
    let mut server = start(&exa, &variables);
    let (text, id) = Admin(&server).create(&json!({"userId": "ann"}));
    start_task(&server, &text);
    thread::sleep(Duration::from_secs(1));
    let other = json!({"userId": "other"});
    let path = format!("/admin/tokens/{id}");
    assert_eq!(Admin(&server).send("PATCH", &path, &other).status, 200);
    crate::support::signal(server.process_id(), "KILL");
    server.wait();
    let server = start(&exa, &variables);
    is_cancelled(&Admin(&server));
}

#[test]
fn tasks_of_a_revoked_owner_are_not_recovered() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = super::admin::store(&folder);
    let variables = [("EXA_MCP_STORE", store.as_str())];
    let exa = upstream();
    let mut server = start(&exa, &variables);
    let (text, id) = Admin(&server).create(&json!({"userId": "ann"}));
    start_task(&server, &text);
    thread::sleep(Duration::from_millis(1_500));
    // The server is killed, and the token expires meanwhile.
    Admin(&server).post(&id, "expire", &json!({"expiresAt": in_seconds(2)}));
    crate::support::signal(server.process_id(), "KILL");
    server.wait();
    thread::sleep(Duration::from_secs(3));
    exa.take();
    let server = start(&exa, &variables);
    is_cancelled(&Admin(&server));
    thread::sleep(Duration::from_secs(3));
    let requests = exa.take();
    assert!(
        requests
            .iter()
            .all(|request| request.path().ends_with("/cancel")),
        "{requests:?}"
    );
}
