//! Replicas notify the owner about changes made on other replicas.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::replicas::{POOL, Replicas};
use super::{ACCEPT_EVENTS, bearer, request, search};
use crate::support::{
    DEFAULT_VERSION, Events, HttpServer, HttpSession, STATELESS_VERSION, eventually, initialize,
    stateless_params,
};

const UPDATED: &str = "notifications/resources/updated";
const LIST_CHANGED: &str = "notifications/resources/list_changed";

/// Starts servers without pings, so that a test that waits in vain times out.
fn replicas(count: usize) -> Replicas {
    Replicas::with(count, &[POOL[0], POOL[1], ("EXA_MCP_KEEP_ALIVE", "600")])
}

/// Calls a tool of a server without a session.
#[track_caller]
fn call(server: &HttpServer, token: &str, tool: &str, arguments: Value) {
    let (token, params) = (bearer(token), json!({"name": tool, "arguments": arguments}));
    let answer = server.send_stateless(&[("authorization", &token)], "tools/call", params);
    let answer = answer.json();
    assert_eq!(answer["result"]["isError"], false, "{answer}");
}

/// Creates a webset and returns its resource URI.
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

/// A client that sends the requests of one session to any server.
struct SessionClient {
    token: String,
    session: String,
}

impl SessionClient {
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
            ("mcp-protocol-version", DEFAULT_VERSION),
        ]
    }

    /// Opens the stream for messages from the server.
    fn stream(&self, server: &HttpServer) -> Events {
        let mut headers = self.headers().to_vec();
        headers.push(("accept", "text/event-stream"));
        server.events("GET", "/mcp", &headers, b"")
    }

    #[track_caller]
    fn request(&self, server: &HttpServer, method: &str, params: Value) {
        let response = server.post(&self.headers(), &request(7, method, params));
        assert_eq!(response.json()["result"], json!({}), "{}", response.text());
    }
}

/// Returns the URI of the next updated resource.
fn next_updated_uri(events: &mut Events) -> String {
    loop {
        let message = events.message();
        if message["method"] == UPDATED {
            return message["params"]["uri"]
                .as_str()
                .expect("an address")
                .to_owned();
        }
    }
}

/// Repeats an action until a wait in another thread returns.
fn repeat_until_done(action: impl Fn() + Sync, wait: impl FnOnce()) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                action();
                thread::sleep(Duration::from_millis(300));
            }
        });
        let _guard = SetOnDrop(&done);
        wait();
    });
}

/// Sets a flag when dropped, even by a panic.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Waits for the notification that the list changed.
fn wait_for_list_changed(events: &mut Events) {
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
        let session = HttpSession::new(here, &[("authorization", &header)]);
        let client = SessionClient::new(token, &session.id);
        for uri in [&shared, &other] {
            client.request(here, "resources/subscribe", json!({"uri": uri}));
        }
        streams.push(client.stream(here));
    }
    let [ann, bob] = streams.as_mut_slice() else {
        unreachable!("two streams");
    };
    for _ in 0..3 {
        touch(there, "a-token", "shared");
        assert_eq!(next_updated_uri(ann), shared);
    }
    // If Bob were notified about Ann's change, that notification would arrive first.
    touch(there, "b-token", "other");
    assert_eq!(next_updated_uri(bob), other);
    call(
        there,
        "a-token",
        "create_note",
        json!({"title": "t", "content": "c"}),
    );
    wait_for_list_changed(ann);
}

#[test]
fn stateless_subscription_receives_changes_of_other_replicas() {
    let replicas = replicas(2);
    let (here, there) = (&replicas.servers[0], &replicas.servers[1]);
    let uri = webset(there, "a-token", "a");
    let wanted = json!({"resourcesListChanged": true, "resourceSubscriptions": [uri]});
    let params = stateless_params(json!({"notifications": wanted}));
    let body = request(1, "subscriptions/listen", params).to_string();
    let token = bearer("a-token");
    let headers = [
        ("authorization", token.as_str()),
        ("mcp-protocol-version", STATELESS_VERSION),
        ("mcp-method", "subscriptions/listen"),
        ("content-type", "application/json"),
        ACCEPT_EVENTS,
    ];
    let mut events = here.events("POST", "/mcp", &headers, body.as_bytes());
    let acknowledged = events.message();
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    touch(there, "a-token", "a");
    assert_eq!(next_updated_uri(&mut events), uri);
    call(
        there,
        "a-token",
        "create_note",
        json!({"title": "t", "content": "c"}),
    );
    wait_for_list_changed(&mut events);
}

/// A load balancer may send each request of a session to another server.
#[test]
fn session_subscriptions_are_shared_between_replicas() {
    let replicas = replicas(3);
    let [first, second, third] = replicas.servers.as_slice() else {
        unreachable!("three servers");
    };
    let (a, b) = (webset(first, "a-token", "a"), webset(first, "a-token", "b"));
    let token = bearer("a-token");
    let begun = first.post(&[("authorization", &token)], &initialize(DEFAULT_VERSION));
    let id = begun.header("mcp-session-id").expect("a session");
    let client = SessionClient::new("a-token", id);
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(second.post(&client.headers(), &ready).status, 202);

    // The stream is open on the server that received neither `initialized` nor the subscriptions.
    let mut early = client.stream(first);
    client.request(second, "resources/subscribe", json!({"uri": a}));
    client.request(third, "resources/subscribe", json!({"uri": b}));
    for (name, uri) in [("b", &b), ("a", &a)] {
        repeat_until_done(
            || touch(third, "a-token", name),
            || while next_updated_uri(&mut early) != *uri {},
        );
    }
    // A stream on a server that has not served the session since.
    drop(early);
    let mut late = client.stream(second);
    touch(first, "a-token", "b");
    assert_eq!(next_updated_uri(&mut late), b);

    client.request(third, "resources/unsubscribe", json!({"uri": b}));
    // The other server learns about it later. Two changes may arrive in either order, so one round is not enough.
    let mut silent = 0;
    eventually("the subscription has ended", || {
        touch(first, "a-token", "b");
        touch(first, "a-token", "a");
        silent += 1;
        while next_updated_uri(&mut late) != a {
            silent = 0;
        }
        silent == 3
    });
    // The token of another user cannot open the stream.
    let bob = SessionClient::new("b-token", id);
    let response = second.post(
        &bob.headers(),
        &request(8, "resources/subscribe", json!({"uri": a})),
    );
    assert_eq!(response.status, 404);
}

/// A client that lists resources at one server is notified by the server that has its stream.
#[test]
fn interest_in_the_list_is_shared_between_replicas() {
    let replicas = replicas(3);
    let [first, second, third] = replicas.servers.as_slice() else {
        unreachable!("three servers");
    };
    let token = bearer("a-token");
    let session = HttpSession::new(first, &[("authorization", &token)]);
    let client = SessionClient::new("a-token", &session.id);
    let mut stream = client.stream(first);
    let list = request(7, "resources/list", json!({}));
    let listed = second.post(&client.headers(), &list).json();
    assert!(listed["result"]["resources"][0].is_object(), "{listed}");
    let note = json!({"title": "t", "content": "c"});
    repeat_until_done(
        || call(third, "a-token", "create_note", note.clone()),
        || wait_for_list_changed(&mut stream),
    );
    // A server that learns of the session later.
    drop(stream);
    let mut late = client.stream(third);
    repeat_until_done(
        || call(first, "a-token", "create_note", note.clone()),
        || wait_for_list_changed(&mut late),
    );
}

#[test]
fn log_level_is_shared_between_replicas() {
    let replicas = replicas(2);
    let (here, there) = (&replicas.servers[0], &replicas.servers[1]);
    let token = bearer("a-token");
    let session = HttpSession::new(here, &[("authorization", &token)]);
    let client = SessionClient::new("a-token", &session.id);
    let mut stream = client.stream(here);
    client.request(there, "logging/setLevel", json!({"level": "debug"}));
    let call = json!({"name": "web_search_exa", "arguments": search()});
    repeat_until_done(
        || drop(here.post(&client.headers(), &request(9, "tools/call", call.clone()))),
        || while stream.message()["method"] != "notifications/message" {},
    );
}

#[test]
fn without_redis_local_changes_are_sent_and_the_rest_later() {
    let replicas = replicas(2);
    let (here, there) = (&replicas.servers[0], &replicas.servers[1]);
    let uri = webset(here, "a-token", "a");
    let token = bearer("a-token");
    let session = HttpSession::new(here, &[("authorization", &token)]);
    let client = SessionClient::new("a-token", &session.id);
    client.request(here, "resources/subscribe", json!({"uri": uri}));
    let mut stream = client.stream(here);
    replicas.redis().kill();
    touch(here, "a-token", "a");
    assert_eq!(next_updated_uri(&mut stream), uri);
    // No server learns about this until Redis is back; then everything may have changed.
    touch(there, "a-token", "a");
    replicas.redis().restart();
    assert_eq!(next_updated_uri(&mut stream), uri);
    // From then on each change is reported again.
    for _ in 0..3 {
        repeat_until_done(
            || touch(there, "a-token", "a"),
            || drop(next_updated_uri(&mut stream)),
        );
    }
    let logs = [here.log(), there.log()].concat();
    assert!(
        logs.contains("cannot receive messages of other servers"),
        "{logs}"
    );
}
