//! Interrupted streams can be resumed from every event id while the session exists.

#[cfg(unix)]
mod replicas;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::{ACCEPT_EVENTS, request, search};
use crate::support::{Events, HttpServer, HttpSession, Sandbox};

/// The protocol versions whose streams can be resumed.
const VERSIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

const KEY: (&str, &str) = ("x-api-key", "some-key-of-mine");

/// The id and the data of an event.
type Event = (String, String);

/// Reads events until one satisfies `is_last`, or the stream ends.
fn read_until(events: &mut Events, is_last: impl Fn(&Event) -> bool) -> Vec<Event> {
    let mut found = Vec::new();
    let (mut id, mut data) = (String::new(), String::new());
    while let Some(line) = events.line() {
        if let Some(text) = line.strip_prefix("id:") {
            text.trim().clone_into(&mut id);
        } else if let Some(text) = line.strip_prefix("data:") {
            text.trim().clone_into(&mut data);
        } else if line.is_empty() && !(id.is_empty() && data.is_empty()) {
            let event = (std::mem::take(&mut id), std::mem::take(&mut data));
            let is_done = is_last(&event);
            found.push(event);
            if is_done {
                break;
            }
        }
    }
    found
}

/// Returns the events of a complete body.
fn events_of(text: &str) -> Vec<Event> {
    let blocks = text.split("\n\n").filter(|block| !block.is_empty());
    let field = |block: &str, name: &str| {
        let mut values = block.lines().filter_map(|line| line.strip_prefix(name));
        values.next().unwrap_or_default().trim().to_owned()
    };
    let events = blocks.map(|block| (field(block, "id:"), field(block, "data:")));
    events.filter(|event| *event != Event::default()).collect()
}

/// Returns the messages of events.
fn messages(events: &[Event]) -> Vec<&str> {
    let data = events.iter().map(|(_, data)| data.as_str());
    data.filter(|data| !data.is_empty()).collect()
}

fn streaming<'a>(session: &'a HttpSession) -> Vec<(&'a str, &'a str)> {
    let mut headers = session.headers();
    headers.extend([ACCEPT_EVENTS, ("content-type", "application/json")]);
    headers
}

/// Sends a request and reads its response stream to the end.
fn request_events(server: &HttpServer, session: &HttpSession, message: &Value) -> Vec<Event> {
    let body = message.to_string();
    let response = server.send("POST", "/mcp", &streaming(session), body.as_bytes());
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.header("content-type"), Some("text/event-stream"));
    events_of(&response.text())
}

/// Opens the session's stream for messages from the server.
fn listen(server: &HttpServer, session: &HttpSession) -> Events {
    let mut headers = session.headers();
    headers.push(("accept", "text/event-stream"));
    server.events("GET", "/mcp", &headers, b"")
}

/// Resumes a stream after an event id.
fn resume(server: &HttpServer, session: &HttpSession, id: &str) -> Events {
    let mut headers = session.headers();
    headers.extend([("accept", "text/event-stream"), ("last-event-id", id)]);
    let events = server.events("GET", "/mcp", &headers, b"");
    assert_eq!(events.head.status, 200, "{id}: {:?}", events.head);
    let content = events.head.header("content-type");
    assert_eq!(content, Some("text/event-stream"), "{id}");
    events
}

/// Resumes a stream after an event id and reads it to the end.
fn resume_to_end(server: &HttpServer, session: &HttpSession, id: &str) -> Vec<Event> {
    let mut headers = session.headers();
    headers.extend([("accept", "text/event-stream"), ("last-event-id", id)]);
    let response = server.get("/mcp", &headers);
    assert_eq!(response.status, 200, "{id}: {}", response.text());
    assert_eq!(
        response.header("content-type"),
        Some("text/event-stream"),
        "{id}"
    );
    events_of(&response.text())
}

fn tool_call(id: u64, tool: &str, arguments: Value) -> Value {
    let meta = json!({"progressToken": id});
    request(
        id,
        "tools/call",
        json!({"name": tool, "arguments": arguments, "_meta": meta}),
    )
}

fn note(number: usize) -> Value {
    json!({"title": format!("note {number}"), "content": "c"})
}

fn has_text(text: &'static str) -> impl Fn(&Event) -> bool {
    move |(_, data)| data.contains(text)
}

#[test]
fn finished_request_resumes_from_every_event_id() {
    for version in VERSIONS {
        let sandbox = Sandbox::start();
        let server = HttpServer::with_upstream(&sandbox.url(), &[]);
        let session = server.session(version, &[KEY]);
        let quick = [
            request(2, "ping", json!({})),
            request(3, "tools/list", json!({})),
            tool_call(4, "web_search_exa", search()),
        ];
        let mut streams: Vec<Vec<Event>> = quick
            .iter()
            .map(|message| request_events(&server, &session, message))
            .collect();
        sandbox.fault("search", "delay=300");
        streams.push(request_events(
            &server,
            &session,
            &tool_call(5, "web_search_exa", search()),
        ));
        let made = json!({
            "operation": "websets.create",
            "args": {"search": {"query": "banks", "count": 2}}, "wait_seconds": 10,
        });
        streams.push(request_events(
            &server,
            &session,
            &tool_call(6, "manage_websets", made),
        ));
        let all: Vec<&Event> = streams.iter().flatten().collect();
        let ids: BTreeSet<&String> = all.iter().map(|(id, _)| id).collect();
        assert_eq!(ids.len(), all.len(), "{version}: ids are unique: {ids:?}");
        assert!(
            streams.last().is_some_and(|last| last.len() > 3),
            "{version}: progress"
        );
        for events in &streams {
            assert!(events.len() >= 2, "{version}: a priming event: {events:?}");
            for (at, (id, _)) in events.iter().enumerate() {
                // Resuming does not consume events.
                for _ in 0..2 {
                    let later = resume_to_end(&server, &session, id);
                    assert_eq!(later, events[at + 1..], "{version}: {id}");
                }
            }
        }
    }
}

#[test]
fn running_request_resumes_from_every_event_id() {
    for version in VERSIONS {
        let sandbox = Sandbox::start();
        sandbox.fault("search", "delay=4000");
        let server = HttpServer::with_upstream(&sandbox.url(), &[]);
        let session = server.session(version, &[KEY]);
        let body = tool_call(7, "web_search_exa", search()).to_string();
        let headers = streaming(&session);
        let mut cut = server.events("POST", "/mcp", &headers, body.as_bytes());
        let mut known = read_until(&mut cut, |_| true);
        drop(cut);
        // Each connection is closed after its first event, if one arrives before the response.
        for _ in 0..2 {
            let (id, _) = known.last().expect("an event");
            let mut again = resume(&server, &session, id);
            if version == "2025-11-25" {
                let event = read_until(&mut again, |_| true);
                known.extend(event);
            }
        }
        let (id, _) = known.last().expect("an event").clone();
        let last = resume_to_end(&server, &session, &id);
        let last = messages(&last).last().expect("a response").to_string();
        let last: Value = serde_json::from_str(&last).expect("JSON");
        assert_eq!(last["id"], 7, "{version}: {last}");
        assert_eq!(last["result"]["isError"], false, "{version}: {last}");
        for (id, _) in &known {
            let later = resume_to_end(&server, &session, id);
            let later = messages(&later);
            let answers = later.iter().filter(|data| data.contains("\"result\""));
            assert_eq!(answers.count(), 1, "{version}: {id}: {later:?}");
        }
    }
}

#[test]
fn two_connections_resume_the_same_request() {
    let sandbox = Sandbox::start();
    sandbox.fault("search", "delay=1000");
    let server = HttpServer::with_upstream(&sandbox.url(), &[]);
    let session = HttpSession::new(&server, &[KEY]);
    let body = tool_call(7, "web_search_exa", search()).to_string();
    let mut first = server.events("POST", "/mcp", &streaming(&session), body.as_bytes());
    let begun = read_until(&mut first, |_| true);
    let (id, _) = begun.last().expect("an event");
    // To the server, the first connection may look open long after the client has lost it.
    let mut second = resume(&server, &session, id);
    let second = read_until(&mut second, |_| false);
    let first = read_until(&mut first, |_| false);
    assert_eq!(messages(&first), messages(&second));
    assert_eq!(messages(&first).len(), 1, "{first:?}");
}

#[test]
fn cancelled_request_can_be_resumed() {
    let sandbox = Sandbox::start();
    sandbox.fault("search", "delay=60000");
    let server = HttpServer::with_upstream(&sandbox.url(), &[]);
    let session = HttpSession::new(&server, &[KEY]);
    let body = tool_call(7, "web_search_exa", search()).to_string();
    let mut events = server.events("POST", "/mcp", &streaming(&session), body.as_bytes());
    let mut known = read_until(&mut events, |_| true);
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    assert_eq!(session.post(&cancel).status, 202);
    known.extend(read_until(&mut events, |_| false));
    for (at, (id, _)) in known.iter().enumerate() {
        assert_eq!(
            resume_to_end(&server, &session, id),
            known[at + 1..],
            "{id}"
        );
    }
}

#[test]
fn immediate_error_has_no_event_id() {
    for version in VERSIONS {
        let server = HttpServer::sandboxed(&[]);
        let session = server.session(version, &[]);
        for message in [
            request(2, "tools/call", json!({"name": "no-such-tool"})),
            request(3, "resources/read", json!({"uri": "exa://nowhere"})),
        ] {
            let body = message.to_string();
            // On a busy machine the response may become a stream; an immediate response has a length.
            let at_once = (0..100).find_map(|_| {
                let response = server.send("POST", "/mcp", &streaming(&session), body.as_bytes());
                response
                    .header("content-length")
                    .is_some()
                    .then_some(response)
            });
            let events = events_of(&at_once.expect("an error at once").text());
            let [(id, data)] = events.as_slice() else {
                panic!("{version}: {events:?}")
            };
            assert_eq!(
                id, "",
                "{version}: some clients would come back for the rest"
            );
            assert!(data.contains("\"error\""), "{version}: {data}");
        }
    }
}

#[test]
fn standalone_stream_resumes_from_every_event_id() {
    for version in VERSIONS {
        let variables = [
            ("ENABLED_TOOLS", "default,notes"),
            ("EXA_MCP_KEEP_ALIVE", "1"),
        ];
        let server = HttpServer::sandboxed(&variables);
        let mut session = server.session(version, &[]);
        session.request("resources/list", json!({}));
        let mut standing = listen(&server, &session);
        let mut known = Vec::new();
        for number in 0..3 {
            session.call("create_note", note(number));
            known.extend(read_until(&mut standing, has_text("list_changed")));
        }
        drop(standing);
        let received = messages(&known).len();
        assert!(received >= 3, "{version}: {known:?}");
        let ids: BTreeSet<&String> = known.iter().map(|(id, _)| id).collect();
        assert_eq!(
            ids.len(),
            known.len(),
            "{version}: ids are unique: {known:?}"
        );
        let is_primed = known.first().is_some_and(|(_, data)| data.is_empty());
        assert_eq!(is_primed, version == "2025-11-25", "{version}: {known:?}");
        for (at, (id, _)) in known.iter().enumerate() {
            let mut again = resume(&server, &session, id);
            let missed = messages(&known[at + 1..]);
            // Nothing else arrives: the next message is new.
            session.call("create_note", note(10 + at));
            let mut found = Vec::new();
            while found.len() < missed.len() + 1 {
                let events = read_until(&mut again, has_text("list_changed"));
                assert!(!events.is_empty(), "{version}: {id}: the stream has ended");
                let fresh = events.iter().all(|(id, _)| !ids.contains(id));
                assert_eq!(
                    fresh,
                    found.len() >= missed.len(),
                    "{version}: {id}: {events:?}"
                );
                found.extend(events.into_iter().filter(|(_, data)| !data.is_empty()));
            }
            assert_eq!(messages(&found)[..missed.len()], missed, "{version}: {id}");
            drop(again);
        }
    }
}

#[test]
fn standalone_messages_go_to_one_connection() {
    let variables = [
        ("ENABLED_TOOLS", "default,notes"),
        ("EXA_MCP_KEEP_ALIVE", "1"),
    ];
    let server = HttpServer::sandboxed(&variables);
    let mut session = HttpSession::new(&server, &[]);
    session.request("resources/list", json!({}));
    let open = || {
        let mut events = listen(&server, &session);
        read_until(&mut events, |_| true);
        events
    };
    let (mut older, mut newer) = (open(), open());
    let create_note = |number: usize| session.post(&tool_call(100, "create_note", note(number)));
    assert_eq!(create_note(1).status, 200);
    let first = read_until(&mut newer, has_text("list_changed"));
    drop(newer);
    // The server notices when it next sends something, and then uses the older stream.
    let is_received = AtomicBool::new(false);
    let second = thread::scope(|scope| {
        scope.spawn(|| {
            for number in 2.. {
                if is_received.load(Ordering::SeqCst) {
                    break;
                }
                create_note(number);
                thread::sleep(Duration::from_millis(300));
            }
        });
        let second = read_until(&mut older, has_text("list_changed"));
        is_received.store(true, Ordering::SeqCst);
        second
    });
    assert_eq!((messages(&first).len(), messages(&second).len()), (1, 1));
    assert_ne!(first, second);
}

#[test]
fn unknown_event_id_starts_a_new_stream() {
    thread::scope(|scope| {
        for version in VERSIONS {
            scope.spawn(move || unknown_ids(version));
        }
    });
}

fn unknown_ids(version: &str) {
    let variables = [
        ("ENABLED_TOOLS", "default,notes"),
        ("EXA_MCP_KEEP_ALIVE", "1"),
    ];
    let server = HttpServer::sandboxed(&variables);
    let other = server.session(version, &[]);
    let secret = json!({"query": "the-secret-of-another-session", "numResults": 1});
    let foreign = request_events(&server, &other, &tool_call(3, "web_search_exa", secret));
    let mut session = server.session(version, &[]);
    session.request("resources/list", json!({}));
    let own = request_events(&server, &session, &request(2, "ping", json!({})));
    let (own, _) = own.first().expect("an event");
    let (front, _) = own.rsplit_once('-').expect("an id");
    let garbage = [
        "0",
        "0/0",
        "0/999",
        "nonsense",
        "99999999",
        "--",
        "-1--1",
        "%00",
        "00000000-1-0",
    ];
    let mut unknown: Vec<String> = garbage.iter().map(|id| (*id).to_owned()).collect();
    unknown.push(format!("{front}-99"));
    unknown.push(format!("{front}-18446744073709551615"));
    unknown.push("x".repeat(4000));
    unknown.extend(foreign.into_iter().map(|(id, _)| id));
    for (number, id) in unknown.iter().enumerate() {
        let mut fresh = resume(&server, &session, id);
        session.call("create_note", note(number));
        let received = read_until(&mut fresh, has_text("list_changed"));
        let data = messages(&received);
        assert_eq!(data.len(), 1, "{version}: {id}: {received:?}");
        assert!(
            data[0].contains("list_changed"),
            "{version}: {id}: {received:?}"
        );
    }
}

#[test]
fn event_ids_end_with_their_session() {
    let server = HttpServer::sandboxed(&[]);
    let session = HttpSession::new(&server, &[]);
    let events = request_events(&server, &session, &request(2, "ping", json!({})));
    let (id, _) = events.first().expect("an event");
    let ended = server.send("DELETE", "/mcp", &session.headers(), b"");
    assert_eq!(ended.status, 204);
    let mut headers = session.headers();
    headers.extend([("accept", "text/event-stream"), ("last-event-id", id)]);
    assert_eq!(server.get("/mcp", &headers).status, 404);
}
