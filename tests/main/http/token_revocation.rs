//! What is open with a token, and what it has under way, when the token ends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use chrono::{SecondsFormat, Utc};
use serde_json::{Value, json};

use super::admin::{ADMIN, Admin};
#[cfg(unix)]
use super::replicas::Replicas;
use super::{STREAMS, bearer, request};
use crate::support::{Events, HttpServer, HttpSession, Recorder, Reply, STATELESS, introduced};

/// How long streams may outlive their token. It is a second; a busy machine is given more.
const SOON: Duration = Duration::from_secs(6);

/// An upstream that takes longer to answer a search than any test waits, and whose websets never end.
fn upstream() -> Recorder {
    Recorder::start(|seen, _| {
        if seen.path().ends_with("/search") {
            thread::sleep(Duration::from_secs(120));
        }
        let status = if seen.path().ends_with("/cancel") {
            "idle"
        } else {
            "running"
        };
        let webset =
            json!({"id": "webset_1", "object": "webset", "status": status, "searches": []});
        Reply::json(200, &webset)
    })
}

fn start(exa: &Recorder, variables: &[(&str, &str)]) -> HttpServer {
    let mut all = vec![
        ("MCP_AUTH_TOKEN", ADMIN),
        ("EXA_API_KEYS", "the-only-key-of-all"),
        ("EXA_MCP_KEEP_ALIVE", "1"),
    ];
    all.extend_from_slice(variables);
    HttpServer::upstream(&exa.url(), &all)
}

/// One stream of every kind that can be open with a token, by its name; and the id of the session.
fn streams(server: &HttpServer, token: &str) -> (Vec<(&'static str, Events)>, String) {
    let shown = bearer(token);
    let session = HttpSession::usual(server, &[("authorization", &shown)]);
    let json = ("content-type", "application/json");
    let search = json!({"name": "web_search_exa", "arguments": {"query": "slow"}});

    let mut own = session.headers();
    own.push(("accept", "text/event-stream"));
    let standing = server.events("GET", "/mcp", &own, b"");

    let mut own = session.headers();
    own.extend([STREAMS, json]);
    let call = request(7, "tools/call", search).to_string();
    let called = server.events("POST", "/mcp", &own, call.as_bytes());

    let wanted = introduced(json!({"notifications": {"resourcesListChanged": true}}));
    let listen = request(1, "subscriptions/listen", wanted).to_string();
    let headers = [
        ("authorization", shown.as_str()),
        ("mcp-protocol-version", STATELESS),
        ("mcp-method", "subscriptions/listen"),
        json,
        STREAMS,
    ];
    let listening = server.events("POST", "/mcp", &headers, listen.as_bytes());
    let oldest = server.events("GET", "/sse", &[("authorization", &shown)], b"");
    let mut streams = vec![
        ("GET of a session", standing),
        ("call of a session", called),
        ("listen", listening),
        ("/sse", oldest),
    ];
    for (name, events) in &mut streams {
        // Each is open and says so now and then.
        assert_eq!(events.head.status, 200, "{name}");
        assert!(events.line().is_some(), "{name}");
        assert!(events.line().is_some(), "{name}");
    }
    (streams, session.id.clone())
}

/// Calls without a session, which are not answered before they end; each as its client wants the answer.
fn calls(server: &HttpServer, token: &str) -> Vec<TcpStream> {
    let params = json!({"name": "web_search_exa", "arguments": {"query": "slow"}});
    let body = request(1, "tools/call", introduced(params)).to_string();
    let accepts = ["application/json", STREAMS.1];
    let call = |accept: &str| {
        let mut stream = server.connect();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\naccept: {accept}\r\n\
             mcp-protocol-version: {STATELESS}\r\nmcp-method: tools/call\r\n\
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

/// Whether calls are refused with this status as soon as their token has ended.
#[track_caller]
fn all_refused(calls: Vec<TcpStream>, status: u16, since: Instant) {
    for mut call in calls {
        let mut answer = String::new();
        call.read_to_string(&mut answer).expect("an answer");
        assert!(since.elapsed() < SOON, "{answer}");
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{answer}");
    }
}

#[track_caller]
fn all_end(streams: Vec<(&'static str, Events)>, since: Instant) {
    for (name, mut events) in streams {
        while events.line().is_some() {
            assert!(since.elapsed() < SOON, "{name} is still open");
        }
    }
}

#[track_caller]
fn all_go_on(streams: &mut [(&'static str, Events)]) {
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
    all_end(ending, revoked);
    all_refused(calls, 403, revoked);
    all_go_on(&mut staying);
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
    all_end(ending, since);
    all_refused(calls, 401, since);
    let shown = bearer(rotated["token"].as_str().expect("a token"));
    let headers = [
        ("authorization", shown.as_str()),
        ("mcp-session-id", session.as_str()),
    ];
    let reply = server.post(&headers, &request(9, "ping", json!({})));
    assert_eq!(reply.status, 200, "{}", reply.text());
    let (mut staying, _) = streams(&server, rotated["token"].as_str().expect("a token"));
    all_go_on(&mut staying);
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
    all_go_on(&mut ending);
    all_end(ending, rotated + Duration::from_secs(4));
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
    // An end that is set while streams are open counts, too.
    admin.post(&sooner_id, "expire", &json!({}));
    all_end(ending_now, Instant::now());
    if Instant::now() + Duration::from_secs(3) < expires {
        all_go_on(&mut made);
        all_go_on(&mut of_environment);
    }
    thread::sleep(expires.saturating_duration_since(Instant::now()));
    all_end(made, expires);
    all_refused(calls, 403, expires);
    all_end(of_environment, expires);
}

#[cfg(unix)]
#[test]
fn revocation_at_one_replica_ends_the_streams_at_another() {
    let keys = ("EXA_API_KEYS", "pool-key-one");
    let alive = ("EXA_MCP_KEEP_ALIVE", "1");
    let replicas = Replicas::with(2, &[("MCP_AUTH_TOKEN", ADMIN), keys, alive]);
    let (here, there) = (&replicas.servers[0], &replicas.servers[1]);
    let (text, id) = Admin(here).create(&json!({"userId": "ann"}));
    let shown = bearer(&text);
    let started = Instant::now();
    while there.get("/mcp/usage", &[("authorization", &shown)]).status != 200 {
        assert!(started.elapsed() < Duration::from_secs(20));
        thread::sleep(Duration::from_millis(500));
    }
    let session = HttpSession::usual(there, &[("authorization", &shown)]);
    let mut own = session.headers();
    own.push(("accept", "text/event-stream"));
    let wanted = introduced(json!({"notifications": {"resourcesListChanged": true}}));
    let listen = request(1, "subscriptions/listen", wanted).to_string();
    let headers = [
        ("authorization", shown.as_str()),
        ("mcp-protocol-version", STATELESS),
        ("mcp-method", "subscriptions/listen"),
        ("content-type", "application/json"),
        STREAMS,
    ];
    let mut streams = vec![
        ("GET", there.events("GET", "/mcp", &own, b"")),
        (
            "/sse",
            there.events("GET", "/sse", &[("authorization", &shown)], b""),
        ),
        (
            "listen",
            there.events("POST", "/mcp", &headers, listen.as_bytes()),
        ),
    ];
    all_go_on(&mut streams);
    Admin(here).post(&id, "revoke", &json!({}));
    all_end(streams, Instant::now() + Duration::from_secs(2));
}

fn begin_task(server: &HttpServer, token: &str) -> String {
    let shown = bearer(token);
    let mut session = HttpSession::usual(server, &[("authorization", &shown)]);
    let args = json!({"search": {"query": "companies", "count": 1}});
    let call = json!({
        "name": "manage_websets",
        "arguments": {"operation": "websets.create", "args": args},
        "task": {"ttl": 600_000},
    });
    let task = session.ask("tools/call", call)["result"]["task"].clone();
    task["taskId"].as_str().expect("a task").to_owned()
}

fn task(server: &HttpServer, token: &str, id: &str) -> Value {
    let shown = bearer(token);
    let mut session = HttpSession::usual(server, &[("authorization", &shown)]);
    session.ask("tasks/get", json!({"taskId": id}))["result"].clone()
}

/// Waits until the only task of a server has been cancelled.
#[track_caller]
fn is_cancelled(admin: &Admin) {
    let started = Instant::now();
    while admin.get("/admin/state")["tasks"]["cancelled"] != 1 {
        assert!(started.elapsed() < SOON, "the task goes on");
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
        let (_, stranger) = admin.create(&json!({"userId": "ben"}));
        let id = begin_task(&server, &first);
        end(&admin, &first_id);
        end(&admin, &stranger);
        let rotated = admin.post(&second_id, "rotate", &json!({"graceSeconds": 0}));
        assert_ne!(rotated["token"], second.as_str());
        thread::sleep(Duration::from_secs(3));
        let text = rotated["token"].as_str().expect("a token");
        assert_eq!(task(&server, text, &id)["status"], "working");
        end(&admin, &second_id);
        is_cancelled(&admin);
        // Exa is asked to stop, and nobody asks how it goes any more.
        thread::sleep(Duration::from_secs(1));
        let seen = exa.take();
        let cancels = seen.iter().filter(|seen| seen.path().ends_with("/cancel"));
        assert_eq!(cancels.count(), 1, "{seen:?}");
        thread::sleep(Duration::from_secs(4));
        assert_eq!(exa.take().len(), 0);
        // Whoever is let in again learns why.
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
        let task_id = begin_task(&server, &text);
        thread::sleep(Duration::from_secs(2));
        assert_eq!(task(&server, &text, &task_id)["status"], "working");
        let path = format!("/admin/tokens/{id}");
        assert_eq!(admin.send("PATCH", &path, &other).status, 200);
        is_cancelled(&admin);
        thread::sleep(Duration::from_secs(1));
        exa.take();
        thread::sleep(Duration::from_secs(4));
        assert_eq!(exa.take().len(), 0, "{user}");
        // Whoever gets the token back, or another one, can have tasks again.
        if user["userId"].is_string() {
            assert_eq!(admin.send("PATCH", &path, &user).status, 200);
            let next = begin_task(&server, &text);
            thread::sleep(Duration::from_secs(2));
            let ended = task(&server, &text, &task_id);
            let why = ended["statusMessage"].to_string();
            assert!(why.contains("given to another user"), "{ended}");
            assert_eq!(task(&server, &text, &next)["status"], "working");
        }
    }
    // The server dies right after the change.
    let exa = upstream();
    let mut server = start(&exa, &variables);
    let (text, id) = Admin(&server).create(&json!({"userId": "ann"}));
    begin_task(&server, &text);
    thread::sleep(Duration::from_secs(1));
    let other = json!({"userId": "other"});
    let path = format!("/admin/tokens/{id}");
    assert_eq!(Admin(&server).send("PATCH", &path, &other).status, 200);
    crate::support::signal(server.id(), "KILL");
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
    begin_task(&server, &text);
    thread::sleep(Duration::from_millis(1_500));
    // The server dies; meanwhile the token expires.
    Admin(&server).post(&id, "expire", &json!({"expiresAt": in_seconds(2)}));
    crate::support::signal(server.id(), "KILL");
    server.wait();
    thread::sleep(Duration::from_secs(3));
    exa.take();
    let server = start(&exa, &variables);
    is_cancelled(&Admin(&server));
    thread::sleep(Duration::from_secs(3));
    let seen = exa.take();
    assert!(
        seen.iter().all(|seen| seen.path().ends_with("/cancel")),
        "{seen:?}"
    );
}
