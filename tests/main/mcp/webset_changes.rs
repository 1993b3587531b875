//! Subscribed websets are polled: Exa and others change them too.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{DEFAULT_VERSION, McpServer, Program, STATELESS_VERSION, Sandbox};

const UPDATED: &str = "notifications/resources/updated";

/// Longer than the interval of one second.
const SEVERAL_INTERVALS: Duration = Duration::from_millis(3_500);

/// The most websets that are polled for one owner.
const MAX_PER_OWNER: usize = 16;

fn connect(sandbox: &Sandbox, version: &str, interval: &str) -> McpServer {
    let program = Program::new([])
        .env("EXA_BASE_URL", &sandbox.url())
        .env("EXA_MCP_WEBSET_POLL_INTERVAL", interval);
    McpServer::connect(program, version)
}

#[track_caller]
fn websets(server: &mut McpServer, operation: &str, args: Value) {
    let call = json!({"operation": operation, "args": args, "output_format": "json"});
    let outcome = server.call_raw("manage_websets", call);
    outcome.success();
}

/// Creates a webset that has nothing to do, and returns its URI.
fn webset(server: &mut McpServer, name: &str) -> String {
    websets(server, "websets.create", json!({"externalId": name}));
    format!("exa://websets/{name}")
}

fn subscribe(server: &mut McpServer, uris: &[&str]) {
    if server.is_stateless() {
        let wanted = json!({"resourceSubscriptions": uris});
        server.send("subscriptions/listen", json!({"notifications": wanted}));
        server.notification("notifications/subscriptions/acknowledged");
        return;
    }
    for uri in uris {
        let response = server.request("resources/subscribe", json!({"uri": uri}));
        assert_eq!(response["result"], json!({}), "{response}");
    }
}

/// Returns the number of polls so far.
fn polls(sandbox: &Sandbox) -> usize {
    sandbox.requests("websets.get").len()
}

#[test]
fn changes_by_others_notify_subscribers() {
    for version in ["2024-11-05", DEFAULT_VERSION, STATELESS_VERSION] {
        let sandbox = Sandbox::start();
        let mut other = connect(&sandbox, DEFAULT_VERSION, "0");
        let followed = webset(&mut other, "a");
        let items = format!("{followed}/items");
        let mut server = connect(&sandbox, version, "1");
        subscribe(&mut server, &[&followed, &items]);
        sandbox.await_requests("websets.get", 2);
        // Nothing has changed yet.
        server.assert_silent();
        let title = json!({"websetId": "a", "metadata": {"title": "x"}});
        websets(&mut other, "websets.update", title);
        let mut updated = [(); 2].map(|()| server.notification(UPDATED)["uri"].clone());
        updated.sort_by_key(Value::to_string);
        assert_eq!(updated, [json!(followed), json!(items)], "{version}");
        websets(&mut other, "websets.delete", json!({"websetId": "a"}));
        server.notification(UPDATED);
        server.notification(UPDATED);
        assert_eq!(server.try_message(SEVERAL_INTERVALS), None, "{version}");
    }
}

/// The work of Exa itself changes a webset as well.
#[test]
fn progress_at_exa_notifies_subscribers() {
    let sandbox = Sandbox::start();
    sandbox.freeze(true);
    let mut server = connect(&sandbox, DEFAULT_VERSION, "1");
    let create = json!({"externalId": "a", "search": {"query": "x", "count": 2}});
    websets(&mut server, "websets.create", create);
    subscribe(&mut server, &["exa://websets/a"]);
    sandbox.await_requests("websets.get", 2);
    server.assert_silent();
    sandbox.advance(60_000);
    assert_eq!(server.notification(UPDATED)["uri"], "exa://websets/a");
}

#[test]
fn only_a_few_websets_are_polled_while_somebody_subscribes() {
    let sandbox = Sandbox::start();
    let mut server = connect(&sandbox, DEFAULT_VERSION, "1");
    let uris: Vec<String> = (0..2 * MAX_PER_OWNER)
        .map(|number| webset(&mut server, &format!("w{number}")))
        .collect();
    let uris: Vec<&str> = uris.iter().map(String::as_str).collect();
    subscribe(&mut server, &uris);
    thread::sleep(SEVERAL_INTERVALS);
    let requests = sandbox.requests("websets.get");
    let polled: BTreeSet<String> = requests
        .iter()
        .map(|request| request["path"].to_string())
        .collect();
    assert_eq!(polled.len(), MAX_PER_OWNER, "{polled:?}");
    for uri in uris {
        server.request("resources/unsubscribe", json!({"uri": uri}));
    }
    // Requests in flight.
    thread::sleep(Duration::from_millis(200));
    let before = polls(&sandbox);
    thread::sleep(SEVERAL_INTERVALS);
    assert_eq!(polls(&sandbox), before);
}

#[test]
fn a_webset_is_polled_at_its_interval_however_often_it_is_subscribed() {
    let sandbox = Sandbox::start();
    let mut server = connect(&sandbox, DEFAULT_VERSION, "3600");
    let uri = webset(&mut server, "a");
    for _ in 0..20 {
        subscribe(&mut server, &[&uri]);
        server.request("resources/unsubscribe", json!({"uri": uri}));
    }
    subscribe(&mut server, &[&uri, &format!("{uri}/items")]);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(polls(&sandbox), 1);
    let mut without = connect(&sandbox, DEFAULT_VERSION, "0");
    subscribe(&mut without, &[&uri]);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(polls(&sandbox), 1);
}
