//! Changes at one server are told at the others, to those whose they are.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::eventually;
use super::replicas::{POOL, Replicas};
use super::{STREAMS, bearer, request, search};
use crate::support::{Events, HttpServer, HttpSession, STATELESS, USUAL, initialize, introduced};

const UPDATED: &str = "notifications/resources/updated";
const LIST_CHANGED: &str = "notifications/resources/list_changed";

/// Servers that say nothing by themselves: a test that waits in vain must come to an end.
fn replicas(count: usize) -> Replicas {
    Replicas::with(count, &[POOL[0], POOL[1], ("EXA_MCP_KEEP_ALIVE", "600")])
}

/// Calls a tool at a server, without any session.
#[track_caller]
fn call(server: &HttpServer, token: &str, tool: &str, arguments: Value) {
    let (token, params) = (bearer(token), json!({"name": tool, "arguments": arguments}));
    let answer = server.stateless(&[("authorization", &token)], "tools/call", params);
    let answer = answer.json();
    assert_eq!(answer["result"]["isError"], false, "{answer}");
}

/// Makes a webset and gives its address.
#[track_caller]
fn webset(server: &HttpServer, token: &str, name: &str) -> String {
    let args = json!({"search": {"query": "x"}, "externalId": name});
    let arguments = json!({"operation": "websets.create", "args": args});
    call(server, token, "manage_websets", arguments);
    format!("exa://websets/{name}")
}

/// Changes a webset.
#[track_caller]
fn touch(server: &HttpServer, token: &str, name: &str) {
    let args = json!({"websetId": name, "metadata": {"title": "x"}});
    let arguments = json!({"operation": "websets.update", "args": args});
    call(server, token, "manage_websets", arguments);
}

/// The headers of a request of a session.
struct Shown {
    token: String,
    session: String,
}

impl Shown {
    fn new(token: &str, session: &str) -> Self {
        Self {
            token: bearer(token),
            session: session.to_owned(),
        }
    }

    fn headers(&self) -> [(&str, &str); 3] {
        [
            ("authorization", &self.token),
            ("mcp-session-id", &self.session),
            ("mcp-protocol-version", USUAL),
        ]
    }

    /// Opens the stream on which a server speaks by itself.
    fn stream(&self, server: &HttpServer) -> Events {
        let mut headers = self.headers().to_vec();
        headers.push(("accept", "text/event-stream"));
        server.events("GET", "/mcp", &headers, b"")
    }

    #[track_caller]
    fn ask(&self, server: &HttpServer, method: &str, params: Value) {
        let reply = server.post(&self.headers(), &request(7, method, params));
        assert_eq!(reply.json()["result"], json!({}), "{}", reply.text());
    }
}

/// The next resource of which a stream says that it is another one.
fn updated(events: &mut Events) -> String {
    loop {
        let told = events.message();
        if told["method"] == UPDATED {
            return told["params"]["uri"]
                .as_str()
                .expect("an address")
                .to_owned();
        }
    }
}

/// Does something every now and then until something else has come of it.
fn again_and_again(deed: impl Fn() + Sync, wait: impl FnOnce()) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                deed();
                thread::sleep(Duration::from_millis(300));
            }
        });
        let _end = End(&done);
        wait();
    });
}

/// Says that something has ended, however it has.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Waits for word that the list is another one.
fn list_changed(events: &mut Events) {
    while events.message()["method"] != LIST_CHANGED {}
}

#[test]
fn changes_reach_their_owner_on_other_replicas_only() {
    let replicas = replicas(2);
    let (here, there) = (&replicas.servers[0], &replicas.servers[1]);
    let shared = webset(there, "a-token", "shared");
    let other = webset(there, "b-token", "other");
    let mut streams = Vec::new();
    for token in ["a-token", "b-token"] {
        let header = bearer(token);
        let session = HttpSession::usual(here, &[("authorization", &header)]);
        let shown = Shown::new(token, &session.id);
        for uri in [&shared, &other] {
            shown.ask(here, "resources/subscribe", json!({"uri": uri}));
        }
        streams.push(shown.stream(here));
    }
    let [ann, bob] = streams.as_mut_slice() else {
        unreachable!("two streams");
    };
    for _ in 0..3 {
        touch(there, "a-token", "shared");
        assert_eq!(updated(ann), shared);
    }
    // Had Bob been told of what Ann did, he would hear that first.
    touch(there, "b-token", "other");
    assert_eq!(updated(bob), other);
    call(
        there,
        "a-token",
        "create_note",
        json!({"title": "t", "content": "c"}),
    );
    list_changed(ann);
}

#[test]
fn stateless_subscription_receives_changes_of_other_replicas() {
    let replicas = replicas(2);
    let (here, there) = (&replicas.servers[0], &replicas.servers[1]);
    let uri = webset(there, "a-token", "a");
    let wanted = json!({"resourcesListChanged": true, "resourceSubscriptions": [uri]});
    let params = introduced(json!({"notifications": wanted}));
    let body = request(1, "subscriptions/listen", params).to_string();
    let token = bearer("a-token");
    let headers = [
        ("authorization", token.as_str()),
        ("mcp-protocol-version", STATELESS),
        ("mcp-method", "subscriptions/listen"),
        ("content-type", "application/json"),
        STREAMS,
    ];
    let mut events = here.events("POST", "/mcp", &headers, body.as_bytes());
    let acknowledged = events.message();
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    touch(there, "a-token", "a");
    assert_eq!(updated(&mut events), uri);
    call(
        there,
        "a-token",
        "create_note",
        json!({"title": "t", "content": "c"}),
    );
    list_changed(&mut events);
}

/// A balancer may send each request of a session to another server.
#[test]
fn session_subscriptions_are_shared_between_replicas() {
    let replicas = replicas(3);
    let [first, second, third] = replicas.servers.as_slice() else {
        unreachable!("three servers");
    };
    let (a, b) = (webset(first, "a-token", "a"), webset(first, "a-token", "b"));
    let token = bearer("a-token");
    let begun = first.post(&[("authorization", &token)], &initialize(USUAL));
    let id = begun.header("mcp-session-id").expect("a session");
    let shown = Shown::new("a-token", id);
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(second.post(&shown.headers(), &ready).status, 202);

    // The stream is at the server that never heard that the client is ready, nor what it follows.
    let mut early = shown.stream(first);
    shown.ask(second, "resources/subscribe", json!({"uri": a}));
    shown.ask(third, "resources/subscribe", json!({"uri": b}));
    for (name, uri) in [("b", &b), ("a", &a)] {
        again_and_again(
            || touch(third, "a-token", name),
            || while updated(&mut early) != *uri {},
        );
    }
    // A stream at a server that has not run the session since.
    drop(early);
    let mut late = shown.stream(second);
    touch(first, "a-token", "b");
    assert_eq!(updated(&mut late), b);

    shown.ask(third, "resources/unsubscribe", json!({"uri": b}));
    // The other server hears of it by and by. Two changes may be told in either order, so one round is not enough.
    let mut silent = 0;
    eventually("it is followed no longer", || {
        touch(first, "a-token", "b");
        touch(first, "a-token", "a");
        silent += 1;
        while updated(&mut late) != a {
            silent = 0;
        }
        silent == 3
    });
    // Another's token opens nothing of it.
    let bob = Shown::new("b-token", id);
    let reply = second.post(
        &bob.headers(),
        &request(8, "resources/subscribe", json!({"uri": a})),
    );
    assert_eq!(reply.status, 404);
}

#[test]
fn log_level_is_shared_between_replicas() {
    let replicas = replicas(2);
    let (here, there) = (&replicas.servers[0], &replicas.servers[1]);
    let token = bearer("a-token");
    let session = HttpSession::usual(here, &[("authorization", &token)]);
    let shown = Shown::new("a-token", &session.id);
    let mut stream = shown.stream(here);
    shown.ask(there, "logging/setLevel", json!({"level": "debug"}));
    let call = json!({"name": "web_search_exa", "arguments": search()});
    again_and_again(
        || drop(here.post(&shown.headers(), &request(9, "tools/call", call.clone()))),
        || while stream.message()["method"] != "notifications/message" {},
    );
}

#[test]
fn without_redis_local_changes_are_sent_and_the_rest_later() {
    let replicas = replicas(2);
    let (here, there) = (&replicas.servers[0], &replicas.servers[1]);
    let uri = webset(here, "a-token", "a");
    let token = bearer("a-token");
    let session = HttpSession::usual(here, &[("authorization", &token)]);
    let shown = Shown::new("a-token", &session.id);
    shown.ask(here, "resources/subscribe", json!({"uri": uri}));
    let mut stream = shown.stream(here);
    replicas.redis().kill();
    touch(here, "a-token", "a");
    assert_eq!(updated(&mut stream), uri);
    // Nobody hears of this until Redis is back; then everything may have changed.
    touch(there, "a-token", "a");
    replicas.redis().restart();
    assert_eq!(updated(&mut stream), uri);
    // And from then on each change is told again.
    for _ in 0..3 {
        again_and_again(
            || touch(there, "a-token", "a"),
            || drop(updated(&mut stream)),
        );
    }
    let logs = [here.log(), there.log()].concat();
    assert!(
        logs.contains("cannot receive messages of other servers"),
        "{logs}"
    );
}
